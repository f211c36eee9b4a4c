"""A fitted head as one safetensors file, which holds arrays and JSON, and no code."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import fields, replace
from itertools import pairwise
from os import PathLike
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from skdare.choosing.strategies import STRATEGIES
from skdare.errors import InputError
from skdare.fitting.domain_fit import DomainFit
from skdare.fitting.preparation import AutoPreparation
from skdare.fitting.problem import Classes
from skdare.fitting.steps import Steps
from skdare.heads.base import Head
from skdare.heads.head_state import HeadState
from skdare.heads.table import CLASSES, class_named
from skdare.saving.saved_file import SavedFile, unreadable
from skdare.saving.state import Reader, Writer, annotations_of
from skdare.version import __version__

# Parameters that may be objects with code: if they are, a loaded head has the default.
_MAY_BE_CODE = ("cv", "scoring")
# What making a head of a header that does not fit together may raise.
_UNREADABLE = (ValueError, TypeError, LookupError, OverflowError, RecursionError)


def save(head: Any, path: str | PathLike[str], *, adaptable: bool = True) -> None:
    """Write a fitted head to a safetensors file.

    The file is replaced in one step, and holds arrays and a JSON header, never code: class,
    parameters, classes, domains, versions of the libraries, and what `adapt` and `diagnose` need.

    Parameters
    ----------
    head : fitted head
        Its preparation may be "auto", ``SimpleImputer`` (mean or median), ``StandardScaler``, and
        ``FunctionTransformer(np.clip, kw_args=...)``, or a Pipeline of these.
    path : str or path
    adaptable : bool, default=True
        False leaves out the moments of the training domains: the file is as large as the weights,
        and the loaded head predicts, but neither adapts nor diagnoses.

    Examples
    --------
    >>> import tempfile
    >>> import skdare
    >>> from skdare.data import make_latent_domains
    >>> data = make_latent_domains(random_state=0)
    >>> head = skdare.DAREClassifier().fit(data.X, data.y, domains=data.domains)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     skdare.save(head, f"{folder}/head.safetensors")
    ...     again = skdare.load(f"{folder}/head.safetensors")
    >>> bool((again.predict_proba(data.X) == head.predict_proba(data.X)).all())
    True
    """
    name = type(head).__name__
    if name not in CLASSES or type(head) is not _class_of(name):
        raise TypeError(f"a {name} cannot be saved; pass a head of skdare")
    check_is_fitted(head, "state_")
    file = _file_of(head, adaptable)
    try:
        _head_of(file)  # one that could not be read again would be lost
    except _UNREADABLE as error:
        raise InputError(
            f"not written to {path}, as it could not be read again: {error}", "nothing has changed"
        ) from error
    file.write(path)


def load(path: str | PathLike[str]) -> Any:
    """The head that `save` wrote to a file.

    Nothing in a file is ever run. A file that was cut off or altered, or that this version of
    skdare did not write, is refused.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    head
        With predictions equal to the bit.
    """
    file = SavedFile.read(path, "head")
    try:
        return _head_of(file)
    except _UNREADABLE as error:
        raise unreadable(path, error) from error


def _file_of(head: Head, adaptable: bool) -> SavedFile:
    state = head.state_
    if not adaptable:
        state = replace(state, fit=None, rehearsal=None, adjustment=None)
    preparation = None if state.preparation is None else Steps.of(state.preparation)
    writer = Writer()
    header = {
        "class": type(head).__name__,
        "parameters": {
            name: writer.write(value) for name, value in _saved_parameters(head).items()
        },
        "preparation": writer.write(preparation),
        "state": writer.write(replace(state, preparation=None)),
        "versions": {
            "skdare": __version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
            "python": platform.python_version(),
        },
    }
    return SavedFile("head", header, writer.arrays)


def _saved_parameters(head: Head) -> dict[str, Any]:
    values = head.get_params(deep=False)
    del values["preparation"]  # it is written as it was fitted
    for name in _MAY_BE_CODE:
        if name in values and not isinstance(values[name], int | str | None):
            del values[name]
    return values


def _head_of(file: SavedFile) -> Head:
    """The head that a file describes; a ValueError if its parts do not fit together."""
    header = file.header
    kind = _class_of(_entry(header, "class", str))
    reader = Reader(file.arrays)
    hints = annotations_of(kind)
    stored = _entry(header, "parameters", dict)
    known = {one.name for one in fields(kind)} - {"preparation"}
    if not known - set(_MAY_BE_CODE) <= set(stored) <= known:
        raise ValueError(f"it has other parameters than a {kind.__name__}")
    parameters = {name: reader.read(hints[name], one, name) for name, one in stored.items()}
    state = reader.read(HeadState, header.get("state"), "state")
    _check_state(state)
    preparation = fitted = None
    if header.get("preparation") is not None:
        # Its features need not be as many as the weights have.
        fitted = Reader(file.arrays).read(Steps, header["preparation"], "preparation").transformer()
        preparation = "auto" if isinstance(fitted, AutoPreparation) else clone(fitted)
    head = kind(preparation=preparation, **parameters)
    head._check_parameters()
    return head._with_state(replace(state, preparation=fitted))


def _entry(header: Mapping[str, Any], name: str, kind: type) -> Any:
    if type(header.get(name)) is not kind:
        raise ValueError(f"its header has no proper {name!r}")
    return header[name]


def _class_of(name: str) -> Any:
    if name not in CLASSES:
        raise ValueError(f"it holds a {name!r:.40}, which this skdare does not have")
    return class_named(name)


def _check_state(state: HeadState) -> None:
    """Refuse what types cannot: parts that do not fit together."""
    targets = state.targets
    if isinstance(targets, Classes):
        classes = targets.classes.tolist()
        in_order = targets.classes.ndim == 1 and all(a < b for a, b in pairwise(classes))
        _check(len(classes) > 1 and in_order, "its classes are not two or more, in order")
    else:
        _check(targets.spread > 0, "its targets have no spread")
    _check(state.V.shape[1] == targets.columns, "its weights are not those of its classes")
    weights = state.domain_weights
    _check(weights is None or len(weights) == len(state.domains), "its domains lack a weight")
    if state.choice is not None:
        choice = state.choice
        count = len(choice.candidates)
        known = all(one.name in STRATEGIES for one in choice.candidates)
        without = [*choice.predicting_without, *choice.adapting_without]
        named = [choice.predicting, choice.adapting, choice.best_adapting, *without]
        chosen = all(0 <= c < count for c in named)
        E = len(choice.predicting_without)
        each = len(choice.adapting_without) == E and choice.scores.shape == (count, E)
        _check(known and chosen and each, "its choice is not a choice")
    if state.fit is not None:
        _check_fit(state.fit, state)


def _check_fit(fit: DomainFit, state: HeadState) -> None:
    E = len(fit.labels)
    same = E == len(fit.moments) == len(fit.adjustments) and fit.labels == state.domains
    _check(E > 0 and same, "its moments and adjustments are not those of its domains")
    fits = [fit.unseen] if fit.adaptation is None else [fit.unseen, fit.adaptation.fit]
    for one in fits:
        how = one.formulation
        numbers = [how.l2, how.tol, how.max_iter, how.whitening.shrinkage]
        valid = min(numbers) >= 0 and how.whitening.shrinkage <= 1.0
        _check(valid, "invalid formulation")
        if isinstance(how.guess, dict):
            named = set(how.guess) <= set(fit.labels) and sum(how.guess.values()) > 0
            _check(named and min(how.guess.values()) >= 0, "its guess weighs no domains")
    for m in fit.moments:
        _check(m.n > 0 and (m.scatter is None) != (m.rows is None), "its moments are not moments")
    for W in (*fit.adjustments, *(one.adjustment for one in fits)):
        _check((W.U is None) == (W.core is None), "its adjustments are not adjustments")
    adaptation = fit.adaptation
    if adaptation is not None:
        paired = (adaptation.mixture is None) == (adaptation.places is None)
        prior = adaptation.prior_rows
        least = min(prior.mean, prior.adjustment, prior.half_adapted)
        _check(paired and least >= 0, "what it adapts by does not fit together")


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
