"""Damage: bytes, text and trees of JSON that are nearly what they were."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

# What a field of a file may hold instead of what it should.
VALUES: list[Any] = [None, True, -1, 0, 3, 2**63, 1e308, "nan", "", "x", "head", [], {}, [[]]]
VALUES += [[[0, 0]], 10**400, -1e-320, 0.5, float("nan"), float("-inf"), "é\ud800", "a\0b"]
VALUES += [{"number": 300, "dtype": "int8"}, {"number": "nan", "dtype": "int8"}]
VALUES += [json.loads("[" * 99 + "]" * 99), {"date": "2020-13-01", "kind": "date"}]
VALUES += [{"array": "coef_"}, {"array": "moments_.0.scatter"}, {"tuple": [{"tuple": []}]}]
VALUES += [{"values": {"dtype": "str", "values": ["a" * 9000] + ["b"] * 9000}}, "DARERegressor"]
VALUES += [{"dtype": "float64", "values": [1, "nan"]}, {"number": 3, "dtype": "int8"}, "__class__"]
VALUES += ["../a.npy", "/etc/passwd", "<script>", "a" * 300, "1e999", "00", "-0", ["a", 1, None]]


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Bits flipped, bytes replaced, pieces cut out, doubled or moved."""
    content, n = bytearray(content), max(1, len(content))
    for _ in range(rng.integers(1, 4)):
        a, b = sorted(int(place) for place in rng.integers(0, n, size=2))
        b = min(b, a + 64)
        if not content:
            break
        match rng.integers(7):
            case 0:
                content[a % len(content)] ^= 1 << int(rng.integers(8))
            case 1:
                content[a:b] = rng.bytes(b - a)
            case 2:
                del content[a:b]
            case 3:
                content[a:a] = content[a:b]
            case 4:
                del content[a:]
            case 5:
                content[:8] = int(rng.integers(0, 1 << 62)).to_bytes(8, "little")
            case 6:
                c = int(rng.integers(0, n))
                content[a:b], content[c : c + b - a] = content[c : c + b - a], content[a:b]
    return bytes(content)


def forged(tree: Any, rng: np.random.Generator) -> Any:
    """The same tree of JSON, some of its values replaced, exchanged or left out."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.integers(1, 3)):
        places = list(nodes(tree))
        if not places:
            break
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


NESTED = "[" * 100_000
NO_OBJECTS = [b"", b"null", b"[]", b"3", b"{", b'"a"', b"\xff\xfe{}", b"NaN", b"[[1, 2]]", b"\0"]
NO_OBJECTS += [NESTED.encode(), b'{"a":' * 50_000, b"9" * 5000, b'{"a": 1, "a": 2}']


def as_json(tree: Any) -> bytes:
    """Text of a tree, with whatever Python's JSON lets through."""
    return json.dumps(tree).encode("utf-8", "surrogatepass")


def spoiled_json(content: bytes, rng: np.random.Generator) -> bytes:
    """A JSON file that is damaged as bytes, forged as a tree, or no object at all."""
    match rng.integers(5):
        case 0:
            return damaged(content, rng)
        case 1:
            return NO_OBJECTS[rng.integers(len(NO_OBJECTS))]
        case _:
            return as_json(forged(json.loads(content), rng))
