"""Labels of some rows in a CSV file, as `skdare suggest` writes it for a person to fill in."""

from __future__ import annotations

import csv
from math import isfinite
from pathlib import Path
from typing import Any

from skdare._input_error import InputError
from skdare._safe_text import counted

_COLUMNS = ("id", "label")
# What stands for a row without a label, beside an empty cell, where it is no class.
_NO_LABEL = ("-1", "-1.0", "nan", "NaN", "None", "NA")


class LabelFile:
    """Labels by the id of their row.

    Parameters
    ----------
    path : str
        CSV with the columns id and label; others are ignored, and so are rows without a label.
    classes : list, or None
        Classes of the head; None where it predicts numbers.
    new_classes : bool, optional
        Whether to take classes that the head was not fitted to; False says that one may.

    Attributes
    ----------
    was_suggested : bool
        Whether the file is a table of `skdare suggest`, whose rows are not random.
    """

    def __init__(
        self, path: str, classes: list[Any] | None, *, new_classes: bool | None = None
    ) -> None:
        self.path = path
        self._takes_new_classes = new_classes
        self._classes = None
        if classes is not None:
            # A spreadsheet may write the whole number 5 as 5.0.
            whole = [label for label in classes if type(label) is int]
            self._classes = {str(float(label)): label for label in whole}
            self._classes |= {str(label): label for label in classes}
        self.labels: dict[str, Any] = {}
        self._used: set[str] = set()
        try:
            with Path(path).open(newline="", encoding="utf-8-sig") as file:
                first = file.readline()
                file.seek(0)
                separator = max(",;\t", key=first.count)
                self._read(csv.DictReader(file, delimiter=separator))
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not text in UTF-8", "save it as CSV in UTF-8") from error
        except csv.Error as error:
            raise InputError(f"{path} is not CSV ({error})", "save it as CSV in UTF-8") from error
        if not self.labels:
            raise InputError(f"{path} has no label", "fill in its column label")

    def _read(self, rows: csv.DictReader) -> None:
        # A person may have written ID or Label.
        named = [(name or "").strip() for name in rows.fieldnames or ()]
        rows.fieldnames = [n.lower() if n.lower() in _COLUMNS else n for n in named]
        absent = [name for name in _COLUMNS if name not in rows.fieldnames]
        if absent:
            raise InputError(
                f"{self.path} has no column {absent[0]!r}",
                "give a CSV file with the columns id and label, as `skdare suggest` writes it",
            )
        self.was_suggested = "prediction" in rows.fieldnames
        for row in rows:
            text = _plain((row["label"] or "").strip())
            if self._is_none(text):
                continue
            name = _plain((row["id"] or "").strip())
            if name in self.labels:
                raise InputError(
                    f"line {rows.line_num} of {self.path} labels row {name!r} a second time",
                    "keep one of the two",
                )
            self.labels[name] = self._label(text, rows.line_num)

    def _is_none(self, text: str) -> bool:
        """Whether a cell says that its row is not labelled."""
        return not text or (
            self._classes is not None and text in _NO_LABEL and text not in self._classes
        )

    def _label(self, text: str, line: int) -> Any:
        if self._classes is None:
            if not _is_number(text):
                raise InputError(
                    f"line {line} of {self.path} has the label {text!r}, and the head predicts "
                    "numbers",
                    "write a number, or leave the label empty",
                )
            return float(text)
        if text in self._classes:
            return self._classes[text]
        known = list(dict.fromkeys(self._classes.values()))
        if not self._takes_new_classes:
            offered = "" if self._takes_new_classes is None else "; --new-classes takes new ones"
            raise InputError(
                f"line {line} of {self.path} has the label {text!r}, a class that the head was "
                "not fitted to",
                f"its classes are {', '.join(map(str, known))}{offered}",
            )
        return _like(text, known)

    def of(self, ids: Any) -> list[Any]:
        """The labels of the rows with these ids; None where a row has none."""
        names = [str(name) for name in ids]
        for name in names:
            if name in self._used:
                raise InputError(
                    f"two of the rows are called {name!r}, and {self.path} has one label for both",
                    "name another column of ids with --id",
                )
            if name in self.labels:
                self._used.add(name)
        return [self.labels.get(name) for name in names]

    def check(self) -> None:
        """Refuse labels of rows that there are not, once all rows were seen."""
        lost = [name for name in self.labels if name not in self._used]
        if lost:
            raise InputError(
                f"{self.path} labels row {lost[0]!r}, which is not among the rows "
                f"({counted(len(lost), 'such label')})",
                "name the column of ids with --id, write ids as they are there (a spreadsheet "
                "drops leading zeros), or give the rows that were labelled",
            )


def _like(text: str, classes: list[Any]) -> Any:
    """A new class, as a number where the others are numbers."""
    if all(type(label) in (int, float) for label in classes) and _is_number(text):
        return float(text)  # whole numbers are made so again where classes are
    return text


def _plain(text: str) -> str:
    """Text without the apostrophe that keeps a spreadsheet from running it."""
    return text[1:] if text.startswith(("'=", "'+", "'-", "'@")) else text


def _is_number(text: str) -> bool:
    try:
        return isfinite(float(text))
    except ValueError:
        return False
