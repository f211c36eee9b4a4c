"""Rows as files hold them: the numbers in one matrix, every other column by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from skdare.errors import InputError, counted, listed, printable

if TYPE_CHECKING:
    import pandas as pd

# Cells that hold nothing. "None" is left alone: it may be a name.
MISSING = ["", "NA", "N/A", "n/a", "#N/A", "nan", "NaN", "null", "NULL", "?"]
# Of a column that was meant to be numbers, fewer cells than this share are none.
_FEW_WRONG = 0.1


@dataclass(frozen=True, eq=False)
class Block:
    """Rows: the numbers in one matrix, every other column by itself."""

    X: Any
    names: list[str]
    others: dict[str, np.ndarray]


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Whatever a library raises about a damaged file, in one sentence that names the file."""
    try:
        yield
    except (InputError, ImportError):
        raise
    except MemoryError as error:  # damaged files can claim any size
        raise InputError(
            f"'{name}' needs more memory than there is, or is damaged", "read it with stream"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"'{name}' is not text in UTF-8: it has the byte 0x{error.object[error.start]:02x}",
            "save it as UTF-8",
        ) from error
    # zipfile, pyarrow and the decompressors raise nearly anything.
    except Exception as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        if cells := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", first):
            header, row, found = cells.groups()
            first = f"row {row} has {found} cells, and the header {header}"
        elif "Length of header or names" in first:
            first = "its first row has more cells than the header"
        elif "EOF inside string" in first:
            first = "a quotation mark is not closed"
        raise InputError(f"cannot read '{name}': {printable(first)}", "correct it") from error


def split(
    frame: pd.DataFrame,
    labels: Sequence[str],
    features: Sequence[str] | None,
    name: str,
    start: int = 0,
    *,
    may_lack_numbers: bool = False,
) -> Block:
    """Numbers in one matrix, and every other column by itself.

    Only a column that was meant to be numbers is refused for a cell that is none.
    """
    import pandas as pd

    if not len(frame):
        raise InputError(f"'{name}' has no rows")
    kinds = frame.dtypes
    numeric = [
        column
        for column, kind in zip(frame.columns, kinds, strict=True)
        if column not in labels and pd.api.types.is_numeric_dtype(kind)
    ]
    wanted = set(features or ())
    for column in frame.columns.difference([*numeric, *labels], sort=False):
        if features is None or column in wanted:
            _refuse_misspelt_number(frame[column], column, column in wanted, start)
    if features is not None:
        numeric = [column for column in numeric if column in wanted]
    elif not numeric and not may_lack_numbers:
        raise InputError(
            f"'{name}' has no column of numbers to use as a feature",
            f"it has {listed(frame.columns)}",
        )
    block = frame if len(numeric) == frame.shape[1] else frame[numeric]
    single = bool(numeric) and {str(kinds[column]) for column in numeric} <= {"float32"}
    X = block.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)
    refuse_infinity(X, numeric, start)
    others = frame.columns.difference(numeric, sort=False)
    return Block(X, numeric, {column: typed(frame[column]) for column in others})


def _refuse_misspelt_number(column: pd.Series, name: str, wanted: bool, start: int) -> None:
    """Refuse a column of numbers with a cell that is none; one of words is no feature."""
    import pandas as pd

    present = column.dropna().astype(str)
    numbers = pd.to_numeric(present, errors="coerce")
    wrong = np.flatnonzero(numbers.isna())
    commas = pd.to_numeric(present.str.replace(",", ".", n=1), errors="coerce")
    if len(wrong) and not commas.isna().any() and present.str.contains(",").any():
        raise InputError(
            f"column '{name}' has decimal commas, as in '{present.iloc[wrong[0]]}'",
            "write decimal points",
        )
    if len(wrong) and (wanted or len(wrong) <= _FEW_WRONG * len(present)):
        row = int(np.flatnonzero(column.notna())[wrong[0]])
        cell = printable(present.iloc[wrong[0]])
        raise InputError(
            f"column '{name}' has '{cell[:40]}' in row {start + row + 1}"
            + (f" and {counted(len(wrong) - 1, 'more such cell')}" if len(wrong) > 1 else "")
            + ", and a number is needed",
            f"correct it, leave the cell empty, or leave the column out: drop={name}",
        )


def typed(column: pd.Series) -> np.ndarray:
    """A column of labels: whole numbers, numbers, or text; None where there is nothing.

    Numbers that begin with a zero, such as 007, are text.
    """
    import pandas as pd

    absent = column.isna().to_numpy()
    present = column[~absent]
    if pd.api.types.is_bool_dtype(column):
        present = present.astype(int)
    elif not pd.api.types.is_numeric_dtype(column):
        present = present.astype(object).map(str).str.strip()
        codes, distinct = pd.factorize(present.to_numpy())
        whole = [is_whole(text) for text in distinct]
        if len(distinct) and all(whole):
            present = pd.Series(np.array([int(text) for text in distinct])[codes], present.index)
        elif len(distinct) and all(is_number(text) for text in distinct):
            present = pd.Series(np.array([float(text) for text in distinct])[codes], present.index)
    values = present.to_numpy()
    if values.dtype.kind == "f" and absent.any() and not np.any(values % 1):
        values = values.astype(np.int64)  # pandas makes floats of whole numbers with a hole
    elif values.dtype.kind not in "iuf":
        values = np.array([str(value) for value in values.tolist()])
    if not absent.any():
        return values
    holed = np.full(len(column), None, dtype=object)
    holed[~absent] = values
    return holed


def array_labels(values: np.ndarray) -> np.ndarray:
    """Labels from an array: whole numbers, numbers or text, None where there is nothing."""
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "backslashreplace")
    if values.dtype.kind == "b":
        return values.astype(np.int64)
    if values.dtype.kind not in "iufU":
        raise InputError(f"labels have dtype {values.dtype}", "use numbers or text")
    if values.dtype.kind == "U":
        absent = np.isin(np.char.strip(values), MISSING)
    else:
        absent = ~np.isfinite(values)
    if absent.any():
        values = values.astype(object)
        values[absent] = None
    return values


def refuse_doubles(names: Sequence[str], where: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"'{where}' has two columns called '{name}'", "rename one of them")
        seen.add(name)


def refuse_infinity(X: Any, names: Sequence[str], start: int = 0) -> None:
    values = X.data if scipy.sparse.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()) or not np.isinf(values).any():
            return
    dense = X.tocoo() if scipy.sparse.issparse(X) else None
    if dense is None:
        row, column = np.argwhere(np.isinf(X))[0]
    else:
        place = int(np.flatnonzero(np.isinf(dense.data))[0])
        row, column = dense.row[place], dense.col[place]
    raise InputError(
        f"column '{names[column]}' has infinity in row {start + int(row) + 1}",
        "put a number there, or nothing",
    )


def is_whole(text: str) -> bool:
    return re.fullmatch(r"0|-?[1-9][0-9]{0,17}", text) is not None


def is_number(text: str) -> bool:
    """Whether a cell is a number, and not a code that begins with a zero."""
    try:
        float(text)
    except ValueError:
        return False
    digits = text.removeprefix("-")
    return "_" not in text and not (digits[0] == "0" and digits[1:2].isdigit())
