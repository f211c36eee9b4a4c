"""The document: what a report is made of, whatever it is written in."""

from __future__ import annotations

from dataclasses import dataclass

from skdare.report._plot import Plot
from skdare.report._table import Table


@dataclass(frozen=True)
class SectionPart:
    """A heading with what stands under it.

    Parameters
    ----------
    heading : str
    text : str
    plots : tuple of Plot
    tables : tuple of Table
    facts : tuple of (term, description)
    folded : bool
        Closed until a reader opens it.
    below : bool
        Belongs under the heading before it.
    abreast : bool
        Its tables are small enough to stand side by side.
    """

    heading: str
    text: str = ""
    plots: tuple[Plot, ...] = ()
    tables: tuple[Table, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    folded: bool = False
    below: bool = False
    abreast: bool = False


@dataclass(frozen=True)
class Section:
    """All about one data set under one protocol."""

    title: str
    verdict: tuple[str, ...]
    parts: tuple[SectionPart, ...]


@dataclass(frozen=True)
class Document:
    """A whole report; the overview is for more than one section."""

    title: str
    overview: Table | None
    sections: tuple[Section, ...]
    notes: tuple[tuple[str, str], ...]
