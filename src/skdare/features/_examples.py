"""What a network is trained on, and a short name for it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdare.features._collection import Collection


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
        16 hexadecimal digits of a SHA-256 of the ids, labels, classes and domains, of the texts
        or how the images were decoded, and of the size of every image file (formats that do not
        compress: also its checksum). Images are not read for it, so one that is exchanged for
        another of the same name and the very same number of bytes goes unnoticed.
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
    """The texts of a collection, ready to train on.

    Parameters
    ----------
    collection : Collection
        Of kind "text", as ``read_collection`` finds it in a table.

    Returns
    -------
    Examples

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skdare.features._examples import text_examples
    >>> from skdare.features._layouts import read_collection
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder, "reviews.csv")
    ...     _ = table.write_text("text,label,domain\\nfine,good,books\\ndull,bad,films\\n")
    ...     text_examples(read_collection(table)).inputs
    array(['fine', 'dull'], dtype=object)
    """
    if collection.kind != "text":
        raise ValueError(f"{collection.path} holds images; decode them with decode(…, size)")
    # Objects, because in an array of strings one long text would widen all rows.
    inputs = np.array(collection.items, dtype=object)
    return examples(collection, inputs, fingerprint(collection, collection.items, "text"))


def examples(collection: Collection, inputs: np.ndarray, fingerprint: str) -> Examples:
    """The rows of a collection with what was made of its items."""
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


def fingerprint(collection: Collection, contents: Sequence[Any], made: str) -> str:
    """A short name for rows, what stands for their content, and how inputs were made of it."""
    held = [
        made,
        collection.classes,
        collection.ids.tolist(),
        collection.labels.tolist(),
        collection.domains.tolist(),
        list(contents),
    ]
    return hashlib.sha256(json.dumps(held).encode()).hexdigest()[:16]
