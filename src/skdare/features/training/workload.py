"""What a run has yet to do: images through networks, bytes on disk and in memory, hours."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from skdare.errors import InputError
from skdare.features.backbones.backbone import Backbone
from skdare.features.norm_statistics import NETWORK, PASSES
from skdare.features.training.recipe import Job, Recipe

# Images a second on one H200 over a whole run, with compiling, checks and saving, and in steps
# alone. ResNet-50: five networks of 1,501 steps on PACS in four minutes; docs/decisions.md.
# EfficientNet: docs/results/pacs-images.md.
_RATES = {
    "resnet50": (3200, 8300),
    "tf_efficientnet_lite0": (7760, 10795),
    "tf_efficientnet_lite2": (3780, 6073),
}
_BYTES = {"float32": 4, "float16": 2}
# A saved state has the weights, Adam's two moments of them, and the best weights so far.
_WEIGHTS_IN_A_STATE = 4


@dataclass(frozen=True)
class Workload:
    """What a run has yet to do.

    Parameters
    ----------
    networks : int
        To be trained.
    passes : int
        Images that pass through them: in steps, in checks, and to extract features.
    network_bytes, feature_bytes : int
        That networks, saved states and stores of features will take on disk.
    pixel_bytes : int
        That decoded images will take in memory.
    rates : tuple of 2 float, optional
        Images a second, the least and the most to be expected; None: not known.
    """

    networks: int
    passes: int
    network_bytes: int
    feature_bytes: int
    pixel_bytes: int
    rates: tuple[float, float] | None

    @property
    def disk_bytes(self) -> int:
        """All that will be written to the folder of the run."""
        return self.network_bytes + self.feature_bytes

    @property
    def hours(self) -> tuple[float, float] | None:
        """The least and the most time for networks and features; heads come on top."""
        if self.rates is None:
            return None
        slow, fast = self.rates
        return self.passes / fast / 3600, self.passes / slow / 3600

    def check_room(self, folder: Path) -> None:
        """Refuse a disk that is too small for what will be written, or memory for the images."""
        memory = _memory()
        if memory is not None and self.pixel_bytes > memory:
            raise InputError(
                f"decoded images take {self.pixel_bytes / 1e9:.1f} GB, and this machine has "
                f"{memory / 1e9:.1f} GB of memory",
                "give a smaller size",
            )
        free = free_bytes(folder)
        if self.disk_bytes > free:
            raise InputError(
                f"{self.disk_bytes / 1e9:.1f} GB will go to {folder}, and {free / 1e9:.1f} GB are "
                "free",
                "choose another disk, or fewer draws or trials",
            )


def workload(
    waiting: Sequence[Job],
    stores: int,
    recipe: Recipe,
    counts: Mapping[str, int],
    backbone: Backbone,
    *,
    classes: int,
    dtype: str,
    states: int,
    norm_stats: str = NETWORK,
    rate: float | None = None,
) -> Workload:
    """What is left of a run.

    Parameters
    ----------
    waiting : sequence of Job
        Networks that are not trained yet.
    stores : int
        Stores of features that are not written yet.
    recipe : Recipe
    counts : mapping from domain to number of rows
    backbone : Backbone
    classes : int
    dtype : "float32" or "float16"
        Of stored features.
    states : int
        Networks whose states are saved at the same time.
    norm_stats : "network" or "domain"
        Statistics of batch norms behind stored features; those of domains take a pass of their own.
    rate : float, optional
        Images a second; default: what was measured, where the network is known.
    """
    rows = sum(counts.values())
    weights = sum(v.numel() * v.element_size() for v in backbone.module.state_dict().values())
    weights += 4 * (backbone.dim + 1) * classes
    pixels = rows * backbone.size**2 * 3 if backbone.kind == "image" else 0
    saved = len(waiting) + _WEIGHTS_IN_A_STATE * min(states, len(waiting))
    passes = sum(_passes(job, recipe, counts) for job in waiting)
    passes += stores * rows * PASSES[norm_stats]
    return Workload(
        networks=len(waiting),
        passes=passes,
        network_bytes=weights * saved,
        feature_bytes=stores * rows * backbone.dim * _BYTES[dtype],
        pixel_bytes=pixels,
        rates=_rates(backbone.name) if rate is None else (rate, rate),
    )


def _passes(job: Job, recipe: Recipe, counts: Mapping[str, int]) -> int:
    """Images that pass through one network until it is trained and scored."""
    training = [count for domain, count in counts.items() if domain != job.held_out]
    steps = recipe.steps * recipe.drawn(job).batch * len(training)
    checks = math.ceil(recipe.steps / recipe.check_every) * sum(training) * recipe.aside
    # The held-out domain is scored at the last step and at the kept checkpoint.
    scored = 2 * (sum(counts.values()) - sum(training))
    return steps + round(checks) + scored


def _rates(backbone: str) -> tuple[float, float] | None:
    """Measured rates of a network by its name, such as ``timm:resnet50.tv_in1k``.

    The name of a folder counts, those of folders above do not.
    """
    return _RATES.get(PurePath(backbone.rpartition(":")[2]).name.partition(".")[0])


def free_bytes(folder: Path) -> int:
    """Free space on the disk that a folder is on, or will be on once it is made."""
    return shutil.disk_usage(_existing(folder)).free


def _memory() -> int | None:
    """Memory of this machine, where the system tells it."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _existing(folder: Path) -> Path:
    folder = folder.resolve()
    return next(place for place in (folder, *folder.parents) if place.exists())
