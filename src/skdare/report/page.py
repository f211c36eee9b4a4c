"""The report as one page of HTML that needs nothing else, and as a fragment for notebooks."""

from __future__ import annotations

from html import escape
from importlib.resources import files

from skdare.errors import counted, printable
from skdare.report.advice import advise
from skdare.report.figures import figures
from skdare.report.summary import Summary
from skdare.report.tables import chosen, gain_table, meanings, remarks, score_table

_LISTED = 20
_PREPARED = {
    "auto": "Missing values were filled by medians, and features standardised where heads need it",
    "standardize": "Missing values were filled by medians, and features standardised",
    "none": "Features were taken unchanged",
}


def page(summary: Summary) -> str:
    """The whole report."""
    from jinja2 import Environment

    template = files("skdare.report").joinpath("page.html").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    heading, _, subtitle = summary.title.rpartition(": ")
    failures = [
        f"{summary.lines[str(row.head)].name} on '{row.held_out}': {row.reason}"
        for row in summary.failures.head(_LISTED).itertuples()
    ]
    if len(summary.failures) > _LISTED:
        failures.append(f"and {len(summary.failures) - _LISTED:,} more")
    text = environment.from_string(template).render(
        title=f"skdare bench: {heading}",
        heading=f"Which head to use on a new domain: {heading}",
        subtitle=subtitle,
        advice=advise(summary).sentences,
        figures=figures(summary),
        scores=score_table(summary),
        gains=gain_table(summary),
        meanings=meanings(summary),
        chosen=chosen(summary),
        remarks=remarks(summary),
        facts=_facts(summary),
        failures=failures,
        warnings=list(summary.warnings.items())[:_LISTED],
    )
    return printable(text.replace(" %", "\N{NO-BREAK SPACE}%"))


def _facts(summary: Summary) -> list[str]:
    """Facts about the run."""
    frame = summary.frame
    trials = counted(len(frame), "fit")
    repeats = int(frame["trial"].nunique())
    prepared = _PREPARED.get(str(summary.about.get("preparation")), _PREPARED["auto"])
    facts = [
        "Each domain was held out in turn. Every head was fitted to the rows of the others, and "
        "scored on all rows of the domain that was held out.",
        f"{prepared}, by the rows that were trained on.",
        "ERM and DARE share one strength of ridge, chosen for ERM by holding out training domains.",
    ]
    if repeats > 1:
        facts.append(
            f"This was done {repeats} times, each with another 80 % of the training rows; scores "
            "are means."
        )
    seconds = frame["seconds"].sum()
    took = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    facts.append(f"{trials} took {took}.")
    if summary.about.get("fingerprint"):
        facts.append(f"Fingerprint of the table: {summary.about['fingerprint']}.")
    return facts


def fragment(summary: Summary) -> str:
    """Advice and scores for a notebook."""
    table = score_table(summary, brief=True)
    first, *rest = advise(summary).sentences
    return printable(
        f"<p><b>{escape(first)}</b> {escape(' '.join(rest))}</p>\n<p>{escape(table.title)}</p>\n"
        f"{table.html()}"
    )
