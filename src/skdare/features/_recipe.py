"""How a network is fine-tuned: what is fixed for all trainings, and what each one draws."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any
from urllib.parse import quote
from zlib import crc32

import numpy as np

from skdare._validation import check_choice, check_count, check_number
from skdare.features._augment import Augmentation
from skdare.features._device import PRECISIONS

# Which checkpoint and which hyperparameters are kept; it is written into every record.
RULE = (
    "largest unweighted mean over training domains of the accuracy on their rows set aside, "
    "test transform"
)


@dataclass(frozen=True)
class Hyperparameters:
    """What a sweep varies; the defaults are DomainBed's.

    Parameters
    ----------
    lr : float
        Of Adam.
    weight_decay : float
    batch : int
        Rows of each domain in a step.
    dropout : float
        Share of the features that a step leaves out.
    """

    lr: float = 5e-5
    weight_decay: float = 0.0
    batch: int = 32
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_number("lr", self.lr)
        check_number("weight_decay", self.weight_decay)
        check_count("batch", self.batch, 1)
        check_number("dropout", self.dropout, 0.0, 0.99)

    def drawn(self, job: Job) -> Hyperparameters:
        """These for draw 0; for others, a random choice by DomainBed's distributions.

        The learning rate and the batch are drawn in proportion to the given ones, which for the
        defaults is DomainBed's 10^U(-5, -3.5) and 2^U(3, 5.5).
        """
        if job.draw == 0:
            return self
        rng = np.random.default_rng(job.seed("hyperparameters"))
        usual = Hyperparameters()
        return Hyperparameters(
            lr=float(10 ** rng.uniform(-5, -3.5)) * self.lr / usual.lr,
            weight_decay=float(10 ** rng.uniform(-6, -2)),
            batch=max(1, int(2 ** rng.uniform(3, 5.5) * self.batch / usual.batch)),
            dropout=float(rng.choice([0.0, 0.1, 0.5])),
        )


@dataclass(frozen=True)
class Recipe:
    """What all trainings of a run have in common.

    Parameters
    ----------
    steps : int
    check_every : int
        Steps between checkpoints; the last step is one too.
    aside : float
        Share of each domain that is set aside for validation, by seed (trial, domain).
    augmentation : Augmentation, optional
        Of images; none where None.
    hyperparameters : Hyperparameters
        Those of draw 0.
    draws : int
        How many choices of hyperparameters are tried for each network.
    precision : "auto", "float32" or "bfloat16"
        Of products inside the backbone; "auto" is bfloat16 on a GPU, else float32. Weights, the
        last layer, the loss and Adam are always float32.
    micro_batch : int, optional
        Most rows that pass through the network at once; gradients of a step add up.
    """

    steps: int = 5001
    check_every: int = 300
    aside: float = 0.2
    augmentation: Augmentation | None = field(default_factory=Augmentation)
    hyperparameters: Hyperparameters = field(default_factory=Hyperparameters)
    draws: int = 1
    precision: str = "auto"
    micro_batch: int | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "check_every", "draws"):
            check_count(name, getattr(self, name), 1)
        check_number("aside", self.aside, 0.01, 0.9)
        check_choice("precision", self.precision, PRECISIONS)
        if self.micro_batch is not None:
            check_count("micro_batch", self.micro_batch, 1)

    def deciding(self) -> dict[str, Any]:
        """What decides the result of a training, but for how it is cut into micro-batches."""
        return asdict(replace(self, micro_batch=None, draws=1))


@dataclass(frozen=True)
class Job:
    """One network to train.

    Parameters
    ----------
    held_out : str or None
        The domain it must not see; None: it is trained on all, a ceiling.
    trial : int
        Seeds splits, draws and the last layer.
    draw : int
        Which choice of hyperparameters.
    """

    held_out: str | None
    trial: int
    draw: int = 0

    @property
    def place(self) -> str:
        """Held-out domain and trial, as part of a file name."""
        return f"{place_of(self.held_out)}-{self.trial}"

    @property
    def name(self) -> str:
        """As a file name, the draw included."""
        return f"{self.place}-{self.draw}"

    def seed(self, purpose: str) -> list[int]:
        """For what this network draws for a purpose; another purpose draws other numbers."""
        place = crc32((self.held_out or "").encode())
        return [crc32(purpose.encode()), self.trial, self.draw, place]


def place_of(held_out: str | None) -> str:
    """A file name for a held-out domain, whatever its letters."""
    return "all" if held_out is None else f"without-{quote(held_out, safe=' ')}"
