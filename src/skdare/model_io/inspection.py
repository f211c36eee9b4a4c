"""What a file says of itself: its header, without its arrays."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from skdare.model_io.head_file import header_entry, label_names
from skdare.persist import (
    ANYTHING,
    FLAG,
    INTEGER,
    LABEL,
    LABELS,
    NUMBER,
    TEXT,
    VALUES,
    Field,
    FieldError,
    Nullable,
    ReadContext,
    TensorFile,
    read_header,
)

_NO_ARRAYS = ReadContext({}, {})


def inspect_file(path: str | PathLike[str]) -> dict[str, Any]:
    """What the header of a file says, without reading its arrays or its checksum.

    Parameters
    ----------
    path : str or path
        Of a head, a pipeline, an adapter or a fleet.

    Returns
    -------
    dict
        ``kind`` ("head", "adapter" or "fleet") and ``version`` of the format. Of a head: ``class``,
        ``parameters``, ``features``, ``feature_names``, ``classes``, ``domains``, ``target_name``
        and ``domain_name`` (of their columns), ``rows`` (of each domain, where they are weights),
        ``steps`` before it, ``adaptable`` (whether it keeps what `adapt` and `diagnose` need),
        ``adapts`` (whether `adapt` changes anything), ``rehearsed``, ``adapted_rows``,
        ``labelled_rows``, ``temperature`` (None: not calibrated), ``declined`` (why adapting was),
        ``choice`` and ``versions``. Of a stream: ``options``, and ``rows`` seen and ``labels``, or
        ``devices``.

    Examples
    --------
    >>> import tempfile
    >>> import skdare
    >>> from sklearn.datasets import load_iris
    >>> head = skdare.ERMClassifier().fit(*load_iris(return_X_y=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     head.save(f"{folder}/head.safetensors")
    ...     about = skdare.inspect_file(f"{folder}/head.safetensors")
    >>> about["class"], about["features"], about["classes"]
    ('ERMClassifier', 4, [0, 1, 2])
    """
    file = read_header(path)
    about = {"kind": file.kind, "version": file.version}
    try:
        return about | (_of_head(file.header) if file.kind == "head" else _of_stream(file))
    except FieldError as error:
        raise ValueError(
            f"{path} cannot be read: {error}; take another copy of it, or make it again"
        ) from error


def _of_head(header: Mapping[str, Any]) -> dict[str, Any]:
    state = header_entry(header, "state", dict)
    parameters = header_entry(header, "parameters", dict)
    domains = LABELS.read(header.get("domains"), _NO_ARRAYS.inside("domains"))
    adaptation = state.get("adaptation_") is not None
    return {
        "class": header_entry(header, "class", str),
        "parameters": {name: ANYTHING.read(node, _NO_ARRAYS) for name, node in parameters.items()},
        "features": header_entry(header, "features", int),
        "feature_names": _listed(header.get("feature_names")),
        "classes": _listed(header.get("classes")),
        "domains": domains,
        **label_names(header),
        "rows": _rows(state.get("moments_"), domains),
        "steps": [_step(node) for node in [*(header.get("steps") or []), *_prepares(header)]],
        "adaptable": header_entry(header, "adaptable", bool),
        "adapts": adaptation and _maybe(FLAG, state, "adapts_") is not False,
        "rehearsed": state.get("rehearsed_") is not None,
        "adapted_rows": _maybe(INTEGER, state, "adapted_rows_"),
        "labelled_rows": _maybe(INTEGER, state, "labelled_rows_"),
        "temperature": _maybe(NUMBER, state, "temperature_"),
        "declined": _maybe(TEXT, state, "declined_"),
        "choice": _maybe(TEXT, state, "choice_"),
        "versions": {
            str(name): TEXT.read(node, _NO_ARRAYS.inside("versions"))
            for name, node in header_entry(header, "versions", dict).items()
        },
    }


def _of_stream(file: TensorFile) -> dict[str, Any]:
    header = file.header
    numbers = file.header.get("numbers") or {}
    options = header_entry(header, "options", dict)
    about: dict[str, Any] = {
        "options": {name: _option(name).read(node, _NO_ARRAYS) for name, node in options.items()}
    }
    if file.kind == "fleet":
        return {
            **about,
            "devices": LABELS.read(header.get("devices"), _NO_ARRAYS.inside("devices")),
        }
    if type(numbers) is not dict:
        raise FieldError("its numbers are not valid")
    return {
        **about,
        "rows": INTEGER.read(numbers.get("n_seen"), _NO_ARRAYS.inside("n_seen")),
        "labels": INTEGER.read(numbers.get("n_labels", 0), _NO_ARRAYS.inside("n_labels")),
    }


def _option(name: str) -> Field:
    return FLAG if name in ("force", "new_classes") else Nullable(NUMBER)


def _maybe(field: Field, state: Mapping[str, Any], name: str) -> Any:
    return Nullable(field).read(state.get(name), _NO_ARRAYS.inside(name))


def _listed(node: Any) -> list[Any] | None:
    return None if node is None else VALUES.read(node, _NO_ARRAYS).tolist()


def _prepares(header: Mapping[str, Any]) -> list[Any]:
    """The steps of the head's own preparation."""
    match header.get("preparation"):
        case None:
            return []
        case {"steps": [*steps]}:
            return steps
    raise FieldError("its preparation is not a list of steps")


def _step(node: Any) -> str:
    match node:
        case {"class": str(kind)}:
            return kind
    raise FieldError("it has a step that is not valid")


def _rows(moments: Any, domains: list[Any]) -> list[float | None]:
    """Total weight of the rows of each domain."""
    if moments is None:
        return [None] * len(domains)
    try:
        weights = {LABEL.read(label, _NO_ARRAYS): node["n"] for label, node in moments}
    except (TypeError, ValueError, KeyError):
        raise FieldError("its moments are not valid") from None
    return [Nullable(NUMBER).read(weights.get(label), _NO_ARRAYS.inside("n")) for label in domains]
