"""`skdare check` and `skdare fit`: from a table with labels to a saved head."""

from __future__ import annotations

import ast
import warnings
from dataclasses import asdict, replace
from dataclasses import fields as fields_of
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from skdare.cli.answer import Answer, command, facts, shares
from skdare.cli.messages import in_options
from skdare.cli.outputs import HEAD, named_after, writable
from skdare.cli.tables import (
    Columns,
    Preparation,
    Task,
    options,
    perhaps_domains,
    read_labelled,
    say_findings,
    task_of,
)
from skdare.errors import DataNote, InputError, counted, note, unknown
from skdare.heads.table import HEADS

if TYPE_CHECKING:
    from skdare.data import DomainData

    HeadName = str
else:
    HeadName = Literal[tuple(HEADS)]


def check(file: Path, /, *, columns: Columns = Columns(), task: Task | None = None) -> Answer:
    """List problems and oddities of a table, the worst first.

    The exit code is 1 if there is a problem.

    Parameters
    ----------
    file
        CSV, TSV, Parquet, Feather or npz, or a feature store.
    task
        Kind of target  [default: guessed]
    """
    from skdare.checking import check as check_table

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataNote)  # the findings have it, too
        data = read_labelled(file, columns)
    found = check_table(data, task=task_of(data, task))
    names = {each.name for each in fields_of(Columns)}
    findings = [replace(each, remedy=in_options(each.remedy, names)) for each in found.findings]
    found = replace(found, findings=findings)
    if data.domains is None:
        note(f"no domains are named; name their column with --domains{perhaps_domains(data)}")
    fields = {"summary": found.summary, "findings": [asdict(each) for each in found.findings]}
    same = options(columns, task=task)
    bad = any(finding.level == "problem" for finding in found.findings)
    following = [] if bad else [command("bench", file, *same), command("fit", file, *same)]
    if data.domains is None:
        following = following[1:]
    return Answer(str(found), fields, following, failed=bad)


def fit(
    file: Path,
    /,
    *,
    head: HeadName = "dare-cv",
    out: Path | None = None,
    columns: Columns = Columns(),
    task: Task | None = None,
    metric: str | None = None,
    preparation: Preparation = "auto",
    given: Annotated[tuple[str, ...], Parameter("--set", metavar="NAME=VALUE")] = (),
    rehearse: bool = True,
    adaptable: bool = True,
) -> Answer:
    """Fit a head to a table, and save it.

    The default head chooses its strategy by leave-one-domain-out cross-validation.

    Parameters
    ----------
    file
        CSV, TSV, Parquet, Feather or npz, or a feature store.
    head
        dare-cv chooses a strategy; by-hand standardises each domain; dare whitens each domain, as
        in the paper; erm is one model on all rows.
    out
        File to write  [default: NAME.safetensors]
    task
        Kind of target  [default: guessed]
    metric
        Metric to choose by, such as balanced_accuracy  [default: accuracy, or r2]
    preparation
        auto fills missing values, and standardises for heads that do not know scales by
        themselves; standardize does both always.
    given
        Parameter of the head, such as shrinkage=0.5, l2=0.01 or strategies=center,standardize; may
        be repeated.
    rehearse
        Hold each domain out once more, to forecast the score on a new one.
    adaptable
        Keep the data that adapt and diagnose need; without it the file is much smaller.
    """
    from skdare.bench.run import without_single_rows
    from skdare.bench.settings import PREPARATIONS

    out = out or named_after(file, HEAD)
    output = writable(out, "head", file)
    data = without_single_rows(read_labelled(file, columns))
    same = options(columns, task=task)
    kind = task_of(data, task)
    several = data.domains is not None and len(data.domain_names) > 1
    if head != "erm" and not several:
        raise InputError(
            f"{file.name} has one domain, and head {head} learns from how domains differ",
            f"name their column with --domains{perhaps_domains(data)}, or give --head erm, which "
            "needs none",
        )
    model = _unfitted(head, kind, given, domains=several)
    if preparation != "auto":
        standardize = PREPARATIONS["standardize"]()
        model.set_params(preparation=standardize if preparation == "standardize" else None)
    if metric is not None:
        model = _choosing_by(metric, head, model, kind, data)
    say_findings(data, kind, command("check", file, *same))
    X, labels = _as_frame(data)
    rehearses = rehearse and adaptable and hasattr(model, "rehearse")
    chooses = "cv" in model.get_params()
    if chooses:
        model.fit(X, *labels, groups=data.groups, rehearse=rehearses)
    else:
        model.fit(X, *labels)
        if rehearses:
            model.rehearse(X, *labels, groups=data.groups)
    model.save(out, adaptable=adaptable)
    fields = {
        "file": str(out),
        "head": type(model).__name__,
        "rows": data.X.shape[0],
        "features": data.X.shape[1],
        "domains": _counts(data.domains),
        "classes": None if kind == "regression" else _counts(data.y),
        "choice": str(model.choice_) if chooses else None,
        "expected": None,
    }
    pairs = {"rows": f"{fields['rows']:,} of {counted(fields['features'], 'feature')}"}
    if fields["domains"]:
        pairs["domains"] = shares(fields["domains"])
    pairs["target"] = "numbers" if fields["classes"] is None else shares(fields["classes"])
    if fields["choice"]:
        pairs["choice"] = fields["choice"]
        if "ERM" in fields["choice"]:
            pairs["choice"] += " (ERM: one model on all rows, whatever their domain.)"
    if rehearses:
        pairs["expect"], fields["expected"] = _expected(model)
    pairs["wrote"] = output.wrote(fields["head"])
    following = command("diagnose" if rehearses else "predict", out, "NEW.csv")
    return Answer("\n".join(facts(pairs)), fields, [following])


def _expected(model: Any) -> tuple[str, dict[str, float]]:
    """The score on a new domain before any row of it is seen, in words and in numbers."""
    from skdare.diagnosis.forecast import outlook

    metric = model.rehearsal_.metric
    expected = outlook(model.rehearsal_, None, 0).unadapted
    low, high = metric.written(expected.low), metric.written(expected.high)
    text = (
        f"{metric.words} {metric.written(expected.expected)} unadapted on a new domain like these, "
        f"from {low} to {high} on four out of five"
    )
    if expected.expected <= metric.guessing:
        text += f": no better than guessing, {metric.written(metric.guessing)}; do not use it"
    return text, asdict(expected)


def _unfitted(name: str, task: str, given: tuple[str, ...], *, domains: bool) -> Any:
    """The head with its parameters, refused if it does not have them."""
    kind = HEADS[name]
    if task not in kind.tasks:
        raise InputError(
            f"head {name} is for {kind.tasks[0]}, and this is {task}",
            f"choose another head, or give --task {kind.tasks[0]}",
        )
    head = kind.estimator(task)
    if name == "erm" and domains:  # the same model, with a forecast for a new domain
        head = HEADS["dare-cv"].estimator(task, strategies=("erm",))
    defaults = head.get_params(deep=False)
    chosen = {}
    for option in given:
        parameter, equals, text = option.partition("=")
        if not equals:
            raise InputError(f"--set is '{option}', which has no =", "write it as shrinkage=0.5")
        if parameter not in defaults:
            raise unknown(f"parameter of {type(head).__name__}", parameter, list(defaults))
        several = parameter == "strategies" or isinstance(defaults[parameter], tuple)
        chosen[parameter] = _value(text, several=several)
    return head.set_params(**chosen)


def _value(text: str, *, several: bool) -> Any:
    """A literal of Python; anything else is text, or names separated by commas."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = tuple(text.split(",")) if several else text
    return (value,) if several and not isinstance(value, tuple | list) else value


def _choosing_by(metric: str, name: str, head: Any, task: str, data: DomainData) -> Any:
    import numpy as np

    from skdare.bench.metrics import METRICS, scoring_of

    if metric not in METRICS[task]:
        raise unknown(f"metric of {task}", metric, list(METRICS[task]))
    if "scoring" not in head.get_params(deep=False):
        raise InputError(
            f"--metric is {metric}, and head {name} chooses nothing by it",
            "give --head dare-cv, or leave --metric out",
        )
    return head.set_params(scoring=scoring_of(metric, len(np.unique(data.y))))


def _as_frame(data: DomainData) -> tuple[Any, tuple[Any, Any]]:
    """Features, and targets and domains, under the names of their columns."""
    import pandas as pd
    import scipy.sparse

    y = pd.Series(data.y, name=data.columns["target"])
    domains = data.domains
    if domains is not None:
        domains = pd.Series(domains, name=data.columns["domains"])
    if scipy.sparse.issparse(data.X):
        return data.X, (y, domains)
    # Not copied: rows of a feature store stay on disk.
    X = pd.DataFrame(data.X, columns=data.feature_names.astype(str), copy=False)
    return X, (y, domains)


def _counts(labels: Any) -> dict[str, int] | None:
    import numpy as np

    if labels is None:
        return None
    values, counts = np.unique(labels, return_counts=True)
    return dict(zip(map(str, values), counts.tolist(), strict=True))
