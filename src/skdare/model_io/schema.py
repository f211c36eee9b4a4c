"""The state of a fitted head in a file: names and types, so that a file can be checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdare.diagnosis import Rehearsal
from skdare.diagnosis._left_out_scores import LeftOutScores
from skdare.diagnosis._nonconformity import are_quantiles
from skdare.diagnosis._rehearsal import Rehearsed
from skdare.diagnosis._score_scale import AccuracyScale, BalancedAccuracyScale, R2Scale
from skdare.fitting.domain_fit import Adaptation
from skdare.fitting.formulation import Formulation, MeanTreatment
from skdare.fitting.guard import AdaptationGuard
from skdare.fitting.mixture import ClassPlaces, Mixture
from skdare.fitting.preparation import Standardization
from skdare.persist import (
    ANY_NUMBER,
    ANYTHING,
    FLAG,
    IGNORED,
    INTEGER,
    LABEL,
    NUMBER,
    TEXT,
    ArrayOf,
    AxisSize,
    EnumMember,
    Field,
    ListOf,
    MapOf,
    Nullable,
    ObjectOf,
    OneOf,
    TupleOf,
)
from skdare.solvers import Solution, Status
from skdare.whitening.adjustment import Adjustment
from skdare.whitening.moments import Moments
from skdare.whitening.prior import PriorRows
from skdare.whitening.shrinkage import SHRINKAGE_TARGETS
from skdare.whitening.whitening import Whitening


# Shapes: d features, k classes, c columns of weights (one for two classes), others as they come.
def _adds_up(got: Mapping[str, Any]) -> bool:
    """Whether moments are those of any rows, as far as their diagonal tells, up to rounding."""
    scatter = got["scatter"]
    factor = got["factor"]
    quartic = got["quartic"]
    if (scatter is None) == (factor is None) or (quartic is not None and not quartic >= 0):
        return False
    if not got["n"] > 0:
        return False
    squares = np.zeros(1) if scatter is None else np.diagonal(scatter)
    # The rounding of the sums that the diagonal was the difference of.
    rounding = max(squares.max(), got["n"] * float(np.max(got["mean"] ** 2, initial=0.0)))
    return bool(squares.min() >= -1e-6 * rounding)


_MOMENTS = ObjectOf(
    Moments,
    {
        "n": NUMBER,
        "mean": ArrayOf("d"),
        "scatter": Nullable(ArrayOf("dd")),
        "cubic": Nullable(ArrayOf("d")),
        "quartic": Nullable(ANY_NUMBER),
        "factor": Nullable(ArrayOf("md")),
    },
    attributes={"scatter": "_scatter"},
    is_valid=_adds_up,
)


def _multiplies(got: Mapping[str, Any]) -> bool:
    """Whether U has one weight per column, or Q says how its columns are combined."""
    if got["U"] is None or got["weights"] is None:
        return got["U"] is None and got["weights"] is None and got["Q"] is None
    return got["Q"] is not None or len(got["weights"]) == got["U"].shape[1]


_ADJUSTMENT = ObjectOf(
    Adjustment,
    {
        "d": AxisSize("d"),
        "scale": NUMBER,
        "matrix": Nullable(ArrayOf("dd")),
        "U": Nullable(ArrayOf("dr")),
        "weights": Nullable(ArrayOf("q")),
        "Q": Nullable(ArrayOf("rq")),
        "common": Nullable(ArrayOf("dd")),
        "diagonal": Nullable(ArrayOf("d")),
    },
    is_valid=_multiplies,
)
_SOLUTION = ObjectOf(
    Solution,
    {
        "theta": ArrayOf("p"),
        "value": ANY_NUMBER,
        "gradient_norm": ANY_NUMBER,
        "n_iter": INTEGER,
        "n_evaluations": INTEGER,
        "status": EnumMember(Status),
        "n_coarse": INTEGER,
    },
)
_PRIOR_ROWS = Nullable(
    ObjectOf(
        PriorRows,
        {"mean": NUMBER, "adjustment": NUMBER, "half_adapted": NUMBER},
        is_valid=lambda values: min(values.values()) >= 0,
    )
)
_STANDARDIZATION = ObjectOf(
    Standardization,
    {"mean": ArrayOf("d"), "scale": ArrayOf("d")},
    is_valid=lambda values: bool(
        np.isfinite(values["mean"]).all()
        and np.isfinite(values["scale"]).all()
        and (values["scale"] > 0).all()
    ),
)
_WHITENING = ObjectOf(
    Whitening,
    {"adjust": FLAG, "centered": FLAG, "shrinkage": LABEL, "target": TEXT},
    is_valid=lambda values: values["target"] in SHRINKAGE_TARGETS,
)


@dataclass(frozen=True)
class StoredMeans:
    """A `MeanTreatment` under the names that files have."""

    centered: bool
    mean_penalty: float | str
    subtract: bool


@dataclass(frozen=True)
class StoredFormulation:
    """A `Formulation` under the names that files have."""

    whitening: Whitening
    form: StoredMeans
    l2: float
    by_rows: bool = False


@dataclass(frozen=True, eq=False)
class StoredFit:
    """Canonical weights under the names that files have; ``adjustments`` is empty."""

    B: np.ndarray
    b: np.ndarray
    adjustments: list[Adjustment]
    mean: np.ndarray
    solution: Solution


@dataclass(frozen=True, eq=False)
class StoredAdaptation:
    """An `Adaptation` under the names that files have."""

    plan: StoredFormulation
    fitted: StoredFit
    guess: Adjustment
    prior_rows: PriorRows | None = None
    mixture: Mixture | None = None
    places: ClassPlaces | None = None

    @classmethod
    def of(cls, adaptation: Adaptation | None) -> StoredAdaptation | None:
        """What a file keeps of an adaptation."""
        if adaptation is None:
            return None
        formulation = adaptation.formulation
        means = formulation.means
        stored = StoredMeans(means.center_in_training, means.mean_penalty, means.subtract_in_use)
        return cls(
            StoredFormulation(formulation.whitening, stored, formulation.l2, formulation.by_rows),
            StoredFit(adaptation.B, adaptation.b, [], adaptation.mean, adaptation.solution),
            adaptation.guess,
            adaptation.prior_rows,
            adaptation.mixture,
            adaptation.places,
        )

    def adaptation(self) -> Adaptation:
        """The adaptation that the file has kept."""
        plan = self.plan
        fit = self.fitted
        stored = plan.form
        means = MeanTreatment(stored.centered, stored.mean_penalty, stored.subtract)
        formulation = Formulation(plan.whitening, means, plan.l2, plan.by_rows)
        # Files of earlier versions have none: averages counted as d rows.
        prior_rows = self.prior_rows or PriorRows(float(len(fit.mean)), float(len(fit.mean)))
        return Adaptation(
            formulation,
            fit.B,
            fit.b,
            fit.mean,
            fit.solution,
            self.guess,
            prior_rows,
            self.mixture,
            self.places,
        )


_MEANS = ObjectOf(StoredMeans, {"centered": FLAG, "mean_penalty": LABEL, "subtract": FLAG})
_FORMULATION = ObjectOf(
    StoredFormulation, {"whitening": _WHITENING, "form": _MEANS, "l2": NUMBER, "by_rows": FLAG}
)
_FIT = ObjectOf(
    StoredFit,
    {
        "B": ArrayOf("dc"),
        "b": ArrayOf("c"),
        "adjustments": ListOf(_ADJUSTMENT),
        "mean": ArrayOf("d"),
        "solution": _SOLUTION,
    },
)
_MIXTURE = ObjectOf(
    Mixture,
    {"anchor_rows": ANY_NUMBER, "estimate_shares": FLAG},
    is_valid=lambda values: values["anchor_rows"] > 0,
)


def _scatters(got: Mapping[str, Any]) -> bool:
    """Whether a covariance within classes is one, as far as its diagonal tells, and shares are."""
    shares = got.get("shares")
    if shares is not None and not (np.min(shares) >= 0 and np.sum(shares) > 0):
        return False
    squares = np.diagonal(got["within"])
    return bool(squares.min() >= -1e-6 * max(squares.max(), 0.0))


_PLACES = ObjectOf(
    ClassPlaces,
    {"shares": ArrayOf("k"), "means": ArrayOf("dk"), "within": ArrayOf("dd")},
    is_valid=_scatters,
)
_GUARD = ObjectOf(
    AdaptationGuard,
    {"shares": Nullable(ArrayOf("k")), "within": ArrayOf("dd"), "separations": ArrayOf("e")},
    is_valid=_scatters,
)
_ADAPTATION = ObjectOf(
    StoredAdaptation,
    {
        "plan": _FORMULATION,
        "fitted": _FIT,
        "guess": _ADJUSTMENT,
        "prior_rows": _PRIOR_ROWS,
        "mixture": Nullable(_MIXTURE),
        "places": Nullable(_PLACES),
    },
    is_valid=lambda values: (values.get("mixture") is None) == (values.get("places") is None),
)


def _has_quantiles(got: Mapping[str, Any]) -> bool:
    """Whether what is kept of nonconformity are quantiles; files of earlier versions have none."""
    kept = (got.get("nonconformity"), got.get("adapted_nonconformity"))
    return all(are_quantiles(one) for one in kept if one is not None)


_REHEARSED = ObjectOf(
    Rehearsed,
    {
        "domain": TEXT,
        "rows": INTEGER,
        **dict.fromkeys(("as_is", "moved"), ANY_NUMBER),
        **dict.fromkeys(("disagreement", "both_right"), Nullable(ANY_NUMBER)),
        **dict.fromkeys(("adapted", "retrained", "errors"), MapOf(ANY_NUMBER, INTEGER)),
        **dict.fromkeys(("nonconformity", "adapted_nonconformity"), Nullable(ArrayOf("q"))),
    },
    is_valid=_has_quantiles,
)
_SCALE = OneOf(
    {
        "classes": ObjectOf(AccuracyScale, {"floor": NUMBER}),
        "balanced classes": ObjectOf(BalancedAccuracyScale, {"floor": NUMBER}),
        "numbers": ObjectOf(R2Scale, {"variance": NUMBER}),
    }
)
_LEFT_OUT_SCORES = ObjectOf(
    LeftOutScores,
    {
        "as_is": ArrayOf("nc"),
        "classes": ArrayOf("n"),
        "adapted": Nullable(ArrayOf("nc")),
        "seen": Nullable(ArrayOf("n")),
    },
    is_valid=lambda values: (
        values["classes"].dtype.kind in "iu"
        and len(values["classes"]) > 1
        and (values.get("seen") is None or values["seen"].dtype == bool)
    ),
)
_REHEARSAL = ObjectOf(
    Rehearsal,
    {"domains": ListOf(_REHEARSED), "task": _SCALE, "scores": Nullable(_LEFT_OUT_SCORES)},
)

# What predicting needs, and what is known of how it came about.
SMALL: dict[str, Field] = {
    "rehearsed_": Nullable(_REHEARSAL),
    # Of earlier versions, by which nothing is forecast any more.
    "rehearsal_": IGNORED,
    "n_iter_": INTEGER,
    "_centre": NUMBER,
    "_spread": NUMBER,
    "predicted_shares_": ArrayOf("k"),
    "predicted_share_range_": NUMBER,
    "adapted_rows_": INTEGER,
    "declined_": TEXT,
    "labelled_rows_": INTEGER,
    "temperature_": NUMBER,
    "_had_groups": FLAG,
    "adapted_mean_": ArrayOf("d"),
    "guard_": _GUARD,
    "_standardization": _STANDARDIZATION,
    "domain_weights_": MapOf(NUMBER),
    "cv_results_": ANYTHING,
    "best_params_": ANYTHING,
    "best_index_": INTEGER,
    "best_score_": ANY_NUMBER,
    "adapts_": FLAG,
    "choice_": TEXT,
    "solution_": _SOLUTION,
}
# What adapting, diagnosing and starting a fit from this one need besides.
LARGE: dict[str, Field] = {
    "_canonical": TupleOf((ArrayOf("dc"), ArrayOf("c"))),
    "canonical_coef_": ArrayOf("cd"),
    "moments_": MapOf(_MOMENTS),
    "adjustments_": MapOf(_ADJUSTMENT),
    "adjustment_": _ADJUSTMENT,
    "_whitening": _WHITENING,
    "adaptation_": Nullable(_ADAPTATION),
}
CLASSIFIER: dict[str, Field] = {
    "coef_": ArrayOf("cd"),
    "intercept_": ArrayOf("c"),
    "unadapted_": TupleOf((ArrayOf("cd"), ArrayOf("c"))),
}
REGRESSOR: dict[str, Field] = {
    "coef_": ArrayOf("d"),
    "intercept_": NUMBER,
    "unadapted_": TupleOf((ArrayOf("d"), NUMBER)),
}
