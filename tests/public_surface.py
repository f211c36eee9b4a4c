"""The public surface as text: names, signatures with defaults, fields, methods, properties.

Types are left out: they may become more exact in any release. `public_surface.txt` beside this
holds what was last accepted, and ``--accept`` rewrites it.
"""

from __future__ import annotations

import difflib
import inspect
import re
import sys
import typing
from collections.abc import Iterable, Iterator
from dataclasses import is_dataclass
from enum import Enum
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import Any

import skdare

FILE = Path(__file__).with_name("public_surface.txt")
ACCEPT = "python tests/public_surface.py --accept"
MODULES = ("skdare", *(f"skdare.{name}" for name in skdare._PUBLIC_MODULES))

# What an object does in an expression; how it is printed, compared and pickled is its own affair.
OPERATIONS = (
    *("__add__", "__call__", "__contains__", "__enter__", "__exit__"),
    *("__getitem__", "__iter__", "__len__"),
)


def surface(module: str) -> list[str]:
    """The lines of one public module; what its classes inherit from ours is listed once."""
    contents = import_module(module)
    lines = [line for name in contents.__all__ for line in _entry(contents, name)]
    classes = [value for value in vars_of(contents).values() if inspect.isclass(value)]
    for base in sorted({b for cls in classes for b in _shared_bases(cls)}, key=_name):
        lines += _base(base)
    return [module, *(f"  {line}" for line in lines)]


def vars_of(module: Any) -> dict[str, Any]:
    """Public names of a module, and what they stand for."""
    return {name: getattr(module, name) for name in module.__all__}


def _name(cls: type) -> str:
    return cls.__name__


def _shared_bases(cls: type) -> list[type]:
    """Bases of a class that others share: their names do not begin with an underscore."""
    return [base for base in _ours(cls) if base is not cls and not _name(base).startswith("_")]


def accepted() -> dict[str, list[str]]:
    """The lines of each module as they were last accepted."""
    sections = FILE.read_text("utf-8").strip("\n").split("\n\n") if FILE.exists() else []
    return {lines[0]: lines for lines in (section.split("\n") for section in sections)}


def difference(module: str) -> str:
    """What changed in a module since it was last accepted, as a diff; empty where nothing did."""
    before, after = accepted().get(module, []), surface(module)
    changed = difflib.unified_diff(before, after, "accepted", "now", lineterm="", n=2)
    return "\n".join(changed)


def _entry(module: Any, name: str) -> Iterator[str]:
    value = getattr(module, name)
    if inspect.isclass(value):
        yield from _class(name, value)
    elif inspect.isroutine(value):
        yield f"function {name}{_signature(value)}"
    elif isinstance(value, UnionType) or typing.get_origin(value) is not None:
        yield f"alias {name}"
    elif isinstance(value, dict):
        yield f"constant {name} with {', '.join(map(repr, value))}"
    else:
        yield f"constant {name} = {_shown(value)}"


def _class(name: str, cls: type) -> Iterator[str]:
    if issubclass(cls, BaseException):
        yield f"exception {name}({cls.__base__.__name__})"
        return
    if issubclass(cls, Enum):
        yield f"enum {name}"
        yield from (f"  member {name}.{member}" for member in cls.__members__)
        return
    shared = _shared_bases(cls)
    bases = ", ".join(map(_name, shared))
    yield f"class {name}({bases})" if bases else f"class {name}"
    yield from (_whole(name, line) for line in _constructor(cls))
    members = dict(_own([base for base in _ours(cls) if base not in shared]))
    inherited = dict(_own(_ours(cls)))
    attributes = {a for a in _attributes(inspect.getdoc(cls) or "") if a not in inherited}
    lines = [line for member, value in members.items() for line in _member(member, value)]
    yield from (
        _whole(name, line) for line in sorted([*lines, *map("attribute {}".format, attributes)])
    )


def _base(base: type) -> Iterator[str]:
    """Members that every class with this base has."""
    lines = [line for member, value in _own([base]) for line in _member(member, value)]
    if lines:
        yield f"base {_name(base)}"
        yield from (_whole(_name(base), line) for line in sorted(lines))


def _whole(name: str, line: str) -> str:
    """The line of a member under its whole name, so that a diff can be read by itself."""
    kind, rest = line.split(" ", 1)
    return f"  {kind} {name}.{rest}"


def _constructor(cls: type) -> Iterator[str]:
    """One line for each argument, in their order."""
    if not any("__init__" in vars(base) or hasattr(base, "_fields") for base in _ours(cls)):
        return
    if getattr(cls, "_is_protocol", False):
        return
    kind = "field" if is_dataclass(cls) or hasattr(cls, "_fields") else "parameter"
    for parameter in inspect.signature(cls).parameters.values():
        by_name = " by name" if parameter.kind is parameter.KEYWORD_ONLY else ""
        yield f"{kind} {_argument(parameter)}{by_name}"


def _ours(cls: type) -> list[type]:
    """The class and those of its bases that are this package's."""
    return [base for base in cls.__mro__ if base.__module__.split(".")[0] == "skdare"]


def _own(bases: list[type]) -> Iterator[tuple[str, Any]]:
    """Public members that these classes define, the most derived first."""
    seen: set[str] = set()
    for base in bases:
        for name, value in vars(base).items():
            if name not in seen and (not name.startswith("_") or name in OPERATIONS):
                seen.add(name)
                yield name, value


def _member(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, staticmethod):
        yield f"staticmethod {name}{_signature(value.__func__)}"
    elif isinstance(value, classmethod):
        yield f"classmethod {name}{_signature(value.__func__, bound=True)}"
    elif isinstance(value, property | cached_property):
        yield f"property {name}"
    elif inspect.isfunction(value):
        yield f"method {name}{_signature(value, bound=True)}"


def _signature(function: Any, *, bound: bool = False) -> str:
    shown, by_name = [], False
    for parameter in list(inspect.signature(function).parameters.values())[bound:]:
        if parameter.kind is parameter.KEYWORD_ONLY and not by_name:
            shown.append("*")
        by_name = by_name or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        shown.append(_argument(parameter))
    return f"({', '.join(shown)})"


def _argument(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    has_default = parameter.default is not parameter.empty
    return f"{stars}{parameter.name}" + (f"={_shown(parameter.default)}" if has_default else "")


def _shown(value: Any) -> str:
    """A default that reads the same in every process."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))}{',' * (len(value) == 1)})"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    return getattr(value, "__qualname__", "<made anew>")


def _attributes(docstring: str) -> Iterable[str]:
    """Names in the section of a docstring that lists what a fit leaves."""
    section = re.search(r"^Attributes\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", docstring, re.M | re.S)
    for line in re.findall(r"^\w.*$", section[1], re.M) if section else []:
        yield from (name for name in line.split(" :")[0].split(", ") if name.endswith("_"))


def accept() -> None:
    """Write the surface as it is; a module whose package is not installed stays as it was."""
    sections = accepted()
    for module in MODULES:
        try:
            sections[module] = surface(module)
        except ImportError as error:
            print(f"{module} is left as it was: {error}", file=sys.stderr)
    held = [sections[module] for module in MODULES if module in sections]
    FILE.write_text("\n\n".join("\n".join(lines) for lines in held) + "\n", "utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["--accept"]:
        accept()
    else:
        sys.exit(f"this rewrites {FILE.name}: {ACCEPT}")
