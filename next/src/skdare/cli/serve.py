"""Commands that serve a saved head: predict, adapt, diagnose, export, inspect."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from skdare.cli.answer import Answer, command, facts, file_size, shares, some
from skdare.cli.labels import ROW, LabelFile
from skdare.cli.tables import HEAD, Stream, beside, writable
from skdare.errors import InputError, counted, filled, listed, note

if TYPE_CHECKING:
    import numpy as np

    from skdare.data import DomainData

# Endings of files that are named after a head. It may be named after a table, which must stay.
_Format = Literal["onnx", "torch", "csv"]
_FORMATS: tuple[_Format, ...] = get_args(_Format)
_ENDINGS = {"onnx": ".onnx", "torch": ".pt", "csv": ".weights.csv"}


def predict(
    head: Path, file: Stream, /, *, out: Stream | None = None, spreadsheet_safe: bool = False
) -> Answer | None:
    """Predict the rows of a table, with probabilities.

    Columns are found by the names that the head was fitted with. If the table has the target, too,
    the answer says how good the predictions are.

    Parameters
    ----------
    head
        File that `skdare fit` or `skdare adapt` wrote.
    file
        Table with rows to predict, of any size; - is CSV on stdin.
    out
        File to write, .csv, .csv.gz, .tsv, .jsonl or .parquet; - is CSV on stdout  [default:
        NAME.predictions.csv]
    spreadsheet_safe
        In CSV, put an apostrophe before text that a spreadsheet would run as a formula.
    """
    from skdare.data import RowWriter
    from skdare.heads.head_file import load

    out = out or beside(file, ".predictions.csv")
    to_stdout = str(out) == "-"
    if not to_stdout:
        writable(out, head, file)
    model = load(head)
    seen = _Seen(model)
    with RowWriter(out, spreadsheet_safe=spreadsheet_safe) as writer:
        for rows in _rows(file, model):
            columns = seen.predicted(rows)
            writer.write(columns)
    if to_stdout:
        return None
    fields, pairs = seen.summary()
    pairs["wrote"] = f"{out} ({some(map(str, columns), 5)})"
    fields |= {"out": str(out), "columns": list(columns)}
    new = getattr(model, "rehearsal_", None) is not None and model.state_.adapted is None
    following = [command("diagnose", head, file)] if new and str(file) != "-" else []
    return Answer("\n".join(facts(pairs)), fields, following)


class _Seen:
    """What was predicted so far, and how well where the table has the target."""

    def __init__(self, head: Any) -> None:
        self.head = head
        self.rows = 0
        self.counts: Counter[str] = Counter()
        self.known: list[tuple[np.ndarray, np.ndarray]] = []

    def predicted(self, rows: DomainData) -> dict[str, Any]:
        """Columns to write: those that are no features, the prediction, and probabilities."""
        import numpy as np

        m = rows.X.shape[0]
        predicted = self.head.predict(rows.X)
        columns = dict(rows.ids) or {ROW: np.arange(self.rows + 1, self.rows + m + 1)}
        y = columns.get(self.head.state_.names.target)
        if y is not None:
            self.known.append((np.asarray(y, dtype=object), predicted))
        columns["prediction"] = predicted
        if hasattr(self.head, "classes_"):
            P = self.head.predict_proba(rows.X)
            columns |= {f"probability_{c}": P[:, j] for j, c in enumerate(self.head.classes_)}
            self.counts.update(map(str, predicted.tolist()))
        self.rows += m
        return columns

    def summary(self) -> tuple[dict[str, Any], dict[str, str]]:
        import numpy as np
        from sklearn.metrics import r2_score

        fields: dict[str, Any] = {"rows": self.rows}
        pairs = {"rows": f"{self.rows:,}"}
        if self.counts:
            fields["predicted"] = dict(sorted(self.counts.items()))
            pairs["predicted"] = shares(fields["predicted"])
        if not self.known:
            return fields, pairs
        y, predicted = map(np.concatenate, zip(*self.known, strict=True))
        labelled = np.array([value is not None and value == value for value in y])
        fields["labelled"] = int(labelled.sum())
        if labelled.sum() < 2:
            return fields, pairs
        if self.counts:
            right = y[labelled].astype(str) == predicted[labelled].astype(str)
            fields["score"] = float(np.mean(right))
            what = f"{100 * fields['score']:.1f} % right"
        else:
            fields["score"] = float(r2_score(y[labelled].astype(float), predicted[labelled]))
            what = f"R² {fields['score']:.3f}"
        column = self.head.state_.names.target
        pairs["score"] = f"{what}, by '{column}' of {counted(fields['labelled'], 'row')}"
        return fields, pairs


def _load_adaptable(path: Path, purpose: str) -> Any:
    from skdare.heads.head_file import load

    head = load(path)
    if not hasattr(head, "adapt"):
        raise InputError(
            f"'{path}' holds {type(head).__name__}, which knows no domains and cannot {purpose}",
            "fit one with --head dare-cv or dare",
        )
    if head.state_.fit is None:
        raise InputError(
            f"'{path}' only predicts, and cannot {purpose}", "fit it again, without --no-adaptable"
        )
    return head


def _rows(file: Path, head: Any) -> Iterator[DomainData]:
    """Rows of a table, some at a time, with the features of a head by name."""
    import numpy as np
    import scipy.sparse

    from skdare.data import stream
    from skdare.export.linear_map import Fill, LinearMap

    names = head.state_.names.features or [f"x{j}" for j in range(head.n_features_in_)]
    fills = any(isinstance(step, Fill) for step in LinearMap.of(head).steps)
    before = 0
    for rows in stream(str(file), features=names):
        if not fills and not scipy.sparse.issparse(rows.X) and np.isnan(rows.X.sum()):
            row, column = np.argwhere(np.isnan(rows.X))[0]
            raise InputError(
                f"'{names[column]}' is empty in row {before + row + 1} of '{file}', and the head "
                "does not fill it, as no training row lacked a value",
                "fill it, or leave such rows out",
            )
        before += rows.X.shape[0]
        yield rows


def _together(parts: list[tuple[Any, list[Any]]]) -> tuple[Any, list[Any]]:
    """All rows in memory, and their labels."""
    import numpy as np
    import scipy.sparse

    stack = scipy.sparse.vstack if scipy.sparse.issparse(parts[0][0]) else np.concatenate
    return stack([X for X, _ in parts]), [label for _, labels in parts for label in labels]


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
        File that keeps what is needed of the rows seen so far: the next call goes on from there.
    labels
        CSV file with labels of some rows: the target's column, and one that names the rows.
    id
        Column that names rows in both tables  [default: the one that both have, else row]
    prior_rows
        Rows that the training domains' average counts as  [default: by how much domains differ]
    half_life
        Rows after which a row counts half, for a domain that drifts  [default: never]
    force
        Adapt though the rows speak against it.
    """
    from skdare.files import locked

    out = writable(out or beside(file, ".adapted.safetensors"), head, file, labels, ending=HEAD)
    model = _load_adaptable(head, "adapt")
    given = None if labels is None else LabelFile(labels, id, model)
    options = {"prior_rows": prior_rows, "half_life": half_life, "force": force}
    # Of two calls at once, one would lose its rows.
    with nullcontext() if state is None else locked(writable(state, head, file)):
        if state is not None and state.exists():
            if any(options.values()):
                raise InputError(
                    f"state {state} was begun with options of its own",
                    f"leave out {listed(name for name, value in options.items() if value)}",
                )
            adapter = model.resume(state)
        else:
            adapter = model.adapter(**options)
        before = adapter.n_seen_
        for rows in _rows(file, model):
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
        "labels": 0 if given is None else len(given.labels),
        "declined": adapted.declined_,
    }
    pairs = {"rows": f"{seen:,}" + (f", {seen - before:,} of them new" if before else "")}
    if given is not None:
        pairs["labels"] = f"{fields['labels']:,}"
    choice = adapted.state_.choice
    if choice is not None and not adapted.declined_:
        pairs["adapted"] = f"by {choice.candidates[choice.adapting].strategy.words}"
    pairs["wrote"] = f"{out}, {file_size(out)}"
    if adapted.declined_ and given is None:
        pairs["wrote"] += f"; it predicts as {head} does"
    if state is not None:
        pairs["state"] = f"{state}: give it again with more rows of this domain"
    return Answer("\n".join(facts(pairs)), fields, [command("predict", out, file)])


def diagnose(
    head: Path,
    file: Stream,
    /,
    *,
    labels: Path | None = None,
    id: str | None = None,
) -> Answer:
    """Say what to do on a new domain, and what score to expect there.

    From unlabelled rows of it, and from what happened when training domains were held out.

    Parameters
    ----------
    head
        File that `skdare fit` wrote.
    file
        Table with rows of the new domain.
    labels
        CSV file with labels of rows drawn at random: then the score is measured, too.
    id
        Column that names rows in both tables  [default: the one that both have, else row]
    """
    model = _load_adaptable(head, "diagnose")
    given = None if labels is None else LabelFile(labels, id, model)
    parts: list[tuple[Any, list[Any]]] = []
    seen = 0
    for rows in _rows(file, model):
        parts.append((rows.X, [] if given is None else given.of(rows, seen)))
        seen += rows.X.shape[0]
    if given is not None:
        given.check()
    X, y = _together(parts)
    diagnosis = model.diagnose(X)
    text = f"{diagnosis}\nIn brackets: the range of four out of five new domains."
    fields = diagnosis.to_dict()
    if given is not None:
        fields["measured"] = measured = _measured(model, X, y)
        written, words = diagnosis.rehearsal.metric.written, diagnosis.rehearsal.metric.words
        scores = [
            f"{written(one['score'])} {name} ({written(one['low'])} to {written(one['high'])})"
            for name, one in measured.items()
        ]
        labelled = counted(len(given.labels), "labelled row")
        text += "\n\n" + filled(
            f"Measured on {labelled}: {words} {', '.join(scores)}; in these brackets, 95 % "
            "intervals, if the rows were drawn at random."
        )
    following = "adapt" if diagnosis.use == "adapted" else "predict"
    return Answer(text, fields, [command(following, head, file)])


def _measured(head: Any, X: Any, y: list[Any]) -> dict[str, dict[str, float]]:
    """The score on the rows with a label: unadapted, and adapted to all rows without labels."""
    import numpy as np
    from scipy.stats import binomtest, bootstrap
    from sklearn.metrics import r2_score

    labelled = [i for i, label in enumerate(y) if label is not None]
    truth = np.array([y[i] for i in labelled])
    models = {"unadapted": head}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it would say, the diagnosis says
        adapted = head.adapt(X)
    if adapted.declined_ is None:
        models["adapted"] = adapted
    scores = {}
    for name, model in models.items():
        predicted = model.predict(X[labelled])
        if hasattr(head, "classes_"):
            right = int((predicted == truth).sum())
            ends = binomtest(right, len(truth)).proportion_ci(method="wilson")
            scores[name] = {"score": right / len(truth), "low": ends.low, "high": ends.high}
        else:
            drawn = bootstrap(
                (truth, predicted), r2_score, paired=True, vectorized=False, n_resamples=999,
                method="percentile", rng=0,
            )  # fmt: skip
            low, high = drawn.confidence_interval
            scores[name] = {"score": r2_score(truth, predicted), "low": low, "high": high}
    return scores


def export(
    head: Path,
    /,
    *,
    out: Path | None = None,
    format: _Format | None = None,
) -> Answer:
    """Write a head as an ONNX graph, a torch module or a table of weights.

    Parameters
    ----------
    head
        File that `skdare fit` or `skdare adapt` wrote.
    out
        File to write  [default: NAME.onnx]
    format
        onnx takes raw features, missing values too; torch is the state of an nn.Linear; csv has a
        row for each feature  [default: by the name of --out]
    """
    from skdare.files import whole_file
    from skdare.heads.head_file import load

    out = out or beside(head, _ENDINGS[format or "onnx"])
    if format is None and out.suffix:
        format = next((name for name in _FORMATS if _ENDINGS[name].endswith(out.suffix)), None)
    if format is None:
        raise InputError(
            f"cannot tell the format of '{out}'",
            "its name must end in .onnx, .pt or .csv, or give --format",
        )
    out = writable(out, head)
    model = load(head)
    with whole_file(out) as file:
        if format == "onnx":
            file.write(model.to_onnx().SerializeToString())
        elif format == "torch":
            import torch

            torch.save(model.to_torch().state_dict(), file)
        else:
            file.write(_weights(model).to_csv(index_label="feature").encode())
    text = "\n".join(facts({"wrote": f"{out}, {format}, {file_size(out)}"}))
    return Answer(text, {"out": str(out), "format": format, "bytes": out.stat().st_size})


def _weights(head: Any) -> Any:
    """A row for each feature as it is in the table, and one for the intercept."""
    import numpy as np
    import pandas as pd

    from skdare.export.linear_map import LinearMap

    linear = LinearMap.of(head)
    if linear.steps:
        note("the weights are for rows without missing values, which a table cannot fill")
    features = linear.feature_names or [f"x{j}" for j in range(linear.coef.shape[1])]
    columns = ["weight"]
    if linear.classes is not None:  # of two classes the weights are those of the second
        columns = list(map(str, linear.classes[-len(linear.coef) :]))
    weights = np.column_stack([linear.coef, linear.intercept]).T
    return pd.DataFrame(weights, [*features, "intercept"], columns)


def inspect(file: Path, /) -> Answer:
    """Say what a saved head or stream is, and what it chose.

    Parameters
    ----------
    file
        File that `skdare fit` or `skdare adapt` wrote.
    """
    from skdare.heads.head_file import load
    from skdare.heads.inspect import inspect_file

    about = inspect_file(file)
    fields = {"file": str(file), "bytes": file.stat().st_size, **about}
    pairs = {"file": f"{file}, {file_size(file)}, format {about['version']}"}
    if about["kind"] == "stream":
        pairs["stream"] = f"{counted(about['rows'], 'row')} of a new domain"
        pairs["labels"] = f"{about['labels']:,} of them"
        following = command("adapt", "HEAD", "FILE", "--state", file)
        return Answer("\n".join(facts(pairs)), fields, [following])
    head = load(file)
    fields["choice"] = None if head.state_.choice is None else str(head.state_.choice)
    defaults = type(head)().get_params(deep=False)
    # A file has lists in place of tuples.
    given = {n: tuple(v) if isinstance(v, list) else v for n, v in head.get_params(False).items()}
    own = {n: v for n, v in given.items() if n != "preparation" and v != defaults[n]}
    pairs["head"] = about["class"] + "".join(f", {name}={value}" for name, value in own.items())

    def called(column: str | None) -> str:
        return f"column '{column}': " if column else ""

    classes = "numbers" if about["classes"] is None else some(map(str, about["classes"]))
    pairs["target"] = called(about["target_name"]) + classes
    names = f": {some(about['feature_names'])}" if about["feature_names"] else ""
    pairs["features"] = f"{about['features']:,}{names}"
    pairs["prepared"] = ", ".join(about["steps"]).lower() or "no"
    domains = list(map(str, about["domains"]))
    if about["adaptable"]:
        rows = map(round, about["rows"])
        domains = [f"{name} ({n:,})" for name, n in zip(domains, rows, strict=True)]
    pairs["domains"] = called(about["domain_name"]) + some(domains)
    pairs["adapts"] = "yes" if about["adapts"] else "no"
    if about["adapted_rows"]:
        pairs["adapts"] = f"was adapted to {counted(about['adapted_rows'], 'row')}"
    if about["labelled_rows"]:
        pairs["labels"] = f"took {about['labelled_rows']:,} of a new domain"
    pairs["rehearsed"] = "yes" if about["rehearsed"] else "no"
    if fields["choice"]:
        pairs["choice"] = fields["choice"]
    pairs["made with"] = ", ".join(f"{name} {v}" for name, v in about["versions"].items())
    served = about["adapted_rows"] or not about["rehearsed"]
    following = command("predict" if served else "diagnose", file, "NEW.csv")
    return Answer("\n".join(facts(pairs)), fields, [following])
