"""Learning features: from images and text to a frozen feature table, with torch."""

from __future__ import annotations

try:
    import torch  # noqa: F401 (tells that it is there)
except ImportError as error:
    raise ImportError(
        "skdare.features trains networks with torch, which is not installed; "
        "pip install 'skdare[vision]'"
    ) from error

from skdare.features._augment import Augmentation
from skdare.features._backbone import Backbone, ImageBackbone, backbone
from skdare.features._collection import Collection
from skdare.features._device import pick_device
from skdare.features._digit_images import digit_images
from skdare.features._examples import Examples, text_examples
from skdare.features._extract import Extractor
from skdare.features._layouts import read_collection
from skdare.features._pixels import decode
from skdare.features._recipe import Hyperparameters, Job, Recipe
from skdare.features._source import Source
from skdare.features._train import Trainer, jobs
from skdare.features._training_folder import (
    TrainingFolder,
    TrainingRecord,
    ceiling_scores,
    selected,
)

__all__ = [
    "Augmentation",
    "Backbone",
    "Collection",
    "Examples",
    "Extractor",
    "Hyperparameters",
    "ImageBackbone",
    "Job",
    "Recipe",
    "Source",
    "Trainer",
    "TrainingFolder",
    "TrainingRecord",
    "backbone",
    "ceiling_scores",
    "decode",
    "digit_images",
    "jobs",
    "pick_device",
    "read_collection",
    "selected",
    "text_examples",
]
