"""Values that a file header may hold, written as JSON and arrays, and checked when read back.

A field writes a value as something that JSON can hold, and puts arrays of numbers aside under a
name. Reading, it refuses what does not fit, with the name of the field. It makes no objects but
those of the classes that it names.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

import numpy as np

# A text array takes the room of its longest entry for each. Beyond this many bytes it may take no
# more than this many times what the file has, or a small file would fill the memory.
_TEXT_BYTES = 1 << 28
_TEXT_FACTOR = 64
_DEEPEST = 40


class FieldError(ValueError):
    """A value that a field cannot hold."""


@dataclass
class HeaderArrays:
    """Arrays put aside while a header is written: each once, however often it occurs."""

    named: dict[str, np.ndarray] = field(default_factory=dict)
    _names: dict[int, str] = field(default_factory=dict)

    def put(self, name: str, array: np.ndarray) -> str:
        """Put an array aside, and return the name it has in the file."""
        name = self._names.setdefault(id(array), name)
        if self.named.setdefault(name, array) is not array:
            raise FieldError(
                f"two arrays would be called {name!r}; rename the step of the pipeline"
            )
        return name


@dataclass(frozen=True)
class ReadContext:
    """The arrays of a file whose header is read, the sizes of axes so far, and where we are.

    ``sizes`` are by the letters that `ArrayOf` gives its axes; ``path`` leads to the value that is
    read, for messages.
    """

    arrays: Mapping[str, np.ndarray]
    sizes: dict[str, int]
    path: str = ""
    depth: int = 0

    def inside(self, name: str) -> ReadContext:
        """The context of a value inside this one."""
        if self.depth > _DEEPEST:
            raise FieldError("its values are nested too deeply")
        path = f"{self.path}.{name}" if self.path else name
        return replace(self, path=path, depth=self.depth + 1)

    def refuse(self, needed: str) -> FieldError:
        """The error for a value that is not what is needed."""
        return FieldError(f"{self.path} is not {needed}")


class Field(ABC):
    """A kind of value, written to JSON and read back."""

    @abstractmethod
    def write(self, value: Any, arrays: HeaderArrays, name: str) -> Any:
        """The value as JSON; arrays are put aside under names that begin with ``name``."""

    @abstractmethod
    def read(self, node: Any, context: ReadContext) -> Any:
        """The value that was written, or `FieldError`."""


@dataclass(frozen=True)
class _Plain(Field):
    """A number, text or flag; NaN and infinity, where they are allowed, are words."""

    kinds: tuple[type, ...]
    called: str
    finite: bool = True

    def write(self, value: Any, arrays: HeaderArrays, name: str) -> Any:
        value = value.item() if isinstance(value, np.generic) else value
        is_word = type(value) is float and not math.isfinite(value)
        if type(value) not in self.kinds or (is_word and self.finite):
            raise FieldError(
                f"{name} is {value!r}, which cannot be saved; it must be {self.called}"
            )
        return str(value) if is_word else value

    def read(self, node: Any, context: ReadContext) -> Any:
        if not self.finite and node in ("nan", "inf", "-inf"):
            return float(node)
        if type(node) not in self.kinds or (type(node) is int and node.bit_length() > 63):
            raise context.refuse(self.called)
        return node


@dataclass(frozen=True)
class AxisSize(Field):
    """The size of an axis, by its letter."""

    letter: str

    def write(self, value: Any, arrays: HeaderArrays, name: str) -> int:
        return int(value)

    def read(self, node: Any, context: ReadContext) -> int:
        if type(node) is not int or context.sizes.setdefault(self.letter, node) != node:
            raise context.refuse(f"{context.sizes.get(self.letter, 'a whole number')}")
        return node


@dataclass(frozen=True)
class _Label(Field):
    """A label of a domain, a class or a device: text, a number, a date, None, or a tuple."""

    def write(self, value: Any, arrays: HeaderArrays, name: str) -> Any:
        if type(value) in (date, datetime):
            return {"date": value.isoformat(), "kind": type(value).__name__}
        if isinstance(value, np.generic) and value.dtype.kind in "biufmM":
            return {"number": _word(_counted(value).item()), "dtype": value.dtype.name}
        if isinstance(value, str):
            return str(value)
        if type(value) is tuple:
            return {"tuple": [self.write(item, arrays, name) for item in value]}
        if value is not None and type(value) not in (bool, int, float):
            raise FieldError(
                f"{name} has the label {value!r}, a {type(value).__name__}, which cannot be saved; "
                "use text or numbers"
            )
        return {"number": str(value)} if value != value or value in _INFINITIES else value

    def read(self, node: Any, context: ReadContext) -> Any:
        if node is None or type(node) in (bool, int, float, str):
            return node
        match node:
            case {"date": str(text), "kind": str(kind)} if kind in _DATES:
                return _dated(text, _DATES[kind], context)
            case {"tuple": list(items)}:
                return tuple(self.read(item, context.inside("tuple")) for item in items)
            case {"number": "nan" | "inf" | "-inf" as word}:
                number: Any = float(word)
            case {"number": bool() | int() | float() as number}:
                pass
            case _:
                raise context.refuse("a label")
        dtype = node.get("dtype")
        if dtype is None:
            return number
        if type(dtype) is not str or dtype not in _SCALARS | _INSTANTS:
            raise context.refuse("a label")
        try:
            if dtype in _INSTANTS:
                return np.array(number, np.int64).astype(dtype)[()]
            return np.dtype(dtype).type(number)
        except (OverflowError, ValueError):
            raise context.refuse(f"a {dtype}") from None


_DATES: dict[str, Callable[[str], Any]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
}


def _dated(text: str, read: Callable[[str], Any], context: ReadContext) -> Any:
    try:
        return read(text)
    except (ValueError, OverflowError):
        raise context.refuse("a date") from None


_INFINITIES = (math.inf, -math.inf)
_SCALARS = {
    "bool",
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    *(f"float{bits}" for bits in (16, 32, 64)),
}


# NumPy's dates and time spans, which are whole numbers of a unit.
_INSTANTS = {
    f"{kind}64[{unit}]"
    for kind in ("datetime", "timedelta")
    for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns")
}


def _counted(values: Any) -> Any:
    """Dates and time spans as whole numbers; other values unchanged."""
    return values.astype(np.int64) if values.dtype.kind in "mM" else values


def _word(number: Any) -> Any:
    return str(number) if isinstance(number, float) and not math.isfinite(number) else number


@dataclass(frozen=True)
class ArrayOf(Field):
    """An array of numbers; its shape has a letter for each axis, equal letters for equal sizes."""

    shape: str

    def write(self, value: Any, arrays: HeaderArrays, name: str) -> Any:
        value = np.asarray(value) if not isinstance(value, np.ndarray) else value
        if value.dtype.kind not in "biuf" or value.dtype.itemsize > 8:
            raise FieldError(f"{name} is an array of {value.dtype}, and only numbers can be saved")
        return {"array": arrays.put(name, value)}

    def read(self, node: Any, context: ReadContext) -> np.ndarray:
        array = named_array(node, context)
        if array.ndim != len(self.shape):
            raise context.refuse(f"an array with {len(self.shape)} axes")
        for letter, size in zip(self.shape, array.shape, strict=True):
            if context.sizes.setdefault(letter, size) != size:
                raise context.refuse(
                    f"an array of the right shape: it has {array.shape}, and its axis {letter} "
                    f"must have {context.sizes[letter]}"
                )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise context.refuse("an array of finite numbers")
        return array


def named_array(node: Any, context: ReadContext) -> np.ndarray:
    match node:
        case {"array": str(name)} if name in context.arrays:
            return context.arrays[name]
    raise context.refuse("an array of the file")


@dataclass(frozen=True)
class _Values(Field):
    """A one-dimensional array of classes or names: text, numbers or labels."""

    def write(self, value: Any, arrays: HeaderArrays, name: str) -> Any:
        if value.dtype.kind in "biufmM":
            values = [_word(v) for v in _counted(value).tolist()]
            return {"dtype": value.dtype.name, "values": values}
        if value.dtype.kind == "U":
            return {"dtype": "str", "values": value.tolist()}
        if value.dtype.kind != "O":
            raise FieldError(
                f"{name} is an array of {value.dtype}; only text and numbers can be saved"
            )
        return {"dtype": "object", "values": [LABEL.write(v, arrays, name) for v in value]}

    def read(self, node: Any, context: ReadContext) -> np.ndarray:
        match node:
            case {"dtype": str(dtype), "values": list(values)}:
                pass
            case _:
                raise context.refuse("a list of values")
        if dtype == "object":
            objects = np.empty(len(values), dtype=object)
            objects[:] = [LABEL.read(value, context) for value in values]
            return objects
        if dtype == "str" and all(type(value) is str for value in values):
            return _text(values, context)
        if dtype not in _SCALARS | _INSTANTS or not all(
            self._fits(value, dtype) for value in values
        ):
            raise context.refuse("a list of values of one kind")
        try:
            if dtype in _INSTANTS:
                return np.array(values, np.int64).astype(dtype)
            return np.array([float(v) if isinstance(v, str) else v for v in values], dtype=dtype)
        except OverflowError:
            raise context.refuse(f"a list of {dtype}") from None

    @staticmethod
    def _fits(value: Any, dtype: str) -> bool:
        if dtype == "bool":
            return type(value) is bool
        if dtype.startswith("float"):
            return type(value) in (int, float) or value in ("nan", "inf", "-inf")
        return type(value) is int


def _text(values: list[str], context: ReadContext) -> np.ndarray:
    size = 4 * len(values) * max(map(len, values), default=0)
    if size > max(_TEXT_BYTES, _TEXT_FACTOR * sum(map(len, values))):
        raise context.refuse("text of about the same length")
    return np.array(values, dtype=str)


NUMBER = _Plain((int, float), "a finite number")
ANY_NUMBER = _Plain((int, float), "a number", finite=False)
INTEGER = _Plain((int,), "a whole number")
FLAG = _Plain((bool,), "true or false")
TEXT = _Plain((str,), "text")
LABEL = _Label()
VALUES = _Values()
