"""Image networks of transformers: pixels in, one vector per image out."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from skdare.errors import InputError
from skdare.features.backbones.backbone import ImageBackbone, count_features
from skdare.features.json_file import check_shape

if TYPE_CHECKING:
    from skdare.features.backbones.hugging_face import Repository

_PROCESSOR = {
    **dict.fromkeys(("crop_size", "size"), dict | int | None),
    **dict.fromkeys(("do_center_crop", "do_rescale", "do_normalize"), bool | None),
    "rescale_factor": float,
}
# Vision transformers whose last hidden state is after the final layer norm and starts with a class
# token. Their poolers, where they have one, add a layer that is random in most checkpoints.
_CLASS_TOKEN = ("vit", "deit", "dinov2", "dinov2_with_registers", "dinov3_vit", "vit_msn")
_TEXT_SIDE = ("text_model", "text_projection")


def load_image_encoder(
    name: str, repository: Repository, config: Any, size: int | None, pooling: str | None
) -> ImageBackbone:
    """Image network of a repository, with its processor's mean, std and size."""
    processor = read_processor(repository)
    vision = getattr(config, "vision_config", config)
    native = getattr(vision, "image_size", None)
    size = size or image_size(processor) or native or 224
    pooling = pooling or _default_pooling(config)
    unused = _TEXT_SIDE if pooling == "pooler" else (*_TEXT_SIDE, "pooler")
    model = repository.model(config, unused)
    stretch = "interpolate_pos_encoding"  # for vision transformers that do not do so by default
    can_stretch = stretch in inspect.signature(_image_side(model).forward).parameters
    options = {stretch: True} if can_stretch and size != native else {}
    patch = getattr(vision, "patch_size", None)
    module = ImageEncoder(model, pooling, (size // patch) ** 2 if patch else 0, options).eval()
    mean, std = normalisation(processor)
    return ImageBackbone(name, size, count_features(name, module, size), module, mean, std)


class ImageEncoder(nn.Module):
    """An image network of transformers with the pooling of its positions.

    Parameters
    ----------
    model : torch.nn.Module
    pooling : "cls", "mean", "pooler" or "projection"
    patches : int
        Number of patches in an image; tokens before them are not averaged. 0: not a transformer.
    options : dict
        Passed on to every call of the network.
    """

    model: Any

    def __init__(
        self, model: nn.Module, pooling: str, patches: int, options: dict[str, Any]
    ) -> None:
        super().__init__()
        self.model = model
        self.pooling = pooling
        self.patches = patches
        self.options = options

    def forward(self, x: Tensor) -> Tensor:
        """Features of images (n, 3, size, size)."""
        if self.pooling == "projection":
            projected = self.model.get_image_features(pixel_values=x, **self.options)
            return getattr(projected, "pooler_output", projected)
        output = _image_side(self.model)(pixel_values=x, **self.options)
        if self.pooling == "pooler":
            if getattr(output, "pooler_output", None) is None:
                raise InputError("it has no pooled output; pass pooling='mean'")
            return output.pooler_output.flatten(1)
        hidden = output.last_hidden_state
        if hidden.ndim == 4:
            if self.pooling == "cls":
                raise InputError("it has no tokens; pass pooling='mean' or 'pooler'")
            return hidden.mean(dim=(2, 3))
        before = max(hidden.shape[1] - self.patches, 0)
        return hidden[:, 0] if self.pooling == "cls" else hidden[:, before:].mean(dim=1)


def _image_side(model: Any) -> Any:
    return getattr(model, "vision_model", model)


def _default_pooling(config: Any) -> str:
    if hasattr(config, "vision_config"):
        return "projection"
    return "cls" if config.model_type in _CLASS_TOKEN else "pooler"


def read_processor(repository: Repository) -> Mapping[str, Any]:
    """How images are prepared, as the files of a repository state it."""
    # Not AutoImageProcessor: it may need torchvision, and would resize on the host.
    processor = repository.json("preprocessor_config.json")
    if processor is None:
        processor = (repository.json("processor_config.json") or {}).get("image_processor")
    if processor is None:
        raise FileNotFoundError(
            f"{repository.name} has no preprocessor_config.json, which says how images are "
            "normalised; save the image processor into it too"
        )
    try:
        check_shape(processor, dict)
        check_shape(processor, {key: kind for key, kind in _PROCESSOR.items() if key in processor})
        # How pixels are normalised has no default that could be right.
        needed = ("image_mean", "image_std") if processor.get("do_normalize", True) else ()
        check_shape(processor, {key: [float] for key in needed})
    except ValueError as error:
        raise InputError(
            f"the image processor of {repository.name} {error}; save it again"
        ) from error
    return processor


def image_size(processor: Mapping[str, Any]) -> int | None:
    """Side of a prepared image in pixels: after cropping where images are cropped."""
    cropped = processor.get("do_center_crop", "crop_size" in processor)
    size = processor.get("crop_size" if cropped else "size")
    if isinstance(size, Mapping):
        size = size.get("shortest_edge", size.get("height"))
    return size


def normalisation(
    processor: Mapping[str, Any],
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of pixel values in [0, 1]."""
    # A processor that does not divide bytes by 255 states them in its own unit.
    factor = processor.get("rescale_factor", 1 / 255) if processor.get("do_rescale", True) else 1
    unit = 1 / (255 * factor)
    if not processor.get("do_normalize", True):
        return (0.0,) * 3, (unit,) * 3
    mean, std = (
        tuple(unit * float(value) for value in processor[name])
        for name in ("image_mean", "image_std")
    )
    return mean, std
