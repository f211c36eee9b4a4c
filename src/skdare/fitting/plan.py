"""One adjusted problem to solve: how domains are whitened, and what is done about their means."""

from __future__ import annotations

from dataclasses import dataclass

from skdare.whitening.whitening import Whitening


@dataclass(frozen=True)
class Form:
    """What is done about the domain means.

    Parameters
    ----------
    centered : bool
        Subtract each domain's mean in training.
    mean_penalty : float or "exact"
        Weight of the rows that ask for an uninformative prediction at every domain mean.
    subtract : bool
        Subtract a mean in use. With ``centered`` it is the new domain's, or the average of the
        training means where that is unknown; without, always that average, in training too.
    """

    centered: bool
    mean_penalty: float | str
    subtract: bool


RAW = Form(centered=False, mean_penalty=0.0, subtract=False)


CENTERED = Form(centered=True, mean_penalty=0.0, subtract=True)


# Means stay in the rows, and where the features have their origin does not matter.
FROM_MEAN = Form(centered=False, mean_penalty=0.0, subtract=True)


@dataclass(frozen=True)
class Plan:
    """One adjusted problem to solve.

    ``by_rows``: every row counts the same, as in ERM; else every domain does.
    """

    whitening: Whitening
    form: Form
    l2: float
    by_rows: bool = False
