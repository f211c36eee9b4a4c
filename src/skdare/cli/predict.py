"""`skdare predict`: predictions for the rows of a table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skdare.cli.answer import Answer, command, facts, shares, some
from skdare.cli.labels import ROW
from skdare.cli.outputs import Output, named_after, writable
from skdare.cli.saved_head import SavedHead
from skdare.cli.scores import Targets, metric_of
from skdare.cli.tables import Stream
from skdare.errors import counted

if TYPE_CHECKING:
    import numpy as np


def predict(
    head: Path, file: Stream, /, *, out: Stream | None = None, spreadsheet_safe: bool = False
) -> Answer | None:
    """Predict the rows of a table, with probabilities.

    Columns are found by the names that the head was fitted with. If the table has the target, the
    answer also says how good the predictions are.

    Parameters
    ----------
    head
        File that `skdare fit` or `skdare adapt` wrote.
    file
        Table with rows to predict, of any size; - is CSV on stdin.
    out
        File to write, .csv, .csv.gz, .tsv, .jsonl or .parquet; - is CSV on stdout  [default:
        NAME.predictions.csv, or NAME.adapted.predictions.csv from an adapted head]
    spreadsheet_safe
        In CSV, put an apostrophe before text that a spreadsheet would run as a formula.
    """
    import numpy as np

    from skdare.data import RowWriter

    saved = SavedHead.load(head)
    model, about = saved.model, saved.about
    adapted = bool(about["adapted_rows"]) and about["declined"] is None
    ending = ".adapted.predictions.csv" if adapted else ".predictions.csv"
    target = out or named_after(file, ending)
    to_stdout = str(target) == "-"
    output = Output(target) if to_stdout else writable(target, "predictions", head, file)
    count = 0
    counts: Counter[str] = Counter()
    numbers: list[np.ndarray] = []
    targets = Targets(model)
    labelled: list[tuple[np.ndarray, np.ndarray]] = []
    with RowWriter(target, spreadsheet_safe=spreadsheet_safe) as writer:
        for rows in saved.rows(file):
            m = rows.X.shape[0]
            predicted = model.predict(rows.X)
            columns = dict(rows.ids) or {ROW: np.arange(count + 1, count + m + 1)}
            if saved.target in columns:
                codes = targets.codes(columns[saved.target])
                labelled.append((codes, targets.codes(predicted)))
            columns["prediction"] = predicted
            if about["classes"] is None:
                numbers.append(predicted)
            else:
                P = model.predict_proba(rows.X)
                columns |= {f"probability_{c}": P[:, j] for j, c in enumerate(model.classes_)}
                counts.update(map(str, predicted.tolist()))
            count += m
            writer.write(columns)
    if to_stdout:
        return None
    fields: dict[str, Any] = {"rows": count, "out": str(target), "columns": list(columns)}
    pairs = {"rows": f"{count:,}"}
    if counts:
        fields["predicted"] = dict(sorted(counts.items()))
        pairs["predicted"] = shares(fields["predicted"])
    elif count:
        y = np.concatenate(numbers)
        pairs["predicted"] = f"{y.min():.4g} to {y.max():.4g}, on average {y.mean():.4g}"
    if labelled:
        truth, predicted = (np.concatenate(each) for each in zip(*labelled, strict=True))
        known = targets.are_known(truth)
        fields["labelled"] = int(known.sum())
        if known.sum() > 1:
            metric = metric_of(model)
            fields["score"] = metric.score(truth[known], predicted[known])
            pairs["score"] = (
                f"{metric.words} {metric.written(fields['score'])}, by '{saved.target}' of "
                f"{counted(fields['labelled'], 'row')}"
            )
    pairs["wrote"] = output.wrote(some(map(str, columns), 5))
    diagnosable = about["rehearsed"] and not saved.is_adapted and str(file) != "-"
    following = [command("diagnose", head, file)] if diagnosable else []
    return Answer("\n".join(facts(pairs)), fields, following)
