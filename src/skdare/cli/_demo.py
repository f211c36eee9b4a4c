"""`skdare demo`: the whole story on embedded data."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import click

from skdare.bench import Log, summarise
from skdare.cli._errors import mistakes
from skdare.cli._progress import follow
from skdare.report import FORMATS, text, write_report


@click.command()
@click.option(
    "--trials",
    type=click.IntRange(1, 50),
    default=3,
    show_default=True,
    help="Splits of each data set; the intervals are over them.",
)
@click.option("--out", default="skdare-demo", show_default=True, help="Folder of the run.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, help="Trials at once.")
@click.option("--quiet", is_flag=True, help="No progress.")
def demo(trials: int, out: str, jobs: int, quiet: bool) -> None:
    """Show everything on embedded data: heads, ceilings, diagnostics, and a report.

    \b
    Example:
      skdare demo --trials 3
    """
    from skdare import demo as demonstration

    log, keys = Log(out), set()
    with mistakes():
        for study, plan, sources in demonstration.studies(trials):
            click.echo(f"{study.name}: {study.note}", err=True)
            follow(plan, sources, log, jobs=jobs, retry_failed=False, quiet=quiet)
            keys |= {plan.key(trial) for trial in plan.trials}
        click.echo(text(summarise([r for r in log.read() if r.key in keys])))
        # Pages need the extra `report`; tables do not.
        drawn = find_spec("matplotlib") and find_spec("jinja2")
        formats = FORMATS if drawn else [name for name in FORMATS if name != "html"]
        written = write_report(out, None, formats)
    if not drawn:
        click.echo("hint: pip install 'skdare[report]' for the page with figures", err=True)
    click.echo(f"\nopen {Path(written[0]).resolve()}")
