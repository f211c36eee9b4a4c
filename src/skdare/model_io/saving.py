"""Saving heads, and pipelines that end in one, to files without code, and loading them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from os import PathLike
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skdare.adapting.stream_file import STREAMS
from skdare.heads import DomainAdjusted
from skdare.heads._estimator import Head
from skdare.model_io.head_file import read_head, write_head
from skdare.model_io.steps import described_step, restored_step
from skdare.persist import FieldError, HeaderArrays, TensorFile


def save(model: Any, path: str | PathLike[str], *, adaptable: bool = True) -> None:
    """Write a fitted head, or a pipeline that ends in one, to a safetensors file.

    The file is replaced in one step, and holds arrays and a JSON header, never code: class,
    parameters, classes, domains, versions of the libraries, and what `adapt` and `diagnose` need.

    Parameters
    ----------
    model : head, Pipeline or DomainAdjusted
        Before the head a pipeline may have ``SimpleImputer`` (mean or median),
        ``StandardScaler``, and ``FunctionTransformer(np.clip, kw_args=...)``. Requests made by
        ``set_fit_request`` are not kept.
    path : str or path
    adaptable : bool, default=True
        False leaves out the moments of the training domains: the file is as large as the weights,
        and the loaded head predicts, but neither adapts nor diagnoses.

    Examples
    --------
    >>> import tempfile
    >>> import skdare
    >>> from skdare.datasets import make_latent_domains
    >>> data = make_latent_domains(random_state=0)
    >>> head = skdare.DAREClassifier().fit(data.X, data.y, domains=data.domains)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     skdare.save(head, f"{folder}/head.safetensors")
    ...     again = skdare.load(f"{folder}/head.safetensors")
    >>> bool((again.predict_proba(data.X) == head.predict_proba(data.X)).all())
    True
    """
    steps, head = _split_pipeline(model)
    check_is_fitted(head)
    arrays = HeaderArrays()
    header = write_head(head, arrays, adaptable=adaptable)
    if isinstance(model, Pipeline):
        header["steps"] = [described_step(name, step, arrays) for name, step in steps]
        header["name"] = model.steps[-1][0]
        header["domain_adjusted"] = isinstance(model, DomainAdjusted)
    TensorFile("head", header, arrays.named).write(path, check=partial(_check_readable, path=path))


def load(path: str | PathLike[str]) -> Any:
    """The head, or the pipeline, that `save` wrote to a file.

    Nothing in a file is ever run. A file that was cut off or altered, that skdare did not
    write, or that a later version wrote is refused.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    head, Pipeline or DomainAdjusted
        With predictions equal to the bit.
    """
    file = TensorFile.read(path)
    _check_is_head(file, path)
    try:
        return _model_of(file)
    except _UNREADABLE as error:
        raise ValueError(
            f"{path} cannot be read: {error}; take another copy of it, or make it again"
        ) from error


_UNREADABLE = (FieldError, OverflowError, RecursionError)


def _model_of(file: TensorFile) -> Any:
    """The head or pipeline that a file holds."""
    head = read_head(file.header, file.arrays, _kinds())
    if "steps" not in file.header:
        return head
    return _pipeline(file.header, head, file.arrays)


def _check_readable(file: TensorFile, path: str | PathLike[str]) -> None:
    """What is written can be read: a head that could not be would be lost."""
    try:
        _model_of(file)
    except _UNREADABLE as error:
        raise ValueError(
            f"not written to {path}, as it could not be read again: {error}; what was there is as "
            "it was, and the head is unchanged"
        ) from error


def _split_pipeline(model: Any) -> tuple[list[tuple[str, Any]], Head]:
    steps = list(model.steps) if isinstance(model, Pipeline) else [("", model)]
    *before, (_, head) = steps
    if _kinds().get(type(head).__name__) is not type(head):
        raise TypeError(
            f"a {type(head).__name__} cannot be saved; pass a head of skdare, or a Pipeline that "
            "ends in one"
        )
    return before, head


def _kinds() -> Mapping[str, type[Head]]:
    from skdare import heads

    named = {name: getattr(heads, name) for name in heads.__all__}
    classes = {name: kind for name, kind in named.items() if isinstance(kind, type)}
    return {name: kind for name, kind in classes.items() if issubclass(kind, Head)}


def _check_is_head(file: TensorFile, path: str | PathLike[str]) -> None:
    if file.kind in STREAMS:
        raise ValueError(
            f"{path} holds the state of a stream ({file.kind}), not a head; load the head that it "
            "was saved with, and call head.resume(path)"
        )
    if file.kind != "head":
        raise ValueError(f"{path} holds a {file.kind!r}, which this skdare does not know")


def _pipeline(header: Mapping[str, Any], head: Head, arrays: Mapping[str, Any]) -> Pipeline:
    steps = header["steps"]
    name = header.get("name")
    if type(steps) is not list or type(name) is not str:
        raise FieldError("its steps are not a list")
    before = [restored_step(step, arrays, head.n_features_in_) for step in steps]
    names = [step for step, _ in before] + [name]
    if len(set(names)) < len(names) or any("__" in step for step in names):
        raise FieldError("its steps do not have names of their own")
    kind = DomainAdjusted if header.get("domain_adjusted") is True else Pipeline
    return kind([*before, (name, head)])
