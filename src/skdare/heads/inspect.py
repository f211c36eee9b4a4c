"""Description of a file from its header, without its large arrays."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from skdare.errors import InputError
from skdare.fitting.steps import STEP_NAMES
from skdare.saving.saved_file import DAMAGED, check_is_file, header_of, unreadable
from skdare.saving.state import Reader


def inspect_file(path: str | PathLike[str]) -> dict[str, Any]:
    """Description of a saved file, without reading its arrays or its checksum.

    Parameters
    ----------
    path : str or path
        Of a head, or of a stream that an adapter wrote.

    Returns
    -------
    dict
        ``kind`` ("head" or "stream") and ``version`` of the format. Of a head: ``class``,
        ``parameters``, ``features``, ``feature_names``, ``classes``, ``domains``, ``target_name``
        and ``domain_name`` (of their columns), ``rows`` (of each domain, as weights), ``steps``
        before it, ``adaptable`` (whether it keeps what `adapt` and `diagnose` need), ``adapts``
        (whether `adapt` changes anything), ``rehearsed``, ``adapted_rows``, ``labelled_rows``,
        ``declined`` (why adapting was) and ``versions``. Of a stream: ``options``, ``rows`` seen
        and ``labels``.

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
    from safetensors import SafetensorError, safe_open

    check_is_file(path)
    try:
        with safe_open(path, framework="numpy") as file:
            header = header_of((file.metadata() or {}).get("skdare", ""), path)
            about = {"kind": header["kind"], "version": header["version"]}
            described = _of_head if header["kind"] == "head" else _of_stream
            return about | described(header, file)
    except InputError:
        raise
    except (SafetensorError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise unreadable(path, DAMAGED) from error


def _of_head(header: Mapping[str, Any], file: Any) -> dict[str, Any]:
    state = header["state"]
    fit = state["fit"]
    names = state["names"]
    adapted = state["adapted"] or {}
    classes = state["targets"].get("classes")
    named = set(file.keys())
    arrays = {
        name: file.get_tensor(name)
        for name in (classes or {}).values()
        if isinstance(name, str) and name in named
    }
    steps = (header["preparation"] or {"steps": []})["steps"]
    shape = file.get_slice(state["V"]["array"]).get_shape()
    return {
        "class": str(header["class"]),
        "parameters": {name: _plain(value) for name, value in header["parameters"].items()},
        "features": steps[0].get("features", shape[0]) if steps else shape[0],
        "feature_names": names["features"],
        "classes": classes and Reader(arrays).array(classes, "classes").tolist(),
        "domains": state["domains"],
        "target_name": names["target"],
        "domain_name": names["domains"],
        "rows": [None if fit is None else m["n"] for m in (fit or {"moments": []})["moments"]],
        "steps": [STEP_NAMES[step["class"]] for step in steps],
        "adaptable": fit is not None,
        "adapts": fit is not None and fit["adaptation"] is not None,
        "rehearsed": state["rehearsal"] is not None,
        "adapted_rows": None if adapted.get("declined") else adapted.get("rows"),
        "labelled_rows": adapted.get("labelled_rows"),
        "declined": adapted.get("declined"),
        "versions": header["versions"],
    }


def _of_stream(header: Mapping[str, Any], file: Any) -> dict[str, Any]:
    stream = header["stream"]
    labels = stream["labels"]
    return {
        "options": {name: one for name, one in header["options"].items() if name != "class"},
        "rows": stream["n_seen"],
        "labels": 0 if labels is None else file.get_slice(labels["T"]["array"]).get_shape()[0],
    }


def _plain(value: Any) -> Any:
    """A parameter as it was given."""
    if isinstance(value, dict) and "pairs" in value:
        return dict(value["pairs"])
    return value
