"""Writers of tables: whole ones, and predictions some rows at a time."""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse

from skdare.data.domain_data import DomainData
from skdare.data.source import COMPRESSED, FORMATS, STDIN
from skdare.errors import InputError, listed, quoted
from skdare.files import check_writable, whole_file

if TYPE_CHECKING:
    import pandas as pd

ROW_FORMATS = (".csv", ".csv.gz", ".tsv", ".jsonl", ".parquet")
# A spreadsheet runs text that begins so.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write(data: DomainData, path: str | Path) -> None:
    """Write a table that `read` reads back the same.

    Parameters
    ----------
    data : DomainData
    path : str or path
        Its name ends in .csv or .tsv (also .csv.gz, .csv.bz2, .csv.xz), .parquet, .feather or .npz.
    """
    path = Path(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSED else ""
    kind = suffixes[-1] if suffixes else ""
    if kind not in FORMATS or (packed and kind not in (".csv", ".tsv")):
        raise InputError(
            f"cannot write to {quoted(path.name)}",
            f"its name must end in {', '.join(FORMATS)}, or .csv.gz",
        )
    if kind == ".npz":
        arrays: dict[str, Any] = {"X": data.X[:]}
        if scipy.sparse.issparse(data.X):
            X = data.X.tocsr()
            arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr}
            arrays |= {"shape": np.array(X.shape), "format": np.array(b"csr")}
        arrays |= data.labels | {"feature_names": data.feature_names.astype(str)}
        with whole_file(path) as npz:
            np.savez(npz, **arrays)
        return
    import pandas as pd

    names = data.feature_names.tolist()
    columns = {**data.labels, **data.ids}
    if taken := set(names) & set(columns):
        raise InputError(f"a feature is called {listed(taken)}, as a label is", "rename it")
    X = data.X.toarray() if scipy.sparse.issparse(data.X) else data.X[:]
    frame = pd.concat([pd.DataFrame(columns), pd.DataFrame(X, columns=names)], axis=1)
    separator = "\t" if kind == ".tsv" else ","
    packing: Any = {"": None, ".gz": "gzip", ".bz2": "bz2", ".xz": "xz"}[packed]
    file: Any
    with whole_file(path) as file:
        if kind == ".parquet":
            frame.to_parquet(file, index=False)
        elif kind == ".feather":
            frame.to_feather(file)
        else:
            frame.to_csv(
                file, index=False, mode="wb", sep=separator, compression=packing,
                quoting=_quoting(frame),
            )  # fmt: skip


class RowWriter:
    """Write columns to a file some rows at a time; it appears whole, or not at all.

    Parameters
    ----------
    path : str or path
        .csv, .csv.gz, .tsv, .jsonl or .parquet; ``"-"`` is CSV on the standard output.
    spreadsheet_safe : bool
        In CSV, put an apostrophe before text that a spreadsheet would run as a formula.

    Examples
    --------
    >>> from skdare.data import RowWriter
    >>> with RowWriter("-") as writer:
    ...     writer.write({"id": [1, 2], "prediction": ["cat", "dog"]})
    id,prediction
    1,cat
    2,dog
    """

    def __init__(self, path: str | Path, *, spreadsheet_safe: bool = False) -> None:
        self.path = Path(path)
        ending = ".csv" if str(path) == STDIN else "".join(self.path.suffixes[-2:]).lower()
        kinds = [kind for kind in ROW_FORMATS if ending.endswith(kind)]
        if not kinds:
            raise InputError(
                f"cannot write to {quoted(self.path.name)}",
                f"its name must end in {', '.join(ROW_FORMATS)}",
            )
        self.kind = kinds[0]
        if str(path) != STDIN:
            check_writable(path)
        self._safe = spreadsheet_safe
        self._open = ExitStack()
        self._file: Any = None
        self._parquet: Any = None
        self._begun = False

    def __enter__(self) -> Self:
        if str(self.path) == STDIN:
            self._file = sys.stdout
            return self
        file: IO[Any] = self._open.enter_context(whole_file(self.path))
        if self.kind == ".csv.gz":
            file = self._open.enter_context(gzip.open(file, "wb"))
        self._file = file
        if self.kind != ".parquet":
            self._file = io.TextIOWrapper(file, "utf-8", newline="")
            self._open.callback(self._file.detach)  # the file is still to be synchronised
        return self

    def write(self, columns: Mapping[str, Any]) -> None:
        """Add rows; the columns are the same each time."""
        import pandas as pd

        frame = pd.DataFrame(dict(columns))
        if self.kind == ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            table = pa.Table.from_pandas(frame, preserve_index=False)
            if not self._begun:
                writer = pq.ParquetWriter(self._file, table.schema)
                self._parquet = self._open.enter_context(writer)
            for before, now in zip(self._parquet.schema, table.schema, strict=True):
                if before.type != now.type:
                    raise InputError(
                        f"column {quoted(now.name)} has {now.type} after {before.type}, which "
                        "Parquet cannot hold",
                        "write to a .csv file",
                    )
            self._parquet.write_table(table)
        elif self.kind == ".jsonl":
            frame.to_json(self._file, orient="records", lines=True, force_ascii=False)
        else:
            if self._safe:
                frame = frame.rename(columns=_safe).map(_safe)
            separator = "\t" if self.kind == ".tsv" else ","
            header = not self._begun
            frame.to_csv(
                self._file, index=False, header=header, sep=separator, lineterminator="\n",
                quoting=_quoting(frame),
            )  # fmt: skip
        self._begun = True

    def __exit__(self, *exception: Any) -> None:
        self._open.__exit__(*exception)


def _quoting(frame: pd.DataFrame) -> Any:
    """Quotes around all text, if a carriage return is in it, else only where it needs them."""
    text = frame.select_dtypes(exclude="number")
    cells = chain(frame.columns, *(text[name] for name in text))
    return csv.QUOTE_NONNUMERIC if any("\r" in str(cell) for cell in cells) else csv.QUOTE_MINIMAL


def _safe(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
