"""Settings: what all trials of a run have in common."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from skdare._validation import check_choice, check_count, check_number
from skdare.bench._preparation import Preparation
from skdare.bench._record import TESTED_ON

PROTOCOLS = ("default", "paper")
L2_RULES = ("matched", "own")
VALIDATE_WITH = ("own", "mean")
# Settings of one protocol alone: changing them leaves results of the other as they are.
_ONLY_IN = {
    "default": ("l2", "l2_grid"),
    "paper": ("step", "inner", "memory", "patience", "max_epochs", "validate_with"),
}
_LATER = ("metrics", "class_weight")


@dataclass(frozen=True)
class Settings:
    """What all trials of a run have in common.

    Parameters
    ----------
    protocol : "default" or "paper"
        Solve every head to tolerance, or stop early as the paper does.
    aside : float
        Share of each domain that is set aside: at least one row of a domain with two or more.
    test_on : "reserved", "rest" or "all"
        Which rows of the held-out domain are scored: those set aside, the others, or both.
        Default: "reserved" in the paper's protocol, else "all".
    l2 : "matched", "own" or float
        One ridge for all heads, chosen for ERM; one for each head, chosen for itself; or this
        number. Both rules choose by leaving out one training domain at a time.
    l2_grid : sequence of float
    impute : "median" or None
        Fill missing values by the training rows' median.
    standardize : bool
        Subtract the training rows' mean and divide by their standard deviation.
    clip : float, optional
        Then limit every value to this many standard deviations.
    step, inner, memory, patience, max_epochs
        The paper's rule: L-BFGS with a fixed step, ``inner`` iterations an epoch and ``memory``
        stored pairs. It stops after ``patience`` epochs without a new best accuracy on the rows
        that the training domains set aside.
    validate_with : "own" or "mean"
        The adjustment that scores those rows: their own domain's, or the average one.
    ceiling_l2 : float
        Ridge of ceilings and retrained heads in the paper's protocol, which has none: without
        one, separable classes have no optimum. Ridge of the alignment in both protocols.
    sgd_steps, momentum : int, float
        The paper's descent on the labels of all domains.
    metrics : sequence of str, optional
        Metrics by the names of scikit-learn's scorers: "accuracy", "balanced_accuracy",
        "f1_macro", "roc_auc" (of several classes each against the rest) and "neg_log_loss"; "r2",
        "neg_root_mean_squared_error" and "neg_mean_absolute_error". By the first of them l2 is
        chosen, heads that choose choose, and heads are compared. Default: accuracy, or R².
    class_weight : "balanced" or None
        What rows of a class count in the loss of every head.
    """

    protocol: str = "default"
    aside: float = 0.2
    test_on: str | None = None
    l2: str | float = "matched"
    l2_grid: tuple[float, ...] = (1e-3, 1e-2, 1e-1)
    impute: str | None = None
    standardize: bool = False
    clip: float | None = None
    step: float = 0.2
    inner: int = 20
    memory: int = 100
    patience: int = 20
    max_epochs: int = 500
    validate_with: str = "own"
    ceiling_l2: float = 1e-3
    sgd_steps: int = 3000
    momentum: float = 0.9
    metrics: tuple[str, ...] | None = None
    class_weight: str | None = None

    def __post_init__(self) -> None:
        check_choice("protocol", self.protocol, PROTOCOLS)
        check_choice("test_on", self.test_on, (*TESTED_ON, None))
        check_choice("validate_with", self.validate_with, VALIDATE_WITH)
        check_number("aside", self.aside, 0.0, 0.9)
        check_number("l2", self.l2, also=L2_RULES)
        check_number("step", self.step)
        check_number("ceiling_l2", self.ceiling_l2)
        check_number("momentum", self.momentum, 0.0, 1.0)
        for name in ("inner", "memory", "patience", "max_epochs", "sgd_steps"):
            check_count(name, getattr(self, name), 1)
        check_choice("class_weight", self.class_weight, ("balanced", None))
        if self.class_weight is not None and self.protocol == "paper":
            raise ValueError(
                "the paper's protocol weighs all rows alike; leave class_weight out, or use "
                "protocol='default'"
            )
        if not self.l2_grid:
            raise ValueError("l2_grid is empty; pass at least one number")
        for value in self.l2_grid:
            check_number("l2_grid", value)
        if self.protocol == "paper" and self.aside == 0:
            raise ValueError(
                "the paper's protocol validates on rows set aside; raise aside above 0"
            )
        _ = self.preparation  # checks impute, standardize and clip

    @property
    def tested_on(self) -> str:
        """Which held-out rows are scored."""
        return self.test_on or ("reserved" if self.protocol == "paper" else "all")

    @property
    def preparation(self) -> Preparation:
        """What is done to the features before any head."""
        return Preparation(self.impute, self.standardize, self.clip)

    def of_protocol(self) -> dict[str, Any]:
        """Settings without those of the other protocol.

        Those that came later are left out where they are not given, so that records from before
        them are of the same conditions.
        """
        other = "paper" if self.protocol == "default" else "default"
        later = [name for name in _LATER if getattr(self, name) is None]
        return {
            name: value
            for name, value in asdict(self).items()
            if name not in (*_ONLY_IN[other], *later)
        }
