"""JSON that somebody else may have written, checked to have the shape it should.

A shape is a type (``str``, ``int``, ``float``, ``bool``, ``list``, ``dict``) or a union of types;
``[shape]`` is a list of such values, ``{"key": shape}`` an object with at least these keys, and
``{str: shape}`` one with any keys. A whole number will do for ``float``, and must fit 64 bits.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable
from os import PathLike
from reprlib import repr as short
from types import NoneType
from typing import Any, get_args

from skdare.persist._open_file import open_file

# Our own files have a tenth of this; Python itself fails at about a thousand.
_DEEPEST = 100
_CALLED = {
    dict: "an object",
    list: "a list",
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    NoneType: "null",
}


def parse_json(text: str | bytes, shape: Any = dict, *, finite: bool = True) -> Any:
    """Parse a JSON text.

    Parameters
    ----------
    text : str or bytes
    shape : type, list or dict
        What is needed; see the module.
    finite : bool
        Whether to refuse NaN and infinity, which JSON does not have and Python writes.

    Raises
    ------
    ValueError
        With a message that continues a sentence which begins with the name of the file.
    """
    parse_constant = _refuse if finite else float
    parse_float = _finite if finite else float
    try:
        value = json.loads(text, parse_constant=parse_constant, parse_float=parse_float)
        if _is_deeper(value, _DEEPEST):
            raise RecursionError
    except _NotFinite:
        raise
    except RecursionError:
        raise ValueError(f"is nested too deeply, in more than {_DEEPEST} levels") from None
    except UnicodeDecodeError:
        raise ValueError("is not text in UTF-8") from None
    except ValueError as error:
        raise ValueError(f"is not JSON ({error})") from None
    check_shape(value, shape)
    return value


def read_json(
    path: str | PathLike[str], shape: Any = dict, *, remedy: str, finite: bool = True
) -> Any:
    """Read a JSON file; an error names the file, and ends with the remedy."""
    with open_file(path) as file:
        text = file.read()
    try:
        return parse_json(text, shape, finite=finite)
    except ValueError as error:
        raise ValueError(f"{path} {error}; {remedy}") from error


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


class _NotFinite(ValueError):
    """A number that JSON does not have."""


def _refuse(word: str) -> float:
    raise _NotFinite(f"has the number {word}, and numbers must be finite")


def _finite(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _refuse(digits)


def _is_deeper(value: Any, most: int) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        children = (node.values() if isinstance(node, dict) else node for node in level)
        level = [item for items in children for item in items if isinstance(item, dict | list)]
        if not level:
            return False
    return True
