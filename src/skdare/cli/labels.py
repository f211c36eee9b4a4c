"""Labels of some rows of a new domain, in a CSV file that a person filled in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from skdare.cli.saved_head import SavedHead
from skdare.cli.scores import Targets
from skdare.errors import InputError, counted, listed, unknown

if TYPE_CHECKING:
    from skdare.data import DomainData

ROW = "row"
"""Name of the number of a row, if nothing else names rows; it counts from 1."""


class LabelFile:
    """Labels, each with the name of its row; read and checked before any row is.

    The file may be the table itself, if that has a column of the target.
    """

    def __init__(self, path: Path, id: str | None, head: SavedHead, rows: Path) -> None:
        from skdare.data.read import read_text

        self.path = path
        self.count = 0
        self.targets = Targets(head.model)
        self.target = head.target
        self.is_table = str(rows) != "-" and path.exists() and path.samefile(rows)
        if self.is_table:
            return
        table = read_text(path)
        column = next((name for name in (self.target, "label") if name in table), None)
        if column is None:
            raise InputError(
                f"--labels {path} has {listed(table.columns)}",
                f"call the column of the labels '{self.target or 'label'}'",
            )
        if id is not None and id not in table:
            raise unknown(f"column of {path}", id, table.columns.tolist())
        self.columns = [name for name in ([id] if id else table) if name != column]
        labels = [self.targets.of(cell) for cell in table[column]]
        given = [label is not None for label in labels]
        self.table = table[given]
        self.labels = [label for label in labels if label is not None]
        self.count = len(self.labels)
        if not self.count:
            raise InputError(f"--labels {path} has no label", f"fill in its column '{column}'")
        self.by_name: dict[str, Any] = {}
        self.column = ""
        self.used: set[str] = set()

    def of(self, rows: DomainData, start: int) -> list[Any]:
        """The label of each row, None for one without; ``start`` rows came before these."""
        if self.is_table:
            return self._inside(rows)
        numbers = range(start + 1, start + 1 + rows.X.shape[0])
        names: dict[str, Any] = {**rows.ids, ROW: numbers}
        if not self.by_name:
            self._match(next((name for name in self.columns if name in names), None), list(names))
        keys = list(map(str, names[self.column]))
        for key in keys:
            if key in self.used:
                raise InputError(
                    f"two rows have '{key}' in '{self.column}', and {self.path} one label",
                    "name another column of both tables with --id",
                )
            self.used.add(key)
        return [self.by_name.get(key) for key in keys]

    def _inside(self, rows: DomainData) -> list[Any]:
        if self.target is None or self.target not in rows.ids:
            raise InputError(
                f"--labels {self.path} has no column '{self.target}'",
                "give a file with labels, or leave --labels out",
            )
        labels = [self.targets.of(cell) for cell in rows.ids[self.target]]
        self.count += sum(label is not None for label in labels)
        return labels

    def _match(self, column: str | None, known: list[str]) -> None:
        if column is None:
            raise InputError(
                f"--labels {self.path} has no column that names the rows",
                f"give it one of {listed(known)}; row counts from 1",
            )
        keys = [cell.strip().removeprefix("'") for cell in self.table[column]]
        if len(set(keys)) < len(keys):
            raise InputError(f"--labels {self.path} has two labels for one '{column}'", "keep one")
        self.column = column
        self.by_name = dict(zip(keys, self.labels, strict=True))

    def check(self) -> None:
        """Refuse labels of rows that there are not, once all rows were seen."""
        if self.is_table:
            if not self.count:
                what = f"'{self.target}' is empty in all rows of {self.path}"
                raise InputError(what, "fill in some, or leave --labels out")
            return
        lost = [key for key in self.by_name if key not in self.used]
        if lost:
            raise InputError(
                f"--labels {self.path} has {counted(len(lost), 'label')} of rows that are not "
                f"there, the first of '{lost[0]}' in '{self.column}'",
                "name another column with --id, or give the rows that were labelled",
            )
