"""A head as a header and arrays, and back."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy
import sklearn

import skdare
from skdare.heads._adapting import Adapting
from skdare.heads._cv import DARECV
from skdare.heads._estimator import ClassifierHead, Head
from skdare.model_io.schema import CLASSIFIER, LARGE, REGRESSOR, SMALL
from skdare.persist import ANYTHING, LABELS, VALUES, Field, FieldError, HeaderArrays, ReadContext

# Said at the top of the header, or made anew.
_APART = {
    *("classes_", "domains_", "n_features_in_", "feature_names_in_"),
    *("_training", "_fitted_with", "_metadata_request"),
}


def described(head: Head, arrays: HeaderArrays, *, adaptable: bool) -> dict[str, Any]:
    """The header of a fitted head; its arrays are put aside."""
    fields = _fields(type(head))
    given = head.get_params(deep=False)
    kept = {name: value for name, value in vars(head).items() if name not in given}
    unknown = set(kept) - set(fields) - _APART
    if unknown:
        raise FieldError(
            f"the head has an attribute {sorted(unknown)[0]!r} that was not set by fit, and it "
            "would be lost; delete it"
        )
    if not adaptable:
        kept = {name: value for name, value in kept.items() if name not in LARGE}
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
    own = CLASSIFIER if issubclass(kind, ClassifierHead) else REGRESSOR
    return {**own, **SMALL, **LARGE}


def _needed(kind: type[Head], adaptable: bool) -> set[str]:
    """Attributes without which a head of this kind would fail in use."""
    needed = {"coef_", "intercept_", "solution_", "n_iter_"}
    if not issubclass(kind, ClassifierHead):
        needed |= {"_centre", "_spread"}
    if issubclass(kind, DARECV):
        needed |= {"adapts_", "choice_"}
    if adaptable:
        needed |= set(LARGE)
        if issubclass(kind, ClassifierHead):
            needed |= {"predicted_shares_", "predicted_share_range_"}
    return needed


def _parameters(given: Mapping[str, Any], arrays: HeaderArrays) -> dict[str, Any]:
    """Constructor values; a cluster is no part of a head, and another may be in scope later."""
    engine = given["engine"] if isinstance(given["engine"], str) else "auto"
    written = {**given, "engine": engine}.items()
    return {name: ANYTHING.write(value, arrays, name) for name, value in written}


def restored(
    header: Mapping[str, Any], arrays: Mapping[str, np.ndarray], kinds: Mapping[str, type[Head]]
) -> Head:
    """The head that a header describes; what does not fit together is `FieldError`."""
    saved = ReadContext(arrays, {})
    kind = kinds.get(of_type(header, "class", str))
    if kind is None:
        raise FieldError(f"it holds a {header['class']!r}, which this skdare does not have")
    head = _with_parameters(kind, of_type(header, "parameters", dict), saved)
    head.n_features_in_ = saved.sizes["d"] = of_type(header, "features", int)
    if head.n_features_in_ < 1:
        raise FieldError("it has no features")
    if header.get("feature_names") is not None:
        head.feature_names_in_ = VALUES.read(header["feature_names"], saved.inside("feature_names"))
        if len(head.feature_names_in_) != head.n_features_in_:
            raise FieldError("it does not have a name for every feature")
    head.domains_ = LABELS.read(header.get("domains"), saved.inside("domains"))
    saved.sizes["c"] = 1
    if issubclass(kind, ClassifierHead):
        head.classes_ = VALUES.read(header.get("classes"), saved.inside("classes"))
        saved.sizes["k"] = k = len(head.classes_)
        if k < 2 or not _ascending(head.classes_.tolist()):
            raise FieldError("its classes are not two or more, in order")
        saved.sizes["c"] = 1 if k == 2 else k
    _set_state(head, of_type(header, "state", dict), saved, of_type(header, "adaptable", bool))
    if hasattr(head, "moments_"):
        as_fitted = of_type(header, "as_fitted", bool)
        head._fitted_with = head.get_params() if as_fitted else None
    return head


def _ascending(labels: list[Any]) -> bool:
    try:
        return all(a < b for a, b in pairwise(labels))
    except TypeError:
        return False


def of_type(header: Mapping[str, Any], name: str, kind: type) -> Any:
    """An entry of a header, which has to be there and of this type."""
    if type(header.get(name)) is not kind:
        raise FieldError(f"its header has no proper {name!r}")
    return header[name]


def _with_parameters(kind: type[Head], given: dict[str, Any], saved: ReadContext) -> Head:
    known = kind().get_params(deep=False)
    for name in given:
        if name not in known:
            raise FieldError(f"{kind.__name__} has no parameter {name!r}")
    head = kind(**{name: ANYTHING.read(node, saved.inside(name)) for name, node in given.items()})
    try:
        head._check_options()
    except (TypeError, ValueError) as error:
        raise FieldError(str(error)) from error
    return head


def _set_state(head: Head, state: dict[str, Any], saved: ReadContext, adaptable: bool) -> None:
    fields = _fields(type(head))
    missing = _needed(type(head), adaptable) - set(state)
    unknown = set(state) - set(fields)
    if missing or unknown:
        raise FieldError(f"its header {'lacks' if missing else 'has'} {min(missing or unknown)!r}")
    for name, node in state.items():
        setattr(head, name, fields[name].read(node, saved.inside(name)))
    if not np.isfinite(head.coef_).all() or not np.isfinite(head.intercept_).all():
        raise FieldError("its weights are not finite")
    if "moments_" in state:
        if not set(head.moments_) == set(head.adjustments_) == set(head.domains_):
            raise FieldError("its moments and adjustments are not those of its domains")
        head._training = None
