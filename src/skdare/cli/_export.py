"""`skdare export`: a saved head in the form that something else reads."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from skdare.cli._errors import check_writable, mistakes, notes
from skdare.cli._quantities import amount

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
        form = form or _by_suffix(out)
        from skdare.cli._saved import Saved, size

        with notes():
            saved = Saved.read(head)
            found = saved.head if head_only else _folded(saved, form)
            part = Path(out).with_name(f".{Path(out).name}-{os.getpid()}{Path(out).suffix}")
            try:
                _WRITERS[form](found, part)
                os.replace(part, out)
            finally:
                part.unlink(missing_ok=True)
        told = {"file": out, "format": form, "bytes": size(out)}
        text = f"wrote {out}: {form}, {amount(size(out), 'byte')}"
        click.echo(json.dumps(told, ensure_ascii=False) if as_json else text)


def _by_suffix(out: str) -> str:
    for form, suffix in SUFFIXES.items():
        if out.lower().endswith(suffix):
            return form
    raise ValueError(f"{out} does not tell what to write; name --format, or {_suffixes()}")


def _suffixes() -> str:
    return ", ".join(dict.fromkeys(SUFFIXES.values()))


def _folded(saved: Any, form: str) -> Any:
    """The head on features as they come: a standardisation becomes part of the weights."""
    steps = saved.steps[:-1]
    if not steps:
        return saved.head
    kept = [type(step).__name__ for _, step in steps if not hasattr(step, "scale_")]
    if kept or form == "onnx-adaptable":
        what = kept[0] if kept else "a standardisation"
        raise ValueError(
            f"{saved.path} prepares rows by {what}, which {form} cannot hold; give --head-only, "
            "and prepare rows before"
        )
    head = copy.copy(saved.head)
    for _, step in reversed(steps):
        # (x - m) / s · v + b = x · (v / s) + (b - m · v / s)
        scale = 1.0 if step.scale_ is None else step.scale_
        head.coef_ = head.coef_ / scale
        if step.mean_ is not None:
            head.intercept_ = head.intercept_ - head.coef_ @ step.mean_
    return head


def _onnx(head: Any, path: Path) -> None:
    head.to_onnx(path)


def _onnx_adaptable(head: Any, path: Path) -> None:
    head.to_onnx(path, adaptable=True)


def _torch(head: Any, path: Path) -> None:
    from skdare._array import save_tensors

    save_tensors(head.to_torch().state_dict(), path)


def _csv(head: Any, path: Path) -> None:
    head.to_frame().to_csv(path, index_label="feature")


def _skops(head: Any, path: Path) -> None:
    try:
        skops = import_module("skops.io")
    except ImportError as error:
        raise ImportError(f"{path.suffix} needs the package skops; pip install skops") from error
    skops.dump(head.to_sklearn(), path)


_WRITERS: dict[str, Callable[[Any, Path], None]] = {
    "onnx": _onnx,
    "onnx-adaptable": _onnx_adaptable,
    "torch": _torch,
    "csv": _csv,
    "skops": _skops,
}
