"""`skdare adapt` and `skdare diagnose`: what to do on a new domain, and doing it."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from skdare.cli.answer import Answer, command, facts
from skdare.cli.labels import LabelFile
from skdare.cli.outputs import named_after, writable
from skdare.cli.saved_head import SavedHead
from skdare.cli.scores import Targets, bootstrap, metric_of
from skdare.cli.tables import Stream
from skdare.errors import InputError, counted, filled, listed

if TYPE_CHECKING:
    from skdare.diagnosis.diagnosis import Diagnosis
    from skdare.fitting.score import Metric

# With this many labels, adapting with them is recommended even if adapting without them is not.
_ENOUGH_LABELS = 20


def adapt(
    head: Path,
    file: Stream,
    /,
    *,
    out: Path | None = None,
    state: Path | None = None,
    labels: Path | None = None,
    id: str | None = None,
    prior_rows: float | None = None,
    half_life: float | None = None,
    force: bool = False,
) -> Answer:
    """Adapt a head to rows of a new domain, without labels or with some.

    The head itself is not changed.

    Parameters
    ----------
    head
        File that `skdare fit` wrote.
    file
        Table with rows of the new domain.
    out
        File to write  [default: NAME.adapted.safetensors]
    state
        State file of a stream of rows: resumed if it exists, then updated.
    labels
        CSV file with labels of some rows: the target's column, and one that names the rows. Or
        FILE itself, if it has the target.
    id
        Column that names rows in both tables  [default: the one that both have, else row]
    prior_rows
        Weight of the average adjustment, in rows  [default: by how much domains differ]
    half_life
        Number of rows after which a row has half its weight, for drift  [default: never]
    force
        Adapt even if the safety check fails.
    """
    from skdare.choosing.strategies import STRATEGIES
    from skdare.files import locked

    out = out or named_after(file, ".adapted.safetensors")
    output = writable(out, "head", head, file, labels)
    saved = SavedHead.load(head)
    saved.check_adaptable("be adapted")
    given = None if labels is None else LabelFile(labels, id, saved, file)
    options = {"prior_rows": prior_rows, "half_life": half_life, "force": force}
    if state is not None:
        if state.resolve() == out.resolve():
            raise InputError(f"--out and --state are both '{out}'", "give the two different names")
        writable(state, "stream", head, file, labels)
    # Of two calls at once, one would lose its rows.
    with nullcontext() if state is None else locked(state):
        if state is not None and state.exists() and state.stat().st_size:
            if any(options.values()):
                raise InputError(
                    f"--state {state} was begun with options of its own",
                    f"leave out {listed(name for name, value in options.items() if value)}",
                )
            adapter = saved.model.resume(state)
        else:
            adapter = saved.model.adapter(**options)
        before = adapter.n_seen_
        for rows in saved.domain_rows(file, labelled=given is not None):
            y = None if given is None else given.of(rows, adapter.n_seen_ - before)
            adapter.partial_fit(rows.X, y)
        if given is not None:
            given.check()
        adapter.check_labels()
        adapted = adapter.head_
        adapted.save(out)
        if state is not None:
            adapter.save(state)
    seen = adapter.n_seen_
    fields = {
        "out": str(out),
        "state": None if state is None else str(state),
        "rows": seen - before,
        "rows_seen": seen,
        "labels": 0 if given is None else given.count,
        "declined": adapted.declined_,
    }
    pairs = {"rows": f"{seen:,}" + (f", {seen - before:,} of them new" if before else "")}
    if given is not None:
        pairs["labels"] = f"{given.count:,}"
    following = [command("predict", out, file)]
    if adapted.declined_ and given is None:
        pairs["adapted"] = f"no, it predicts as {head} does"
        following = [command("predict", head, file)]
    elif adapted.adapted_rows_ and hasattr(saved.model, "best_params_"):
        pairs["adapted"] = f"by {STRATEGIES[saved.model.best_params_['strategy']].words}"
    pairs["wrote"] = output.wrote()
    if state is not None:
        pairs["state"] = f"{state}: give it again with more rows of this domain"
    return Answer("\n".join(facts(pairs)), fields, following)


def diagnose(
    head: Path,
    file: Stream,
    /,
    *,
    labels: Path | None = None,
    id: str | None = None,
) -> Answer:
    """Recommend what to do on a new domain, with the score to expect there.

    Uses unlabelled rows of the new domain, and scores on held-out training domains.

    Parameters
    ----------
    head
        File that `skdare fit` wrote.
    file
        Table with rows of the new domain.
    labels
        CSV file with labels of rows drawn at random, as for adapt. Measured scores come first, and
        decide.
    id
        Column that names rows in both tables  [default: the one that both have, else row]
    """
    import numpy as np
    import scipy.sparse

    saved = SavedHead.load(head)
    saved.check_adaptable("diagnose")
    if not saved.about["rehearsed"]:
        raise InputError(
            f"'{head}' was fitted with --no-rehearse, so that no score can be forecast",
            "fit it again without",
        )
    given = None if labels is None else LabelFile(labels, id, saved, file)
    parts: list[Any] = []
    y: list[Any] = []
    for rows in saved.domain_rows(file, labelled=given is not None):
        if given is not None:
            y += given.of(rows, len(y))
        parts.append(rows.X)
    if given is not None:
        given.check()
    X = scipy.sparse.vstack(parts) if scipy.sparse.issparse(parts[0]) else np.concatenate(parts)
    diagnosis = saved.model.diagnose(X)
    fields = diagnosis.to_dict()
    if given is None or labels is None:
        text = f"{diagnosis}\nIn brackets: the range of four out of five new domains."
        following = command("adapt" if diagnosis.use == "adapted" else "predict", head, file)
        if diagnosis.forecast.expected <= diagnosis.rehearsal.metric.guessing:
            following = command("diagnose", head, file, "--labels", "LABELS.csv")
        return Answer(text, fields, [following])
    measured = _measured(saved.model, X, y)
    use = measured.use or diagnosis.use
    fields |= {"use": use, "measured": measured.fields}
    adapting = command("adapt", head, file, "--labels", labels, *(["--id", id] if id else []))
    commands = [adapting] if use == "adapted" else [command("predict", head, file)]
    if use == "unadapted" and given.count >= _ENOUGH_LABELS:
        commands.append(adapting)
    return Answer(_in_words(diagnosis, measured, use), fields, commands)


@dataclass(frozen=True)
class _Measured:
    """Scores on labelled rows, unadapted and adapted to all rows without labels."""

    metric: Metric
    labels: int
    fields: dict[str, dict[str, float]]
    use: Literal["unadapted", "adapted", ""]  # higher by more than a standard error, or neither


def _measured(head: Any, X: Any, y: list[Any]) -> _Measured:
    import warnings

    import numpy as np

    labelled = [i for i, label in enumerate(y) if label is not None]
    targets, metric = Targets(head), metric_of(head)
    truth = targets.codes([y[i] for i in labelled])
    models = {"unadapted": head}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the diagnosis has the same warnings
        adapted = head.adapt(X)
    if adapted.declined_ is None:
        models["adapted"] = adapted
    predicted = [targets.codes(model.predict(X[labelled])) for model in models.values()]
    drawn = bootstrap(metric, truth, predicted)
    lows, highs = np.nanquantile(drawn, [0.025, 0.975], axis=0)
    fields = {
        name: {"score": metric.score(truth, each), "low": float(low), "high": float(high)}
        for name, each, low, high in zip(models, predicted, lows, highs, strict=True)
    }
    if adapted.declined_ is not None:
        return _Measured(metric, len(labelled), fields, "unadapted")
    gain = fields["adapted"]["score"] - fields["unadapted"]["score"]
    if abs(gain) <= np.nanstd(drawn[:, 1] - drawn[:, 0]):
        return _Measured(metric, len(labelled), fields, "")
    return _Measured(metric, len(labelled), fields, "adapted" if gain > 0 else "unadapted")


def _in_words(diagnosis: Diagnosis, measured: _Measured, use: str) -> str:
    """The measured scores first, and the advice from them."""
    metric = measured.metric
    scores = [
        f"{metric.written(one['score'])} {name} ({metric.written(one['low'])} to "
        f"{metric.written(one['high'])})"
        for name, one in measured.fields.items()
    ]
    advice = {"adapted": "Adapt to these rows", "unadapted": "Use it unadapted"}[use]
    if not measured.use:
        advice += "; these labels are too few to tell the two apart"
    forecasts = {"unadapted": diagnosis.unadapted, "adapted": diagnosis.adapted}
    expected = [
        f"{metric.written(one.expected)} {name} ({metric.written(one.low)} to "
        f"{metric.written(one.high)})"
        for name, one in forecasts.items()
        if one is not None
    ]
    lines = [
        f"A new domain: {counted(diagnosis.rows, 'row')}, {counted(measured.labels, 'label')}.",
        f"Measured: {metric.words} {', '.join(scores)}; 95 % intervals, if the labelled rows were "
        "drawn at random.",
        f"{advice}.",
        f"Expected from held-out training domains, without these labels: {metric.words} "
        f"{', '.join(expected)}; ranges of four out of five new domains.",
        *(f"Warning: {warning}" for warning in diagnosis.warnings),
    ]
    return "\n".join(filled(line, indent="  ") for line in lines)
