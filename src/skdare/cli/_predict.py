"""`skdare predict`: the rows of a file of any size, with a saved head."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from skdare._input_error import InputError
from skdare._safe_text import counted
from skdare.cli._errors import mistakes, notes
from skdare.cli._output import QUIET, output, say
from skdare.cli._saved_model import SavedModel, check_adjusted_classifier, check_table
from skdare.cli._tables import FEATURE_KEY, SPREADSHEET_SAFE

# What stands between the classes of a set.
_BETWEEN = "|"

if TYPE_CHECKING:
    import numpy as np

    from skdare.cli._agreement import Agreement
    from skdare.datasets._row_source import RowSource


@click.command()
@click.argument("head", metavar="HEAD", type=click.Path())
@click.argument("rows", nargs=-1, required=True, metavar="ROWS...", type=click.Path())
@click.option(
    "--out",
    type=click.Path(),
    help="File to write, .csv, .csv.gz, .jsonl or .parquet  [default: CSV on stdout]",
)
@click.option("--proba", is_flag=True, help="Also a column of probabilities for each class.")
@click.option(
    "--sets",
    "coverage",
    type=click.FloatRange(0.5, 0.99),
    help="Also a set of classes that holds the true one this often, such as 0.9.",
)
@click.option("--scores", is_flag=True, help="Also the scores before they become probabilities.")
@click.option("--id", "id_key", help="Key or column that names rows  [default: their numbers]")
@FEATURE_KEY
@click.option("--score", is_flag=True, help="Compare with labels that ROWS have, by domain.")
@click.option(
    "--target", help="With --score: key or column of the labels  [default: as in the fit]"
)
@click.option(
    "--domains", help="With --score: key or column of the domains  [default: as in the fit]"
)
@SPREADSHEET_SAFE
@click.option("--json", "as_json", is_flag=True, help="JSON lines on stdout, one a row.")
@QUIET
def predict(head: str, rows: tuple[str, ...], out: str | None, quiet: bool, **options: Any) -> None:
    """Predict the rows of files of any size, in constant memory.

    HEAD is a file that `skdare fit` or head.save wrote. ROWS are npz, npy, Parquet, CSV or
    safetensors files or feature stores, read some rows at a time (a .pt file is loaded); - is CSV
    on stdin. Columns of a table are found by the names that the head was fitted with. The columns
    written are id, prediction, with --sets set (classes with | between them), with --proba
    proba_CLASS, and with --scores score_CLASS. An existing file is replaced once the new one is
    complete. On a terminal, control characters in names are written out.

    Sets hold the true class as often as asked on average over new domains like those in training,
    and go by a rehearsal (`skdare fit --rehearse`); in a single domain they may hold it less often.

    With --score, accuracy or R² by domain goes to stderr; with --json it is one JSON object there.
    Labels and domains are looked for under the names they had in the fit. Without domains, all rows
    are scored together.

    \b
    Example:
      skdare predict head.safetensors new.parquet --out predictions.csv --proba
    """
    with mistakes():
        as_json = options["as_json"]
        safe = options["spreadsheet_safe"]
        check_table(out, head, *rows, as_json=as_json, spreadsheet_safe=safe)
        from skdare.datasets import rows_to

        with notes():
            saved = SavedModel.read(head)
            columns = _Columns(saved, options)
            sources = saved.sources(rows, options["feature_key"], beside=columns.beside)
            if options["score"] and not quiet and not as_json:
                _say_columns(sources)
            kind = ".jsonl" if as_json else ".csv"
            with rows_to(out or output(), kind=kind, spreadsheet_safe=safe) as writer:
                for chunk, X in saved.chunks(sources):
                    writer.write(columns.of(chunk, X))
                columns.check()
        columns.say_agreement(as_json)
        if out is not None and not quiet:
            say(f"wrote {out}: {counted(columns.rows, 'row')}", err=True)


def _say_columns(sources: list[RowSource]) -> None:
    """Print which columns predictions are compared with."""
    for columns in dict.fromkeys(tuple(source.columns.items()) for source in sources):
        named = dict(columns)
        by = f", by {named['domains']!r}" if "domains" in named else ""
        say(f"scored against {named['target']!r}{by}", err=True)


class _Columns:
    """Columns to write for every row, and how well predictions agree with labels."""

    def __init__(self, saved: SavedModel, options: dict[str, Any]) -> None:
        from sklearn.base import is_classifier

        self.head = saved.head
        self.rows = 0
        classes = self.head.classes_ if is_classifier(self.head) else None
        for option, name in (("proba", "proba"), ("scores", "scores"), ("coverage", "sets")):
            if options[option] and classes is None:
                raise InputError(
                    f"--{name} is for classes, and {saved.path} predicts numbers", "leave it out"
                )
        self.classes = [] if classes is None else classes.tolist()
        self.coverage = options["coverage"]
        if self.coverage is not None:
            check_adjusted_classifier(saved, "asked for sets")
            for label in map(str, self.classes):
                if _BETWEEN in label:
                    raise InputError(
                        f"--sets writes {_BETWEEN} between classes, and class {label!r} has one",
                        "use head.predict_set in Python",
                    )
        self.proba = options["proba"]
        self.scores = options["scores"]
        self.beside = {"id": options["id_key"]} if options["id_key"] else {}
        self.agreement: Agreement | None = None
        if options["score"]:
            from skdare.cli._agreement import Agreement

            self.agreement = Agreement(classes)
            self.beside |= {"target": options["target"], "domains": options["domains"]}
        elif options["target"] or options["domains"]:
            raise InputError("--target and --domains are for --score", "give it, or leave them out")

    def of(self, chunk: Any, X: np.ndarray) -> dict[str, np.ndarray]:
        """Columns of some rows."""
        import numpy as np

        predicted = np.asarray(self.head.predict(X))
        ids = np.arange(self.rows, self.rows + len(X))
        columns = {"id": chunk.beside.get("id", ids), "prediction": predicted}
        if self.coverage is not None:
            included = self.head.predict_set(X, coverage=self.coverage)
            columns["set"] = np.array([self._set(row) for row in included], dtype=object)
        if self.proba:
            P = np.asarray(self.head.predict_proba(X))
            columns |= {f"proba_{c}": P[:, j] for j, c in enumerate(self.classes)}
        if self.scores:
            F = np.asarray(self.head.decision_function(X))
            named = self.classes[1:] if F.ndim == 1 else self.classes
            F = F.reshape(len(X), -1)
            columns |= {f"score_{c}": F[:, j] for j, c in enumerate(named)}
        if self.agreement is not None:
            self.agreement.add(predicted, chunk.beside["target"], chunk.beside.get("domains"))
        self.rows += len(X)
        return columns

    def _set(self, included: np.ndarray) -> str:
        """The classes of a set in one text."""
        pairs = zip(self.classes, included, strict=True)
        return _BETWEEN.join(str(label) for label, within in pairs if within)

    def check(self) -> None:
        """Refuse labels if the head knows none of them, once all rows are read."""
        if self.agreement is not None:
            self.agreement.check()

    def say_agreement(self, as_json: bool) -> None:
        """Print how well predictions agree with labels to stderr."""
        if self.agreement is None:
            return
        if as_json:
            click.echo(json.dumps(self.agreement.to_dict(), ensure_ascii=False), err=True)
        else:
            say(*self.agreement.lines(), err=True)
