"""Records: what one trial was, and what came of it; flat, and kept one a line."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass, field, fields
from reprlib import repr as short
from typing import Any, Self

import numpy as np

from skdare.persist import check_shape, parse_json

SCHEMA = 1
METRICS = {"classification": "accuracy", "regression": "r2"}
# Which rows of the held-out domain are scored: those set aside, the others, or both.
TESTED_ON = ("reserved", "rest", "all")
# What of the held-out domain a head has seen.
NOTHING, UNLABELLED, LABELS = "nothing", "unlabelled rows", "labels"
# What the study of an ablation is called: this, and its name.
ABLATION = "ablation:"
# The network that made the features, scored as it is: its study and its head.
NETWORK = "network"

_PLAIN = str | int | float | bool | None
_TYPES: dict[str, Any] = {"trial": int, "x": float | None, "score": float | None, "seconds": float}
# Of other values those that are computed with.
_KNOWN: dict[str, Any] = {
    "n_test": int,
    "correct": str | None,
    "rmse": float | None,
    **{f"score_{rows}": float | None for rows in TESTED_ON},
}
_WORDS = {
    "task": tuple(METRICS),
    "status": ("ok", "failed", "given"),
    "uses": (NOTHING, UNLABELLED, LABELS),
    "metric": (*METRICS.values(), "error", "cosine"),
}


@dataclass(frozen=True)
class Record:
    """One finished trial.

    Parameters
    ----------
    key : str
        Hash of everything that decides the result: a trial whose key is on file is not run again.
    study : str
        "main", "ceiling", "network" (fine-tuned on the training domains, and scored as it is),
        "curve", "adjustment", "alignment", or the name of an ablation.
    data : str
        Name of the data set.
    features : str
        "given", or "pretrained" where a ceiling was trained on those.
    protocol : str
        "default" or "paper".
    task : str
        "classification" or "regression".
    head : str
    held_out : str
        The domain that was held out.
    trial : int
        Number of the trial; it seeds the split.
    x : float or None
        Where a study varies one number: its value.
    status : str
        "ok", "failed", or "given" for a number that was not measured here.
    reason : str
        Why it failed.
    uses : str
        What of the held-out domain was used: "nothing", "unlabelled rows", or "labels".
    metric : str
        "accuracy", "r2", "error" (normalised adjustment error) or "cosine".
    score : float or None
        The metric on the held-out domain.
    seconds : float
    values : dict
        Everything else, flat: ``score_reserved``, ``score_rest`` and ``score_all`` (held-out rows
        that were set aside, the others, both), ``score:DOMAIN`` for every domain, ``rmse``,
        ``n_train``, ``n_test``, ``option:NAME``, ``split``, ``tested_on``, ``warnings``,
        ``version:PACKAGE``, ``features_of`` ("data", "held-out domain" or "trial": what has
        features of its own) and, for classifiers, ``correct``: which test rows were right, packed.
    """

    key: str
    study: str
    data: str
    features: str
    protocol: str
    task: str
    head: str
    held_out: str
    trial: int
    x: float | None
    status: str
    reason: str
    uses: str
    metric: str
    score: float | None
    seconds: float
    values: dict[str, Any] = field(default_factory=dict)

    def to_line(self) -> str:
        """As one line of JSON, all fields side by side."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "values"}
        return json.dumps({"schema": SCHEMA, **own, **self.values}, ensure_ascii=False)

    @classmethod
    def from_line(cls, line: str) -> Self:
        """The record that was written as this line."""
        found = parse_json(line, {str: _PLAIN})
        if found.pop("schema", None) != SCHEMA:
            raise ValueError(f"is no record of schema {SCHEMA}")
        names = [f.name for f in fields(cls) if f.name != "values"]
        check_shape(found, {name: _TYPES.get(name, str) for name in names})
        check_shape(found, {name: kind for name, kind in _KNOWN.items() if name in found})
        for name, words in _WORDS.items():
            if found[name] not in words:
                raise ValueError(
                    f"has {name} {found[name]!r}, and one of {', '.join(words)} is needed"
                )
        if found.get("correct") is not None:
            unpack_bits(found["correct"], found.get("n_test", 0))
        return cls(**{name: found.pop(name) for name in names}, values=found)

    @property
    def ok(self) -> bool:
        """Whether there is a score to use."""
        return self.status != "failed" and self.score is not None

    def correct(self) -> np.ndarray | None:
        """Which test rows were predicted right, where that was kept."""
        packed = self.values.get("correct")
        return None if packed is None else unpack_bits(packed, int(self.values["n_test"]))


def pack_bits(flags: np.ndarray) -> str:
    """Booleans as text, compressed."""
    return base64.b64encode(zlib.compress(np.packbits(flags).tobytes(), 9)).decode("ascii")


def unpack_bits(text: str, n: int) -> np.ndarray:
    """The n booleans that `pack_bits` wrote."""
    packed = -(-n // 8)
    try:
        # One byte more than there should be tells that there are too many, however many there are.
        raw = zlib.decompressobj().decompress(base64.b64decode(text), packed + 1)
    except (ValueError, zlib.error):
        raw = b""
    if n < 1 or len(raw) != packed:
        raise ValueError(f"has correct {short(text)}, and a packed flag for {n} rows is needed")
    return np.unpackbits(np.frombuffer(raw, dtype=np.uint8), count=n).astype(bool)
