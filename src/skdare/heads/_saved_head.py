"""A head as a header and arrays: which attributes it has, and of which kind they are."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy
import sklearn

import skdare
from skdare.adjustment import Adjustment
from skdare.diagnosis import Rehearsal
from skdare.diagnosis._rehearsal import Rehearsed
from skdare.diagnosis._task import Classes, Numbers
from skdare.domain_statistics import Whitening
from skdare.heads._adaptation import Adaptation
from skdare.heads._adapting import Adapting
from skdare.heads._adjusted import Fitted, Form, Plan
from skdare.heads._base import ClassifierHead, Head
from skdare.heads._cv import DARECV
from skdare.moments import Moments
from skdare.persist import (
    ANYTHING,
    FLAG,
    INTEGER,
    LABEL,
    LABELS,
    NUMBER,
    TEXT,
    VALUES,
    Array,
    Arrays,
    Field,
    ListOf,
    MapOf,
    Maybe,
    Named,
    OneOf,
    Record,
    Saved,
    Size,
    TupleOf,
    Unfit,
)
from skdare.solvers import Solution
from skdare.solvers._solution import Status

# Shapes: d features, k classes, c columns of weights (one for two classes), others as they come.
_MOMENTS = Record(
    Moments,
    {
        "n": NUMBER,
        "mean": Array("d"),
        "scatter": Maybe(Array("dd")),
        "cubic": Maybe(Array("d")),
        "quartic": Maybe(NUMBER),
        "factor": Maybe(Array("md")),
    },
    kept_as={"scatter": "_scatter"},
    fits=lambda got: got["n"] > 0 and (got["scatter"] is None) != (got["factor"] is None),
)


def _multiplies(got: Mapping[str, Any]) -> bool:
    """Whether thin columns have weights, as many as they are or as are turned to."""
    if got["U"] is None or got["weights"] is None:
        return got["U"] is None and got["weights"] is None and got["Q"] is None
    return got["Q"] is not None or len(got["weights"]) == got["U"].shape[1]


_ADJUSTMENT = Record(
    Adjustment,
    {
        "d": Size("d"),
        "scale": NUMBER,
        "matrix": Maybe(Array("dd")),
        "U": Maybe(Array("dr")),
        "weights": Maybe(Array("q")),
        "Q": Maybe(Array("rq")),
        "common": Maybe(Array("dd")),
    },
    fits=_multiplies,
)
_SOLUTION = Record(
    Solution,
    {
        "theta": Array("p"),
        "value": NUMBER,
        "gradient_norm": NUMBER,
        "n_iter": INTEGER,
        "n_evaluations": INTEGER,
        "status": Named(Status),
        "n_coarse": INTEGER,
    },
)
_WHITENING = Record(
    Whitening, {"adjust": FLAG, "centered": FLAG, "shrinkage": LABEL, "target": TEXT}
)
_FORM = Record(Form, {"centered": FLAG, "mean_penalty": LABEL, "subtract": FLAG})
_PLAN = Record(Plan, {"whitening": _WHITENING, "form": _FORM, "l2": NUMBER, "by_rows": FLAG})
_FITTED = Record(
    Fitted,
    {
        "B": Array("dc"),
        "b": Array("c"),
        "adjustments": ListOf(_ADJUSTMENT),
        "mean": Array("d"),
        "solution": _SOLUTION,
    },
)
_ADAPTATION = Record(Adaptation, {"plan": _PLAN, "fitted": _FITTED, "guess": _ADJUSTMENT})
_REHEARSED = Record(
    Rehearsed,
    {
        "domain": TEXT,
        "rows": INTEGER,
        **dict.fromkeys(("usual", "as_is", "moved"), NUMBER),
        **dict.fromkeys(("confidence", "usual_confidence", "disagreement"), Maybe(NUMBER)),
        **dict.fromkeys(("adapted", "retrained", "errors"), MapOf(NUMBER)),
    },
)
_TASK = OneOf(
    {
        "classes": Record(Classes, {"floor": NUMBER}),
        "numbers": Record(Numbers, {"variance": NUMBER}),
    }
)
_REHEARSAL = Record(Rehearsal, {"domains": ListOf(_REHEARSED), "task": _TASK})

# What predicting needs, and what is known of how it came about.
_SMALL: dict[str, Field] = {
    "n_iter_": INTEGER,
    "_centre": NUMBER,
    "_spread": NUMBER,
    "predicted_shares_": Array("k"),
    "predicted_share_range_": NUMBER,
    "adapted_rows_": INTEGER,
    "adapted_mean_": Array("d"),
    "domain_weights_": MapOf(NUMBER),
    "cv_results_": ANYTHING,
    "best_strategy_": TEXT,
    "best_score_": NUMBER,
    "adapts_": FLAG,
    "choice_": TEXT,
    "solution_": _SOLUTION,
}
# What adapting, diagnosing and starting a fit from this one need besides.
_LARGE: dict[str, Field] = {
    "_canonical": TupleOf((Array("dc"), Array("c"))),
    "canonical_coef_": Array("cd"),
    "moments_": MapOf(_MOMENTS),
    "adjustments_": MapOf(_ADJUSTMENT),
    "adjustment_": _ADJUSTMENT,
    "_whitening": _WHITENING,
    "adaptation_": Maybe(_ADAPTATION),
    "rehearsal_": Maybe(_REHEARSAL),
}
_CLASSIFIER: dict[str, Field] = {"coef_": Array("cd"), "intercept_": Array("c")}
_REGRESSOR: dict[str, Field] = {"coef_": Array("d"), "intercept_": NUMBER}
# Said at the top of the header, or made anew.
_APART = {
    *("classes_", "domains_", "n_features_in_", "feature_names_in_"),
    *("_training", "_fitted_with"),
}


def described(head: Head, arrays: Arrays, *, adaptable: bool) -> dict[str, Any]:
    """The header of a fitted head; its arrays are put aside."""
    fields = _fields(type(head))
    given = head.get_params(deep=False)
    kept = {name: value for name, value in vars(head).items() if name not in given}
    unknown = set(kept) - set(fields) - _APART
    if unknown:
        raise Unfit(
            f"the head has an attribute {sorted(unknown)[0]!r} that was not set by fit, and it "
            "would be lost; delete it"
        )
    if not adaptable:
        kept = {name: value for name, value in kept.items() if name not in _LARGE}
        kept["solution_"] = replace(kept["solution_"], theta=np.empty(0))
    state = {name: field for name, field in fields.items() if name in kept}
    names = kept.get("feature_names_in_")
    classes = kept.get("classes_")
    return {
        "class": type(head).__name__,
        "parameters": _parameters(given, arrays),
        "features": int(head.n_features_in_),
        "feature_names": None if names is None else VALUES.write(names, arrays, "feature_names"),
        "classes": None if classes is None else VALUES.write(classes, arrays, "classes"),
        "domains": LABELS.write(head.domains_, arrays, "domains"),
        "adaptable": isinstance(head, Adapting) and "moments_" in kept,
        "as_fitted": kept.get("_fitted_with") == given,
        "state": {name: field.write(kept[name], arrays, name) for name, field in state.items()},
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Of what a head was made with."""
    return {
        "skdare": skdare.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "python": platform.python_version(),
    }


def _fields(kind: type[Head]) -> dict[str, Field]:
    own = _CLASSIFIER if issubclass(kind, ClassifierHead) else _REGRESSOR
    return {**own, **_SMALL, **_LARGE}


def _needed(kind: type[Head], adaptable: bool) -> set[str]:
    """Attributes without which a head of this kind would fail in use."""
    needed = {"coef_", "intercept_", "solution_", "n_iter_"}
    if not issubclass(kind, ClassifierHead):
        needed |= {"_centre", "_spread"}
    if issubclass(kind, DARECV):
        needed |= {"adapts_", "choice_"}
    if adaptable:
        needed |= set(_LARGE)
        if issubclass(kind, ClassifierHead):
            needed |= {"predicted_shares_", "predicted_share_range_"}
    return needed


def _parameters(given: Mapping[str, Any], arrays: Arrays) -> dict[str, Any]:
    """Constructor values; a cluster is no part of a head, and another may be in scope later."""
    engine = given["engine"] if isinstance(given["engine"], str) else "auto"
    written = {**given, "engine": engine}.items()
    return {name: ANYTHING.write(value, arrays, name) for name, value in written}


def restored(
    header: Mapping[str, Any], arrays: Mapping[str, np.ndarray], kinds: Mapping[str, type[Head]]
) -> Head:
    """The head that a header describes; what does not fit together is `Unfit`."""
    saved = Saved(arrays, {})
    kind = kinds.get(_of_type(header, "class", str))
    if kind is None:
        raise Unfit(f"it holds a {header['class']!r}, which this skdare does not have")
    head = _with_parameters(kind, _of_type(header, "parameters", dict), saved)
    head.n_features_in_ = saved.sizes["d"] = _of_type(header, "features", int)
    if header.get("feature_names") is not None:
        head.feature_names_in_ = VALUES.read(header["feature_names"], saved.inside("feature_names"))
        if len(head.feature_names_in_) != head.n_features_in_:
            raise Unfit("it does not have a name for every feature")
    head.domains_ = LABELS.read(header.get("domains"), saved.inside("domains"))
    saved.sizes["c"] = 1
    if issubclass(kind, ClassifierHead):
        head.classes_ = VALUES.read(header.get("classes"), saved.inside("classes"))
        saved.sizes["k"] = k = len(head.classes_)
        saved.sizes["c"] = 1 if k == 2 else k
    _set_state(head, _of_type(header, "state", dict), saved, _of_type(header, "adaptable", bool))
    if hasattr(head, "moments_"):
        as_fitted = _of_type(header, "as_fitted", bool)
        head._fitted_with = head.get_params() if as_fitted else None
    return head


def _of_type(header: Mapping[str, Any], name: str, kind: type) -> Any:
    if type(header.get(name)) is not kind:
        raise Unfit(f"its header has no proper {name!r}")
    return header[name]


def _with_parameters(kind: type[Head], given: dict[str, Any], saved: Saved) -> Head:
    known = kind().get_params(deep=False)
    for name in given:
        if name not in known:
            raise Unfit(f"{kind.__name__} has no parameter {name!r}")
    head = kind(**{name: ANYTHING.read(node, saved.inside(name)) for name, node in given.items()})
    try:
        head._check_options()
    except (TypeError, ValueError) as error:
        raise Unfit(str(error)) from error
    return head


def _set_state(head: Head, state: dict[str, Any], saved: Saved, adaptable: bool) -> None:
    fields = _fields(type(head))
    missing = _needed(type(head), adaptable) - set(state)
    unknown = set(state) - set(fields)
    if missing or unknown:
        raise Unfit(f"its header {'lacks' if missing else 'has'} {min(missing or unknown)!r}")
    for name, node in state.items():
        setattr(head, name, fields[name].read(node, saved.inside(name)))
    if not np.isfinite(head.coef_).all() or not np.isfinite(head.intercept_).all():
        raise Unfit("its weights are not finite")
    if "moments_" in state:
        if set(head.moments_) != set(getattr(head, "adjustments_", ())):
            raise Unfit("its moments and adjustments are not of the same domains")
        head._training = None
