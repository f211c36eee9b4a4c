"""`skdare report`: read the records of a run, write pages."""

from __future__ import annotations

import click

from skdare.cli._bench_choices import FORMATS
from skdare.cli._errors import mistakes
from skdare.cli._options import names
from skdare.cli._output import JSON, as_object, say
from skdare.cli._tables import SPREADSHEET_SAFE


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--out", help="Folder to write to  [default: RUN]")
@click.option(
    "--formats",
    callback=names,
    default=",".join(FORMATS),
    show_default=True,
    help="What to write, by commas.",
)
@SPREADSHEET_SAFE
@JSON
def report(
    run: str, out: str | None, formats: list[str], spreadsheet_safe: bool, as_json: bool
) -> None:
    """Write the report of a run: one HTML page that opens offline, Markdown, LaTeX and CSV.

    The paths are printed, with --json as files.

    \b
    Example:
      skdare report features.bench
    """
    with mistakes():
        from skdare.report import write_report

        if spreadsheet_safe and "csv" not in formats:
            raise ValueError("--spreadsheet-safe is for CSV; leave it out, or add csv to --formats")
        files = write_report(run, out, formats, spreadsheet_safe=spreadsheet_safe)
        as_object({"files": files}) if as_json else say(*files)
