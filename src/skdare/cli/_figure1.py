"""`skdare figure1`: the paper's first figure from the records of a run."""

from __future__ import annotations

from pathlib import Path

import click

from skdare.cli._bench_choices import PROTOCOLS
from skdare.cli._errors import mistakes
from skdare.cli._output import JSON, as_object, say, say_all

FILES = ("figure1.svg", "figure1.png")


@click.command()
@click.argument("run", metavar="RUN")
@click.option(
    "--out",
    multiple=True,
    help="File to write, .svg or .png; may be repeated  "
    f"[default: {' and '.join(f'RUN/{name}' for name in FILES)}]",
)
@click.option("--data", help="Which data set of the run  [default: the only one]")
@click.option(
    "--protocol",
    type=click.Choice(PROTOCOLS),
    help="Which protocol  [default: the only one, else paper]",
)
@JSON
def figure1(
    run: str, out: tuple[str, ...], data: str | None, protocol: str | None, as_json: bool
) -> None:
    """Draw the paper's first figure: heads, and ceilings that have seen the held-out domain.

    Bars for which a run has no records are left out, and named. Ceilings come from `skdare bench
    --with ceilings --pretrained FEATURES`, and scores of networks from its --end-to-end and
    --network.
    With --json: files, the paths written, and text, the figure in words.

    \b
    Example:
      skdare figure1 features.bench --out figure1.svg
    """
    with mistakes():
        from skdare.bench import Log
        from skdare.report import figure_one, read_records, write_figure
        from skdare.report.summary import summarise

        summary = summarise(read_records(run), Log(run).unfinished())
        figure = figure_one(summary, data=data, protocol=protocol)
        paths = write_figure(figure, out or [Path(run) / name for name in FILES])
        if as_json:
            as_object({"files": paths, "text": figure.text()})
            return
        say_all(figure.text())
        say("", *paths)
