"""torchvision, also where its operators are missing."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest

# The wheel does not load beside a CPU build of torch, for which it has no compiled operators; with
# their signatures, its transforms and models and timm do.
_OPERATORS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, "
    "int pooled_width, int sampling_ratio, bool aligned) -> Tensor",
)
_kept: list[Any] = []  # operators go with the library that defines them


@pytest.fixture(scope="session")
def torchvision() -> ModuleType:
    torch = pytest.importorskip("torch", reason="networks need torch")
    if find_spec("torchvision") is None or find_spec("timm") is None:
        pytest.skip("torchvision and timm are not installed")
    try:
        return import_module("torchvision")
    except RuntimeError:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "DEF")
        for operator in _OPERATORS:
            library.define(operator)
        _kept.append(library)
        return import_module("torchvision")
