"""Rows of a file, before columns have roles, and the types of their cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from skdare.errors import InputError, counted, listed, quoted

if TYPE_CHECKING:
    import pandas as pd

# Cells that hold nothing. "None" is left alone: it may be a name.
MISSING = ["", "NA", "N/A", "n/a", "#N/A", "nan", "NaN", "null", "NULL", "?"]
# Characters of a label; longer text is a note.
LONGEST_LABEL = 256
# Types of arrays that can be labels: truth values, numbers, text, bytes and dates.
LABEL_KINDS = "biufUSM"
# A column of numbers has at most this share of cells that are not numbers.
_FEW_WRONG = 0.1
# 108,000 may be either; 1,234,567 and 1,234.5 have thousands separators, 0,125 and 1,5 have not.
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
_ONE_COMMA = re.compile(r"[-+]?\d*,\d*([eE][-+]?\d+)?")


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Rows: the numbers in one matrix, every other column by itself."""

    X: Any
    names: list[str]
    others: dict[str, np.ndarray]


@contextmanager
def reading(name: str, start: int = 0) -> Iterator[None]:
    """Turn whatever a library raises about a damaged file into one sentence that names the file."""
    try:
        yield
    except (InputError, ImportError):
        raise
    except PermissionError as error:
        raise InputError(
            f"{quoted(name)} may not be read", "ask for permission, or copy it"
        ) from error
    except MemoryError as error:  # damaged files can claim any size
        raise InputError(
            f"{quoted(name)} needs more memory than there is, or is damaged",
            "write it again, or as a feature store",
        ) from error
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise InputError(
            f"{quoted(name)} is not text in UTF-8: it has the byte 0x{byte:02x}", "save it as UTF-8"
        ) from error
    # zipfile, pyarrow and the decompressors raise nearly anything.
    except Exception as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        if "allow_pickle" in str(error) or "pickled (object)" in str(error):
            raise InputError(
                f"{quoted(name)} is no npz, is damaged, or holds Python objects, which may run "
                "code when they are read",
                "turn text into an array with astype(str) before numpy.savez",
            ) from error
        if cells := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", first):
            header, row, count = cells.groups()
            first = f"row {start + int(row):,} has {count} cells, and the header {header}"
        elif "Length of header or names" in first:
            first = f"row {start + 1:,} has more cells than the header"
        elif "EOF inside string" in first:
            first = "a quotation mark is not closed"
        raise InputError(
            f"cannot read {quoted(name)}: {first[:200]}", "correct it, or write it again"
        ) from error


def split(
    frame: pd.DataFrame,
    labels: Sequence[str],
    features: Sequence[str] | None,
    name: str,
    start: int = 0,
    *,
    may_lack_numbers: bool = False,
) -> RowBlock:
    """The rows of a data frame; a column of numbers is refused if a few cells are not."""
    import pandas as pd

    if not len(frame):
        raise InputError(f"{quoted(name)} has no rows")
    kinds = dict(zip(frame.columns, frame.dtypes, strict=True))
    is_numeric = {kind: pd.api.types.is_numeric_dtype(kind) for kind in set(kinds.values())}
    numeric = [
        column for column, kind in kinds.items() if is_numeric[kind] and column not in labels
    ]
    wanted = set(features or ())
    for column in frame.columns.difference([*numeric, *labels], sort=False):
        if features is None or column in wanted:
            _refuse_misspelt_number(frame[column], column, column in wanted, start)
    if features is not None:
        numeric = [column for column in numeric if column in wanted]
    elif not numeric and not may_lack_numbers:
        raise InputError(
            f"{quoted(name)} has no column of numbers to use as a feature",
            f"it has {listed(frame.columns)}; encode text as numbers",
        )
    block = frame if len(numeric) == frame.shape[1] else frame[numeric]
    single = bool(numeric) and set(map(str, {kinds[column] for column in numeric})) == {"float32"}
    X = block.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)
    refuse_infinity(X, numeric, start)
    others = frame.columns.difference(numeric, sort=False)
    return RowBlock(X, numeric, {column: typed(frame[column]) for column in others})


def _refuse_misspelt_number(column: pd.Series, name: str, wanted: bool, start: int) -> None:
    """Refuse a column of numbers with a cell that is not one; text may stand in any other."""
    import pandas as pd

    present = column.dropna().astype(str).str.strip()
    wrong = np.flatnonzero(pd.to_numeric(present, errors="coerce").isna())
    if not len(wrong):
        return
    cells = present.iloc[wrong]
    cell = cells.iloc[0]
    if cells.str.contains(",").all() and not cells.str.contains("[^-+0-9.,eE]").any():
        thousands = [_THOUSANDS.fullmatch(text) is not None for text in cells]
        decimals = [_ONE_COMMA.fullmatch(text) is not None for text in cells]
        if all(thousands):
            hint = f"write {cell.replace(',', '')}"
            if all(decimals):
                hint += f", or {cell.replace(',', '.')} if the comma is a decimal point"
            raise InputError(
                f"column {quoted(name)} has thousands separators, as in {quoted(cell)}", hint
            )
        if all(decimals):
            raise InputError(
                f"column {quoted(name)} has decimal commas, as in {quoted(cell)}",
                f"write decimal points: {cell.replace(',', '.')}",
            )
    if wanted or len(wrong) <= _FEW_WRONG * len(present):
        row = int(np.flatnonzero(column.notna())[wrong[0]])
        raise InputError(
            f"column {quoted(name)} has {quoted(cell)} in row {start + row + 1:,}"
            + (f" and {counted(len(wrong) - 1, 'more such cell')}" if len(wrong) > 1 else "")
            + ", and a number is needed",
            "correct it, leave the cell empty, or leave the column out: "
            f"drop={name if name.isidentifier() else quoted(name)}",
        )


def typed(column: pd.Series) -> np.ndarray:
    """A column of labels: whole numbers, numbers, or text, and None for an empty cell.

    Codes that begin with a zero, such as 007, are text.
    """
    import pandas as pd

    if not pd.api.types.is_numeric_dtype(column):
        column = column.astype(object).where(column.notna(), "").map(str).str.strip()
        column = column.where(column != "")
    absent = column.isna().to_numpy()
    present = column[~absent]
    if pd.api.types.is_bool_dtype(column):
        present = present.astype(int)
    elif not pd.api.types.is_numeric_dtype(column):
        codes, distinct = pd.factorize(present.to_numpy())
        whole = [is_integer(text) for text in distinct]
        if len(distinct) and all(whole):
            present = pd.Series(np.array([int(text) for text in distinct])[codes], present.index)
        elif len(distinct) and all(is_number(text) for text in distinct):
            present = pd.Series(np.array([float(text) for text in distinct])[codes], present.index)
    values = present.to_numpy()
    if values.dtype.kind == "f" and absent.any() and np.all(is_whole(values)):
        values = values.astype(np.int64)  # pandas makes floats of whole numbers with a hole
    elif values.dtype.kind not in "iuf":
        texts = [str(value) for value in values.tolist()]
        # NumPy's text has one width: a long note in one row would fill the memory.
        is_long = max(map(len, texts), default=0) > LONGEST_LABEL
        values = np.array(texts, dtype=object if is_long else None)
    if not absent.any():
        return values
    holed = np.full(len(column), None, dtype=object)
    holed[~absent] = values
    return holed


def is_whole(values: np.ndarray) -> np.ndarray:
    """Which floats are whole numbers that integers can hold."""
    return (np.abs(values) <= 2.0**53) & (values == np.floor(values))


def array_labels(values: np.ndarray) -> np.ndarray:
    """Labels from an array: whole numbers, numbers or text, and None for an empty one."""
    assert values.dtype.kind in LABEL_KINDS
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "backslashreplace")
    if values.dtype.kind == "b":
        return values.astype(np.int64)
    if values.dtype.kind == "M":
        values = values.astype(str)
        values[values == "NaT"] = ""
    if values.dtype.kind == "U":
        absent = np.isin(np.char.strip(values), MISSING)
    else:
        absent = np.isnan(values)
    if absent.any():
        values = values.astype(object)
        values[absent] = None
    return values


def refuse_doubles(names: Sequence[str], where: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(
                f"{quoted(where)} has two columns called {quoted(name)}", "rename one of them"
            )
        seen.add(name)


def refuse_infinity(X: Any, names: Sequence[str], start: int = 0) -> None:
    values = X.data if scipy.sparse.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()) or not np.isinf(values).any():
            return
    if scipy.sparse.issparse(X):
        entries = X.tocoo()
        place = int(np.flatnonzero(np.isinf(entries.data))[0])
        row, column = entries.row[place], entries.col[place]
    else:
        row, column = np.argwhere(np.isinf(X))[0]
    raise InputError(
        f"column {quoted(names[column])} has infinity in row {start + int(row) + 1:,}",
        "put a number there, or nothing",
    )


def is_integer(text: str) -> bool:
    return re.fullmatch(r"0|-?[1-9][0-9]{0,17}", text) is not None


def is_number(text: str) -> bool:
    """Whether a cell is a number, and not a code: 007, or more digits than a float holds."""
    try:
        float(text)
    except ValueError:
        return False
    return re.match(r"-?0\d|-?\d{19}|.*_", text) is None
