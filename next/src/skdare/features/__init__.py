"""Learning features: from images and text to a frozen feature table, with torch.

What comes out is a feature store, written by `skdare.data.StoreWriter`: the rest of the
library reads the store, and does not know how its features were made.
"""

from __future__ import annotations

from skdare.features.augmentation import Augmentation
from skdare.features.backbones.backbone import ImageBackbone
from skdare.features.backbones.by_name import backbone
from skdare.features.examples.decoding import decode
from skdare.features.examples.digit_images import digit_images
from skdare.features.examples.examples import Examples, text_examples
from skdare.features.examples.read_collection import read_collection
from skdare.features.extractor import Extractor
from skdare.features.training.recipe import Hyperparameters, Recipe, jobs
from skdare.features.training.trainer import Trainer

__all__ = [
    "Augmentation",
    "Examples",
    "Extractor",
    "Hyperparameters",
    "ImageBackbone",
    "Recipe",
    "Trainer",
    "backbone",
    "decode",
    "digit_images",
    "jobs",
    "read_collection",
    "text_examples",
]
