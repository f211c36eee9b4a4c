"""Any dataclass as JSON and arrays, written by its values and checked by its annotations when read.

The classes are the only schema, and no file can make an object that the code could not.
``Annotated[Array, "d k"]`` is an array of finite floats with these axes: ``d`` and ``k`` are one
number in a whole file, other axes in one object. An array that two fields share is written once.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from skdare.errors import InputError

_SHARED_AXES = ("d", "k")
_PLAIN = (str, int, float, bool)
_WIDEST = 1 << 27  # characters of an array of text


@dataclass
class Writer:
    """Values as JSON; arrays of numbers are kept apart."""

    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)  # by the identity of an array

    def write(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, Enum):
            return value.name
        if is_dataclass(value) and not isinstance(value, type):
            stored = {one.name: self.write(getattr(value, one.name)) for one in fields(value)}
            return {"class": type(value).__name__, **stored}
        if isinstance(value, Mapping):
            return {"pairs": [[self.write(key), self.write(one)] for key, one in value.items()]}
        if isinstance(value, list | tuple):
            return [self.write(entry) for entry in value]
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, _PLAIN):
            return value
        raise InputError(
            f"a file cannot hold a {type(value).__name__}", "use text, numbers or arrays of them"
        )

    def _array(self, array: np.ndarray) -> dict[str, Any]:
        if array.dtype.kind in "mM":
            return {"entries": array.astype(np.int64).tolist(), "dtype": array.dtype.str}
        if array.dtype.kind not in "biuf":
            return {"entries": self.write(array.tolist()), "dtype": array.dtype.kind}
        name = self.names.setdefault(id(array), f"a{len(self.names)}")
        self.arrays[name] = array
        return {"array": name}


@dataclass(frozen=True)
class Reader:
    """Values from what `Writer` made of them; every error is a ValueError that names the place."""

    arrays: Mapping[str, np.ndarray]
    sizes: dict[str, int] = field(default_factory=dict)  # of the axes met so far

    def read(self, annotation: Any, stored: Any, where: str) -> Any:
        """The value, if it is one that the annotation allows."""
        if get_origin(annotation) in (Union, types.UnionType):
            choices = [one for one in get_args(annotation) if _may_be(one, stored)]
            annotation = choices[0] if choices else annotation
        if not _may_be(annotation, stored):
            raise ValueError(f"{where} holds {stored!r:.40}, which does not belong there")
        origin = get_origin(annotation)
        if origin in (list, Sequence):
            (entry,) = get_args(annotation)
            entries = [self.read(entry, one, f"{where}[{i}]") for i, one in enumerate(stored)]
            return entries if origin is list else tuple(entries)
        if origin in (dict, Mapping):
            kinds = get_args(annotation)
            pairs = [
                [self.read(kind, one, where) for kind, one in zip(kinds, pair, strict=True)]
                for pair in stored["pairs"]
            ]
            return dict(pairs)
        if origin is Annotated:
            kind, axes = get_args(annotation)
            if kind is float:
                return float(stored)
            array = self.array(stored, where)
            self._check_axes(array, axes.split(), where)
            return array
        if annotation is np.ndarray:
            return self.array(stored, where)
        if isinstance(annotation, type) and issubclass(annotation, Enum):
            return annotation[stored]
        if is_dataclass(annotation):
            return self.object(annotation, stored, where)
        return float(stored) if annotation is float else stored

    def object(self, kind: Any, stored: Mapping[str, Any], where: str) -> Any:
        """A dataclass, whose fields agree on the sizes of their arrays."""
        hints = annotations_of(kind)
        names = [one.name for one in fields(kind)]
        if {*names, "class"} != set(stored):
            raise ValueError(f"{where} has other fields than a {kind.__name__}")
        inner = Reader(self.arrays, {a: n for a, n in self.sizes.items() if a in _SHARED_AXES})
        values = {name: inner.read(hints[name], stored[name], f"{where}.{name}") for name in names}
        self.sizes.update((a, n) for a, n in inner.sizes.items() if a in _SHARED_AXES)
        return kind(**values)

    def array(self, stored: Mapping[str, Any], where: str) -> np.ndarray:
        if "array" in stored:
            if stored["array"] not in self.arrays:
                raise ValueError(f"{where} is an array that is not there")
            return self.arrays[stored["array"]]
        entries = stored["entries"]
        dtype = stored["dtype"]
        is_date = isinstance(dtype, str) and dtype[:2] in ("<M", "<m")
        allowed = {"U": (str,), "O": _PLAIN}.get(str(dtype), (int,) if is_date else ())
        if not isinstance(entries, list) or any(type(one) not in allowed for one in entries):
            raise ValueError(f"{where} has entries that do not belong there")
        # An array of text is as wide as its longest entry.
        too_wide = dtype == "U" and len(entries) * max(map(len, entries), default=0) > _WIDEST
        if too_wide or (is_date and any(abs(one) >= 2**63 for one in entries)):
            raise ValueError(f"{where} has entries that no array can hold")
        if is_date:
            return np.array(entries, dtype=np.int64).astype(dtype)
        return np.array(entries, dtype=object if dtype == "O" else None)

    def _check_axes(self, array: np.ndarray, axes: list[str], where: str) -> None:
        expected = {
            axis: self.sizes.setdefault(axis, n) for axis, n in zip(axes, array.shape, strict=False)
        }
        shape = tuple(expected.get(axis) for axis in axes)
        if array.shape != shape or array.dtype.kind != "f" or not np.all(np.isfinite(array)):
            raise ValueError(
                f"{where} is of shape {array.shape} and {array.dtype}; it must be finite floats of "
                f"shape ({', '.join(axes)}) = {shape}"
            )


@cache
def annotations_of(kind: Any) -> dict[str, Any]:
    """Annotation of each field of a class."""
    return get_type_hints(kind, include_extras=True)


def _may_be(annotation: Any, stored: Any) -> bool:
    """Whether a stored value is of this kind, without a look at what is inside."""
    origin = get_origin(annotation)
    if annotation is Any:
        return stored is None or type(stored) in _PLAIN
    if origin is Literal:
        return isinstance(stored, str) and stored in get_args(annotation)
    if origin in (list, Sequence):
        return isinstance(stored, list)
    if origin in (dict, Mapping):
        pairs = stored.get("pairs") if isinstance(stored, dict) and len(stored) == 1 else None
        return isinstance(pairs, list) and all(isinstance(p, list) and len(p) == 2 for p in pairs)
    if origin is Annotated and get_args(annotation)[0] is float:
        return type(stored) in (int, float)  # NaN and infinity, too
    if origin is Annotated or annotation is np.ndarray:
        keys = set(stored) if isinstance(stored, dict) else set()
        return keys in ({"array"}, {"entries", "dtype"}) and isinstance(
            stored.get("array", ""), str
        )
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return isinstance(stored, str) and stored in annotation.__members__
    if is_dataclass(annotation):
        kind: Any = annotation
        return isinstance(stored, dict) and stored.get("class") == kind.__name__
    if annotation is float:
        # Neither NaN nor infinity, nor a whole number that no float can hold.
        return type(stored) in (int, float) and abs(stored) <= np.finfo(float).max
    return type(stored) is annotation
