"""Commands of the optional parts: networks to features, and the studies of the paper.

Each is a signature here, and does its work in a room that is loaded when it is called.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from skdare.cli.answer import Answer
from skdare.cli.outputs import writable
from skdare.cli.tables import Names
from skdare.errors import InputError
from skdare.files import whole_file
from skdare.progress import tracked

Device = Literal["auto", "cpu", "cuda"]
_WIDEST = 132


def train(
    source: Path,
    /,
    *,
    out: Path | None = None,
    backbone: str = "timm:tf_efficientnet_lite0",
    size: int | None = None,
    held_out: Names = (),
    trials: int = 3,
    steps: int = 5001,
    batch: int = 32,
    lr: float = 5e-5,
    weight_decay: float = 0.0,
    dropout: float = 0.0,
    draws: int = 1,
    device: Device = "auto",
) -> Answer:
    """Fine-tune a network for each held-out domain.

    The same command goes on where it was stopped.

    Parameters
    ----------
    source
        Folder or zip of domain/class/image, or a table with columns path or text, label and domain.
    out
        Folder of the run  [default: NAME.run]
    backbone
        timm:NAME, torchvision:NAME, or hf:FOLDER.
    size
        Side of images, or tokens of a text  [default: the network's]
    held_out
        Domains to hold out  [default: each]
    trials
        Splits, each with networks of its own.
    steps
        Steps of Adam.
    batch
        Rows of each domain in a batch.
    lr
        Learning rate.
    weight_decay
        Decay of all weights.
    dropout
        Dropout before the last layer.
    draws
        Choices of hyperparameters for each network: those given, and random ones.
    device
        Where to compute.
    """
    return _call("features.training", "train", locals())


def extract(
    source: Path,
    /,
    *,
    out: Path | None = None,
    backbone: str = "timm:tf_efficientnet_lite0",
    size: int | None = None,
    norm_stats: Literal["network", "domain"] = "network",
    dtype: Literal["float32", "float16"] = "float32",
    device: Device = "auto",
) -> Answer:
    """Write features of every row, by these networks or a pretrained one.

    Parameters
    ----------
    source
        Folder that `skdare train` wrote; or images or a table, as for train.
    out
        Folder of the feature store  [default: NAME.features]
    backbone
        timm:NAME, torchvision:NAME, or hf:FOLDER.
    size
        Side of images, or tokens of a text  [default: the network's]
    norm_stats
        Statistics of batch norms: the network's own, or of each domain's rows.
    dtype
        How features are stored.
    device
        Where to compute.
    """
    return _call("features.extracting", "extract", locals())


def reproduce(
    study: str,
    /,
    *,
    source: Path | None = None,
    out: Path | None = None,
    trials: int = 3,
    held_out: Names = (),
    ablations: Names = (),
    quick: bool = False,
    dry_run: bool = False,
    device: Device = "auto",
) -> Answer:
    """Train, extract, bench and report a study of the paper.

    The same command goes on where it was stopped.

    Parameters
    ----------
    study
        digits, whose images are embedded; or pacs, office-home, vlcs, terra-incognita, domainnet.
    source
        Folder of the images.
    out
        Folder of the run  [default: STUDY.run]
    trials
        Splits, each with networks of its own.
    held_out
        Domains to hold out  [default: each]
    ablations
        Ablations to run: whitening, constraint, mean, lambda, shrinkage, dimension, domains.
    quick
        One trial, and half of the steps.
    dry_run
        Check everything, say what would be done, and end.
    device
        Where to compute.
    """
    return _call("paper.reproduce", "reproduce", locals())


def theory(*, out: Path = Path("theory.html"), quick: bool = False, seed: int = 0) -> Answer:
    """Measure what the paper proves, and where it fails.

    Parameters
    ----------
    out
        Page with the figures.
    quick
        Fewer repeats: seconds, and rougher numbers.
    seed
        Seed of all random draws.
    """
    from dataclasses import asdict

    from skdare.checks import check_count
    from skdare.paper.theory import CHAPTERS
    from skdare.paper.theory.page import chapter_text, heading, tally, theory_page

    writable(out, "page")
    check_count("seed", seed, 0)
    chapters = [CHAPTERS[name](seed, quick) for name in tracked(list(CHAPTERS), "chapters")]
    with whole_file(out) as file:
        file.write(theory_page(chapters).encode())
    width = min(max(shutil.get_terminal_size().columns, 80), _WIDEST)
    parts = [heading(width), *(chapter_text(chapter, width) for chapter in chapters)]
    parts += [f"{tally(chapters)}\nwrote {out}, a page with pictures for your browser"]
    statements = [
        {"chapter": chapter.title, **asdict(claim), "told": claim.told}
        for chapter in chapters
        for claim in chapter.claims
    ]
    return Answer("\n\n".join(parts), {"out": str(out), "statements": statements})


def _call(room: str, name: str, arguments: dict[str, Any]) -> Answer:
    try:
        module = import_module(f"skdare.{room}")
    except ModuleNotFoundError as error:
        if not f"skdare.{room}".startswith(str(error.name)):
            raise  # a package that the room needs
        what = f"skdare {name} is in skdare.{room}, which is not part of this build"
        raise InputError(what, "it is written in a later step of the rebuild") from error
    run: Callable[..., Answer] = getattr(module, name)
    return run(**arguments)
