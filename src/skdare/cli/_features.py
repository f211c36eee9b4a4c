"""`skdare features`: look at tables of features, convert them, check that they are whole."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from skdare.cli._errors import mistakes
from skdare.cli._options import read_table
from skdare.cli._table_options import table_keys, table_options
from skdare.datasets import (
    MANIFEST,
    DomainData,
    StoreInfo,
    guess_task,
    read_ids,
    store_info,
    verify,
    write,
)

_NAMED = 12
_KEPT = {"uint8": "8-bit codes"}


@click.group()
def features() -> None:
    """Look at tables of features, convert them, and check that they are whole.

    \b
    Example:
      skdare features info features/
    """


@features.command()
@click.argument("path")
@table_options
def info(path: str, **given: Any) -> None:
    """Say what PATH holds: a feature store, finished or not, or any file that bench reads.

    \b
    Example:
      skdare features info features/
    """
    with mistakes():
        if Path(path).is_dir():
            lines = _of_store(path, store_info(path))
        else:
            lines = _of_table(path, read_table(path, table_keys(given)))
        click.echo("\n".join(lines))


@features.command()
@click.argument("source", metavar="SRC")
@click.argument("target_path", metavar="DST")
@click.option(
    "--dtype",
    type=click.Choice(["float64", "float32", "float16", "uint8"]),
    help="How features are kept; uint8: as 8-bit codes, in a store only  [default: as they are]",
)
@table_options
def convert(source: str, target_path: str, dtype: str | None, **given: Any) -> None:
    """Write the table in SRC once more, as a feature store or a file: DST's suffix says which.

    `.npz`, `.csv`, `.csv.gz`, `.parquet` and `.safetensors` are files, any other name is a
    feature store. A store of several shards becomes one of a single shard. Nothing is overwritten.

    \b
    Example:
      skdare features convert features.npz features/ --dtype float16
    """
    with mistakes():
        data = read_table(source, table_keys(given))
        ids = read_ids(source) if Path(source).is_dir() else None
        write(target_path, data, dtype=dtype, ids=ids)
        if data.made is not None and not Path(target_path).is_dir():
            click.echo("note: how the features were made is kept in feature stores only", err=True)
        kind = "feature store" if Path(target_path).is_dir() else "file"
        click.echo(f"wrote the {kind} {target_path}: {_size(data.X.shape)}", err=True)


@features.command("verify")
@click.argument("path")
def verify_store(path: str) -> None:
    """Compute the checksums of a feature store anew: exit code 1 where a file is not as written.

    PATH is a store, or a folder of stores.

    \b
    Example:
      skdare features verify features/
    """
    with mistakes():
        results = {store: verify(store) for store in _stores(Path(path))}
    for store, result in results.items():
        if not result.finished:
            click.echo(f"note: {store} is unfinished", err=True)
        for sentence in result.bad:
            click.echo(sentence if len(results) == 1 else f"{store}: {sentence}")
    total = sum(result.files for result in results.values())
    bad = sum(len(result.bad) for result in results.values())
    if bad:
        click.echo(f"error: {bad} of {total} files are bad", err=True)
        sys.exit(1)
    click.echo(f"ok: {total} files")


def _stores(path: Path) -> list[Path]:
    """The store, or those in a folder of them."""
    if (path / MANIFEST).exists() or not path.is_dir():
        return [path]
    return sorted(found.parent for found in path.glob(f"*/{MANIFEST}")) or [path]


def _of_store(path: str, info: StoreInfo) -> list[str]:
    state = "finished" if info.finished else "unfinished, can be resumed"
    held = f"{_many(info.shards, 'shard')}, {_many(info.files, 'file')}, {_bytes(info.bytes)}"
    facts = {
        "store": f"{path}: version {info.version}, {state}",
        "files": held,
        "table": f"{_size((info.rows, info.features))}, {_KEPT.get(info.dtype, info.dtype)}",
        "target": _target(info.classes),
    }
    return _lines(facts, info.feature_names, info.made, info.domains, info.reserved)


def _of_table(path: str, data: DomainData) -> list[str]:
    classes = np.unique(data.y).tolist() if guess_task(data.y) == "classification" else None
    facts = {
        "file": f"{path}: {_bytes(Path(path).stat().st_size)}",
        "table": f"{_size(data.X.shape)}, {data.X.dtype}",
        "target": _target(classes),
    }
    reserved = None if data.split is None else _counts(data.domains[data.split])
    return _lines(facts, data.feature_names, None, _counts(data.domains), reserved)


def _lines(
    facts: dict[str, str],
    names: Sequence[str] | None,
    made: Mapping[str, Any] | None,
    rows: Mapping[Any, int],
    reserved: Mapping[Any, int] | None,
) -> list[str]:
    """Facts, how the features were made, and rows by domain."""
    if names:
        facts["names"] = _listed(names)
    lines = [f"{name:<8}{text}" for name, text in facts.items()]
    for i, (key, value) in enumerate((made or {}).items()):
        text = value if isinstance(value, str) else json.dumps(value)
        lines.append(f"{'' if i else 'made':<8}{key}: {text}")
    width = max((len(str(name)) for name in rows), default=0)
    lines.append(f"\n{'domain':<{max(width, 6)}}  {'rows':>10}  {'reserved':>10}")
    for name, n in rows.items():
        aside = "–" if reserved is None else f"{reserved.get(name, 0):,}"
        lines.append(f"{name!s:<{max(width, 6)}}  {n:>10,}  {aside:>10}")
    return lines


def _counts(labels: np.ndarray) -> dict[Any, int]:
    names, counts = np.unique(labels, return_counts=True)
    return dict(zip(names.tolist(), counts.tolist(), strict=True))


def _target(classes: Sequence | None) -> str:
    return "numbers" if classes is None else f"{len(classes)} classes: {_listed(classes)}"


def _listed(names: Sequence) -> str:
    more = len(names) - _NAMED
    return ", ".join(map(str, names[:_NAMED])) + (f" and {more} more" if more > 0 else "")


def _size(shape: Iterable[int]) -> str:
    rows, features = shape
    return f"{rows:,} rows of {features:,} features"


def _many(n: int, thing: str) -> str:
    return f"{n:,} {thing}{'s' * (n != 1)}"


def _bytes(n: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= size:
            return f"{n / size:,.1f} {unit}"
    return f"{n} bytes"
