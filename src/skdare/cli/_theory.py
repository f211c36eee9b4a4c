"""`skdare theory`: what the paper says, beside what its model gives."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import asdict
from importlib.util import find_spec

import click

from skdare.cli._errors import check_writable, mistakes
from skdare.cli._output import say, say_all

_WIDEST = 132


@click.command()
@click.option("--quick", is_flag=True, help="Fewer repeats: seconds, and rougher numbers.")
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of all random draws."
)
@click.option(
    "--report",
    is_flag=False,
    flag_value="theory.html",
    metavar="[FILE]",
    help="Write one page with the figures  [theory.html]",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array of statements.")
def theory(quick: bool, seed: int, report: str | None, as_json: bool) -> None:
    """Measure what the paper proves: closed forms, worst cases, rates, and where they fail.

    Every statement is checked on the paper's own model of shift, sampled or solved, and printed
    beside what was measured. Takes about a minute. With --json every statement has the fields
    chapter, where, says, measured, confirmed, verdict, kind and told: the verdict, or "not
    confirmed" where the numbers do not bear it out.

    \b
    Example:
      skdare theory --report
    """
    with mistakes():
        if report is not None and not (find_spec("matplotlib") and find_spec("jinja2")):
            raise ValueError("--report needs figures; pip install 'skdare[report]'")
        if report is not None:
            check_writable(report)
        from skdare import theory as paper
        from skdare.report import write_theory
        from skdare.report._theory import chapter_text, heading, tally

        width = min(shutil.get_terminal_size().columns, _WIDEST)
        if not as_json:
            say_all(heading(width))
        chapters = []
        for name, make in paper.CHAPTERS.items():
            if sys.stderr.isatty():
                click.echo(f"{name} …\r", err=True, nl=False)
            chapter = make(seed, quick)
            chapters.append(chapter)
            if not as_json:
                say_all(f"\n{chapter_text(chapter, width)}")
        if as_json:
            claims = [
                {"chapter": chapter.title, **asdict(claim), "told": claim.told}
                for chapter in chapters
                for claim in chapter.claims
            ]
            click.echo(json.dumps(claims, ensure_ascii=False))
        else:
            say_all(f"\n{tally(chapters)}")
        if report is not None:
            say(f"wrote {write_theory(chapters, report)}", err=True)
