"""The public surface as text: names, parameters with defaults, methods, properties.

`public_surface.txt` holds what was last accepted; ``python tests/public_surface.py --accept``
rewrites it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("public_surface.txt")
ROOT = FILE.parents[1]
# Modules with an `__all__`.
MODULES = [
    "skdare",
    *(f"skdare.{name}" for name in ("bench", "checking", "data", "displays", "export", "report")),
    "skdare.features",
    "skdare.paper.theory",
]


def surface(module: str) -> list[str]:
    """A line for each name of a module, each parameter of a class, each member."""
    contents = import_module(module)
    lines = [line for name in sorted(contents.__all__) for line in entry(contents, name)]
    return [module, *(f"  {line}" for line in lines)]


def entry(contents: Any, name: str) -> Iterator[str]:
    value = getattr(contents, name)
    if not inspect.isclass(value):
        yield f"{name}{signature(value)}" if callable(value) else name
        return
    yield f"class {name}"
    parameters = inspect.signature(value).parameters if "__init__" in vars(value) else {}
    yield from (f"  {name}({shown(parameter)})" for parameter in parameters.values())
    members: dict[str, Any] = {}
    for base in reversed([c for c in value.__mro__ if c.__module__.startswith("skdare")]):
        members |= {n: m for n, m in vars(base).items() if not n.startswith("_")}
    for member, what in sorted(members.items()):
        if member in parameters or member.startswith("set_"):  # set_fit_request and its like
            continue
        what = getattr(what, "__func__", what)  # of a class method or a static one
        yield f"  {name}.{member}{signature(what) if inspect.isfunction(what) else ''}"


def signature(function: Any) -> str:
    parts, by_name = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not by_name:
            parts.append("*")
            by_name = True
        parts.append(shown(parameter))
    return f"({', '.join(parts)})"


def shown(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    default = parameter.default
    if default is parameter.empty:
        return f"{stars}{parameter.name}"
    plain = default is None or isinstance(default, bool | int | float | str | tuple)
    return f"{parameter.name}={default!r}" if plain else f"{parameter.name}=..."


def accepted() -> dict[str, list[str]]:
    """The lines of each module as they were last accepted."""
    sections = FILE.read_text(encoding="utf-8").strip().split("\n\n") if FILE.exists() else []
    return {lines[0]: lines for lines in (section.split("\n") for section in sections)}


def now() -> dict[str, list[str]]:
    """The lines of each module; of one that needs an extra which is not installed, as accepted."""
    found = accepted()
    for module in MODULES:
        with suppress(ModuleNotFoundError):
            found[module] = surface(module)
    return {module: found[module] for module in MODULES}


if __name__ == "__main__":
    if sys.argv[1:] != ["--accept"]:
        sys.exit(f"this rewrites {FILE.name}: python tests/public_surface.py --accept")
    text = "\n\n".join("\n".join(lines) for lines in now().values())
    FILE.write_text(text + "\n", encoding="utf-8")
