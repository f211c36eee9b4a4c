"""Reports of a run: from records to a summary, and on to text, pages, tables and figures."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from skdare._validation import check_choice
from skdare.bench import Log, Record
from skdare.diagnosis import Diagnosis
from skdare.persist import whole_file
from skdare.report import _csv, _latex, _markdown, _text
from skdare.report._csv import tidy
from skdare.report._diagnosis import diagnosis_page
from skdare.report._figure_one import FigureOne, figure_one
from skdare.report._page import page
from skdare.report._sections import document
from skdare.report._theory import theory_page
from skdare.report.summary.published import Published
from skdare.report.summary.summary import Summary, SummaryGroup, summarise
from skdare.theory import Chapter

__all__ = [
    "FigureOne",
    "Published",
    "Summary",
    "SummaryGroup",
    "figure_one",
    "read_records",
    "summarise",
    "text",
    "tidy",
    "write_diagnosis",
    "write_figure",
    "write_report",
    "write_theory",
]

FORMATS = ("html", "md", "tex", "csv")
PICTURES = (".svg", ".png")


def text(summary: Summary, width: int = 100, *, details: bool = False) -> str:
    """The advice of a summary, the picture and the scores, for a terminal of this width.

    Where a table is too wide, its intervals are left out first.

    Parameters
    ----------
    summary : Summary
    width : int
        Characters of a line.
    details : bool, default=False
        Also what a page folds: tests, ceilings, geometry, failures.
    """
    return _text.render(document(summary), width, details=details)


def write_report(
    run_folder: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    formats: Iterable[str] = FORMATS,
    *,
    spreadsheet_safe: bool = False,
) -> list[Path]:
    """Write the report of a run, and return the files.

    Where figures that were published for its study are kept with the run, they stand beside its
    own.

    Everything is rendered before the first file is written, and each file appears whole or not
    at all. The same records give the same bytes.

    Parameters
    ----------
    run_folder : path
        The folder of a run.
    out : path, optional
        The folder to write to, made if need be; default: the run's.
    formats : iterable of "html", "md", "tex", "csv"
        ``report.FORMAT`` each; "csv" also writes ``records.csv``, one row for each record. "html"
        needs ``pip install 'skdare[report]'``.
    spreadsheet_safe : bool, default=False
        In the CSV files, put an apostrophe before text that begins with ``=``, ``+``, ``-``, ``@``,
        a tab or the end of a line, which a spreadsheet would run as a formula.
    """
    formats = list(formats)
    if not formats:
        raise ValueError(f"no format is named; use {', '.join(FORMATS)}")
    for name in formats:
        check_choice("format", name, FORMATS)
    records = read_records(run_folder)
    summary = summarise(records, Log(run_folder).unfinished(), Published.read(run_folder))
    contents: list[tuple[str, str]] = []
    for name in formats:
        if name == "csv":
            contents += [
                ("report.csv", _csv.statistics(summary, safe=spreadsheet_safe)),
                ("records.csv", _csv.wide(records, safe=spreadsheet_safe)),
            ]
        else:
            contents.append((f"report.{name}", _RENDERERS[name](document(summary))))
    folder = Path(run_folder if out is None else out)
    folder.mkdir(parents=True, exist_ok=True)
    return [_written(folder / name, content) for name, content in contents]


def write_figure(figure: FigureOne, paths: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Write the paper's first figure, with its caption, and return the files.

    Each is SVG or PNG by its name, and appears whole or not at all. Needs
    ``pip install 'skdare[report]'``.
    """
    files = [Path(path) for path in paths]
    for path in files:
        if path.suffix.lower() not in PICTURES:
            raise ValueError(f"cannot write to {path}; the name must end in .svg or .png")
    try:
        from skdare.report._figures import as_file
    except ImportError as error:
        raise ValueError(f"a figure needs {error.name}; pip install 'skdare[report]'") from error
    caption = f"{figure.title}. {figure.plot.caption}"
    contents = [as_file(figure.plot, path.suffix.lower()[1:], caption) for path in files]
    return [_written(path, content) for path, content in zip(files, contents, strict=True)]


def write_diagnosis(diagnosis: Diagnosis, path: str | os.PathLike[str], title: str) -> Path:
    """Write the diagnosis of a new domain as one page with its picture.

    Needs ``pip install 'skdare[report]'``.
    """
    return _written(Path(path), diagnosis_page(diagnosis, title))


def write_theory(chapters: Sequence[Chapter], path: str | os.PathLike[str]) -> Path:
    """Write the theory beside its measurements as one page with figures.

    Needs ``pip install 'skdare[report]'``.
    """
    return _written(Path(path), theory_page(chapters))


def read_records(run_folder: str | os.PathLike[str]) -> list[Record]:
    """Records of a run, which must have at least one."""
    log = Log(run_folder)
    records = log.read()
    if not records:
        # As `skdare reproduce` lays out its folder.
        inside = log.folder / "bench"
        if Log(inside).path.exists():
            raise ValueError(f"there are no records at {log.path}; name {inside}, which has some")
        raise ValueError(f"there are no records at {log.path}; run a bench into that folder first")
    return records


_RENDERERS = {"html": page, "md": _markdown.render, "tex": _latex.render}


def _written(path: Path, content: str | bytes) -> Path:
    """The file, whole or not at all."""
    if isinstance(content, str):
        # Half a character, which a name may have in JSON, is written out: UTF-8 has none.
        content = content.encode(errors="backslashreplace")
    with whole_file(path) as file:
        file.write(content)
    return path
