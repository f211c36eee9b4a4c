"""Tables out: predictions and rows with their features, in the format that a name says."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse

from skdare.data.domain_data import DomainData
from skdare.data.source import FORMATS, STDIN
from skdare.errors import InputError, listed

ROW_FORMATS = (".csv", ".csv.gz", ".tsv", ".jsonl", ".parquet")
_COMPRESSION = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz"}
# A spreadsheet runs text that begins so.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write(data: DomainData, path: str | Path) -> None:
    """Write a table such that `read` gives it back, to a file that is complete or not there.

    Parameters
    ----------
    data : DomainData
    path : str or path
        Its name says the format: .csv, .tsv (also .csv.gz), .parquet, .feather, .npz.
    """
    path = Path(path)
    kind = next((s.lower() for s in reversed(path.suffixes) if s.lower() in FORMATS), None)
    if kind is None:
        raise InputError(
            f"cannot write to '{path.name}'", f"its name must end in {', '.join(FORMATS)}"
        )
    labels = {"y": data.y, "domains": data.domains, "groups": data.groups}
    labels = {name: values for name, values in labels.items() if values is not None}
    if kind == ".npz":
        if not scipy.sparse.issparse(data.X):
            arrays: dict[str, Any] = {"X": data.X[:]}
        else:
            X = data.X.tocsr()
            arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr}
            arrays |= {"shape": np.array(X.shape), "format": np.array(b"csr")}
        arrays |= labels | {"feature_names": data.feature_names.astype(str)}
        with whole_file(path) as name, open(name, "wb") as file:
            np.savez(file, **arrays)
        return
    import pandas as pd

    X = data.X.toarray() if scipy.sparse.issparse(data.X) else data.X[:]
    names = data.feature_names.tolist()
    taken = set(names) & {*labels, *data.ids}
    if taken:
        raise InputError(f"a feature is called {listed(taken)}, as a label is", "rename it")
    beside = pd.DataFrame({**labels, **data.ids})
    frame = pd.concat([beside, pd.DataFrame(X, columns=names)], axis=1)
    writers: dict[str, Callable[[str], Any]] = {
        ".csv": lambda name: frame.to_csv(name, index=False, compression=_compression(path)),
        ".tsv": lambda name: frame.to_csv(
            name, index=False, sep="\t", compression=_compression(path)
        ),
        ".parquet": lambda name: frame.to_parquet(name, index=False),
        ".feather": lambda name: frame.to_feather(name),
    }
    with whole_file(path) as name:
        writers[kind](name)


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
        self.kind = ".csv" if str(path) == STDIN else "".join(self.path.suffixes[-2:]).lower()
        self.kind = next((kind for kind in ROW_FORMATS if self.kind.endswith(kind)), self.kind)
        if self.kind not in ROW_FORMATS:
            raise InputError(
                f"cannot write to '{self.path.name}'",
                f"its name must end in {', '.join(ROW_FORMATS)}",
            )
        if str(path) != STDIN:
            refuse_no_folder(self.path)
        self._safe = spreadsheet_safe
        self._whole: Any = None
        self._file: Any = None
        self._parquet: Any = None
        self._begun = False

    def __enter__(self) -> Self:
        if str(self.path) == STDIN:
            self._file = sys.stdout
            return self
        self._whole = whole_file(self.path)
        name = self._whole.__enter__()
        if self.kind == ".csv.gz":
            import gzip

            self._file = gzip.open(name, "wt", encoding="utf-8", newline="")
        elif self.kind != ".parquet":
            self._file = open(name, "w", encoding="utf-8", newline="")
        self._name = name
        return self

    def write(self, columns: Mapping[str, Any]) -> None:
        """Add rows; the columns are the same each time."""
        import pandas as pd

        frame = pd.DataFrame(dict(columns))
        if self.kind == ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            table = pa.Table.from_pandas(frame, preserve_index=False)
            if self._parquet is None:
                self._parquet = pq.ParquetWriter(self._name, table.schema)
            self._parquet.write_table(table)
        elif self.kind == ".jsonl":
            frame.to_json(self._file, orient="records", lines=True, force_ascii=False)
        else:
            if self._safe:
                frame = frame.rename(columns=_safe).map(_safe)
            separator = "\t" if self.kind == ".tsv" else ","
            header = not self._begun
            frame.to_csv(self._file, index=False, header=header, sep=separator, lineterminator="\n")
        self._begun = True

    def __exit__(self, *exception: Any) -> None:
        if self._parquet is not None:
            self._parquet.close()
        if self._file is not None and self._file is not sys.stdout:
            self._file.close()
        if self._whole is not None:
            self._whole.__exit__(*exception)


@contextmanager
def whole_file(path: Path) -> Iterator[str]:
    """The name of a file beside this one, which takes its place in one step at the end."""
    refuse_no_folder(path)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    try:
        yield name
        with open(name, "rb") as file:
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def refuse_no_folder(path: Path) -> None:
    if not path.parent.is_dir():
        raise InputError(f"cannot write to '{path}'", f"there is no folder '{path.parent}'")
    if path.is_dir():
        raise InputError(f"cannot write to '{path}'", "it is a folder; give the name of a file")


def _safe(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _compression(path: Path) -> str | None:
    return _COMPRESSION.get(path.suffix)
