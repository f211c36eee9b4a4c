"""Columns of Arrow tables as NumPy arrays: what Parquet and Hugging Face datasets are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skdare.datasets._contents import Key


def column_item(kind: Any) -> Any:
    """The type of the items of a list, or the type itself."""
    return kind.value_type if hasattr(kind, "value_field") else kind


def column_dtype(kind: Any) -> np.dtype:
    """NumPy's counterpart of a type of numbers; all else is read as text."""
    from pyarrow import types

    if types.is_decimal(kind):
        return np.dtype(np.float64)
    plain = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return np.dtype(kind.to_pandas_dtype() if plain else str)


def column_values(column: Any, what: str) -> np.ndarray:
    """A column as an array; lists of numbers become the rows of a matrix."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column_item(column.type) != column.type:
        lengths = pc.unique(pc.list_value_length(column)).to_pylist()
        if len(lengths) > 1 or None in lengths:
            raise ValueError(
                f"{what} has lists of several lengths; every row needs the same number of values"
            )
        parts = [part.flatten().to_numpy(zero_copy_only=False) for part in column.chunks]
        flat = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return flat.reshape(len(column), lengths[0] if lengths else 1)
    if column_dtype(column.type).kind == "U":
        return np.array([cell_text(cell) for cell in column.to_pylist()])
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    elif pa.types.is_boolean(column.type) and column.null_count:
        column = column.cast(pa.int8())
    return column.to_numpy()


def columns_in(keys: Sequence[Key]) -> list[str]:
    """The columns that keys stand for."""
    return [name for key in keys for name in ((key,) if isinstance(key, str) else key)]


def table_values(
    table: Any, keys: Sequence[Key], path: Path, one: Callable[[str], np.ndarray] | None = None
) -> list[np.ndarray]:
    """What keys stand for in an Arrow table; ``one`` reads a column where that differs."""
    read = one or (lambda name: column_values(table.column(name), f"{name} in {path}"))
    return [read(key) if isinstance(key, str) else _matrix(table, key, read) for key in keys]


def _matrix(table: Any, names: tuple[str, ...], read: Callable[[str], np.ndarray]) -> np.ndarray:
    """Columns side by side."""
    import pyarrow as pa

    part = table.select(list(names))
    kinds = set(part.schema.types)
    # All in one go where Arrow can: of a hundred thousand columns each takes its time.
    if len(kinds) == 1 and pa.types.is_floating(*kinds) and hasattr(pa.RecordBatch, "to_tensor"):
        batches = part.combine_chunks().to_batches()
        if len(batches) == 1:
            return batches[0].to_tensor(null_to_nan=True).to_numpy()
    return np.column_stack([read(name) for name in names])


def cell_text(cell: Any) -> str:
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "backslashreplace")
    return "" if cell is None else str(cell)
