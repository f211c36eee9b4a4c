"""Learning features: from images and text to a frozen feature table, with torch.

What comes out is a feature store, written by `skdare.data.StoreWriter`: the rest of the library
reads the store, and does not know how its features were made.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skdare.features.augmentation import Augmentation as Augmentation
    from skdare.features.backbones.backbone import ImageBackbone as ImageBackbone
    from skdare.features.backbones.by_name import backbone as backbone
    from skdare.features.examples.decoding import decode as decode
    from skdare.features.examples.digit_images import digit_images as digit_images
    from skdare.features.examples.examples import Examples as Examples
    from skdare.features.examples.examples import text_examples as text_examples
    from skdare.features.examples.read_collection import read_collection as read_collection
    from skdare.features.extractor import Extractor as Extractor
    from skdare.features.training.recipe import Hyperparameters as Hyperparameters
    from skdare.features.training.recipe import Recipe as Recipe
    from skdare.features.training.recipe import jobs as jobs
    from skdare.features.training.trainer import Trainer as Trainer

# Where each public name is; it is imported when it is used, as most of them need torch.
_PLACES = {
    "Augmentation": "augmentation",
    "Examples": "examples.examples",
    "Extractor": "extractor",
    "Hyperparameters": "training.recipe",
    "ImageBackbone": "backbones.backbone",
    "Recipe": "training.recipe",
    "Trainer": "training.trainer",
    "backbone": "backbones.by_name",
    "decode": "examples.decoding",
    "digit_images": "examples.digit_images",
    "jobs": "training.recipe",
    "read_collection": "examples.read_collection",
    "text_examples": "examples.examples",
}

__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
