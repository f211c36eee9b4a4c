"""What a network is trained on, and a short name for it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdare.errors import InputError
from skdare.features.examples.collection import Collection


@dataclass(frozen=True, eq=False)
class Examples:
    """What a network is trained on: inputs, labels and domains, row by row.

    Parameters
    ----------
    inputs : uint8 array of shape (n, size, size, 3), or object array of n str
        Images in RGB, possibly a memory map; or texts.
    labels : int64 array of shape (n,)
        Codes into ``classes``.
    domains : str array of shape (n,)
    classes : list of str
    ids : str array of shape (n,)
        Such as ``art/dog/001.jpg``.
    name : str
    kind : "image" or "text"
    fingerprint : str
        16 hexadecimal digits of a SHA-256 over ids, labels, classes and domains, the texts or the
        way images were decoded, and the size of every image file (for formats without compression
        also its checksum). Images are not read for it: an image exchanged for another of the same
        name and number of bytes goes unnoticed.
    """

    inputs: np.ndarray
    labels: np.ndarray
    domains: np.ndarray
    classes: list[str]
    ids: np.ndarray
    name: str
    kind: str
    fingerprint: str


def text_examples(collection: Collection) -> Examples:
    """Texts of a collection, ready to train on.

    Parameters
    ----------
    collection : Collection
        Texts, as ``read_collection`` finds them in a table.

    Returns
    -------
    Examples

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skdare.features import read_collection, text_examples
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder, "reviews.csv")
    ...     _ = table.write_text("text,label,domain\\nfine,good,books\\ndull,bad,films\\n")
    ...     text_examples(read_collection(table)).inputs
    array(['fine', 'dull'], dtype=object)
    """
    if collection.kind != "text":
        raise InputError(f"{collection.path} holds images; decode them with decode(…, size)")
    # Objects, because in an array of strings one long text would widen all rows.
    inputs = np.array(collection.items, dtype=object)
    return examples(collection, inputs, fingerprint(collection, collection.items, "text"))


def examples(collection: Collection, inputs: np.ndarray, fingerprint: str) -> Examples:
    """Rows of a collection with the inputs made from its items."""
    return Examples(
        inputs,
        collection.labels,
        collection.domains,
        collection.classes,
        collection.ids,
        collection.name,
        collection.kind,
        fingerprint,
    )


def fingerprint(collection: Collection, contents: Sequence[Any], method: str) -> str:
    """Short name for rows, their contents, and the method that turns contents into inputs."""
    hashed = [
        method,
        collection.classes,
        collection.ids.tolist(),
        collection.labels.tolist(),
        collection.domains.tolist(),
        list(contents),
    ]
    return hashlib.sha256(json.dumps(hashed).encode()).hexdigest()[:16]
