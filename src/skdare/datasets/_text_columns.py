"""Columns of a text table, by name: text until numbers are asked for."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skdare._input_error import InputError

_MISSING = frozenset(("", "?", "NA"))


def words(text: str) -> list[str]:
    """Names that are written one after the other."""
    return text.split()


@dataclass(frozen=True, eq=False)
class TextColumns:
    """Columns of a text table.

    Parameters
    ----------
    file : str
        Its name, for errors.
    columns : dict of name to sequence of str
    """

    file: str
    columns: dict[str, Sequence[str]]

    @classmethod
    def read(
        cls,
        file: str,
        content: bytes,
        names: Sequence[str] | None = None,
        *,
        delimiter: str | None = ",",
    ) -> TextColumns:
        """Columns of a file's content.

        Parameters
        ----------
        file : str
        content : bytes
        names : sequence of str, optional
            Default: the first line.
        delimiter : str, optional
            None stands for any blanks.
        """
        lines = content.decode("utf-8-sig", errors="replace").splitlines()
        if delimiter is None:
            rows = [line.split() for line in lines]
        else:
            rows = list(csv.reader(lines, delimiter=delimiter, skipinitialspace=True))
        rows = [row for row in rows if row]
        if names is None:
            names = [name.strip() for name in rows.pop(0)] if rows else []
        wrong = next((row for row in rows if len(row) != len(names)), None)
        if wrong is not None or not rows:
            found = "no rows" if wrong is None else f"a row of {len(wrong)} values"
            raise InputError(f"{file} has {found}, and rows of {len(names)} are needed")
        return cls(file, dict(zip(names, zip(*rows, strict=True), strict=True)))

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def text(self, name: str) -> np.ndarray:
        """One column, without blanks around its values."""
        return np.array([value.strip() for value in self._column(name)])

    def numbers(self, names: Sequence[str]) -> np.ndarray:
        """Columns as an array of shape (rows, names); NaN stands for what is missing."""
        X = np.empty((len(self), len(names)))
        for j, name in enumerate(names):
            try:
                X[:, j] = [
                    np.nan if value.strip() in _MISSING else float(value)
                    for value in self._column(name)
                ]
            except ValueError as error:
                raise InputError(
                    f"column {name} of {self.file} is not of numbers: {error}"
                ) from None
        return X

    def _column(self, name: str) -> Sequence[str]:
        if name not in self.columns:
            raise InputError(f"{self.file} has no column {name}, but {', '.join(self.columns)}")
        return self.columns[name]
