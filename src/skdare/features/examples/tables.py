"""Tables that list images or hold texts, with a label and a domain in every row."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any

from skdare.errors import InputError
from skdare.features.examples.collection import Collection, ImageFile, Row, listed
from skdare.features.examples.names import MISSING, USUAL_NAMES
from skdare.features.examples.reading import reading

TABLES = (".csv", ".csv.gz", ".parquet")


def read_table(path: Path) -> Collection:
    """Collection of a table's rows, whose columns are found by their usual names."""
    if not path.stat().st_size:
        raise InputError(f"{path} is empty", "a header and rows are needed")
    cells = _cells(path)
    columns = _choose_columns(path, list(cells))
    by_role = {role: cells[column] for role, column in columns.items()}
    kind = "image" if "image" in columns else "text"
    if not by_role[kind]:
        raise InputError(f"{path} has no rows", "there is nothing to learn from")
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
    cells = _cells(path)
    absent = [column for column in columns if column not in cells]
    if absent:
        raise InputError(
            f"no column {absent[0]!r} in {path}: it has {listed(list(cells))}",
            "take the whole table",
        )
    for column in columns:
        _refuse_missing_cells(cells[column], MISSING, column, path)
    # Text as it stands: a patient's number keeps its leading zeros.
    pieces = [cells[part] if i % 2 else [part] * len(cells[label]) for i, part in enumerate(parts)]
    paths = ["".join(piece) for piece in zip(*pieces, strict=True)]
    if not paths:
        raise InputError(f"{path} has no rows", "there is nothing to learn from")
    return list(map(Row, cells[domain], cells[label], paths, _image_files(path, paths)))


def _cells(path: Path) -> dict[str, list[str]]:
    """Every cell as text, by column."""
    import pandas as pd

    is_csv = not path.name.lower().endswith(".parquet")
    with reading(path, "CSV" if is_csv else "Parquet"):
        if is_csv:
            table = pd.read_csv(
                path, dtype=str, keep_default_na=False, encoding="utf-8-sig", index_col=False
            )
        else:
            table = pd.read_parquet(path).astype(str)
    return {str(name): [cell.strip() for cell in table[name].tolist()] for name in table.columns}


def _choose_columns(path: Path, header: list[str]) -> dict[str, str]:
    """The column of each role."""
    usual = {r: [c for c in header if c.lower() in names] for r, names in USUAL_NAMES.items()}
    kinds = [kind for kind in ("image", "text") if usual[kind]]
    if len(kinds) > 1:
        raise InputError(
            f"images or texts of {path}? it has {listed(header)}", "leave one of the columns out"
        )
    columns = {}
    for role in (*(kinds or ["image"]), "label", "domain"):
        if len(usual[role]) > 1:
            raise InputError(
                f"{path} has {len(usual[role])} columns that may be the {role}: "
                f"{', '.join(usual[role])}",
                "leave all but one out",
            )
        if not usual[role]:
            wanted = USUAL_NAMES[role] if kinds or role != "image" else ("path", "text")
            raise InputError(
                f"no column for the {role} in {path}: it has {listed(header)}",
                f"call one {' or '.join(wanted[:3])}",
            )
        columns[role] = usual[role][0]
    return columns


def _refuse_missing_cells(
    cells: list[str], missing: tuple[str, ...], column: str, path: Path
) -> None:
    rows = [row for row, cell in enumerate(cells) if cell in missing]
    if rows:
        raise InputError(
            f"{column!r} in {path} has no usable value in {len(rows):,} of {len(cells):,} rows, "
            f"the first {cells[rows[0]]!r} in row {rows[0] + 1:,}",
            "fill it in, or drop those rows",
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
        raise InputError(
            f"{len(absent):,} of {len(cells):,} images in {path} do not exist, the first "
            f"{cells[absent[0]]} in row {absent[0] + 1:,}, looked for in {path.parent}",
            "correct the paths, or drop those rows",
        )
    return files
