"""Saved models, and the files that commands may write to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skdare._input_error import InputError
from skdare.cli._errors import check_writable

if TYPE_CHECKING:
    import numpy as np

    from skdare.datasets._row_source import RowChunk, RowSource

# Files of every version of skdare have this in their first bytes. A file of a later version has it
# too, and `inspect_file` refuses that one as it does foreign files.
_MARK = b'"format":"skdare"'
_MARK_WITHIN = 256


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A fitted head, or a pipeline that ends in one.

    Parameters
    ----------
    path : str
        Where it was read from.
    model : head or Pipeline
    """

    path: str
    model: Any

    @classmethod
    def read(cls, path: str) -> SavedModel:
        """Model in a file that `skdare fit` or ``head.save`` wrote."""
        import skdare

        kind = kind_of(path)
        if kind not in (None, "head"):
            raise InputError(
                f"{path} holds the state of a stream ({kind}), not a head",
                "name the file of the head that it was begun with",
            )
        return cls(path, skdare.load(path))

    @property
    def steps(self) -> list[tuple[str, Any]]:
        """Named steps: those that prepare rows, in order, and the head last."""
        return getattr(self.model, "steps", [("head", self.model)])

    @property
    def head(self) -> Any:
        """The head, which is the last step of a pipeline."""
        return self.steps[-1][1]

    @property
    def names(self) -> list[str] | None:
        """Names of the features, where the model has them."""
        names = getattr(self.model, "feature_names_in_", None)
        if names is None:  # a head that prepares its rows was given them by name
            names = getattr(self.head.preparation_, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    @property
    def label_names(self) -> dict[str, str]:
        """Names of the columns of targets and domains, where the head knows them."""
        attributes = {"target": "target_name_", "domains": "domain_name_"}
        names = {role: getattr(self.head, name, None) for role, name in attributes.items()}
        return {role: name for role, name in names.items() if name is not None}

    @property
    def features(self) -> int:
        """Number of features that it takes."""
        return int(self.model.n_features_in_)

    @property
    def _imputes(self) -> bool:
        return any(hasattr(step, "statistics_") for _, step in self.steps[:-1])

    def with_head(self, head: Any) -> Any:
        """The model with another head in its place."""
        if self.model is self.head:
            return head
        return type(self.model)([*self.steps[:-1], (self.steps[-1][0], head)])

    def prepared(self, X: np.ndarray) -> np.ndarray:
        """Rows as the head takes them."""
        from skdare.datasets._lazy_rows import transformed

        return transformed(self.steps[:-1], X)

    def sources(self, places: Sequence[str], key: str | None, **beside: Any) -> list[RowSource]:
        """Sources of the rows in these files; they must have as many features as the head."""
        from skdare.datasets._row_source import RowSource

        like_fit: dict[str, Any] = {"names": self.names, "usual": self.label_names}
        sources = [RowSource(place, key=key, **like_fit, **beside) for place in places]
        for source in sources:
            if source.features != self.features:
                raise InputError(
                    f"{source.path} has {source.features} features and {self.path} was fitted to "
                    f"{self.features}",
                    "name the columns or the array of these with --feature-key",
                )
        return sources

    def chunks(self, sources: Sequence[RowSource]) -> Iterator[tuple[RowChunk, np.ndarray]]:
        """Chunks of all sources, each with its prepared rows."""
        for source in sources:
            for chunk in source.chunks():
                self._refuse_missing(chunk, source)
                yield chunk, self.prepared(chunk.X)

    def _refuse_missing(self, chunk: RowChunk, source: RowSource) -> None:
        import numpy as np

        missing = np.isnan(chunk.X)
        if self._imputes or not missing.any():
            return
        row, column = np.argwhere(missing)[0]
        name = repr(self.names[column]) if self.names else f"feature {column}"
        raise InputError(
            f"{source.place(chunk.start + int(row))} of {source.path} has no value for {name}, and "
            f"{self.path} does not fill missing values",
            "drop such rows, or fit with --impute median",
        )


def kind_of(path: str) -> str | None:
    """Kind of a saved file by its header: head, adapter or fleet; None for other files."""
    import skdare

    try:
        return str(skdare.inspect_file(path)["kind"])
    except (ValueError, OSError):
        return None


def check_adaptable(saved: SavedModel, command: str) -> None:
    """Refuse a head that was saved for predicting only."""
    from skdare.heads._adjusted import AdjustedHead

    if not isinstance(saved.head, AdjustedHead) or saved.head._domain_fit is not None:
        return
    if saved.head.labelled_rows_ is not None:
        raise InputError(
            f"{saved.path} took labels and only predicts, and lacks what {command} needs",
            "use the head that it was adapted from",
        )
    raise InputError(
        f"{saved.path} only predicts, and lacks what {command} needs",
        "fit it again without --not-adaptable",
    )


def check_adjusted_classifier(saved: SavedModel, purpose: str) -> None:
    """Refuse a head that keeps nothing of its domains, or that predicts numbers."""
    from skdare.heads._adjusted import AdjustedHead

    if not isinstance(saved.head, AdjustedHead) or not hasattr(saved.head, "classes_"):
        raise InputError(
            f"{saved.path} holds {type(saved.head).__name__}, which cannot be {purpose}",
            "fit a classifier with --head dare-cv or dare",
        )


def is_saved(path: str) -> bool:
    """Whether skdare wrote this file, be it damaged or of a later version."""
    if not Path(path).is_file():
        return False
    with Path(path).open("rb") as file:
        return _MARK in file.read(_MARK_WITHIN) or kind_of(path) is not None


def check_free(path: str, *inputs: str) -> None:
    """Refuse to replace a file that is read, or one that is not a saved head or stream."""
    refuse_inputs(path, *inputs)
    # Only files are opened: a pipe would wait for somebody to write.
    if Path(path).exists() and not (Path(path).is_file() and kind_of(path)):
        raise InputError(
            f"{path} exists and is not a saved head or stream",
            "name another file, or remove it first",
        )


def check_table(out: str | None, *inputs: str, as_json: bool, spreadsheet_safe: bool) -> None:
    """Refuse a table that cannot be written, or not in the form that is asked for.

    Parameters
    ----------
    out : str, optional
        Its file; None: the standard output.
    *inputs : str
        Files that are read.
    as_json, spreadsheet_safe : bool
        What was asked for.
    """
    if out is not None and as_json:
        raise InputError("--json writes to stdout", "leave it out, or name --out FILE.jsonl")
    if out is not None:
        check_writable(out)
        refuse_inputs(out, *inputs)
    is_csv = not as_json and (out is None or out.lower().endswith((".csv", ".csv.gz")))
    if spreadsheet_safe and not is_csv:
        raise InputError("--spreadsheet-safe is for CSV", "leave it out, or name --out FILE.csv")


def refuse_inputs(path: str, *inputs: str) -> None:
    """Refuse to write to a file that is read."""
    for one in inputs:
        if same_file(path, one):
            raise InputError(f"{path} would replace a file that is read", "name another file")


def same_file(a: str, b: str) -> bool:
    """Whether two paths lead to one file, which need not exist yet."""
    if os.path.exists(a) and os.path.exists(b):
        return os.path.samefile(a, b)
    return os.path.realpath(a) == os.path.realpath(b)


def size(path: str) -> int:
    """Size of a file in bytes."""
    return Path(path).stat().st_size
