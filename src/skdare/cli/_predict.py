"""`skdare predict`: the rows of a file of any size, with a saved head."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from skdare.cli._errors import check_writable, mistakes, notes
from skdare.cli._output import output, say
from skdare.cli._quantities import number
from skdare.cli._saved import Saved, refuse_inputs
from skdare.cli._tables import FEATURE_KEY, SPREADSHEET_SAFE

if TYPE_CHECKING:
    import numpy as np

    from skdare.cli._agreement import Agreement


@click.command()
@click.argument("head", metavar="HEAD", type=click.Path())
@click.argument("rows", nargs=-1, required=True, metavar="ROWS...", type=click.Path())
@click.option(
    "--out",
    type=click.Path(),
    help="File to write, .csv, .csv.gz, .jsonl or .parquet  [default: CSV on stdout]",
)
@click.option("--proba", is_flag=True, help="Also a column of probabilities for each class.")
@click.option("--scores", is_flag=True, help="Also the scores before they become probabilities.")
@click.option("--id", "id_key", help="Key or column that names rows  [default: their numbers]")
@FEATURE_KEY
@click.option("--score", is_flag=True, help="Compare with labels that ROWS have, by domain.")
@click.option("--target", help="With --score: key or column of the labels.")
@click.option("--domains", help="With --score: key or column of the domains.")
@SPREADSHEET_SAFE
@click.option("--json", "as_json", is_flag=True, help="JSON lines on stdout, one a row.")
@click.option("--quiet", is_flag=True, help="No notes on stderr.")
def predict(head: str, rows: tuple[str, ...], out: str | None, quiet: bool, **given: Any) -> None:
    """Predict the rows of files of any size, in constant memory.

    HEAD is a file that `skdare fit` or head.save wrote. ROWS are npz, npy, Parquet, CSV or
    safetensors files or feature stores, read some rows at a time (a .pt file is loaded); - is CSV
    on stdin. Columns of a table are taken by the names that the head was fitted with. The columns
    written are id, prediction, with --proba proba_CLASS, and with --scores score_CLASS. A file
    appears whole or not at all, in place of one that was there. On a terminal, characters of names
    that would act on it are written out.

    With --score, accuracy or R² by domain goes to stderr; with --json it is one JSON object there.

    \b
    Example:
      skdare predict head.safetensors new.parquet --out predictions.csv --proba
    """
    with mistakes():
        if out is not None and given["as_json"]:
            raise ValueError("--json writes to stdout; leave it out, or name --out FILE.jsonl")
        if out is not None:
            check_writable(out)
            refuse_inputs(out, head, *rows)
        if given["spreadsheet_safe"] and (given["as_json"] or not _is_csv(out)):
            raise ValueError("--spreadsheet-safe is for CSV; leave it out, or name --out FILE.csv")
        from skdare.datasets import rows_to

        with notes(quiet):
            saved = Saved.read(head)
            columns = _Columns(saved, given)
            sources = saved.sources(rows, given["feature_key"], beside=columns.beside)
            kind = ".jsonl" if given["as_json"] else ".csv"
            safe = given["spreadsheet_safe"]
            with rows_to(out or output(), kind=kind, spreadsheet_safe=safe) as writer:
                for chunk, X in saved.chunks(sources):
                    writer.write(columns.of(chunk, X))
                columns.check()
        columns.tell(given["as_json"])
        if out is not None and not quiet:
            size = f"{number(columns.rows)} row{'s' * (columns.rows != 1)}"
            say(f"wrote {out}: {size}", err=True)


def _is_csv(out: str | None) -> bool:
    return out is None or out.lower().endswith((".csv", ".csv.gz"))


class _Columns:
    """What is written of every row, and how well it agrees with labels."""

    def __init__(self, saved: Saved, given: dict[str, Any]) -> None:
        self.head, self.rows = saved.head, 0
        classes = getattr(self.head, "classes_", None)
        for option in ("proba", "scores"):
            if given[option] and classes is None:
                raise ValueError(f"--{option} is for classes; {saved.path} predicts numbers")
        self.classes = [] if classes is None else classes.tolist()
        self.proba, self.scores = given["proba"], given["scores"]
        self.beside = {"id": given["id_key"]} if given["id_key"] else {}
        self.agreement: Agreement | None = None
        if given["score"]:
            from skdare.cli._agreement import Agreement

            self.agreement = Agreement(classes)
            self.beside |= {"target": given["target"], "domains": given["domains"]}
        elif given["target"] or given["domains"]:
            raise ValueError("--target and --domains are for --score; give it, or leave them out")

    def of(self, chunk: Any, X: np.ndarray) -> dict[str, np.ndarray]:
        """The columns of some rows."""
        import numpy as np

        predicted = np.asarray(self.head.predict(X))
        ids = np.arange(self.rows, self.rows + len(X))
        columns = {"id": chunk.beside.get("id", ids), "prediction": predicted}
        if self.proba:
            P = np.asarray(self.head.predict_proba(X))
            columns |= {f"proba_{c}": P[:, j] for j, c in enumerate(self.classes)}
        if self.scores:
            F = np.asarray(self.head.decision_function(X))
            named = self.classes[1:] if F.ndim == 1 else self.classes
            F = F.reshape(len(X), -1)
            columns |= {f"score_{c}": F[:, j] for j, c in enumerate(named)}
        if self.agreement is not None:
            self.agreement.add(predicted, chunk.beside["target"], chunk.beside["domains"])
        self.rows += len(X)
        return columns

    def check(self) -> None:
        """Refuse labels that are of another kind than the head's, once all have been seen."""
        if self.agreement is not None:
            self.agreement.check()

    def tell(self, as_json: bool) -> None:
        """How well they agree, on stderr."""
        if self.agreement is not None:
            if as_json:
                click.echo(json.dumps(self.agreement.to_dict(), ensure_ascii=False), err=True)
            else:
                say(*self.agreement.lines(), err=True)
