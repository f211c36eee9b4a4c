"""`skdare export`: a saved head in the form that something else reads."""

from __future__ import annotations

import copy
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import click

from skdare.cli._errors import check_writable, mistakes, notes
from skdare.cli._output import as_object, say
from skdare.cli._quantities import amount
from skdare.cli._saved import Saved, refuse_inputs, size

SUFFIXES = {
    "onnx": ".onnx",
    "onnx-adaptable": ".onnx",
    "torch": ".pt",
    "csv": ".csv",
    "skops": ".skops",
}


@click.command()
@click.argument("head", metavar="HEAD", type=click.Path())
@click.option("--out", required=True, type=click.Path(), help="File to write.")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(SUFFIXES)),
    help="What to write  [default: by the suffix of --out]",
)
@click.option(
    "--head-only", is_flag=True, help="Without the preparation; rows must come prepared then."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def export(head: str, out: str, form: str | None, head_only: bool, as_json: bool) -> None:
    """Write a saved head for something else: ONNX, torch, a table, scikit-learn.

    onnx is a graph from features to predictions and probabilities; onnx-adaptable takes the
    whitener of a domain as an input too. torch is the state of an nn.Linear. csv has a row for
    every feature and a column for every class. skops is a plain scikit-learn estimator. A
    standardisation is folded into the weights; filled or clipped values cannot be, and are refused
    unless --head-only.

    \b
    Example:
      skdare export head.safetensors --out head.onnx
    """
    with mistakes():
        check_writable(out)
        refuse_inputs(out, head)
        form = _form(out, form)
        from skdare.persist import whole_file

        with notes():
            saved = Saved.read(head)
            found = _named(saved) if head_only else _folded(saved, form)
            with whole_file(Path(out)) as file:
                _WRITERS[form](found, file)
        told = {"file": out, "format": form, "bytes": size(out)}
        text = f"wrote {out}: {form}, {amount(size(out), 'byte')}"
        as_object(told) if as_json else say(text)


def _form(out: str, asked: str | None) -> str:
    """What is asked for, or what the suffix tells; they must not say two things."""
    suffix = Path(out).suffix.lower()
    told = [form for form, usual in SUFFIXES.items() if usual == suffix]
    if asked is None and not told:
        suffixes = ", ".join(dict.fromkeys(SUFFIXES.values()))
        raise ValueError(f"{out} does not tell what to write; name --format, or {suffixes}")
    if asked is not None and told and asked not in told:
        raise ValueError(
            f"{out} would be {told[0]} by its name, and --format is {asked}; name it "
            f"{Path(out).with_suffix(SUFFIXES[asked])}, or leave --format out"
        )
    return asked or told[0]


def _named(saved: Saved) -> Any:
    """The head alone, with names of features that only its preparation has."""
    import numpy as np

    head = copy.copy(saved.head)
    if saved.names is not None and len(saved.names) == head.n_features_in_:
        head.feature_names_in_ = np.array(saved.names, dtype=object)
    return head


def _folded(saved: Saved, form: str) -> Any:
    """The head on features as they come: a standardisation becomes part of the weights."""
    import numpy as np

    from skdare.export import LinearMap

    head = _named(saved)
    if saved.model is saved.head:
        return head
    instead = "give --head-only, and prepare rows before"
    if form == "onnx-adaptable":
        raise ValueError(f"{saved.path} prepares rows, which {form} cannot hold; {instead}")
    try:
        linear = LinearMap.of(saved.model)
    except ValueError as error:
        raise ValueError(f"{saved.path}: {str(error).partition('; ')[0]}; {instead}") from error
    head.coef_ = linear.coef.reshape(np.shape(head.coef_))
    head.intercept_ = linear.intercept.reshape(np.shape(head.intercept_))
    return head


def _onnx(head: Any, file: BinaryIO) -> None:
    file.write(head.to_onnx().SerializeToString())


def _onnx_adaptable(head: Any, file: BinaryIO) -> None:
    file.write(head.to_onnx(adaptable=True).SerializeToString())


def _torch(head: Any, file: Any) -> None:
    from skdare.arrays import save_tensors

    save_tensors(head.to_torch().state_dict(), file)


def _csv(head: Any, file: BinaryIO) -> None:
    file.write(head.to_frame().to_csv(index_label="feature", lineterminator="\n").encode())


def _skops(head: Any, file: BinaryIO) -> None:
    try:
        skops = import_module("skops.io")
    except ImportError as error:
        raise ImportError("skops needs the package skops; pip install skops") from error
    file.write(skops.dumps(head.to_sklearn()))


_WRITERS: dict[str, Callable[[Any, Any], None]] = {
    "onnx": _onnx,
    "onnx-adaptable": _onnx_adaptable,
    "torch": _torch,
    "csv": _csv,
    "skops": _skops,
}
