"""How networks are fine-tuned: the recipe that all share, and the jobs that it is applied to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from urllib.parse import quote
from zlib import crc32

import numpy as np

from skdare.checks import check_choice, check_count, check_number
from skdare.errors import InputError
from skdare.features.augmentation import Augmentation
from skdare.features.device import PRECISIONS

# Batches of random draws are 2^U(3, 5.5) in DomainBed, but for DomainNet.
BATCH_EXPONENTS = (3.0, 5.5)
# Which checkpoint and which hyperparameters are kept, by `Training.kept` and `best_draws`; it is
# written into every record.
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
        Learning rate of Adam.
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

    def drawn(
        self, job: Job, batch_exponents: tuple[float, float] = BATCH_EXPONENTS
    ) -> Hyperparameters:
        """Hyper-parameters of a draw: these for draw 0, else by chance as DomainBed draws them.

        The learning rate and the batch are drawn in proportion to the ones here, which for the
        defaults is DomainBed's 10^U(-5, -3.5), and 2^U(3, 5.5) or the exponents given.
        """
        if job.draw == 0:
            return self
        rng = np.random.default_rng(job.seed("hyperparameters"))
        default = Hyperparameters()
        return Hyperparameters(
            lr=float(10 ** rng.uniform(-5, -3.5)) * self.lr / default.lr,
            weight_decay=float(10 ** rng.uniform(-6, -2)),
            batch=max(1, int(2 ** rng.uniform(*batch_exponents) * self.batch / default.batch)),
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
        Of images. None: images are not augmented.
    hyperparameters : Hyperparameters
        Those of draw 0.
    draws : int
        Number of choices of hyperparameters that are tried for each network.
    precision : "auto", "float32" or "bfloat16"
        Of products inside the backbone; "auto" is bfloat16 on a GPU, else float32. Weights, a
        bottleneck, the last layer, the loss and Adam are always float32.
    micro_batch : int, optional
        Most rows that pass through the network at once; gradients of a step add up.
    batch_exponents : tuple of 2 float
        Draws but the first have batches between 2 to the power of these, where the first has 32.
    """

    steps: int = 5001
    check_every: int = 300
    aside: float = 0.2
    augmentation: Augmentation | None = field(default_factory=Augmentation)
    hyperparameters: Hyperparameters = field(default_factory=Hyperparameters)
    draws: int = 1
    precision: str = "auto"
    micro_batch: int | None = None
    batch_exponents: tuple[float, float] = BATCH_EXPONENTS

    def __post_init__(self) -> None:
        for name in ("steps", "check_every", "draws"):
            check_count(name, getattr(self, name), 1)
        check_number("aside", self.aside, 0.01, 0.9)
        check_choice("precision", self.precision, PRECISIONS)
        if self.micro_batch is not None:
            check_count("micro_batch", self.micro_batch, 1)
        exponents = self.batch_exponents
        # Beyond 2^20 no batch fits a device.
        if len(exponents) != 2 or not 0 <= exponents[0] <= exponents[1] <= 20:
            raise InputError(
                f"batch_exponents is {exponents}",
                "pass two numbers between 0 and 20, the smaller one first",
            )

    def drawn(self, job: Job) -> Hyperparameters:
        """Hyper-parameters of a job."""
        return self.hyperparameters.drawn(job, self.batch_exponents)

    def settings(self) -> dict[str, Any]:
        """What decides the result of a training, apart from rounding in micro-batches."""
        return asdict(replace(self, micro_batch=None, draws=1))


@dataclass(frozen=True)
class Job:
    """One network to train.

    Parameters
    ----------
    held_out : str or None
        The domain that it must not see. None: it is trained on all domains, as a ceiling.
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
        """Held-out domain and trial, as part of a file name, whatever the domain's letters."""
        domain = "all" if self.held_out is None else f"without-{quote(self.held_out, safe=' ')}"
        return f"{domain}-{self.trial}"

    @property
    def name(self) -> str:
        """Held-out domain, trial and draw, as a file name."""
        return f"{self.place}-{self.draw}"

    def seed(self, purpose: str) -> list[int]:
        """Seed for one purpose; another purpose draws other numbers."""
        domain = crc32((self.held_out or "").encode())
        return [crc32(purpose.encode()), self.trial, self.draw, domain]


def jobs(
    domains: Sequence[str],
    recipe: Recipe,
    *,
    trials: int = 3,
    held_out: Sequence[str] | None = None,
    ceilings: bool = True,
) -> list[Job]:
    """Networks of a reproduction: in each trial one for each held-out domain, and one on all.

    Parameters
    ----------
    domains : sequence of str
    recipe : Recipe
    trials : int
    held_out : sequence of str, optional
        Default: every domain.
    ceilings : bool
        Whether to train on all domains too.

    Returns
    -------
    list of Job
        What a `Trainer` is called with.
    """
    check_count("trials", trials, 1)
    absent = [domain for domain in held_out or () if domain not in domains]
    if absent:
        names = ", ".join(f"`{name}`" for name in domains)
        raise InputError(f"there is no domain `{absent[0]}` to hold out; there are {names}")
    choices: list[str | None] = [*(held_out or domains), *([None] * ceilings)]
    return [
        Job(domain, trial, draw)
        for trial in range(trials)
        for domain in choices
        for draw in range(recipe.draws)
    ]
