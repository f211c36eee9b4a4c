"""`skdare demo`: the whole story on embedded data."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from skdare.cli._errors import mistakes
from skdare.cli._options import JOBS
from skdare.cli._output import JSON, as_object, say, show, statistics
from skdare.cli._progress import follow


@click.command()
@click.option(
    "--trials",
    type=click.IntRange(1, 50),
    default=3,
    show_default=True,
    help="Splits of each data set; the intervals are over them.",
)
@click.option("--out", default="skdare-demo", show_default=True, help="Folder of the run.")
@JOBS
@JSON
@click.option("--quiet", is_flag=True, help="No progress.")
def demo(trials: int, out: str, jobs: int, as_json: bool, quiet: bool) -> None:
    """Show everything on embedded data: heads, ceilings, diagnostics, and a report.

    With --json: the fields of `skdare bench --json`, and files, the paths of the report.

    \b
    Example:
      skdare demo --trials 3
    """
    from skdare import demo as demonstration
    from skdare.bench import Log
    from skdare.report import FORMATS, write_report

    log = Log(out)
    keys = set()
    with mistakes():
        for study in demonstration.STUDIES:
            if not quiet:
                say(f"{study.name}: {study.note}", err=True)
            plan = study.plan(trials)
            follow(plan, log, jobs=jobs, retry_failed=False, quiet=quiet)
            keys |= {plan.key(trial) for trial in plan.trials}
        records = [r for r in log.read() if r.key in keys]
        if not as_json:
            show(records)
        # Pages need the extra `report`; the other formats do not.
        has_report = find_spec("matplotlib") and find_spec("jinja2")
        formats = FORMATS if has_report else [name for name in FORMATS if name != "html"]
        written = write_report(out, None, formats)
    if not has_report:
        say("hint: pip install 'skdare[report]' for the page with figures", err=True)
    if as_json:
        as_object({"folder": log.folder, **statistics(records), "files": written})
    else:
        say("", f"open {Path(written[0]).resolve()}")
