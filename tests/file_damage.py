"""Trees of JSON that are nearly what they were."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

# What a field of a file may hold instead of what it should.
VALUES: list[Any] = [
    *(None, True, -1, 0, 3, 0.5, 2**63, 10**400, 1e308, -1e-320, float("nan"), float("-inf")),
    *("nan", "", "x", "head", "a\0b", "é", "__class__", "../a.npy", "/etc/passwd", "a" * 300),
    *([], {}, [[]], [[0, 0]], ["a", 1, None], {"pairs": []}, {"pairs": [[1, 2], [1, 3]]}),
    *({"array": "a0"}, {"array": "none"}, {"array": 7}, {"class": "Moments"}),
    {"entries": [1, 2], "dtype": "<M8[D]"},
    {"entries": ["a" * 9000, *("b",) * 900], "dtype": "U"},
    {"entries": [[1]], "dtype": "O"},
    {"entries": [2**70], "dtype": "<M8[ns]"},
    {"entries": [], "dtype": "c"},
    json.loads("[" * 99 + "]" * 99),
]


def forged(tree: Any, rng: np.random.Generator) -> Any:
    """The same tree of JSON, some of its values replaced, exchanged or left out."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.integers(1, 3)):
        places = list(nodes(tree))
        holder, key = places[rng.integers(len(places))]
        match rng.integers(4):
            case 0:
                del holder[key]
            case 1:
                other, which = places[rng.integers(len(places))]
                holder[key] = copy.deepcopy(value_at(other, which))
            case _:
                holder[key] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
    return tree


def nodes(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Where the values of a tree are: what holds them, and under which key."""
    pairs: list[tuple[Any, Any]] = []
    if isinstance(tree, dict | list):
        pairs = list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree))
    for key, value in pairs:
        yield tree, key
        yield from nodes(value)


def value_at(holder: Any, key: Any) -> Any:
    try:
        return holder[key]
    except (KeyError, IndexError):
        return None
