"""Damage: bytes and trees of JSON that are nearly what they were."""

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


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Bits flipped, bytes replaced, pieces cut out, doubled or moved."""
    changed, n = bytearray(content), max(1, len(content))
    a, b = sorted(int(place) for place in rng.integers(0, n, size=2))
    b = min(b, a + 64)
    match rng.integers(7):
        case 0:
            changed[rng.integers(min(n, 4000))] ^= 1 << int(rng.integers(8))
        case 1:
            changed[a:b] = rng.bytes(b - a)
        case 2:
            del changed[a:b]
        case 3:
            changed[a:a] = changed[a:b]
        case 4:
            del changed[a:]
        case 5:
            changed[:8] = int(rng.integers(0, 1 << 62)).to_bytes(8, "little")
        case 6:
            changed[a] ^= 1 << int(rng.integers(8))
    return bytes(changed)


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
