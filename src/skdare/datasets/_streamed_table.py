"""A table in a file whose labels are read whole, and whose features some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from skdare.datasets._columns import typed_labels
from skdare.datasets._contents import Contents
from skdare.datasets._entries import choose, feature_names_of, is_label, places, side_by_side
from skdare.datasets._lazy import ChunkedRows
from skdare.datasets._read import is_csv, stem
from skdare.datasets._roles import assemble, decode, features_matrix, refuse_infinity
from skdare.datasets._row_source import opened_rows, rows_at_a_time
from skdare.datasets._table import DomainData


def stream_table(
    path: str | Path,
    *,
    features: str | None = None,
    target: str | None = None,
    domains: str | None = None,
    split: str | None = None,
) -> DomainData:
    """A table as `read` gives it, but for its features, which stay in the file.

    They are read anew in every pass, chunk after chunk: to fit a head to a table that is larger
    than memory, convert it to a feature store first, which is read much faster.

    Parameters
    ----------
    path : str or Path
        A file that `read` takes; ``.pt`` is loaded.
    features, target, domains, split : str, optional
        As for `read`.

    Returns
    -------
    DomainData
        Whose ``X`` is `ChunkedRows`.

    Examples
    --------
    >>> import tempfile
    >>> from skdare.datasets import make_latent_domains, stream_table, write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(f"{folder}/latent.csv", make_latent_domains(n_rows=5, random_state=0))
    ...     stream_table(f"{folder}/latent.csv").X[:3].shape
    (3, 8)
    """
    path = Path(path)
    named = {"features": features, "target": target, "domains": domains, "split": split}
    contents = opened_rows(path, lambda name: is_label(name, named))
    keys = choose(contents, named)
    where = places(keys, path)
    labels = {
        role: _labels(contents, role, chosen[0], where)
        for role, chosen in keys.items()
        if role != "features"
    }
    n = len(labels["target"])
    # What labels must be is checked beside features that are none, but as many; how many rows of
    # text there are only reading all of them tells, and each has a cell for every column.
    shape = contents.entries[keys["features"][0]].shape
    rows = n if is_csv(path) else int(np.prod(shape[:1]))
    beside = {"features": np.broadcast_to(np.float32(0), (rows, 1)), **labels}
    checked = assemble(beside, where, stem(path))
    chosen, names = keys["features"], feature_names_of(contents, keys["features"])

    def matrices() -> Iterator[np.ndarray]:
        start = 0
        key, most = side_by_side(contents, chosen), rows_at_a_time(_width(contents, chosen))
        for (found,) in contents.visit([key], most):
            X = features_matrix(found, where["features"])
            refuse_infinity(X, where["features"], names, start)
            yield X
            start += len(X)

    kinds = np.result_type(*{contents.entries[key].dtype for key in chosen})
    dtype = features_matrix(np.zeros((1, 1), kinds), where["features"]).dtype
    X = ChunkedRows(matrices, n, _width(contents, chosen), dtype)
    given = (checked.y, checked.domains, checked.split, checked.name, names)
    return DomainData(X, *given)  # type: ignore[arg-type]


def _width(contents: Contents, keys: list[str]) -> int:
    shape = contents.entries[keys[0]].shape
    return shape[1] if len(shape) == 2 else len(keys)


def _labels(contents: Contents, role: str, key: str, where: dict[str, str]) -> np.ndarray:
    parts = [values for (values,) in contents.visit([key], rows_at_a_time(1))]
    if not parts:
        raise ValueError(f"{contents.path} has no rows; there is nothing to learn from")
    labels = np.concatenate(parts)
    if is_csv(contents.path):
        return typed_labels(labels.tolist())
    names = contents.names.get(role)
    return labels if names is None else decode(labels, names, where[role])
