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
        Closed on a page until a reader opens it, and left out on a terminal unless asked for.
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
    """An answer and its grounds: the advice, its picture, and then the parts.

    Parameters
    ----------
    title : str
    verdict : tuple of str
        The advice, at most three sentences; the first is in large type.
    parts : tuple of SectionPart
    remarks : tuple of str
        What to know with the advice, in small type below it.
    picture : Plot, optional
        What the advice rests on; with the advice, it fills the first screen.
    """

    title: str
    verdict: tuple[str, ...]
    parts: tuple[SectionPart, ...]
    remarks: tuple[str, ...] = ()
    picture: Plot | None = None


@dataclass(frozen=True)
class Document:
    """A whole report, of one section or several.

    `skdare.report._page.page` writes one as HTML: a bench and a diagnosis look alike because both
    are documents.

    Parameters
    ----------
    title : str
    overview : Table or None
        For more than one section.
    sections : tuple of Section
    notes : tuple of (term, description)
        The method, folded at the end; none where there is nothing to explain.
    lead : str
        One line under the title.
    """

    title: str
    overview: Table | None
    sections: tuple[Section, ...]
    notes: tuple[tuple[str, str], ...] = ()
    lead: str = ""
