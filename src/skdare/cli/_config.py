"""Options from a TOML file: the same names as on the command line, which overrules the file."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
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
    """Callback of an option that may name a file."""
    if path is not None:
        load_config(context, parameter, path)


CONFIG = click.option(
    "--config",
    callback=read_config,
    is_eager=True,
    expose_value=False,
    type=click.Path(),
    help="A TOML file with these options by name; the command line overrules it.",
)


def load_config(
    context: click.Context,
    parameter: click.Parameter,
    path: str,
    tables: Sequence[str] = (),
) -> dict[str, dict[str, Any]]:
    """Make the values in the file the defaults of this command; `parameter` named the file.

    Tables of these names are no options: they are returned as they are, and empty where missing.
    """
    from skdare.persist import open_file

    try:
        with open_file(path) as file:
            content = tomllib.load(file)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise click.BadParameter(f"{path} cannot be read: {reason}") from error
    except (ValueError, RecursionError) as error:
        cause = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise click.BadParameter(f"{path} cannot be read as TOML: {cause}") from error
    apart = {name: content.pop(name, {}) for name in tables}
    for name, table in apart.items():
        if not isinstance(table, dict):
            raise click.BadParameter(f"{path} has `{name}` {short(table)}; it must be a table")
    parameters = {_key(p): p for p in context.command.params if p is not parameter}
    defaults: dict[str, Any] = {}
    for key, value in content.items():
        name = key.replace("-", "_")
        if name not in parameters:
            known = [*parameters, *tables]
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean `{close[0]}`?" if close else f"keys are {', '.join(known)}"
            raise click.BadParameter(f"{path} has an unknown key `{terminal_safe(key)}`; {hint}")
        chosen = parameters[name]
        try:
            defaults[str(chosen.name)] = _as_typed(name, value, chosen, Path(path).parent)
        except _WrongValue as error:
            raise click.BadParameter(f"{path} has `{name}` {error}") from None
    context.default_map = {**(context.default_map or {}), **defaults}
    return apart


def _key(parameter: click.Parameter) -> str:
    """Key of a parameter in a file: the name of its option."""
    return parameter.opts[0].lstrip("-").replace("-", "_")


def _as_typed(name: str, value: Any, parameter: click.Parameter, folder: Path) -> Any:
    """A value of the file as it would be typed on the command line."""
    many = getattr(parameter, "multiple", False) or parameter.nargs != 1
    if name == "backbone" and isinstance(value, str):
        return _backbone(value, folder)
    if name in PATHS:
        paths = _paths(value, folder)
        return paths if many else paths[0]
    if name in TABLES and isinstance(value, dict):
        return [f"{key}={_text(v)}" for key, v in _flat(value)]
    if isinstance(value, dict):
        raise _WrongValue("that is a table; it must be one value")
    texts = [_text(item) for item in (value if isinstance(value, list) else [value])]
    if many:
        return texts
    return value if isinstance(value, bool) else ",".join(texts)


def _backbone(name: str, folder: Path) -> str:
    """Name of a backbone; of a network in a folder, which is relative to that of the file."""
    family, _, place = name.partition(":")
    return f"hf:{folder / place}" if family == "hf" and (folder / place).is_dir() else name


def _paths(value: Any, folder: Path) -> list[str]:
    """Paths relative to the file's folder; a table has one for each held-out domain."""
    if value and isinstance(value, dict) and all(isinstance(p, str) for p in value.values()):
        return [f"{domain}={folder / path}" for domain, path in value.items()]
    paths = [value] if isinstance(value, str) else value
    if not isinstance(paths, list) or not paths or not all(isinstance(p, str) for p in paths):
        raise _WrongValue(f"{short(value)}; it must be a path, or a table of paths")
    return [str(folder / path) for path in paths]


def _flat(table: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Values of nested tables by dotted names."""
    pairs: list[tuple[str, Any]] = []
    for key, value in table.items():
        name = f"{prefix}{key}"
        pairs += _flat(value, f"{name}.") if isinstance(value, dict) else [(name, value)]
    return pairs


class _WrongValue(ValueError):
    """A value that an option cannot have."""


def _text(value: Any) -> str:
    """Text of a value on the command line."""
    if not isinstance(value, str | bool | int | float):
        kind = type(value).__name__
        raise _WrongValue(f"{short(value)}, a {kind}; it must be text, a number, or true or false")
    if isinstance(value, int) and value.bit_length() > 63:
        raise _WrongValue(f"{short(value)}; a whole number has at most 64 bits")
    return str(value).lower() if isinstance(value, bool) else str(value)
