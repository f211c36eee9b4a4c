"""Lists, mappings and objects of known classes, made of other fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np

from skdare.persist._fields import LABEL, VALUES, Array, Arrays, Field, Saved, named_array


@dataclass(frozen=True)
class Maybe(Field):
    """A value, or None."""

    field: Field

    def write(self, value: Any, to: Arrays, name: str) -> Any:
        return None if value is None else self.field.write(value, to, name)

    def read(self, node: Any, saved: Saved) -> Any:
        return None if node is None else self.field.read(node, saved)


@dataclass(frozen=True)
class ListOf(Field):
    """A list of values of one kind."""

    field: Field

    def write(self, value: Sequence[Any], to: Arrays, name: str) -> list[Any]:
        return [self.field.write(item, to, f"{name}.{i}") for i, item in enumerate(value)]

    def read(self, node: Any, saved: Saved) -> list[Any]:
        if type(node) is not list:
            raise saved.refuse("a list")
        return [self.field.read(item, saved.inside(str(i))) for i, item in enumerate(node)]


@dataclass(frozen=True)
class TupleOf(Field):
    """A tuple of values, each of its own kind."""

    fields: tuple[Field, ...]

    def write(self, value: tuple[Any, ...], to: Arrays, name: str) -> list[Any]:
        pairs = enumerate(zip(self.fields, value, strict=True))
        return [one.write(item, to, f"{name}.{i}") for i, (one, item) in pairs]

    def read(self, node: Any, saved: Saved) -> tuple[Any, ...]:
        if type(node) is not list or len(node) != len(self.fields):
            raise saved.refuse(f"a list of {len(self.fields)}")
        pairs = enumerate(zip(self.fields, node, strict=True))
        return tuple(one.read(item, saved.inside(str(i))) for i, (one, item) in pairs)


@dataclass(frozen=True)
class MapOf(Field):
    """Values by label, in their order; ``key`` says what a label may be."""

    field: Field
    key: Field = LABEL

    def write(self, value: Mapping[Any, Any], to: Arrays, name: str) -> list[Any]:
        pairs = enumerate(value.items())
        return [
            [self.key.write(label, to, name), self.field.write(item, to, f"{name}.{i}")]
            for i, (label, item) in pairs
        ]

    def read(self, node: Any, saved: Saved) -> dict[Any, Any]:
        if type(node) is not list or any(type(p) is not list or len(p) != 2 for p in node):
            raise saved.refuse("a list of pairs")
        pairs = enumerate(node)
        return {
            self.key.read(label, saved): self.field.read(item, saved.inside(str(i)))
            for i, (label, item) in pairs
        }


@dataclass(frozen=True)
class Named(Field):
    """A member of an enumeration, by its name."""

    members: type[Enum]

    def write(self, value: Enum, to: Arrays, name: str) -> str:
        return value.name

    def read(self, node: Any, saved: Saved) -> Enum:
        if type(node) is not str or node not in self.members.__members__:
            raise saved.refuse(f"of type {self.members.__name__}")
        return self.members[node]


@dataclass(frozen=True)
class Record(Field):
    """An object of a known class, made from its fields.

    Parameters
    ----------
    made : class
    fields : mapping
        By the names of the constructor's arguments. One that a file lacks has its default.
    kept_as : mapping
        Names of attributes that differ from those of the arguments.
    fits : callable, optional
        Whether the values go together.
    """

    made: type
    fields: Mapping[str, Field]
    kept_as: Mapping[str, str] = field(default_factory=dict)
    fits: Callable[[dict[str, Any]], bool] = lambda values: True

    def write(self, value: Any, to: Arrays, name: str) -> dict[str, Any]:
        given = {key: getattr(value, self.kept_as.get(key, key)) for key in self.fields}
        return {
            key: self.fields[key].write(item, to, f"{name}.{key}") for key, item in given.items()
        }

    def read(self, node: Any, saved: Saved) -> Any:
        if type(node) is not dict or not set(node) <= set(self.fields):
            raise saved.refuse(f"of type {self.made.__name__}")
        # Letters of shapes that are not sizes of the head hold within one record.
        own = replace(saved, sizes=dict(saved.sizes))
        values = {key: self.fields[key].read(item, own.inside(key)) for key, item in node.items()}
        try:
            fits = self.fits(values)
            return self.made(**values) if fits else self._refuse(saved)
        except (TypeError, KeyError) as error:  # a field that has no default is missing
            raise saved.refuse(f"a whole {self.made.__name__}") from error

    def _refuse(self, saved: Saved) -> Any:
        raise saved.refuse(f"of type {self.made.__name__} with parts that fit together")


@dataclass(frozen=True)
class OneOf(Field):
    """An object of one of several classes, by name."""

    records: Mapping[str, Record]

    def write(self, value: Any, to: Arrays, name: str) -> dict[str, Any]:
        kind = next(k for k, record in self.records.items() if type(value) is record.made)
        return {"kind": kind, **self.records[kind].write(value, to, name)}

    def read(self, node: Any, saved: Saved) -> Any:
        match node:
            case {"kind": str(kind), **rest} if kind in self.records:
                return self.records[kind].read(rest, saved)
        raise saved.refuse("one of " + ", ".join(self.records))


@dataclass(frozen=True)
class _Anything(Field):
    """Labels, lists, tuples, mappings and arrays of them, in any nesting."""

    def write(self, value: Any, to: Arrays, name: str) -> Any:
        if isinstance(value, np.ndarray):
            if value.ndim != 1:
                return Array("").write(value, to, name)
            return {"values": VALUES.write(value, to, name)}
        if isinstance(value, Mapping):
            return {"map": MapOf(self).write(value, to, name)}
        if isinstance(value, list):
            return ListOf(self).write(value, to, name)
        if type(value) is tuple:
            return {"list": ListOf(self).write(value, to, name)}
        return LABEL.write(value, to, name)

    def read(self, node: Any, saved: Saved) -> Any:
        if type(node) is list:
            return ListOf(self).read(node, saved)
        match node:
            case {"array": _}:
                return named_array(node, saved)
            case {"values": values}:
                return VALUES.read(values, saved)
            case {"map": pairs}:
                return MapOf(self).read(pairs, saved)
            case {"list": items}:
                return tuple(ListOf(self).read(items, saved))
        return LABEL.read(node, saved)


LABELS = ListOf(LABEL)
ANYTHING = _Anything()
