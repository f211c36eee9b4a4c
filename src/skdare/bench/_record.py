"""Records: what one trial was, and its result; flat, one line of JSON each."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass, field, fields
from reprlib import repr as short
from typing import Any, Self

import numpy as np

from skdare.bench._metrics import METRICS
from skdare.persist import check_shape, parse_json

SCHEMA = 1
TASKS = ("classification", "regression")
# Values with this prefix are metrics beside the one that the score is of.
METRIC = "metric:"
# Which rows of the held-out domain are scored: those set aside, the others, or both.
TESTED_ON = ("reserved", "rest", "all")
# What a head has used of the held-out domain.
NOTHING = "nothing"
UNLABELLED = "unlabelled rows"
LABELS = "labels"
# The study of an ablation is called this, followed by its name.
ABLATION = "ablation:"
# Study and head of the network that made the features, scored as it is.
NETWORK = "network"

_JSON_VALUE = str | int | float | bool | None
_TYPES: dict[str, Any] = {"trial": int, "x": float | None, "score": float | None, "seconds": float}
# Types of the other values that are computed with.
_VALUE_TYPES: dict[str, Any] = {
    "n_test": int,
    "correct": str | None,
    "rmse": float | None,
    "majority": float | None,
    "n_groups": int,
    "left_out_rows": int,
    "choice": str,
    "chosen": str,
    "adapted_from": str,
    **{f"score_{rows}": float | None for rows in TESTED_ON},
}
_WORDS = {
    "task": TASKS,
    "status": ("ok", "failed", "given"),
    "uses": (NOTHING, UNLABELLED, LABELS),
    "metric": (*METRICS, "error", "cosine"),
}


@dataclass(frozen=True)
class Record:
    """A finished trial of a bench, and its result.

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
        Value of the number that a study varies.
    status : str
        "ok", "failed", or "given" for a score that was measured elsewhere.
    reason : str
        Why it failed.
    uses : str
        What was used of the held-out domain: "nothing", "unlabelled rows", or "labels".
    metric : str
        That of the score, such as "accuracy" or "r2"; "error" (normalised adjustment error) or
        "cosine".
    score : float or None
        The metric on the held-out domain.
    seconds : float
    values : dict
        Everything else, flat: ``score_reserved``, ``score_rest`` and ``score_all`` (held-out rows
        that were set aside, the others, both), ``score:DOMAIN`` for every domain, ``metric:NAME``
        for every further metric, ``rmse``, ``majority`` (accuracy of always naming the class that
        most training rows have), ``n_groups`` (groups among the test rows), ``left_out_rows``
        (training rows of groups that are scored),
        ``chosen`` and ``choice`` (of a head that chooses: the strategy it used, and why, in
        words), ``adapted_from`` (of an estimator that a user named: its name before it was
        adapted, empty where it was not), ``n_train``, ``n_test``, ``option:NAME``, ``split``,
        ``tested_on``, ``warnings``, ``version:PACKAGE``, ``features_of`` ("data", "held-out
        domain" or "trial": what has features of its own) and, for classifiers, ``correct``: which
        test rows were right, packed.
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
        """One line of JSON, all fields side by side."""
        columns = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "values"}
        return json.dumps({"schema": SCHEMA, **columns, **self.values}, ensure_ascii=False)

    @classmethod
    def from_line(cls, line: str) -> Self:
        """Read the record that was written as this line."""
        values = parse_json(line, {str: _JSON_VALUE})
        if values.pop("schema", None) != SCHEMA:
            raise ValueError(f"is not a record of schema {SCHEMA}")
        names = [f.name for f in fields(cls) if f.name != "values"]
        check_shape(values, {name: _TYPES.get(name, str) for name in names})
        check_shape(values, {name: kind for name, kind in _VALUE_TYPES.items() if name in values})
        for name, value in values.items():
            if name.startswith(METRIC):
                check_shape({name: value}, {name: float | None})
        for name, words in _WORDS.items():
            if values[name] not in words:
                raise ValueError(
                    f"has {name} {values[name]!r}, and one of {', '.join(words)} is needed"
                )
        if values.get("correct") is not None:
            unpack_bits(values["correct"], values.get("n_test", 0))
        return cls(**{name: values.pop(name) for name in names}, values=values)

    @property
    def ok(self) -> bool:
        """Whether there is a score to use."""
        return self.status != "failed" and self.score is not None

    def correct(self) -> np.ndarray | None:
        """Which test rows were predicted right; None where that was not recorded."""
        packed = self.values.get("correct")
        return None if packed is None else unpack_bits(packed, int(self.values["n_test"]))


def pack_bits(flags: np.ndarray) -> str:
    """Booleans as text, compressed."""
    return base64.b64encode(zlib.compress(np.packbits(flags).tobytes(), 9)).decode("ascii")


def unpack_bits(text: str, n: int) -> np.ndarray:
    """The n booleans that `pack_bits` wrote."""
    packed = -(-n // 8)
    try:
        # One byte more than needed shows that there are too many, and bounds what is unpacked.
        raw = zlib.decompressobj().decompress(base64.b64decode(text), packed + 1)
    except (ValueError, zlib.error):
        raw = b""
    if n < 1 or len(raw) != packed:
        raise ValueError(f"has correct {short(text)}, and a packed flag for {n} rows is needed")
    return np.unpackbits(np.frombuffer(raw, dtype=np.uint8), count=n).astype(bool)
