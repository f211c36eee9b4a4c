"""Tables that list images or hold texts, with a label and a domain in every row."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from skdare._validation import InputError
from skdare.datasets._arrow import cell_text
from skdare.datasets._contents import needing, reading
from skdare.datasets._csv import CsvTable
from skdare.datasets._formats import row_place
from skdare.datasets._roles import MISSING, NAMES
from skdare.features.examples.collection import Collection, ImageFile, Row, listed

TABLES = (".csv", ".csv.gz", ".parquet")
_COLUMN_NAMES = {
    "image": ("path", "file", "filename", "filepath", "image"),
    "text": ("text", "sentence", "document"),
    "label": NAMES["target"],
    "domain": NAMES["domains"],
}


def read_table(path: Path, kind: str | None, named: Mapping[str, str | None]) -> Collection:
    """Collection of a table's rows; columns that are not named by role are guessed."""
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty; a header and rows are needed")
    is_csv = not path.name.lower().endswith(".parquet")
    header = CsvTable(path).header if is_csv else _parquet_header(path)
    columns = _choose_columns(path, header, kind, named)
    chosen = list(columns.values())
    cells = _csv_cells(path, chosen) if is_csv else _parquet_cells(path, chosen)
    by_role = {role: cells[column] for role, column in columns.items()}
    kind = "image" if "image" in columns else "text"
    if not by_role[kind]:
        raise ValueError(f"{path} has no rows; there is nothing to learn from")
    for role in (kind, "label", "domain"):
        missing = ("",) if role == kind else MISSING
        _refuse_missing_cells(by_role[role], missing, columns[role], path)
    name = path.name[: -len(next(s for s in TABLES if path.name.lower().endswith(s)))]
    ids = [str(row) for row in range(len(by_role["label"]))]
    items: Sequence[Any] = by_role[kind]
    if kind == "image":
        ids = [PurePath(cell).as_posix() for cell in by_role["image"]]
        items = _image_files(path, by_role["image"])
    rows = map(Row, by_role["domain"], by_role["label"], ids, items)
    return Collection.from_rows(kind, name, path, rows)


def read_listed_images(path: Path, image: str, label: str, domain: str) -> list[Row]:
    """Rows of a CSV file in which columns make up the path of an image.

    ``image`` is the path from the table's folder, with columns in braces.
    """
    parts = re.split(r"\{(\w+)\}", image)
    columns = list(dict.fromkeys([label, domain, *parts[1::2]]))
    header = CsvTable(path).header
    absent = [column for column in columns if column not in header]
    if absent:
        raise InputError(
            f"no column {absent[0]!r} in {path}: it has {listed(header)}", "take the whole table"
        )
    cells = _csv_cells(path, columns)
    for column in columns:
        _refuse_missing_cells(cells[column], MISSING, column, path)
    # Text as it stands: a patient's number keeps its leading zeros.
    pieces = [cells[part] if i % 2 else [part] * len(cells[label]) for i, part in enumerate(parts)]
    paths = ["".join(piece) for piece in zip(*pieces, strict=True)]
    if not paths:
        raise ValueError(f"{path} has no rows; there is nothing to learn from")
    return list(map(Row, cells[domain], cells[label], paths, _image_files(path, paths)))


def _choose_columns(
    path: Path, header: list[str], kind: str | None, named: Mapping[str, str | None]
) -> dict[str, str]:
    """Column of each role: image or text, and label and domain."""
    candidates = {role: _candidates(role, header, named) for role in _COLUMN_NAMES}
    kinds = [role for role in ("image", "text") if role == kind or named[role] is not None]
    kinds = kinds or [role for role in ("image", "text") if candidates[role]]
    if len(kinds) > 1:
        raise InputError(
            f"images or texts of {path}? it has {listed(header)}",
            "name a column with image= or text=, not with both",
        )
    columns = {}
    for role in (*(kinds or ["image"]), "label", "domain"):
        names = candidates[role]
        if len(names) > 1:
            raise InputError(
                f"{path} has {len(names)} columns that may be the {role}: {', '.join(names)}",
                f"name one with {role}=",
                argument=role,
            )
        if not names or names[0] not in header:
            sought = f"no column {names[0]!r}" if names else f"no column for the {role}"
            wanted = f"{role}=" if role in ("label", "domain") else "image= or text="
            raise InputError(
                f"{sought} in {path}: it has {listed(header)}", f"name one with {wanted}"
            )
        columns[role] = names[0]
    return columns


def _candidates(role: str, header: list[str], named: Mapping[str, str | None]) -> list[str]:
    """The column named for a role, or those whose name suggests it."""
    if (name := named[role]) is not None:
        return [name]
    return [c for c in header if c.lower() in _COLUMN_NAMES[role] and c not in named.values()]


def _csv_cells(path: Path, columns: list[str]) -> dict[str, list[str]]:
    return dict(CsvTable(path).read(text=columns, numeric=()).text)


def _parquet_header(path: Path) -> list[str]:
    with needing("parquet", path):
        import pyarrow.parquet as pq
    with reading(path, "Parquet"), pq.ParquetFile(path) as file:
        return file.schema_arrow.names


def _parquet_cells(path: Path, columns: list[str]) -> dict[str, list[str]]:
    import pyarrow.parquet as pq

    with reading(path, "Parquet"), pq.ParquetFile(path) as file:
        table = file.read(columns=columns)
    return {c: [cell_text(cell).strip() for cell in table.column(c).to_pylist()] for c in columns}


def _refuse_missing_cells(
    cells: list[str], missing: tuple[str, ...], column: str, path: Path
) -> None:
    rows = [row for row, cell in enumerate(cells) if cell in missing]
    if rows:
        raise ValueError(
            f"{column!r} in {path} has no usable value in {len(rows):,} of {len(cells):,} rows, "
            f"the first {cells[rows[0]]!r} in {row_place(path, rows[0])}; fill it in, or drop "
            "those rows"
        )


def _image_files(path: Path, cells: list[str]) -> list[ImageFile]:
    """Files that a table lists, relative to its folder; all of them must exist."""
    files = []
    absent = []
    for row, cell in enumerate(cells):
        file = path.parent / cell
        try:
            status = os.stat(file)
        except OSError:
            status = None
        if status is None or not stat.S_ISREG(status.st_mode):
            absent.append(row)
            continue
        files.append(ImageFile(str(file), status.st_size))
    if absent:
        raise ValueError(
            f"{len(absent):,} of {len(cells):,} images in {path} do not exist, the first "
            f"{cells[absent[0]]} in {row_place(path, absent[0])}, looked for in {path.parent}; "
            "correct the paths, or drop those rows"
        )
    return files
