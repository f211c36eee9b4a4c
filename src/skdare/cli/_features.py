"""`skdare features`: look at tables of features, convert them, and check their files."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skdare._input_error import InputError
from skdare._safe_text import counted, terminal_safe
from skdare.cli._errors import mistakes
from skdare.cli._options import with_options
from skdare.cli._output import JSON, as_object, say
from skdare.cli._quantities import file_size, listed
from skdare.cli._tables import TABLE, read_table, table_keys

if TYPE_CHECKING:
    from skdare.datasets import DomainData

_DTYPES = {"uint8": "8-bit codes"}


@click.group()
def features() -> None:
    """Look at tables of features, convert them, and check that their files are undamaged.

    \b
    Example:
      skdare features info features/
    """


@features.command()
@click.argument("path", type=click.Path())
@with_options(TABLE)
@JSON
def info(path: str, as_json: bool, **options: Any) -> None:
    """Say what PATH holds: a feature store, finished or not, or any file that bench reads.

    With --json: path, kind (store or file), rows, features, dtype, bytes, classes, domains (each
    with rows and reserved), feature_names and made; of a store also version, finished, shards and
    files.

    \b
    Example:
      skdare features info features/
    """
    with mistakes():
        if Path(path).is_dir():
            fields = _store_fields(path)
        else:
            fields = _table_fields(path, table_keys(options))
        as_object(fields) if as_json else say(*_text(fields))


@features.command()
@click.argument("source", metavar="SRC", type=click.Path())
@click.argument("target_path", metavar="DST", type=click.Path())
@click.option(
    "--dtype",
    type=click.Choice(["float64", "float32", "float16", "uint8"]),
    help="How features are kept; uint8: as 8-bit codes, in a store only  [default: as they are]",
)
@with_options(TABLE)
@JSON
def convert(
    source: str, target_path: str, dtype: str | None, as_json: bool, **options: Any
) -> None:
    """Write the table in SRC to DST, a feature store or a file by its suffix.

    `.npz`, `.csv`, `.csv.gz`, `.parquet` and `.safetensors` are files, any other name is a
    feature store. A file of any size becomes a store, some rows at a time; a store of several
    shards becomes one of a single shard. Nothing is overwritten. With --json: path, kind, rows and
    features of what was written.

    \b
    Example:
      skdare features convert features.npz features/ --dtype float16
    """
    with mistakes():
        from skdare.datasets import read_ids, write
        from skdare.datasets._write import is_store_name

        # A store is written as rows are read; a file needs all of them at once.
        streamed = is_store_name(target_path) and Path(source).is_file()
        data = read_table(source, table_keys(options), streamed=streamed)
        ids = read_ids(source) if Path(source).is_dir() else None
        write(target_path, data, dtype=dtype, ids=ids)
        if data.made is not None and not Path(target_path).is_dir():
            say("note: only feature stores record how features were made", err=True)
        kind = "store" if Path(target_path).is_dir() else "file"
        rows, d = data.X.shape
        if as_json:
            as_object({"path": target_path, "kind": kind, "rows": rows, "features": d})
        else:
            what = "feature store" if kind == "store" else kind
            say(f"wrote the {what} {target_path}: {_size(rows, d)}", err=True)


@features.command("verify")
@click.argument("path", type=click.Path())
@JSON
def verify_store(path: str, as_json: bool) -> None:
    """Compute the checksums of a feature store again: exit code 1 if a file was changed.

    PATH is a store, or a folder of stores. With --json: ok, files (how many), bad (a sentence for
    each bad file) and unfinished (the stores that are not finished).

    \b
    Example:
      skdare features verify features/
    """
    with mistakes():
        from skdare.datasets import verify

        results = {store: verify(store) for store in _stores(Path(path))}
    sentences = [
        sentence if len(results) == 1 else f"{store}: {sentence}"
        for store, result in results.items()
        for sentence in result.bad
    ]
    unfinished = [store for store, result in results.items() if not result.finished]
    total = sum(result.files for result in results.values())
    for store in unfinished:
        say(f"note: {store} is unfinished", err=True)
    if as_json:
        as_object({"ok": not sentences, "files": total, "bad": sentences, "unfinished": unfinished})
    else:
        say(*(sentences or [f"ok: {counted(total, 'file')}"]))
    if sentences:
        are = "is" if len(sentences) == 1 else "are"
        say(f"error: {len(sentences)} of {counted(total, 'file')} {are} bad", err=True)
        sys.exit(1)


def _stores(path: Path) -> list[Path]:
    """The store at this path, or all stores in the folder."""
    from skdare.datasets._manifest import MANIFEST

    if (path / MANIFEST).exists() or not path.is_dir():
        return [path]
    return sorted(manifest.parent for manifest in path.glob(f"*/{MANIFEST}")) or [path]


def _store_fields(path: str) -> dict[str, Any]:
    from skdare.datasets import store_info

    store = store_info(path)
    fields = {**asdict(store), "domains": _domains(store.domains, store.reserved)}
    del fields["reserved"]
    return {"path": path, "kind": "store", **fields}


def _table_fields(path: str, keys: dict[str, str | None]) -> dict[str, Any]:
    import numpy as np

    from skdare.datasets import guess_task, read_unlabelled

    fields: dict[str, Any] = {"path": path, "kind": "file"}
    try:
        data: DomainData = read_table(path, keys)
    except InputError as error:
        if error.argument not in ("target", "domains") or keys[error.argument] is not None:
            raise
        say(f"note: no {error.argument} found, so these are the features alone", err=True)
        X = read_unlabelled(path, key=keys["features"])
        labels: dict[str, Any] = {"classes": None, "domains": [], "feature_names": None}
    else:
        X = data.X
        reserved = None if data.split is None else _counts(data.domains[data.split])
        classes = np.unique(data.y).tolist() if guess_task(data.y) == "classification" else None
        labels = {
            "classes": classes,
            "domains": _domains(_counts(data.domains), reserved),
            "feature_names": data.feature_names,
        }
    rows, d = X.shape
    fields |= {"rows": rows, "features": d, "dtype": str(X.dtype)}
    return {**fields, "bytes": Path(path).stat().st_size, **labels, "made": None}


def _domains(rows: Mapping[Any, int], reserved: Mapping[Any, int] | None) -> list[dict[str, Any]]:
    return [
        {"domain": name, "rows": n, "reserved": None if reserved is None else reserved.get(name, 0)}
        for name, n in rows.items()
    ]


def _counts(labels: Any) -> dict[Any, int]:
    import numpy as np

    names, counts = np.unique(labels, return_counts=True)
    return dict(zip(names.tolist(), counts.tolist(), strict=True))


def _text(fields: dict[str, Any]) -> list[str]:
    """Lines that say what it is, how the features were made, and rows by domain."""
    size = file_size(fields["bytes"])
    classes = fields["classes"]
    facts = {"file": f"{fields['path']}: {size}"}
    if fields["kind"] == "store":
        state = "finished" if fields["finished"] else "unfinished, can be resumed"
        files = f"{counted(fields['shards'], 'shard')}, {counted(fields['files'], 'file')}, {size}"
        facts = {"store": f"{fields['path']}: version {fields['version']}, {state}", "files": files}
    dtype = _DTYPES.get(fields["dtype"], fields["dtype"])
    facts["table"] = f"{_size(fields['rows'], fields['features'])}, {dtype}"
    if classes is not None:
        facts["target"] = f"{counted(len(classes), 'class')}: {listed(classes)}"
    elif fields["domains"]:
        facts["target"] = "numbers"
    if fields["feature_names"]:
        facts["names"] = listed(fields["feature_names"])
    lines = [f"{name:<8}{text}" for name, text in facts.items()]
    for i, (key, value) in enumerate((fields["made"] or {}).items()):
        text = value if isinstance(value, str) else json.dumps(value)
        lines.append(f"{'' if i else 'made':<8}{key}: {text}")
    return [*lines, "", *_by_domain(fields["domains"])] if fields["domains"] else lines


def _by_domain(domains: list[dict[str, Any]]) -> list[str]:
    names = [terminal_safe(str(row["domain"])) for row in domains]
    width = max([6, *map(len, names)])
    lines = [f"{'domain':<{width}}  {'rows':>10}  {'reserved':>10}"]
    for name, row in zip(names, domains, strict=True):
        reserved = "–" if row["reserved"] is None else f"{row['reserved']:,}"
        lines.append(f"{name:<{width}}  {row['rows']:>10,}  {reserved:>10}")
    return lines


def _size(rows: int, features: int) -> str:
    return f"{counted(rows, 'row')} of {counted(features, 'feature')}"
