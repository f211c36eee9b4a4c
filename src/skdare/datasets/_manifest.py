"""The manifest of a feature store: the JSON file that says what the store holds.

A manifest may be broken, or written to do harm, so every value in it is checked before it is used.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from reprlib import repr as short
from typing import Any

from skdare.persist import parse_json, read_json, whole_file

MANIFEST = "manifest.json"
DTYPES = ("float64", "float32", "float16", "uint8")
# The dtype of features that are stored as 8-bit codes; the codebook gives their values.
CODES = "uint8"
# The files of a shard: always, where rows have them, and where features are codes.
NEEDED = ("features", "labels", "domains")
OPTIONAL = ("split", "ids")
CODEBOOK = "codebook"

_FORMAT = "skdare-features"
_VERSION = 2
_KEYS = ("rows", "features", "dtype", "domains", "shards")
# Beyond any disk, and far from where products of two counts overflow.
_ABSURD = 1 << 48
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class StoredFile:
    """A file of a shard: its plain name, and (from version 2 on) its size and checksum."""

    name: str
    bytes: int | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class Shard:
    """Some rows: one file each for features, labels, domains and whatever else they have."""

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
        """Rows that are safely on disk."""
        return sum(shard.rows for shard in self.shards)

    @property
    def files(self) -> list[StoredFile]:
        """Every file but the manifest itself."""
        return [file for shard in self.shards for file in shard.files.values()]

    def to_json(self) -> str:
        """The text of the file; the same store gives the same text."""
        document = {
            "format": _FORMAT,
            "version": self.version,
            "rows": self.rows,
            "finished": self.finished,
            "features": self.features,
            "dtype": self.dtype,
            "classes": self.classes,
            "domains": self.domains,
            "feature_names": self.feature_names,
            "made": self.made,
            "shards": [asdict(shard) for shard in self.shards],
        }
        return json.dumps(document, indent=1, allow_nan=False)

    def checked(self, path: Path) -> Manifest:
        """The manifest as it would be read back, refused where it could not be."""
        try:
            text = self.to_json()
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"made cannot be written as JSON ({error}); use plain values"
            ) from error
        return _parse(parse_json(text), path)

    def write(self, folder: Path) -> None:
        """Replace the manifest in one step; until then the store is what it was."""
        with whole_file(folder / MANIFEST) as file:
            file.write(self.to_json().encode("utf-8"))


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a store; a ValueError says what is wrong with it."""
    path = folder / MANIFEST
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a feature store; pass a folder with {MANIFEST}")
    if not path.is_file():
        raise ValueError(f"{folder} is a folder without {MANIFEST}; a feature store has one")
    document = read_json(path, remedy="it is truncated or altered, so write the store again")
    return _parse(document, path)


def _parse(document: dict[str, Any], path: Path) -> Manifest:
    try:
        return _manifest(document)
    except ValueError as error:
        raise ValueError(f"{path} {error}") from error


def _manifest(document: dict[str, Any]) -> Manifest:
    version = _version(document)
    needed = _KEYS if version == 1 else (*_KEYS, "finished")
    absent = [key for key in needed if key not in document]
    if absent:
        raise ValueError(f"lacks {', '.join(absent)}; write the store again")
    features = _count(document["features"], "features", 1)
    dtype = document["dtype"]
    if dtype not in DTYPES:
        raise ValueError(f"has dtype {short(dtype)}; one of {', '.join(DTYPES)} is needed")
    parse = _shard if version > 1 else _first_shard
    shards = _shards(document["shards"], lambda shard: parse(shard, dtype == CODES))
    classes = document.get("classes")
    manifest = Manifest(
        features,
        dtype,
        None if classes is None else _names(classes, "classes"),
        _names(document["domains"], "domains", (str, int)),
        _feature_names(document.get("feature_names"), features),
        _typed(document, "made", dict),
        shards,
        version == 1 or bool(_typed(document, "finished", bool)),
        version,
    )
    if manifest.finished and not shards:
        raise ValueError("is finished and has no rows; it needs shards")
    if document["rows"] != manifest.rows:
        raise ValueError(f"has {short(document['rows'])} rows, but its shards have {manifest.rows}")
    return manifest


def _version(document: dict[str, Any]) -> int:
    if document.get("format") != _FORMAT:
        raise ValueError(f"has format {short(document.get('format'))}; {_FORMAT!r} is needed")
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise ValueError(f"has version {short(version)}; a whole number up to {_VERSION} is needed")
    if version > _VERSION:
        raise ValueError(
            f"has version {version}, and this skdare reads up to {_VERSION}; install a newer one"
        )
    return version


def _typed(document: dict[str, Any], key: str, kind: type) -> Any:
    value = document.get(key)
    if value is not None and not isinstance(value, kind):
        raise ValueError(f"has {key} {short(value)}; a JSON {kind.__name__} is needed")
    return value


def _count(value: Any, what: str, least: int = 0) -> int:
    if type(value) is not int or not least <= value < _ABSURD:
        raise ValueError(f"has {what} {short(value)}; a whole number from {least} is needed")
    return value


def _names(values: Any, what: str, kinds: tuple[type, ...] = (str, bool, int, float)) -> list[Any]:
    """Names of one type, each once; whole numbers must fit into 64 bits."""
    if not isinstance(values, list):
        raise ValueError(f"has {what} {short(values)}; a JSON list is needed, one name per code")
    types = {type(value) for value in values}
    if len(types) > 1 or not types <= set(kinds):
        listed = ", ".join(sorted(kind.__name__ for kind in types))
        raise ValueError(f"has {what} of type {listed}; names are of one type, text or numbers")
    if not all(map(_fits, values)):
        raise ValueError(f"has {what} that do not fit into 64-bit numbers; rename them")
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
    are_text = isinstance(values, list) and all(isinstance(value, str) for value in values)
    if not are_text or len(values) != features:
        raise ValueError(f"needs feature_names that are {features} strings, one per feature")
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


def _shard(document: dict[str, Any], coded: bool) -> Shard:
    files = {}
    for key, file in (_typed(document, "files", dict) or {}).items():
        if not isinstance(file, dict) or not {"name", "bytes", "sha256"} <= file.keys():
            raise ValueError(f"has a file of {short(key)} without name, bytes and sha256")
        if not isinstance(file["sha256"], str) or not _SHA256.fullmatch(file["sha256"]):
            raise ValueError(f"has the sha256 {short(file['sha256'])}; 64 digits are needed")
        size = _count(file["bytes"], f"a file of {short(key)} with bytes")
        files[key] = StoredFile(_plain_name(file["name"]), size, file["sha256"])
    return _whole_shard(document, files, coded)


def _first_shard(document: dict[str, Any], coded: bool) -> Shard:
    """A shard of version 1, which has names of files and nothing else."""
    names = {key: name for key, name in document.items() if key != "rows"}
    files = {key: StoredFile(_plain_name(name)) for key, name in names.items()}
    return _whole_shard(document, files, coded)


def _whole_shard(document: dict[str, Any], files: dict[str, StoredFile], coded: bool) -> Shard:
    needed = {*NEEDED, *([CODEBOOK] if coded else [])}
    if not needed <= files.keys() <= needed | set(OPTIONAL):
        listed = short(sorted(files))
        raise ValueError(f"needs shards, each with {', '.join(sorted(needed))}; one has {listed}")
    return Shard(_count(document.get("rows"), "a shard with rows", 1), files)


def _plain_name(name: Any) -> str:
    """A name inside the folder: no path leads out of it."""
    if not isinstance(name, str) or not _PLAIN_NAME.fullmatch(name) or name == MANIFEST:
        raise ValueError(f"names the file {short(name)}; plain names inside the folder are needed")
    return name
