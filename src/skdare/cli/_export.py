"""`skdare export`: a saved head in the form that something else reads."""

from __future__ import annotations

import copy
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import click

from skdare._input_error import InputError
from skdare.cli._errors import check_writable, mistakes, notes
from skdare.cli._output import JSON, as_object, say
from skdare.cli._quantities import file_size
from skdare.cli._saved_model import SavedModel, refuse_inputs, size

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
    help="Format of the file  [default: by the suffix of --out]",
)
@click.option(
    "--head-only", is_flag=True, help="Without the preparation, for rows that are prepared already."
)
@JSON
def export(head: str, out: str, form: str | None, head_only: bool, as_json: bool) -> None:
    """Write a saved head for something else: ONNX, torch, a table, scikit-learn.

    onnx is a graph from features to predictions and probabilities; onnx-adaptable takes the
    whitener of a domain as an input too. torch is the state of an nn.Linear. csv has a row for
    every feature and a column for every class. skops is a plain scikit-learn estimator. A
    standardisation becomes part of the weights. Filling and clipping of values are part of an onnx
    graph; other formats cannot hold them, and refuse a head that does so without --head-only.

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
            saved = SavedModel.read(head)
            exported = _named(saved) if head_only else _folded(saved, form)
            with whole_file(Path(out)) as file:
                _WRITERS[form](exported, file)
        if as_json:
            as_object({"file": out, "format": form, "bytes": size(out)})
        else:
            say(f"wrote {out}: {form}, {file_size(size(out))}")


def _form(out: str, chosen: str | None) -> str:
    """Format that was chosen, or that of the file's suffix; refused where the two disagree."""
    suffix = Path(out).suffix.lower()
    of_suffix = [form for form, usual in SUFFIXES.items() if usual == suffix]
    if chosen is None and not of_suffix:
        *others, last = dict.fromkeys(SUFFIXES.values())
        raise InputError(
            f"cannot choose the format of {out}",
            f"end its name in {', '.join(others)} or {last}, or give --format",
        )
    if chosen is not None and of_suffix and chosen not in of_suffix:
        raise InputError(
            f"{out} would be {of_suffix[0]} by its name, and --format is {chosen}",
            f"name it {Path(out).with_suffix(SUFFIXES[chosen])}, or leave --format out",
        )
    return chosen or of_suffix[0]


def _named(saved: SavedModel) -> Any:
    """The head alone, with the names of features even if only its preparation has them."""
    import numpy as np

    head = copy.copy(saved.head)
    if saved.names is not None and len(saved.names) == head.n_features_in_:
        head.feature_names_in_ = np.array(saved.names, dtype=object)
    return head


def _folded(saved: SavedModel, form: str) -> Any:
    """The head for unprepared features: a standardisation becomes part of the weights."""
    import numpy as np

    from skdare.export import LinearMap

    head = _named(saved)
    if saved.model is saved.head:
        return head
    instead = "give --head-only, and prepare rows before"
    if form == "onnx":
        return saved.model
    if form == "onnx-adaptable":
        raise InputError(f"{saved.path} prepares rows, and {form} cannot", instead)
    try:
        linear = LinearMap.of(saved.model)
    except ValueError as error:
        raise InputError(f"{saved.path}: {str(error).partition('; ')[0]}", instead) from error
    head.coef_ = linear.coef.reshape(np.shape(head.coef_))
    head.intercept_ = linear.intercept.reshape(np.shape(head.intercept_))
    return head


def _onnx(model: Any, file: BinaryIO) -> None:
    from skdare.export import head_to_onnx

    file.write(head_to_onnx(model).SerializeToString())


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
        raise ImportError("--format skops needs skops; pip install skops") from error
    file.write(skops.dumps(head.to_sklearn()))


_WRITERS: dict[str, Callable[[Any, Any], None]] = {
    "onnx": _onnx,
    "onnx-adaptable": _onnx_adaptable,
    "torch": _torch,
    "csv": _csv,
    "skops": _skops,
}
