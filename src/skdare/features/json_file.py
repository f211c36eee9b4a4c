"""JSON from any source, checked to have the shape that it should.

A shape is a type (``str``, ``int``, ``float``, ``bool``, ``list``, ``dict``) or a union of types;
``[shape]`` is a list of such values, ``{"key": shape}`` an object with at least these keys, and
``{str: shape}`` one with any keys. A whole number will do for ``float``.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from os import PathLike
from pathlib import Path
from reprlib import repr as short
from types import NoneType
from typing import Any, get_args

from skdare.errors import InputError

_CALLED = {
    dict: "an object",
    list: "a list",
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    NoneType: "null",
}


def read_json(path: str | PathLike[str], shape: Any = dict, *, remedy: str) -> Any:
    """Read a JSON file; an error names the file, and ends with the remedy."""
    text = Path(path).read_bytes()
    try:
        value = _parsed(text)
        check_shape(value, shape)
    except ValueError as error:
        raise InputError(f"{path} {error}", remedy) from error
    return value


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("is not text in UTF-8") from None
    except ValueError as error:
        raise ValueError(f"is not JSON ({error})") from None


def check_shape(value: Any, shape: Any, path: str = "") -> None:
    """Refuse a value of another shape; ``path`` says where in the document it is."""
    prefix = f"{path}." if path else ""
    if isinstance(shape, dict):
        _check_type(value, (dict,), path)
        for key, inner in shape.items():
            if key is not str and key not in value:
                raise ValueError(f"lacks {prefix}{key}")
            for name in value if key is str else [key]:
                check_shape(value[name], inner, f"{prefix}{name}")
    elif isinstance(shape, list):
        _check_type(value, (list,), path)
        for place, item in enumerate(value):
            check_shape(item, shape[0], f"{prefix}{place}")
    else:
        _check_type(value, get_args(shape) or (shape,), path)


def check_keys(keys: Iterable[str], known: Collection[str], path: str = "") -> None:
    """Refuse a key that is not known; ``path`` says where in the document it is."""
    prefix = f"{path}." if path else ""
    for key in keys:
        if key not in known:
            raise ValueError(f"has an unknown key `{prefix}{key}`; keys are {', '.join(known)}")


def _check_type(value: Any, types: tuple[type, ...], path: str) -> None:
    is_whole = type(value) is int and value.bit_length() < 64
    if type(value) in types and (is_whole or type(value) is not int):
        return
    if not (is_whole and float in types):
        needed = " or ".join(_CALLED[kind] for kind in types)
        raise ValueError(f"has {f'{path} ' if path else ''}{short(value)}, and {needed} is needed")
