"""`skdare report`: from the records of a run to pages and tables."""

from __future__ import annotations

import click

from skdare._input_error import InputError
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
    help="What to write, a comma list.",
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
            raise InputError(
                "--spreadsheet-safe is for CSV", "leave it out, or add csv to --formats"
            )
        files = write_report(run, out, formats, spreadsheet_safe=spreadsheet_safe)
        as_object({"files": files}) if as_json else say(*files)
