"""A model from a file, as the commands use it: what prepares rows, and the head."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skdare.cli._table_options import spelled

if TYPE_CHECKING:
    import numpy as np

    from skdare.datasets._row_source import RowChunk, RowSource

# What files of every version of skdare begin with, and within how many bytes: a later version says
# so too, which `inspect_file` refuses like a file that is none of ours.
_MARK, _MARKED = b'"format":"skdare"', 256


@dataclass(frozen=True, eq=False)
class Saved:
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
    def read(cls, path: str) -> Saved:
        """What `skdare fit` or ``head.save`` wrote."""
        import skdare

        return cls(path, skdare.load(path))

    @property
    def steps(self) -> list[tuple[str, Any]]:
        """What prepares rows, in order, and the head last, each with its name."""
        return getattr(self.model, "steps", [("head", self.model)])

    @property
    def head(self) -> Any:
        """The last step."""
        return self.steps[-1][1]

    @property
    def names(self) -> list[str] | None:
        """What the features are called, where that is known."""
        names = getattr(self.model, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    @property
    def features(self) -> int:
        """How many a row has."""
        return int(self.model.n_features_in_)

    @property
    def _fills(self) -> bool:
        return any(hasattr(step, "statistics_") for _, step in self.steps[:-1])

    def with_head(self, head: Any) -> Any:
        """The same model with another head in the place of its own."""
        if self.model is self.head:
            return head
        from sklearn.pipeline import Pipeline

        return Pipeline([*self.steps[:-1], (self.steps[-1][0], head)])

    def prepared(self, X: np.ndarray) -> np.ndarray:
        """Rows as the head wants them."""
        import numpy as np

        if X.dtype == np.float16 and len(self.steps) > 1:
            # A mean of float16 numbers is no float16 number.
            X = X.astype(np.float32)
        for _, step in self.steps[:-1]:
            X = step.transform(X)
        return X

    def sources(self, places: Sequence[str], key: str | None, **beside: Any) -> list[RowSource]:
        """The rows of these files, refused where they are not of this head's features."""
        from skdare.datasets._row_source import RowSource

        try:
            found = [RowSource(place, names=self.names, key=key, **beside) for place in places]
        except ValueError as error:
            raise ValueError(spelled(error)) from error
        for source in found:
            if source.features != self.features:
                raise ValueError(
                    f"{source.path} has {source.features} features and {self.path} was fitted to "
                    f"{self.features}; name the columns or the array of these with --feature-key"
                )
        return found

    def chunks(self, sources: Sequence[RowSource]) -> Iterator[tuple[RowChunk, np.ndarray]]:
        """Chunks of all sources, each with its prepared rows."""
        for source in sources:
            for chunk in source.chunks():
                self._refuse_missing(chunk, source)
                yield chunk, self.prepared(chunk.X)

    def _refuse_missing(self, chunk: RowChunk, source: RowSource) -> None:
        import numpy as np

        missing = np.isnan(chunk.X)
        if self._fills or not missing.any():
            return
        row, column = np.argwhere(missing)[0]
        called = repr(self.names[column]) if self.names else f"feature {column}"
        raise ValueError(
            f"row {chunk.start + row} of {source.path} has no value for {called}, and {self.path} "
            "fills none; drop such rows, or fit with --impute median"
        )


def kind_of(path: str) -> str | None:
    """What a file is by its header: a head, an adapter, a fleet, or None where it is none."""
    import skdare

    try:
        return str(skdare.inspect_file(path)["kind"])
    except (ValueError, OSError):
        return None


def check_adaptable(saved: Saved, what: str) -> None:
    """Refuse a head that was kept for predicting alone."""
    if not hasattr(saved.head, "moments_"):
        raise ValueError(
            f"{saved.path} only predicts, without what {what} needs; fit it again without "
            "--not-adaptable"
        )


def is_saved(path: str) -> bool:
    """Whether a file is one of skdare's, if a damaged one, or of a later version."""
    if not Path(path).is_file():
        return False
    with Path(path).open("rb") as file:
        return _MARK in file.read(_MARKED) or kind_of(path) is not None


def check_free(path: str, *inputs: str) -> None:
    """Refuse to replace what is read, and all but saved heads and streams."""
    refuse_inputs(path, *inputs)
    # What is no file is not opened: a pipe would wait for somebody to write.
    if Path(path).exists() and not (Path(path).is_file() and kind_of(path)):
        raise ValueError(
            f"{path} is there and is no saved head or stream; name another file, or remove it first"
        )


def refuse_inputs(path: str, *inputs: str) -> None:
    """Refuse to write to a file that is read."""
    for given in inputs:
        if same_file(path, given):
            raise ValueError(f"{path} is among what is read; name another file")


def same_file(a: str, b: str) -> bool:
    """Whether two paths lead to one file, which need not be there yet."""
    if os.path.exists(a) and os.path.exists(b):
        return os.path.samefile(a, b)
    return os.path.realpath(a) == os.path.realpath(b)


def size(path: str) -> int:
    """Bytes of a file."""
    return Path(path).stat().st_size
