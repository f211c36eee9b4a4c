"""The manifest of a feature store: what it says, and whether it can be believed."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from reprlib import repr as short
from typing import Any

from skdare.persist import parse_json, read_json

MANIFEST = "manifest.json"
DTYPES = ("float64", "float32", "float16", "uint8")
CODES = "uint8"
# Files of a shard: these always, those where rows have them, the last where features are codes.
NEEDED, OPTIONAL, CODEBOOK = ("features", "labels", "domains"), ("split", "ids"), "codebook"

_FORMAT, _VERSION = "skdare-features", 2
_KEYS = ("rows", "features", "dtype", "domains", "shards")
# Beyond any disk, and far from where products of two counts overflow.
_ABSURD = 1 << 48
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class StoredFile:
    """One file: its plain name, and (from version 2 on) its size and checksum."""

    name: str
    bytes: int | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class Shard:
    """Some rows: one file for each of features, labels, domains and what else there is."""

    rows: int
    files: Mapping[str, StoredFile]


@dataclass(frozen=True)
class Manifest:
    """What a store holds. ``classes`` is None where labels are numbers."""

    features: int
    dtype: str
    classes: list[Any] | None
    domains: list[Any]
    feature_names: list[str] | None = None
    made: dict[str, Any] | None = None
    shards: tuple[Shard, ...] = ()
    finished: bool = False
    version: int = _VERSION

    @property
    def rows(self) -> int:
        """Rows that are safely on file."""
        return sum(shard.rows for shard in self.shards)

    @property
    def files(self) -> list[StoredFile]:
        """Every file but the manifest itself."""
        return [file for shard in self.shards for file in shard.files.values()]

    def to_json(self) -> str:
        """As text; the same store gives the same text."""
        own = {name: getattr(self, name) for name in ("finished", "features", "dtype", "classes")}
        own |= {name: getattr(self, name) for name in ("domains", "feature_names", "made")}
        shards = [asdict(shard) for shard in self.shards]
        head = {"format": _FORMAT, "version": self.version, "rows": self.rows}
        return json.dumps({**head, **own, "shards": shards}, indent=1, allow_nan=False)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a store; a ValueError says what is wrong with it."""
    where = folder / MANIFEST
    if not folder.is_dir():
        raise ValueError(f"{folder} is no feature store; a folder with {MANIFEST} is needed")
    if not where.is_file():
        raise ValueError(f"{folder} is a folder without {MANIFEST}; a feature store has one")
    found = read_json(where, remedy="it is truncated or altered, so write the store again")
    return _believed(found, where)


def checked(manifest: Manifest, path: Path) -> Manifest:
    """A manifest as it would be read back, refused where it could not be."""
    try:
        text = manifest.to_json()
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"made cannot be written as JSON ({error}); use plain values") from error
    return _believed(parse_json(text), path)


def _believed(found: dict[str, Any], where: Path) -> Manifest:
    try:
        return _parsed(found)
    except ValueError as error:
        raise ValueError(f"{where} {error}") from error


def _parsed(found: dict[str, Any]) -> Manifest:
    """Every value is checked: a manifest may be broken, or written to do harm."""
    version = _version(found)
    absent = [key for key in (*_KEYS, *("finished",)[: version - 1]) if key not in found]
    if absent:
        raise ValueError(f"lacks {', '.join(absent)}; write the store again")
    features, dtype = _count(found["features"], "features", 1), found["dtype"]
    if dtype not in DTYPES:
        raise ValueError(f"has dtype {short(dtype)}; one of {', '.join(DTYPES)} is needed")
    parse = _shard if version > 1 else _first_shard
    shards = _shards(found["shards"], lambda shard: parse(shard, dtype == CODES))
    manifest = Manifest(
        features,
        dtype,
        None if found.get("classes") is None else _names(found["classes"], "classes"),
        _names(found["domains"], "domains", (str, int)),
        _feature_names(found.get("feature_names"), features),
        _of_kind(found, "made", dict),
        shards,
        version == 1 or bool(_of_kind(found, "finished", bool)),
        version,
    )
    if manifest.finished and not shards:
        raise ValueError("is finished and has no rows; it needs shards")
    if found["rows"] != manifest.rows:
        raise ValueError(f"has {short(found['rows'])} rows, but its shards have {manifest.rows}")
    return manifest


def _version(found: dict[str, Any]) -> int:
    if found.get("format") != _FORMAT:
        raise ValueError(f"has format {short(found.get('format'))}; {_FORMAT!r} is needed")
    version = found.get("version")
    if type(version) is not int or version < 1:
        raise ValueError(f"has version {short(version)}; a whole number up to {_VERSION} is needed")
    if version > _VERSION:
        raise ValueError(
            f"has version {version}, and this skdare reads up to {_VERSION}; install a newer one"
        )
    return version


def _of_kind(found: dict[str, Any], key: str, kind: type) -> Any:
    value = found.get(key)
    if value is not None and not isinstance(value, kind):
        raise ValueError(f"has {key} {short(value)}; a JSON {kind.__name__} is needed")
    return value


def _count(value: Any, what: str, least: int = 0) -> int:
    if type(value) is not int or not least <= value < _ABSURD:
        raise ValueError(f"has {what} {short(value)}; a whole number from {least} is needed")
    return value


def _names(values: Any, what: str, kinds: tuple[type, ...] = (str, bool, int, float)) -> list[Any]:
    """Names of one kind, each once; whole numbers must fit into 64 bits."""
    if not isinstance(values, list):
        raise ValueError(f"has {what} {short(values)}; a JSON list is needed, one name a code")
    found = {type(value) for value in values}
    if len(found) > 1 or not found <= set(kinds):
        told = ", ".join(sorted(kind.__name__ for kind in found))
        raise ValueError(f"has {what} of type {told}; names are of one type, text or numbers")
    if not all(map(_fits, values)):
        raise ValueError(f"has {what} that are no 64-bit numbers; name them otherwise")
    if len(set(values)) < len(values):
        raise ValueError(f"has {what} of which some are alike; each needs a name of its own")
    return values


def _fits(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or not abs(value) >> 63


def _feature_names(values: Any, features: int) -> list[str] | None:
    if values is None:
        return None
    named = isinstance(values, list) and all(isinstance(value, str) for value in values)
    if not named or len(values) != features:
        raise ValueError(f"needs feature_names that are {features} strings, one a feature")
    return values


def _shards(values: Any, parse: Callable[[dict[str, Any]], Shard]) -> tuple[Shard, ...]:
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise ValueError("needs shards that are a JSON list of objects")
    shards = tuple(map(parse, values))
    names = [file.name for shard in shards for file in shard.files.values()]
    if len(set(names)) < len(names):
        raise ValueError("names a file twice; write the store again")
    if len({frozenset(shard.files) for shard in shards}) > 1:
        raise ValueError("has shards that differ in what they hold; write the store again")
    return shards


def _shard(found: dict[str, Any], coded: bool) -> Shard:
    files = _of_kind(found, "files", dict) or {}
    parsed = {}
    for key, file in files.items():
        if not isinstance(file, dict) or not {"name", "bytes", "sha256"} <= file.keys():
            raise ValueError(f"has a file of {short(key)} without name, bytes and sha256")
        if not isinstance(file["sha256"], str) or not _SHA256.fullmatch(file["sha256"]):
            raise ValueError(f"has the sha256 {short(file['sha256'])}; 64 digits are needed")
        size = _count(file["bytes"], f"a file of {short(key)} with bytes")
        parsed[key] = StoredFile(_plain(file["name"]), size, file["sha256"])
    return _whole(found, parsed, coded)


def _first_shard(found: dict[str, Any], coded: bool) -> Shard:
    """Version 1 names its files, and no more."""
    files = {key: StoredFile(_plain(name)) for key, name in found.items() if key != "rows"}
    return _whole(found, files, coded)


def _whole(found: dict[str, Any], files: dict[str, StoredFile], coded: bool) -> Shard:
    needed = {*NEEDED, *([CODEBOOK] if coded else [])}
    if not needed <= files.keys() <= needed | set(OPTIONAL):
        told = short(sorted(files))
        raise ValueError(f"needs shards, each with {', '.join(sorted(needed))}; one has {told}")
    return Shard(_count(found.get("rows"), "a shard with rows", 1), files)


def _plain(name: Any) -> str:
    """A name inside the folder: no way leads out of it."""
    if not isinstance(name, str) or not _PLAIN.fullmatch(name) or name == MANIFEST:
        raise ValueError(f"names the file {short(name)}; plain names inside the folder are needed")
    return name
