"""From a table, or rows as they come, to a path: whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from skdare.datasets._contents import TableArrays
from skdare.datasets._domain_data import DomainData
from skdare.datasets._formats import FORMATS, format_of, suffixes
from skdare.datasets._manifest import CODES, DTYPES
from skdare.datasets._row_writer import RowWriter, SpreadsheetSafe, encoded
from skdare.datasets._store_encoding import refuse_beyond
from skdare.datasets._store_writer import checked_table, refuse_existing, write_store
from skdare.persist import whole_file


def write(path: str | Path, data: DomainData, *, dtype: str | None = None, ids: Any = None) -> None:
    """Write a table such that `read` gives it back: a file, or a feature store.

    ``.npz``, ``.csv``, ``.csv.gz``, ``.parquet`` and ``.safetensors`` files, by the name of the
    path; any other name is that of a feature store, the only kind that keeps how the features
    were made. It appears whole or not at all, and what exists is never overwritten.

    Parameters
    ----------
    path : str or Path
    data : DomainData
    dtype : {"float64", "float32", "float16", "uint8"}, optional
        How features are stored; "uint8", 8-bit codes, in a feature store only. Default: their own.
    ids : n str, optional
        What rows are called; not kept in ``.safetensors``.

    Examples
    --------
    >>> import tempfile
    >>> from skdare.datasets import make_latent_domains, read, write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(f"{folder}/latent.csv", make_latent_domains(n_rows=5, random_state=0))
    ...     read(f"{folder}/latent.csv").X.shape
    (20, 8)
    """
    path = Path(path)
    refuse_existing(path)
    kind = format_of(path)
    if kind is None:
        write_store(path, data, dtype=dtype, ids=ids)
        return
    if kind.write is None:
        written = suffixes(k for k in FORMATS if k.write)
        raise ValueError(
            f"cannot write a table to {path}: choose a name that ends in {written}, or one "
            "without a suffix for a feature store"
        )
    arrays = _arrays(data, dtype, ids)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        kind.write(file, arrays, path)


def is_store_name(path: str | Path) -> bool:
    """Whether `write` makes a feature store of a path: where its name is not that of a file.

    Parameters
    ----------
    path : str or Path

    Examples
    --------
    >>> from skdare.datasets._write import is_store_name
    >>> is_store_name("features"), is_store_name("features.npz")
    (True, False)
    """
    return format_of(Path(path)) is None


def _arrays(data: DomainData, dtype: str | None, ids: Any) -> TableArrays:
    """The arrays of a table that it has, by the names that files give them."""
    data = checked_table(data)
    X = data.X
    if dtype is not None:
        if dtype == CODES or dtype not in DTYPES:
            raise ValueError(
                f"dtype is {dtype!r}; such a file holds float64, float32 or float16 features"
            )
        refuse_beyond(X, dtype)
        X = X.astype(dtype, copy=False)
    arrays = {
        "X": X,
        "y": data.y,
        "domain": data.domains,
        "split": data.split,
        "feature_names": data.feature_names,
        "id": None if ids is None else np.asarray(ids),
    }
    return {key: values for key, values in arrays.items() if values is not None}


@contextmanager
def rows_to(
    target: str | Path | IO[str] | IO[bytes],
    *,
    kind: str | None = None,
    spreadsheet_safe: bool = False,
) -> Iterator[RowWriter]:
    """Open a writer of rows to a file, which appears whole or not at all, or to an open stream.

    Its method ``write`` takes a dict of columns, arrays of equal length, as often as it is called.

    Parameters
    ----------
    target : str, Path or stream
        A file, which is replaced where it exists; its suffix says what is written: ``.csv``,
        ``.csv.gz``, ``.jsonl`` or ``.parquet``. A stream, of bytes for Parquet and of text for
        the others, stays open.
    kind : suffix, optional
        What to write to a stream: ``".csv"``, the default, ``".jsonl"`` or ``".parquet"``.
    spreadsheet_safe : bool, default=False
        In CSV, put an apostrophe before text that begins with ``=``, ``+``, ``-``, ``@``, a tab or
        the end of a line, which a spreadsheet would run as a formula. Numbers are not changed.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from skdare.datasets import rows_to
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with rows_to(f"{folder}/out.csv") as writer:
    ...         writer.write({"id": np.arange(2), "prediction": np.array(["a", "b"])})
    ...     print(Path(f"{folder}/out.csv").read_text())
    id,prediction
    0,a
    1,b
    <BLANKLINE>
    """
    writers = {k.suffix: k.row_writer for k in FORMATS if k.row_writer is not None}
    if not isinstance(target, str | Path):
        streamed = {suffix: w for suffix, w in writers.items() if not suffix.endswith(".gz")}
        suffix = ".csv" if kind is None else kind
        if suffix not in streamed:
            raise ValueError(
                f"kind is {kind!r}, and a stream cannot have it; choose {', '.join(streamed)}"
            )
        _check_spreadsheet_safe(spreadsheet_safe, suffix)
        with closing(streamed[suffix](target, None)) as writer:
            yield SpreadsheetSafe(writer) if spreadsheet_safe else writer
        return
    path = Path(target)
    found = format_of(path)
    if found is None or found.row_writer is None:
        written = suffixes(k for k in FORMATS if k.row_writer)
        raise ValueError(f"cannot write to {path}: its name must end in {written}")
    _check_spreadsheet_safe(spreadsheet_safe, found.suffix)
    # Closed in this order, also after an error: a Parquet writer that lives on would write to a
    # file that is gone.
    with (
        whole_file(path) as raw,
        encoded(raw, path) as file,
        closing(found.row_writer(file, path)) as writer,
    ):
        yield SpreadsheetSafe(writer) if spreadsheet_safe else writer


def _check_spreadsheet_safe(asked: bool, suffix: str) -> None:
    if asked and not suffix.startswith(".csv"):
        raise ValueError(f"spreadsheet_safe is for CSV, and this is {suffix}; leave it out")
