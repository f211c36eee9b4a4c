"""Which problem is solved: how domains are whitened, and what is done about their means."""

from __future__ import annotations

from dataclasses import dataclass

from skdare.fitting.targets import Targets
from skdare.whitening.whitening import Whitening


@dataclass(frozen=True)
class MeanTreatment:
    """What is done about the domain means.

    Parameters
    ----------
    center_in_training : bool
        Subtract each domain's mean from its rows in training.
    mean_penalty : float or "exact"
        The paper's λ: weight of one more row for each domain, its mean, at which the prediction
        should be uninformative. "exact": the prediction is uninformative there.
    subtract_in_use : bool
        Subtract a mean from the rows that are predicted. With ``center_in_training`` it is the new
        domain's, or the average of the training means where that is unknown; without, it is always
        that average, and is subtracted in training too.
    """

    center_in_training: bool
    mean_penalty: float | str
    subtract_in_use: bool


RAW = MeanTreatment(center_in_training=False, mean_penalty=0.0, subtract_in_use=False)
CENTERED = MeanTreatment(center_in_training=True, mean_penalty=0.0, subtract_in_use=True)
# Means stay in the rows, and where the features have their origin does not matter.
FROM_MEAN = MeanTreatment(center_in_training=False, mean_penalty=0.0, subtract_in_use=True)


@dataclass(frozen=True)
class Formulation:
    """One adjusted problem to solve.

    Parameters
    ----------
    whitening : Whitening
    means : MeanTreatment
    l2 : float
    by_rows : bool
        Every row counts the same, as in ERM; else every domain does.
    """

    whitening: Whitening
    means: MeanTreatment
    l2: float
    by_rows: bool = False


def invariant_means(
    targets: Targets, mean_penalty: float | str | None, *, centered: bool, intercept: bool
) -> MeanTreatment:
    """Ask for invariance to the means, as the paper's objective for these targets does.

    None asks for none: means stay in the rows, and numbers regress them onto the mean targets. A
    head that whitens by covariances (``centered``) and has no penalty knows of no origin:
    what its features are measured from must not matter, and with one W_e for each domain it would.
    """
    if targets.rows_are_centered and mean_penalty is not None:
        return MeanTreatment(
            center_in_training=True, mean_penalty=mean_penalty, subtract_in_use=False
        )
    penalty = 0.0 if mean_penalty is None else mean_penalty
    if penalty == 0 and centered and intercept:
        return FROM_MEAN
    return MeanTreatment(center_in_training=False, mean_penalty=penalty, subtract_in_use=False)
