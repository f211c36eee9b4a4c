"""Fields that are made of other fields: lists, mappings, and objects of named classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np

from skdare.persist._fields import (
    LABEL,
    VALUES,
    ArrayOf,
    Field,
    HeaderArrays,
    ReadContext,
    named_array,
)


@dataclass(frozen=True)
class Nullable(Field):
    """A value, or None."""

    field: Field

    def write(self, value: Any, arrays: HeaderArrays, name: str) -> Any:
        return None if value is None else self.field.write(value, arrays, name)

    def read(self, node: Any, context: ReadContext) -> Any:
        return None if node is None else self.field.read(node, context)


@dataclass(frozen=True)
class ListOf(Field):
    """A list of values of one kind."""

    field: Field

    def write(self, value: Sequence[Any], arrays: HeaderArrays, name: str) -> list[Any]:
        return [self.field.write(item, arrays, f"{name}.{i}") for i, item in enumerate(value)]

    def read(self, node: Any, context: ReadContext) -> list[Any]:
        if type(node) is not list:
            raise context.refuse("a list")
        return [self.field.read(item, context.inside(str(i))) for i, item in enumerate(node)]


@dataclass(frozen=True)
class TupleOf(Field):
    """A tuple of values, each of its own kind."""

    fields: tuple[Field, ...]

    def write(self, value: tuple[Any, ...], arrays: HeaderArrays, name: str) -> list[Any]:
        pairs = enumerate(zip(self.fields, value, strict=True))
        return [one.write(item, arrays, f"{name}.{i}") for i, (one, item) in pairs]

    def read(self, node: Any, context: ReadContext) -> tuple[Any, ...]:
        if type(node) is not list or len(node) != len(self.fields):
            raise context.refuse(f"a list of {len(self.fields)}")
        pairs = enumerate(zip(self.fields, node, strict=True))
        return tuple(one.read(item, context.inside(str(i))) for i, (one, item) in pairs)


@dataclass(frozen=True)
class MapOf(Field):
    """Values by label, in their order; ``key`` says what a label may be."""

    field: Field
    key: Field = LABEL

    def write(self, value: Mapping[Any, Any], arrays: HeaderArrays, name: str) -> list[Any]:
        pairs = enumerate(value.items())
        return [
            [self.key.write(label, arrays, name), self.field.write(item, arrays, f"{name}.{i}")]
            for i, (label, item) in pairs
        ]

    def read(self, node: Any, context: ReadContext) -> dict[Any, Any]:
        if type(node) is not list or any(type(p) is not list or len(p) != 2 for p in node):
            raise context.refuse("a list of pairs")
        pairs = enumerate(node)
        return {
            self.key.read(label, context): self.field.read(item, context.inside(str(i)))
            for i, (label, item) in pairs
        }


@dataclass(frozen=True)
class EnumMember(Field):
    """A member of an enumeration, by its name."""

    members: type[Enum]

    def write(self, value: Enum, arrays: HeaderArrays, name: str) -> str:
        return value.name

    def read(self, node: Any, context: ReadContext) -> Enum:
        if type(node) is not str or node not in self.members.__members__:
            raise context.refuse(f"of type {self.members.__name__}")
        return self.members[node]


@dataclass(frozen=True)
class ObjectOf(Field):
    """An object of one class, made from its fields.

    Parameters
    ----------
    cls : class
    fields : mapping from str to Field
        By the names of the constructor's arguments. Where a file lacks one, its default is taken.
    attributes : mapping from str to str
        The attribute of an argument, where it has another name.
    is_valid : callable, optional
        Whether the values of all fields go together.
    """

    cls: type
    fields: Mapping[str, Field]
    attributes: Mapping[str, str] = field(default_factory=dict)
    is_valid: Callable[[dict[str, Any]], bool] = lambda values: True

    def write(self, value: Any, arrays: HeaderArrays, name: str) -> dict[str, Any]:
        given = {key: getattr(value, self.attributes.get(key, key)) for key in self.fields}
        return {
            key: self.fields[key].write(item, arrays, f"{name}.{key}")
            for key, item in given.items()
        }

    def read(self, node: Any, context: ReadContext) -> Any:
        if type(node) is not dict or not set(node) <= set(self.fields):
            raise context.refuse(f"of type {self.cls.__name__}")
        # Letters of axes that are new here hold within this object only.
        inner = replace(context, sizes=dict(context.sizes))
        values = {key: self.fields[key].read(item, inner.inside(key)) for key, item in node.items()}
        try:
            if self.is_valid(values):
                return self.cls(**values)
        except (TypeError, KeyError) as error:  # a field that has no default is missing
            raise context.refuse(f"a whole {self.cls.__name__}") from error
        raise context.refuse(f"of type {self.cls.__name__} with parts that fit together")


@dataclass(frozen=True)
class OneOf(Field):
    """An object of one of several classes, by the name of the choice."""

    choices: Mapping[str, ObjectOf]

    def write(self, value: Any, arrays: HeaderArrays, name: str) -> dict[str, Any]:
        kind = next(k for k, choice in self.choices.items() if type(value) is choice.cls)
        return {"kind": kind, **self.choices[kind].write(value, arrays, name)}

    def read(self, node: Any, context: ReadContext) -> Any:
        match node:
            case {"kind": str(kind), **rest} if kind in self.choices:
                return self.choices[kind].read(rest, context)
        raise context.refuse("one of " + ", ".join(self.choices))


@dataclass(frozen=True)
class _Anything(Field):
    """Labels, lists, tuples, mappings and arrays of them, in any nesting."""

    def write(self, value: Any, arrays: HeaderArrays, name: str) -> Any:
        if isinstance(value, np.ndarray):
            if value.ndim != 1:
                return ArrayOf("").write(value, arrays, name)
            return {"values": VALUES.write(value, arrays, name)}
        if isinstance(value, Mapping):
            return {"map": MapOf(self).write(value, arrays, name)}
        if isinstance(value, list):
            return ListOf(self).write(value, arrays, name)
        if type(value) is tuple:
            return {"list": ListOf(self).write(value, arrays, name)}
        return LABEL.write(value, arrays, name)

    def read(self, node: Any, context: ReadContext) -> Any:
        if type(node) is list:
            return ListOf(self).read(node, context)
        match node:
            case {"array": _}:
                return named_array(node, context)
            case {"values": values}:
                return VALUES.read(values, context)
            case {"map": pairs}:
                return MapOf(self).read(pairs, context)
            case {"list": items}:
                return tuple(ListOf(self).read(items, context))
        return LABEL.read(node, context)


LABELS = ListOf(LABEL)


class _Ignored(Field):
    """What an earlier version wrote and nothing reads any more."""

    def write(self, value: Any, arrays: HeaderArrays, name: str) -> Any:
        raise TypeError(f"{name} is only read")

    def read(self, node: Any, context: ReadContext) -> Any:
        return None


ANYTHING = _Anything()
IGNORED = _Ignored()
