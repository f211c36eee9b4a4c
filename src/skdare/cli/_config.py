"""Options from a TOML file: the same names as on the command line, which overrules the file."""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

# Paths in a file are relative to that file.
PATHS = ("features", "pretrained", "out")
# Tables that stand for repeated NAME=VALUE options.
TABLES = ("set", "end_to_end")


def read_config(context: click.Context, parameter: click.Parameter, path: str | None) -> None:
    """Make what the file says the defaults of this command."""
    if path is None:
        return
    try:
        found = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise click.BadParameter(f"{path} cannot be read as TOML: {error}") from error
    known = {_spelling(p): p for p in context.command.params if p is not parameter}
    defaults: dict[str, Any] = {}
    for key, value in found.items():
        name = key.replace("-", "_")
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean `{close[0]}`?" if close else f"known are {', '.join(known)}"
            raise click.BadParameter(f"{path} has an unknown key `{key}`; {hint}")
        chosen = known[name]
        defaults[str(chosen.name)] = _as_given(name, value, chosen, Path(path).parent)
    context.default_map = {**(context.default_map or {}), **defaults}


def _spelling(parameter: click.Parameter) -> str:
    """The name by which a parameter is known: that of its option."""
    return parameter.opts[0].lstrip("-").replace("-", "_")


def _as_given(name: str, value: Any, parameter: click.Parameter, folder: Path) -> Any:
    """A value of the file as it would stand on the command line."""
    if name in TABLES and isinstance(value, dict):
        return [f"{key}={_text(v)}" for key, v in _flat(value)]
    if name in PATHS:
        many = [value] if isinstance(value, str) else value
        if isinstance(many, dict):
            many = [f"{domain}={place}" for domain, place in many.items()]
        placed = [_beside(str(place), folder) for place in many]
        return placed if parameter.multiple or parameter.nargs != 1 else placed[0]
    if isinstance(value, list) and not (parameter.multiple or parameter.nargs != 1):
        return ",".join(_text(item) for item in value)
    if isinstance(value, dict):
        raise click.BadParameter(f"`{name}` is a table; it must be one value")
    return value


def _flat(table: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Nested tables as dotted names."""
    pairs: list[tuple[str, Any]] = []
    for key, value in table.items():
        name = f"{prefix}{key}"
        pairs += _flat(value, f"{name}.") if isinstance(value, dict) else [(name, value)]
    return pairs


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _beside(place: str, folder: Path) -> str:
    domain, equals, path = place.rpartition("=")
    return f"{domain}{equals}{folder / path}"
