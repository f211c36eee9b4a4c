"""`skdare check` and `skdare fit`: from a table with labels to a saved head."""

from __future__ import annotations

import ast
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from skdare.cli.answer import Answer, command, facts, file_size, shares
from skdare.cli.tables import (
    HEAD,
    Columns,
    Task,
    beside,
    options,
    read_labelled,
    say_findings,
    task_of,
    writable,
)
from skdare.errors import DataNote, InputError, counted, listed, unknown

if TYPE_CHECKING:
    from skdare.data import DomainData


def check(file: Path, /, *, columns: Columns = Columns(), task: Task | None = None) -> Answer:
    """List what is odd about a table, the gravest first.

    Parameters
    ----------
    file
        CSV, TSV, Parquet, Feather or npz, or a feature store.
    task
        What the target is  [default: guessed]
    """
    from skdare.checking import check as check_table

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataNote)  # what reading would say is among the findings
        data = read_labelled(file, columns)
    found = check_table(data, task=task_of(data, task))
    fields = {"summary": found.summary, "findings": [asdict(each) for each in found.findings]}
    same = options(columns, task=task)
    following = [command("bench", file, *same), command("fit", file, *same)]
    if any(finding.level == "problem" for finding in found.findings):
        following = [command("check", file, *same)]  # once it is corrected
    return Answer(str(found), fields, following)


def fit(
    file: Path,
    /,
    *,
    head: Literal[
        "dare-cv", "by-hand", "dare", "erm", "reweighted", "groupdro", "irm", "anchor"
    ] = "dare-cv",
    out: Path | None = None,
    columns: Columns = Columns(),
    task: Task | None = None,
    metric: str | None = None,
    preparation: Literal["auto", "standardize", "none"] = "auto",
    given: Annotated[tuple[str, ...], Parameter("--set", metavar="NAME=VALUE")] = (),
    rehearse: bool = True,
    adaptable: bool = True,
) -> Answer:
    """Fit a head to a table, and save it.

    The default head chooses how to treat domains by holding training domains out.

    Parameters
    ----------
    file
        CSV, TSV, Parquet, Feather or npz, or a feature store.
    head
        dare-cv chooses how to treat domains; by-hand standardises each domain; dare whitens each,
        as in the paper; erm is one model on all rows.
    out
        File to write  [default: NAME.safetensors]
    task
        What the target is  [default: guessed]
    metric
        What dare-cv chooses by, such as balanced_accuracy  [default: accuracy, or r2]
    preparation
        auto fills missing values, and standardises features whose scales are very different;
        standardize does both always.
    given
        An option of the head, such as shrinkage=0.5; may be repeated.
    rehearse
        Hold every domain out once more, to say what to expect on a new one.
    adaptable
        Keep what adapt and diagnose need, or predict only: a much smaller file.
    """
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from skdare.diagnosis.forecast import outlook

    out = writable(out or beside(file, HEAD), file, ending=HEAD)
    data = read_labelled(file, columns)
    same = options(columns, task=task)
    kind = task_of(data, task)
    if kind == "regression" and data.y.dtype.kind not in "iuf":
        raise InputError(
            f"column '{data.columns['target']}' is text, and regression needs numbers",
            "name another --target, or leave --task out",
        )
    model = _unfitted(head, kind, dict(map(_option, given)))
    if preparation != "auto":
        steps = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
        model.set_params(preparation=steps if preparation == "standardize" else None)
    if metric is not None:
        model = _choosing_by(metric, head, model, kind, data)
    if head != "erm" and (data.domains is None or len(data.domain_names) < 2):
        from skdare.data.roles import may_be_domains

        few = may_be_domains(data.ids)
        perhaps = f", perhaps {listed(few, 3)}" if few else ""
        raise InputError(
            f"{file.name} has one domain, and head {head} learns from how domains differ",
            f"name their column with --domains{perhaps}, or give --head erm, which needs none",
        )
    say_findings(data, kind, command("check", file, *same))
    X, labels = _as_frame(data)
    rehearses = rehearse and adaptable and hasattr(model, "rehearse")
    if "cv" in model.get_params():
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
        "choice": str(model.choice_) if "cv" in model.get_params() else None,
        "expected": None,
    }
    rows = f"{fields['rows']:,} of {counted(fields['features'], 'feature')}"
    pairs = {"rows": rows}
    if fields["domains"]:
        pairs["domains"] = shares(fields["domains"])
    pairs["target"] = "numbers" if fields["classes"] is None else shares(fields["classes"])
    if fields["choice"]:
        pairs["choice"] = fields["choice"]
        if "ERM" in fields["choice"]:
            pairs["choice"] += " (ERM: one model on all rows, whatever their domain.)"
    if rehearses:
        expected = outlook(model.rehearsal_, None, 0).unadapted  # before any new row is seen
        fields["expected"] = asdict(expected)
        scale = model.rehearsal_.metric
        pairs["expect"] = (
            f"{scale.words} {scale.written(expected.expected)} unadapted on a new domain like "
            f"these, from {scale.written(expected.low)} to {scale.written(expected.high)} on four "
            "out of five"
        )
    pairs["wrote"] = f"{out}: {fields['head']}, {file_size(out)}"
    following = command("diagnose" if rehearses else "predict", out, "NEW.csv")
    return Answer("\n".join(facts(pairs)), fields, [following])


def _option(given: str) -> tuple[str, Any]:
    """A name and a value as Python would read it; what it cannot read is text."""
    name, equals, value = given.partition("=")
    if not equals:
        raise InputError(f"set is '{given}', which has no =", "write it as in shrinkage=0.5")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def _unfitted(name: str, task: str, given: dict[str, Any]) -> Any:
    """The head with its options, refused where it has not got one of them."""
    from skdare.heads.table import HEADS

    kind = HEADS[name]
    if task not in kind.tasks:
        raise InputError(
            f"head {name} is for {kind.tasks[0]}, and this is {task}",
            f"choose another head, or give --task {kind.tasks[0]}",
        )
    head = kind.estimator(task)
    known = head.get_params(deep=False)
    for option in given:
        if option not in known:
            raise unknown(f"option of {type(head).__name__}", option, list(known))
    return head.set_params(**given)


def _choosing_by(metric: str, name: str, head: Any, task: str, data: DomainData) -> Any:
    import numpy as np

    from skdare.bench.metrics import METRICS, scoring_of

    if metric not in METRICS[task]:
        raise unknown(f"metric of {task}", metric, list(METRICS[task]))
    if "scoring" not in head.get_params(deep=False):
        raise InputError(
            f"metric is {metric}, and head {name} chooses nothing by it",
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
