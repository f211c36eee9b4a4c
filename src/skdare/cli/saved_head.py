"""A saved head as commands use it: the model, the facts in its file, and rows by its columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skdare.cli.outputs import TABLES
from skdare.errors import InputError, listed, note

if TYPE_CHECKING:
    from skdare.data import DomainData


@dataclass(frozen=True)
class SavedHead:
    """A head from a file.

    Parameters
    ----------
    path : Path
    model : fitted head
    about : dict
        The answer of `inspect_file`.
    """

    path: Path
    model: Any
    about: dict[str, Any]

    @classmethod
    def load(cls, path: Path) -> SavedHead:
        from skdare.heads.head_file import load
        from skdare.heads.inspect import inspect_file

        if path.suffix in TABLES:
            raise InputError(f"'{path}' is a table, not a head", "give the head first, then rows")
        about = inspect_file(path)
        if about["kind"] != "head":
            raise InputError(
                f"'{path}' holds the rows that adapt has seen, not a head",
                "give the file that skdare fit wrote",
            )
        return cls(path, load(path), about)

    @property
    def target(self) -> str | None:
        """What the column of the target was called in training."""
        name = self.about["target_name"]
        return None if name is None else str(name)

    @property
    def is_adapted(self) -> bool:
        """Whether it comes from `adapt`, even if that was declined."""
        return bool(self.about["adapted_rows"] or self.about["declined"])

    def check_adaptable(self, purpose: str) -> None:
        """Refuse a head that cannot do this, with one that can as a hint."""
        if not hasattr(self.model, "adapt"):
            raise InputError(
                f"'{self.path}' holds {self.about['class']}, which does not adapt and cannot "
                f"{purpose}",
                "fit one that does, such as --head dare-cv",
            )
        if self.is_adapted:
            raise InputError(
                f"'{self.path}' is adapted to a domain already, and cannot {purpose}",
                "give the file that skdare fit wrote",
            )
        if not self.about["adaptable"]:
            raise InputError(
                f"'{self.path}' only predicts, and cannot {purpose}",
                "fit it again, without --no-adaptable",
            )

    def rows(self, file: Path) -> Iterator[DomainData]:
        """Rows of a table, some at a time, with the features of the head by name."""
        from skdare.data import stream

        names = self.about["feature_names"] or [f"x{j}" for j in range(self.about["features"])]
        yield from stream(str(file), features=names)

    def domain_rows(self, file: Path, *, labelled: bool) -> Iterator[DomainData]:
        """The same for rows that should be of one new domain; a note if they look otherwise."""
        seen: set[str] = set()
        column = self.about["domain_name"]
        has_target = False
        for rows in self.rows(file):
            if column in rows.ids:
                seen.update(map(str, rows.ids[column]))
            has_target = has_target or self.target in rows.ids
            yield rows
        known = seen & set(map(str, self.about["domains"]))
        if len(seen) > 1:
            note(
                f"'{column}' names {len(seen):,} domains in '{file}', {listed(sorted(seen), 3)}: "
                "all rows are taken as one domain; for each by itself, split the file"
            )
        elif known:
            note(
                f"'{column}' of '{file}' is {listed(known)}, a training domain: "
                "forecasts for a new domain do not hold for it"
            )
        if has_target and not labelled and str(file) != "-":
            note(f"'{file}' has the target '{self.target}'; to use it: --labels {file}")
