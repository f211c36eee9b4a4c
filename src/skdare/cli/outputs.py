"""Files that commands write: checked before any work, and never in place of another file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from skdare.cli.answer import file_size
from skdare.errors import InputError

HEAD = ".safetensors"
TABLES = {".csv", ".tsv", ".parquet", ".feather", ".npz", ".gz", ".bz2", ".xz"}


@dataclass(frozen=True)
class Output:
    """A file to write, and whether it replaces one that skdare wrote before."""

    path: Path
    replaces: bool = False

    def wrote(self, more: str = "") -> str:
        """Name and size of the written file, for an answer."""
        details = [file_size(self.path), more, "replaced" if self.replaces else ""]
        return f"{self.path}: {', '.join(filter(None, details))}"


def named_after(file: Path, ending: str) -> Path:
    """A file named after another one, in the folder where the command runs."""
    name = Path("stdin" if str(file) == "-" else file.resolve().name)
    while name.suffix in {HEAD, *TABLES}:
        name = name.with_suffix("")
    return Path(f"{name}{ending}")


Kind = Literal["head", "stream", "predictions", "onnx", "torch", "weights", "page", "numbers"]


def writable(out: Path, kind: Kind, *inputs: Path | None) -> Output:
    """The file that is given by --out, or by --state for a stream, if it can be written.

    A file that is there is replaced only if it is one that skdare wrote, of the same kind: a
    mistyped name must not cost anybody a table.
    """
    option = "--state" if kind == "stream" else "--out"
    another = f"give another name with {option}"
    ending = {"head": HEAD, "page": ".html"}.get(kind, "")
    if not out.name.endswith(ending):
        raise InputError(
            f"{option} is '{out}', and its name must end in {ending}",
            f"call it '{out.stem}{ending}'",
        )
    if out.is_dir():
        raise InputError(f"{option} is '{out}', which is a folder", "give the name of a file")
    there = out.exists()
    for one in filter(None, inputs):
        if there and one.exists() and out.samefile(one):
            raise InputError(f"{option} is '{out}', which is read", another)
    folder = out.parent
    if not folder.is_dir():
        raise InputError(f"there is no folder '{folder}' to write '{out.name}' to", "make it first")
    if not os.access(folder, os.W_OK) or (there and not os.access(out, os.W_OK)):
        raise InputError(f"'{out}' cannot be written", f"give another place with {option}")
    if there and out.is_file() and out.stat().st_size and not _is(kind, out):
        raise InputError(
            f"'{out}' exists, and is not one that skdare {_MADE_BY[kind]} wrote",
            f"{another}, or remove it first",
        )
    return Output(out, there)


_MADE_BY: dict[Kind, str] = {
    "head": "fit or adapt",
    "stream": "adapt --state",
    "predictions": "predict",
    "onnx": "export",
    "torch": "export",
    "weights": "export",
    "page": "report",
    "numbers": "report",
}


def _is(kind: Kind, path: Path) -> bool:
    """Whether a file is one of ours, by what stands in it."""
    recognise: dict[Kind, Callable[[Path], Any]] = {
        "head": lambda path: _saved_kind(path) == "head",
        "stream": lambda path: _saved_kind(path) == "stream",
        "predictions": lambda path: _are_predictions(_columns(path)),
        "onnx": lambda path: b"skdare" in path.read_bytes()[:64],
        "torch": _is_linear,
        "weights": _are_weights,
        "page": lambda path: b'<meta name="generator" content="skdare">' in path.read_bytes(),
        "numbers": lambda path: _columns(path) == ["statistic", "held_out", "head", "value"],
    }
    try:
        return bool(recognise[kind](path))
    except Exception:  # a file that cannot even be read is not ours
        return False


def _saved_kind(path: Path) -> str:
    from skdare.heads.inspect import inspect_file

    return str(inspect_file(path)["kind"])


def _columns(path: Path) -> list[str]:
    """Names of the columns of a table that predict or report may have written."""
    if path.suffix == ".parquet":
        from pyarrow import parquet

        return list(parquet.read_schema(path).names)
    if path.suffix == ".jsonl":
        with path.open(encoding="utf-8") as file:
            return list(json.loads(file.readline()))
    import pandas as pd

    separator = "\t" if path.suffix == ".tsv" else ","
    return list(pd.read_csv(path, sep=separator, nrows=0).columns)


def _are_predictions(columns: list[str]) -> bool:
    if "prediction" not in columns:
        return False
    after = columns[columns.index("prediction") + 1 :]
    return all(name.startswith("probability_") for name in after)


def _are_weights(path: Path) -> bool:
    last = path.read_bytes().splitlines()[-1]
    return _columns(path)[:1] == ["feature"] and last.startswith(b"intercept,")


def _is_linear(path: Path) -> bool:
    import torch

    return set(torch.load(path, weights_only=True)) == {"weight", "bias"}
