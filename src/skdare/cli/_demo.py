"""`skdare demo`: the whole story on embedded data, in one screen."""

from __future__ import annotations

import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skdare._scale import SCALES
from skdare.cli._errors import mistakes
from skdare.cli._options import JOBS
from skdare.cli._output import JSON, QUIET, as_object, say, statistics
from skdare.cli._progress import follow

if TYPE_CHECKING:
    from skdare.demo.model import Risks
    from skdare.demo.studies import Outcome

_WIDTH = 100
# The heads of the terminal, of which the page has more.
_SHOWN = ("erm", "dare-cv", "dare-cv-adapted")


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
@QUIET
def demo(trials: int, out: str, jobs: int, as_json: bool, quiet: bool) -> None:
    """Show what to expect: real data where adapting wins and where it does not, and the model.

    Two real data sets and the paper's model, every head at its defaults, one screen, and a report
    of the two benches in a folder.

    With --json: the fields of `skdare bench --json`; advice, by data set; paper_model, the risks
    of each head; and files, the paths of the report.

    \b
    Example:
      skdare demo --trials 3
    """
    from skdare.bench import Log
    from skdare.demo.model import paper_model
    from skdare.demo.studies import STUDIES, Outcome
    from skdare.report import FORMATS, write_report

    log = Log(out)
    keys = {}
    with mistakes():
        for study in STUDIES:
            plan = study.plan(trials)
            follow(plan, log, jobs=jobs, retry_failed=False, quiet=quiet)
            keys[study.name] = {plan.key(trial) for trial in plan.trials}
        records = log.read()
        outcomes = [
            Outcome.of(study, [r for r in records if r.key in keys[study.name]])
            for study in STUDIES
        ]
        risks = paper_model()
        if not as_json:
            for outcome in outcomes:
                say(*_study_lines(outcome), "")
            say(*_model_lines(risks))
        # Pages need the extra `report`; the other formats do not.
        has_report = find_spec("matplotlib") and find_spec("jinja2")
        formats = FORMATS if has_report else [name for name in FORMATS if name != "html"]
        written = write_report(out, None, formats)
    if as_json:
        shown = [r for r in records if any(r.key in of_study for of_study in keys.values())]
        as_object(
            {
                "folder": log.folder,
                **statistics(shown),
                "advice": {outcome.study.name: outcome.advice for outcome in outcomes},
                "paper_model": {name: risk.fields() for name, risk in risks.items()},
                "files": written,
            }
        )
        return
    more = "" if has_report else "; pip install 'skdare[report]' for a page with figures"
    say(f"page: {Path(written[0]).resolve()}{more}")
    say("next: skdare bench FILE.csv --target COLUMN --domains COLUMN")


def _study_lines(outcome: Outcome) -> list[str]:
    """The advice on a data set, its figures by held-out domain, and what adapting risks."""
    from skdare.demo.studies import one_class_only
    from skdare.report._names import label

    study = outcome.study
    scale = SCALES["accuracy" if outcome.accuracy else "r2"]
    erm, as_it_is, adapted = (scale.figure(outcome.mean(head)) for head in _SHOWN)
    of_domains = f"of {len(outcome.domains)}"
    verdict = {
        "adapt": f"Adapt DARE-CV to unlabelled rows of the new {study.a_domain}: {adapted}, "
        f"ERM {erm}; better on {outcome.wins('dare-cv-adapted')} {of_domains}.",
        "use": f"Use DARE-CV as it is: {as_it_is}, ERM {erm}; better on "
        f"{outcome.wins('dare-cv')} {of_domains}. Adapting adds nothing.",
        "stay": f"Stay with ERM, {erm}: DARE-CV has {as_it_is}, and {adapted} adapted to rows of "
        f"the new {study.a_domain}.",
    }[outcome.advice]
    lines = [f"{study.name}: {study.question} ({study.what})", *_wrapped(verdict)]
    names = [f"{name:>12}" for name in outcome.domains]
    lines.append(f"  {'held out':<18}{''.join(names)}")
    for head in _SHOWN:
        cells = [f"{scale.figure(outcome.scores[head][name]):>12}" for name in outcome.domains]
        lines.append(f"  {label(head):<18}{''.join(cells)}")
    if outcome.advice != "adapt" or not outcome.accuracy:
        return lines
    before, after = (scale.figure(share) for share in one_class_only(study))
    limit = (
        "The limit: adapting takes classes to be mixed much as in training. Where all new rows "
        f"are of one class, it is right on {after} of them, and on {before} unadapted."
    )
    return [*lines, *_wrapped(limit)]


def _model_lines(risks: dict[str, Risks]) -> list[str]:
    """The paper's model: what each head risks on new domains, mean and tail."""
    from skdare.report._names import label

    fields = {name: risk.fields() for name, risk in risks.items()}
    columns = {
        "alike_mean": "like training",
        "alike_95": "(95 % below)",
        "further_mean": "further out",
        "further_95": "(95 % below)",
        "adversary": "adversary",
    }
    lines = [
        "the paper's model: excess error in a new domain, as a share of the signal (made data)",
        *_wrapped(_model_verdict(fields)),
        f"  {'new domain':<14}" + "".join(f"{name:>15}" for name in columns.values()),
    ]
    for name, values in fields.items():
        cells = ["" if values[key] is None else f"{values[key]:.2f}" for key in columns]
        lines.append(f"  {label(name):<14}{''.join(f'{c:>15}' for c in cells)}".rstrip())
    return lines


def _model_verdict(fields: dict[str, dict[str, Any]]) -> str:
    """Where DARE errs less than ERM, and where more."""
    places = {
        "alike_mean": "near the training domains",
        "further_mean": "further out",
        "adversary": "against an adversary",
    }
    less = [place for key, place in places.items() if fields["dare"][key] < fields["erm"][key]]
    more = [place for place in places.values() if place not in less]
    sentences = [
        f"DARE errs {comparison} than ERM {' and '.join(where)}"
        for comparison, where in (("less", less), ("more", more))
        if where
    ]
    return "; ".join(sentences).replace("; DARE errs more than ERM", ", and more") + "."


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")
