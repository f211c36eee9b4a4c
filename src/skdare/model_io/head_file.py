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
from sklearn.base import clone
from sklearn.pipeline import Pipeline

import skdare
from skdare.fitting.domain_fit import DomainFit
from skdare.fitting.targets import Classes, ClassShares, Numbers
from skdare.heads import DAREClassifierCV, DARERegressorCV
from skdare.heads._adjusted import AdjustedHead
from skdare.heads._estimator import ClassifierHead, Head
from skdare.model_io.schema import CLASSIFIER, LARGE, REGRESSOR, SMALL, StoredAdaptation
from skdare.model_io.steps import described_step, restored_step
from skdare.persist import ANYTHING, LABELS, VALUES, Field, FieldError, HeaderArrays, ReadContext

# What the columns of targets and domains are called, where a head knows.
LABEL_NAMES = ("target_name_", "domain_name_")
# Attributes that are written as they are, where a head has them.
_PLAIN = {
    *("coef_", "intercept_", "n_iter_", "solution_", "domain_weights_"),
    *("cv_results_", "best_params_", "best_index_", "best_score_", "adapts_", "choice_"),
}
# Said at the top of the header, part of the state under other names, or made anew.
_OTHERS = {
    *("classes_", "domains_", "n_features_in_", "feature_names_in_", "adapted_rows_"),
    *LABEL_NAMES,
    *("preparation_", "_standardization", "_had_groups", "declined_", "labelled_rows_"),
    *("_labelled_digests", "temperature_"),
    *("rehearsal_", "_canonical", "_targets", "_domain_fit", "_fitted_params", "_metadata_request"),
}


def write_head(head: Head, arrays: HeaderArrays, *, adaptable: bool) -> dict[str, Any]:
    """The header of a fitted head; its arrays are put aside."""
    parameters = head.get_params(deep=False)
    attributes = {name: value for name, value in vars(head).items() if name not in parameters}
    unknown = set(attributes) - _PLAIN - _OTHERS
    if unknown:
        raise FieldError(
            f"the head has an attribute {sorted(unknown)[0]!r} that was not set by fit, and it "
            "would be lost; delete it"
        )
    state = {name: attributes[name] for name in sorted(_PLAIN) if name in attributes}
    state |= _composed_state(head, adaptable)
    if not adaptable:
        state["solution_"] = replace(head.solution_, theta=np.empty(0))
    fields = _fields(type(head))
    names = attributes.get("feature_names_in_")
    classes = attributes.get("classes_")
    return {
        "class": type(head).__name__,
        "parameters": _parameters(parameters, arrays),
        "features": int(head.n_features_in_),
        "feature_names": None if names is None else VALUES.write(names, arrays, "feature_names"),
        "classes": None if classes is None else VALUES.write(classes, arrays, "classes"),
        "domains": LABELS.write(head.domains_, arrays, "domains"),
        **{name.rstrip("_"): attributes[name] for name in LABEL_NAMES if name in attributes},
        "adaptable": "moments_" in state,
        "as_fitted": attributes.get("_fitted_params") == head.get_params(),
        "state": {
            name: field.write(state[name], arrays, name)
            for name, field in fields.items()
            if name in state
        },
        "preparation": _written_preparation(head.preparation_, arrays),
        "versions": versions(),
    }


def _written_preparation(preparation: Any, arrays: HeaderArrays) -> dict[str, Any] | None:
    """The steps that rows go through before the head, where there are any."""
    if preparation is None:
        return None
    many = isinstance(preparation, Pipeline)
    steps = preparation.steps if many else [("preparation", preparation)]
    described = [described_step(name, step, arrays) for name, step in steps]
    return {"pipeline": many, "steps": described}


def _read_preparation(node: Any, context: ReadContext, d: int) -> Any:
    match node:
        case {"pipeline": bool(many), "steps": [*nodes]}:
            steps = [restored_step(one, context.arrays, d) for one in nodes]
            names = [name for name, _ in steps]
            if not steps or len(set(names)) < len(names) or any("__" in name for name in names):
                raise FieldError("its preparation has steps without names of their own")
            if many:
                return Pipeline(steps)
            if len(steps) == 1:
                return steps[0][1]
    raise FieldError("its preparation is not a list of steps")


def _composed_state(head: Head, adaptable: bool) -> dict[str, Any]:
    """What a head holds in objects, under the names that files have."""
    state: dict[str, Any] = {}
    if isinstance(head._targets, Numbers):
        state |= {"_centre": head._targets.centre, "_spread": head._targets.spread}
    if isinstance(head, AdjustedHead) and head.adapted_rows_ is not None:
        state["adapted_rows_"] = head.adapted_rows_
    if isinstance(head, AdjustedHead) and head.declined_ is not None:
        state["declined_"] = head.declined_
    if isinstance(head, AdjustedHead) and head.labelled_rows_ is not None:
        state["labelled_rows_"] = head.labelled_rows_
    if isinstance(head, AdjustedHead) and head.temperature_ != 1.0:
        state["temperature_"] = head.temperature_
    if head._had_groups:
        state["_had_groups"] = True
    if not adaptable:
        return state
    if head._standardization is not None:
        state["_standardization"] = head._standardization
    if head._canonical is not None:
        state["_canonical"] = head._canonical
    if isinstance(head, AdjustedHead) and head._domain_fit is not None:
        fit = head._domain_fit
        state |= {
            "canonical_coef_": fit.B.T,
            "moments_": fit.moments,
            "adjustments_": fit.adjustments,
            "adjustment_": fit.adjustment,
            "_whitening": fit.whitening,
            "adaptation_": StoredAdaptation.of(fit.adaptation),
            "rehearsed_": head.rehearsal_,
        }
        if fit.class_shares is not None:
            state["predicted_shares_"] = fit.class_shares.shares
            state["predicted_share_range_"] = fit.class_shares.reach
        if fit.adapted_mean is not None:
            state["adapted_mean_"] = fit.adapted_mean
        if fit.unadapted is not None:
            state["unadapted_"] = fit.unadapted
        if fit.guard is not None:
            state["guard_"] = fit.guard
    return state


def versions() -> dict[str, str]:
    """Versions of the libraries that a head was made with."""
    return {
        "skdare": skdare.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "python": platform.python_version(),
    }


def _fields(kind: type[Head]) -> dict[str, Field]:
    weights = CLASSIFIER if issubclass(kind, ClassifierHead) else REGRESSOR
    return {**weights, **SMALL, **LARGE}


def _needed(kind: type[Head], adaptable: bool) -> set[str]:
    """Attributes without which a head of this kind would fail in use."""
    needed = {"coef_", "intercept_", "solution_", "n_iter_"}
    if not issubclass(kind, ClassifierHead):
        needed |= {"_centre", "_spread"}
    if issubclass(kind, DAREClassifierCV | DARERegressorCV):
        needed |= {"adapts_", "choice_"}
    if adaptable:
        needed |= set(LARGE)
        if issubclass(kind, ClassifierHead):
            needed |= {"predicted_shares_", "predicted_share_range_"}
    return needed


def _parameters(values: Mapping[str, Any], arrays: HeaderArrays) -> dict[str, Any]:
    """Constructor values; a cluster is no part of a head, and another may be in scope later."""
    engine = values["engine"] if isinstance(values["engine"], str) else "auto"
    written = {**values, "engine": engine}
    if not isinstance(values.get("cv"), int):  # a splitter is no part of what was learnt
        written.pop("cv", None)
    if "preparation" in written:  # what it learnt is written by itself, and says what it was
        written["preparation"] = None
    return {name: ANYTHING.write(value, arrays, name) for name, value in written.items()}


def read_head(
    header: Mapping[str, Any], arrays: Mapping[str, np.ndarray], kinds: Mapping[str, type[Head]]
) -> Head:
    """The head that a header describes; what does not fit together is `FieldError`."""
    context = ReadContext(arrays, {})
    kind = kinds.get(header_entry(header, "class", str))
    if kind is None:
        raise FieldError(f"it holds a {header['class']!r}, which this skdare does not have")
    head = _with_parameters(kind, header_entry(header, "parameters", dict), context)
    head.n_features_in_ = context.sizes["d"] = header_entry(header, "features", int)
    if head.n_features_in_ < 1:
        raise FieldError("it has no features")
    if header.get("feature_names") is not None:
        head.feature_names_in_ = VALUES.read(
            header["feature_names"], context.inside("feature_names")
        )
        if len(head.feature_names_in_) != head.n_features_in_:
            raise FieldError("it does not have a name for every feature")
    head.preparation_ = None
    if header.get("preparation") is not None:
        if "preparation" not in head.get_params(deep=False):
            raise FieldError(f"{kind.__name__} has no preparation")
        head.preparation_ = _read_preparation(header["preparation"], context, head.n_features_in_)
        head.preparation = clone(head.preparation_)
    head.domains_ = LABELS.read(header.get("domains"), context.inside("domains"))
    head._remember_names(*label_names(header).values())
    context.sizes["c"] = 1
    if issubclass(kind, ClassifierHead):
        head.classes_ = VALUES.read(header.get("classes"), context.inside("classes"))
        context.sizes["k"] = k = len(head.classes_)
        if k < 2 or not _ascending(head.classes_.tolist()):
            raise FieldError("its classes are not two or more, in order")
        context.sizes["c"] = 1 if k == 2 else k
    values = _state_values(kind, header, context)
    if "moments_" in values and head.standardize != ("_standardization" in values):
        raise FieldError("what it was standardised by is missing, or it was not")
    _set_state(head, values)
    if "moments_" in values:
        as_fitted = header_entry(header, "as_fitted", bool)
        head._fitted_params = head.get_params() if as_fitted else None
    return head


def _ascending(labels: list[Any]) -> bool:
    try:
        return all(a < b for a, b in pairwise(labels))
    except TypeError:
        return False


def label_names(header: Mapping[str, Any]) -> dict[str, str | None]:
    """What targets and domains are called, where a header says so."""
    names = {name.rstrip("_"): header.get(name.rstrip("_")) for name in LABEL_NAMES}
    for name, text in names.items():
        if text is not None and type(text) is not str:
            raise FieldError(f"its header has no proper {name!r}")
    return names


def header_entry(header: Mapping[str, Any], name: str, kind: type) -> Any:
    """An entry of a header, which has to be there and of this type."""
    if type(header.get(name)) is not kind:
        raise FieldError(f"its header has no proper {name!r}")
    return header[name]


def _with_parameters(kind: type[Head], nodes: dict[str, Any], context: ReadContext) -> Head:
    parameters = kind().get_params(deep=False)
    for name in nodes:
        if name not in parameters:
            raise FieldError(f"{kind.__name__} has no parameter {name!r}")
    head = kind(**{name: ANYTHING.read(node, context.inside(name)) for name, node in nodes.items()})
    try:
        head._check_options()
    except (TypeError, ValueError) as error:
        raise FieldError(str(error)) from error
    return head


def _state_values(
    kind: type[Head], header: Mapping[str, Any], context: ReadContext
) -> dict[str, Any]:
    """The state in a header, each entry checked."""
    state = header_entry(header, "state", dict)
    fields = _fields(kind)
    missing = _needed(kind, header_entry(header, "adaptable", bool)) - set(state)
    unknown = set(state) - set(fields)
    if missing or unknown:
        raise FieldError(f"its header {'lacks' if missing else 'has'} {min(missing or unknown)!r}")
    values = {name: fields[name].read(node, context.inside(name)) for name, node in state.items()}
    if not np.isfinite(values["coef_"]).all() or not np.isfinite(values["intercept_"]).all():
        raise FieldError("its weights are not finite")
    return values


def _set_state(head: Head, values: Mapping[str, Any]) -> None:
    for name in _PLAIN & set(values):
        setattr(head, name, values[name])
    head._canonical = values.get("_canonical")
    head._standardization = values.get("_standardization")
    head._had_groups = values.get("_had_groups", False)
    if isinstance(head, ClassifierHead):
        head._targets = Classes(head.classes_)
    else:
        head._targets = Numbers(values["_centre"], values["_spread"])
    if isinstance(head, AdjustedHead):
        head.adapted_rows_ = values.get("adapted_rows_")
        head.declined_ = values.get("declined_")
        head.labelled_rows_ = values.get("labelled_rows_")
        head._labelled_digests = []
        head.temperature_ = values.get("temperature_", 1.0)
        if not head.temperature_ > 0:
            raise FieldError("its temperature is not positive")
        head.rehearsal_ = values.get("rehearsed_")
        head._domain_fit = _domain_fit(head, values) if "moments_" in values else None


def _domain_fit(head: AdjustedHead, values: Mapping[str, Any]) -> DomainFit:
    moments = values["moments_"]
    adjustments = values["adjustments_"]
    if not set(moments) == set(adjustments) == set(head.domains_):
        raise FieldError("its moments and adjustments are not those of its domains")
    stored: StoredAdaptation | None = values["adaptation_"]
    shares = None
    if "predicted_shares_" in values:
        shares = ClassShares(values["predicted_shares_"], values["predicted_share_range_"])
    return DomainFit(
        whitening=values["_whitening"],
        moments=moments,
        adjustments=adjustments,
        B=values["canonical_coef_"].T,
        adjustment=values["adjustment_"],
        guess_rule=head.get_params(deep=False).get("guess") or "mean",
        adaptation=None if stored is None else stored.adaptation(),
        declined=None if values.get("adapts_", True) else values["choice_"],
        guard=values.get("guard_"),
        class_shares=shares,
        adapted_mean=values.get("adapted_mean_"),
        unadapted=values.get("unadapted_"),
    )
