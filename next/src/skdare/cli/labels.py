"""Labels of some rows of a new domain, in a CSV file that a person filled in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from skdare.errors import InputError, counted, listed, unknown

if TYPE_CHECKING:
    from skdare.data import DomainData

ROW = "row"
"""What the number of a row is called where nothing else names it; it counts from 1."""


class LabelFile:
    """Labels by what names their row; read and checked before any row is."""

    def __init__(self, path: Path, id: str | None, head: Any) -> None:
        from skdare.data.read import read_text

        table = read_text(path)
        target = head.state_.names.target
        column = next((name for name in (target, "label") if name in table), None)
        if column is None:
            raise InputError(
                f"labels {path} has {listed(table.columns)}",
                f"call the column of the labels '{target or 'label'}'",
            )
        if id is not None and id not in table:
            raise unknown(f"column of {path}", id, table.columns.tolist())
        self.path = path
        self.columns = [name for name in ([id] if id else table) if name != column]
        self.table = table[table[column].map(_plain) != ""]
        if not len(self.table):
            raise InputError(f"labels {path} has no label", f"fill in its column '{column}'")
        self.labels = [_target(_plain(cell), head) for cell in self.table[column]]
        self.by_name: dict[str, Any] = {}
        self.column = ""
        self.used: set[str] = set()

    def of(self, rows: DomainData, start: int) -> list[Any]:
        """The label of each row, None for one without; ``start`` rows came before these."""
        numbers = range(start + 1, start + 1 + rows.X.shape[0])
        names: dict[str, Any] = {**rows.ids, ROW: numbers}
        if not self.by_name:
            self._go_by(next((name for name in self.columns if name in names), None), list(names))
        keys = list(map(str, names[self.column]))
        for key in keys:
            if key in self.used:
                raise InputError(
                    f"two rows have '{key}' in '{self.column}', and {self.path} one label",
                    "name another column of both tables with --id",
                )
            self.used.add(key)
        return [self.by_name.get(key) for key in keys]

    def _go_by(self, column: str | None, known: list[str]) -> None:
        if column is None:
            raise InputError(
                f"labels {self.path} has no column that says which row is meant",
                f"give it one of {listed(known)}; row counts from 1",
            )
        keys = list(map(_plain, self.table[column]))
        if len(set(keys)) < len(keys):
            raise InputError(f"labels {self.path} has two labels for one '{column}'", "keep one")
        self.column = column
        self.by_name = dict(zip(keys, self.labels, strict=True))

    def check(self) -> None:
        """Refuse labels of rows that there are not, once all rows were seen."""
        lost = [key for key in self.by_name if key not in self.used]
        if lost:
            raise InputError(
                f"labels {self.path} has {counted(len(lost), 'label')} of rows that are not there, "
                f"the first of '{lost[0]}' in '{self.column}'",
                "name another column with --id, or give the rows that were labelled",
            )


def _plain(cell: str) -> str:
    """A cell without what a spreadsheet or a person puts around it."""
    return cell.strip().removeprefix("'")


def _target(cell: str, head: Any) -> Any:
    """A cell as the head knows it; a spreadsheet may write the class 5 as 5.0."""
    if not hasattr(head, "classes_"):
        try:
            return float(cell)
        except ValueError as error:
            raise InputError(f"label '{cell}' is no number", "the head predicts numbers") from error
    classes = head.classes_.tolist()
    texts = {str(float(c)): c for c in classes if type(c) is int} | {str(c): c for c in classes}
    if cell not in texts:
        raise unknown("class of the head", cell, classes)
    return texts[cell]
