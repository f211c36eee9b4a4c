"""Rows of a new domain in memory, and the labels that some of them have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from skdare._input_error import InputError
from skdare.cli._label_file import LabelFile
from skdare.cli._output import say
from skdare.cli._saved_model import SavedModel

if TYPE_CHECKING:
    import numpy as np

LABELS = click.option(
    "--labels",
    type=click.Path(),
    help="CSV file with the columns id and label: labels of rows that were drawn at random.",
)
ID = click.option("--id", "id_key", help="Key or column that names rows  [default: their numbers]")


@dataclass(frozen=True, eq=False)
class PartlyLabelledRows:
    """Prepared rows, and their labels.

    Parameters
    ----------
    X : array of shape (n, d)
    y : list of n labels, or None
        None for a row without a label; None without any file of labels.
    """

    X: np.ndarray
    y: list[Any] | None

    @classmethod
    def read(
        cls,
        saved: SavedModel,
        places: Sequence[str],
        *,
        feature_key: str | None,
        labels: str | None,
        id_key: str | None,
        new_classes: bool | None = None,
    ) -> PartlyLabelledRows:
        """Rows of files, and labels by their ids from another; new classes as of `LabelFile`."""
        import numpy as np

        if labels is None and id_key:
            raise InputError("--id is for --labels", "give it, or leave --id out")
        classes = saved.head.classes_.tolist()
        label_file = None if labels is None else LabelFile(labels, classes, new_classes=new_classes)
        if label_file is not None and label_file.was_suggested:
            say(f"note: rows of {labels} were suggested, and are not a random sample", err=True)
        beside = {"id": id_key} if id_key else {}
        chunks = list(saved.chunks(saved.sources(places, feature_key, beside=beside)))
        X = np.concatenate([rows for _, rows in chunks])
        if label_file is None:
            return cls(X, None)
        ids: Any = range(len(X))
        if id_key:
            ids = np.concatenate([chunk.beside["id"] for chunk, _ in chunks])
        y = label_file.of(ids)
        label_file.check()
        return cls(X, y)
