"""Options from a TOML file: the same names as on the command line, which overrules the file."""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from pathlib import Path
from reprlib import repr as short
from typing import Any

import click

from skdare._safe_text import terminal_safe

# Paths in a file are relative to that file.
PATHS = ("features", "pretrained", "source", "cache", "out")
# Tables that stand for repeated NAME=VALUE options.
TABLES = ("set", "end_to_end", "network")


def read_config(context: click.Context, parameter: click.Parameter, path: str | None) -> None:
    """Make what the file says, where one is given, the defaults of this command."""
    if path is not None:
        load_config(context, parameter, path)


def load_config(context: click.Context, parameter: click.Parameter, path: str) -> None:
    """Make what the file says the defaults of this command; `parameter` named the file."""
    from skdare.persist import open_file

    try:
        with open_file(path) as file:
            found = tomllib.load(file)
    except (OSError, ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise click.BadParameter(f"{path} cannot be read as TOML: {why}") from error
    known = {_spelling(p): p for p in context.command.params if p is not parameter}
    defaults: dict[str, Any] = {}
    for key, value in found.items():
        name = key.replace("-", "_")
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean `{close[0]}`?" if close else f"known are {', '.join(known)}"
            raise click.BadParameter(f"{path} has an unknown key `{terminal_safe(key)}`; {hint}")
        chosen = known[name]
        try:
            defaults[str(chosen.name)] = _as_given(name, value, chosen, Path(path).parent)
        except _Unfit as error:
            raise click.BadParameter(f"{path} has `{name}` {error}") from None
    context.default_map = {**(context.default_map or {}), **defaults}


def _spelling(parameter: click.Parameter) -> str:
    """The name by which a parameter is known: that of its option."""
    return parameter.opts[0].lstrip("-").replace("-", "_")


def _as_given(name: str, value: Any, parameter: click.Parameter, folder: Path) -> Any:
    """A value of the file as it would stand on the command line."""
    many = getattr(parameter, "multiple", False) or parameter.nargs != 1
    if name in PATHS:
        placed = _places(name, value, folder)
        return placed if many else placed[0]
    if name in TABLES and isinstance(value, dict):
        return [f"{key}={_text(v)}" for key, v in _flat(value)]
    if isinstance(value, dict):
        raise _Unfit("that is a table; it must be one value")
    texts = [_text(item) for item in (value if isinstance(value, list) else [value])]
    if many:
        return texts
    return value if isinstance(value, bool) else ",".join(texts)


def _places(name: str, value: Any, folder: Path) -> list[str]:
    """Paths beside the file; a table of them has a held-out domain for each."""
    if value and isinstance(value, dict):
        if not all(isinstance(place, str) for place in value.values()):
            raise _Unfit(f"{short(value)}; it must be a path, or a table of paths")
        return [f"{domain}={folder / place}" for domain, place in value.items()]
    many = [value] if isinstance(value, str) else value
    if not isinstance(many, list) or not many or not all(isinstance(p, str) for p in many):
        raise _Unfit(f"{short(value)}; it must be a path, or a table of paths")
    return [str(folder / place) for place in many]


def _flat(table: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Nested tables as dotted names."""
    pairs: list[tuple[str, Any]] = []
    for key, value in table.items():
        name = f"{prefix}{key}"
        pairs += _flat(value, f"{name}.") if isinstance(value, dict) else [(name, value)]
    return pairs


class _Unfit(ValueError):
    """A value that no option can have."""


def _text(value: Any) -> str:
    """A value as it is written on the command line."""
    if not isinstance(value, str | bool | int | float):
        kind = type(value).__name__
        raise _Unfit(f"{short(value)}, a {kind}; it must be text, a number, or true or false")
    if isinstance(value, int) and value.bit_length() > 63:
        raise _Unfit(f"{short(value)}; a whole number has at most 64 bits")
    return str(value).lower() if isinstance(value, bool) else str(value)
