"""JSON that somebody else may have written: of the shape it should have, or refused in a sentence.

A shape is a type (``str``, ``int``, ``float``, ``bool``, ``list``, ``dict``) or a union of types;
``[shape]`` is a list of such values, ``{"key": shape}`` an object that has at least these keys, and
``{str: shape}`` one with any keys. A whole number will do for ``float``, and must fit 64 bits.
"""

from __future__ import annotations

import json
import math
from os import PathLike
from reprlib import repr as short
from types import NoneType
from typing import Any, get_args

from skdare.persist._open_file import open_file

# Files of ours have a tenth of this; Python itself ends at about a thousand.
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
    """What a JSON text holds.

    Parameters
    ----------
    text : str or bytes
    shape : type, list or dict
        What is needed; see the module.
    finite : bool
        Whether NaN and infinity, which JSON does not have and Python writes, are refused.

    Raises
    ------
    ValueError
        Says what is wrong, in words that go on from the name of the file.
    """
    constant, number = (_refuse, _finite) if finite else (float, float)
    try:
        found = json.loads(text, parse_constant=constant, parse_float=number)
        if _is_deeper(found, _DEEPEST):
            raise RecursionError
    except _NotFinite:
        raise
    except RecursionError:
        raise ValueError(f"is nested too deeply, in more than {_DEEPEST} levels") from None
    except UnicodeDecodeError:
        raise ValueError("is not text in UTF-8") from None
    except ValueError as error:
        raise ValueError(f"is not JSON ({error})") from None
    check_shape(found, shape)
    return found


def read_json(
    path: str | PathLike[str], shape: Any = dict, *, remedy: str, finite: bool = True
) -> Any:
    """What a JSON file holds; the error names the file, and ends with the remedy."""
    with open_file(path) as file:
        text = file.read()
    try:
        return parse_json(text, shape, finite=finite)
    except ValueError as error:
        raise ValueError(f"{path} {error}; {remedy}") from error


def check_shape(found: Any, shape: Any, at: str = "") -> None:
    """Refuse a value that is of another shape; ``at`` is where it stands."""
    within = f"{at}." if at else ""
    if isinstance(shape, dict):
        _check_kind(found, (dict,), at)
        for key, inner in shape.items():
            if key is not str and key not in found:
                raise ValueError(f"lacks {within}{key}")
            for name in found if key is str else [key]:
                check_shape(found[name], inner, f"{within}{name}")
    elif isinstance(shape, list):
        _check_kind(found, (list,), at)
        for place, item in enumerate(found):
            check_shape(item, shape[0], f"{within}{place}")
    else:
        _check_kind(found, get_args(shape) or (shape,), at)


def _check_kind(found: Any, kinds: tuple[type, ...], at: str) -> None:
    whole = type(found) is int and found.bit_length() < 64
    if type(found) in kinds and (whole or type(found) is not int):
        return
    if not (whole and float in kinds):
        needed = " or ".join(_CALLED[kind] for kind in kinds)
        raise ValueError(f"has {f'{at} ' if at else ''}{short(found)}, and {needed} is needed")


class _NotFinite(ValueError):
    """A number that JSON does not have."""


def _refuse(word: str) -> float:
    raise _NotFinite(f"has the number {word}, and numbers must be finite")


def _finite(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _refuse(digits)


def _is_deeper(found: Any, most: int) -> bool:
    level = [found] if isinstance(found, dict | list) else []
    for _ in range(most):
        inside = (node.values() if isinstance(node, dict) else node for node in level)
        level = [item for items in inside for item in items if isinstance(item, dict | list)]
        if not level:
            return False
    return True
