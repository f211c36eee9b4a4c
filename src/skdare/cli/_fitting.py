"""What `skdare fit` does: a table, its preparation, a head, and what to tell of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skdare import heads
from skdare.arrays import RowReader, chunks
from skdare.bench import Preparation
from skdare.cli._fit import HEADS
from skdare.cli._options import read_table, set_options
from skdare.cli._preparing import check_whole, large_enough, preparation_of
from skdare.cli._saved import Saved, size
from skdare.cli._table_options import option_name, table_keys
from skdare.datasets import DomainData, guess_task, open_table
from skdare.datasets._lazy_rows import PreparedRows
from skdare.datasets._manifest import MANIFEST


@dataclass(eq=False)
class Fitting:
    """A head, and the rows that it is to be fitted to.

    Parameters
    ----------
    data : DomainData
        Features may lie on disk.
    head : unfitted head
    steps : list of (name, unfitted transformer)
    rehearse : bool
    """

    data: DomainData
    head: Any
    steps: list[tuple[str, Any]]
    rehearse: bool
    model: Any = field(default=None, init=False)

    @classmethod
    def of(cls, places: Sequence[str], given: dict[str, Any]) -> Fitting:
        """What the options ask for; everything that can be refused before a fit is."""
        steps = _steps(preparation_of(given))
        data = large_enough(_table(places, given), given["min_rows"])
        task = given["task"] or guess_task(data.y)
        head = _head(given["head"], task)
        head.set_params(**set_options(head, given["options"]))
        if given["impute"] and isinstance(data.X, RowReader):
            raise ValueError(
                "--impute finds medians, which needs all rows in memory, and feature stores and "
                ".npy files stay on disk; give rows and labels in one .npz, or fill them before"
            )
        if given["rehearse"] and len(np.unique(data.domains)) < 2:
            raise ValueError("--rehearse holds a domain out, and there is 1; give more domains")
        return cls(data, head, steps, given["rehearse"])

    def __call__(self, told: Callable[[str], None]) -> Any:
        """The fitted model."""
        X, y, domains = self.data.X, self.data.y, self.data.domains
        X = self._prepared(X) if self.steps else X
        if not isinstance(X, RowReader):
            check_whole(X, "training")
        self.head.fit(X, y, domains=domains)
        if self.rehearse:
            self.head.rehearse(X, y, domains=domains, progress=told)
        self._name_features()
        self.model = Pipeline([*self.steps, ("head", self.head)]) if self.steps else self.head
        return self.model

    def _prepared(self, X: Any) -> Any:
        """Rows as the head gets them; those that lie on disk are prepared when they are read."""
        lazy = isinstance(X, RowReader)
        X = X if lazy or X.dtype == np.float64 else np.asarray(X, dtype=np.float32)
        for _, step in self.steps:
            if not lazy:
                X = step.fit_transform(X)
            elif isinstance(step, StandardScaler):
                for _, rows in chunks(X, slice(0, len(X))):
                    step.partial_fit(_single(rows))
            else:
                step.fit(X[:1])
        if not lazy:
            return X
        dtype = np.float64 if X.dtype == np.float64 else np.float32
        return PreparedRows(X, Saved("", Pipeline([*self.steps, ("", None)])).prepared, dtype)

    def _name_features(self) -> None:
        """What columns are called goes with the model, so that they are found again by name."""
        names = self.data.feature_names
        if names is not None:
            for step in (*(step for _, step in self.steps), self.head):
                step.feature_names_in_ = np.array(names, dtype=object)

    def summary(self, path: str) -> dict[str, Any]:
        """What was fitted to what, and where it is."""
        labels, counts = np.unique(self.data.domains, return_counts=True)
        classes = getattr(self.head, "classes_", None)
        solution = getattr(self.head, "solution_", None)
        return {
            "file": path,
            "bytes": size(path),
            "head": type(self.head).__name__,
            "rows": len(self.data.y),
            "features": int(self.data.X.shape[1]),
            "feature_names": self.data.feature_names is not None,
            "domains": [
                {"domain": domain, "rows": n}
                for domain, n in zip(labels.tolist(), counts.tolist(), strict=True)
            ],
            "classes": None if classes is None else classes.tolist(),
            "preparation": [name for name, _ in self.steps],
            "rehearsed": self.rehearse,
            "converged": bool(getattr(solution, "converged", True)),
        }


def _single(X: np.ndarray) -> np.ndarray:
    return X.astype(np.float32) if X.dtype == np.float16 else X


def _steps(preparation: Preparation) -> list[tuple[str, Any]]:
    steps: list[tuple[str, Any]] = []
    if preparation.impute:
        # A feature that no row has is kept, and filled with zero, so that columns stay in place.
        steps.append(("impute", SimpleImputer(strategy="median", keep_empty_features=True)))
    if preparation.standardize:
        steps.append(("standardize", StandardScaler()))
    if preparation.clip is not None:
        limits = {"a_min": -preparation.clip, "a_max": preparation.clip}
        steps.append(("clip", FunctionTransformer(np.clip, kw_args=limits)))
    return steps


def _head(name: str, task: str) -> Any:
    if name == "anchor" and task == "classification":
        raise ValueError("--head anchor is for regression only; choose dare, or --task regression")
    kind = "Regressor" if task == "regression" else "Classifier"
    return getattr(heads, HEADS[name].format(kind))()


def _table(places: Sequence[str], given: dict[str, Any]) -> DomainData:
    """The rows of all files, one after the other."""
    keys = table_keys(given)
    tables = [_one_table(place, keys) for place in places]
    first = tables[0]
    if len(tables) == 1:
        return first
    for place, table in zip(places, tables, strict=True):
        if isinstance(table.X, RowReader):
            raise ValueError(f"{place} stays on disk, and stands alone; give it without others")
        if table.X.shape[1] != first.X.shape[1] or table.feature_names != first.feature_names:
            raise ValueError(f"{place} has other features than {places[0]}; give tables alike")
    X, y, domains = (
        np.concatenate([getattr(table, role) for table in tables]) for role in ("X", "y", "domains")
    )
    return DomainData(X, y, domains, feature_names=first.feature_names)


def _one_table(place: str, keys: dict[str, str | None]) -> DomainData:
    if (Path(place) / MANIFEST).exists():
        for key, value in keys.items():
            if value is not None:
                raise ValueError(
                    f"{option_name(key)} is given, but the feature store {place} knows what is "
                    "what; leave it out"
                )
        return open_table(place)
    if Path(place).suffix.lower() == ".npy":
        return _arrays(place, keys)
    return read_table(place, keys)


def _arrays(place: str, keys: dict[str, str | None]) -> DomainData:
    """Features that stay on disk, and labels in files beside them."""
    missing = [option_name(role) for role in ("target", "domains") if not keys[role]]
    if missing:
        raise ValueError(f"{place} has features alone; name a .npy file with {missing[0]}")
    X = _array(place)
    labels = {role: np.array(_array(str(keys[role]))) for role in ("target", "domains")}
    for role, values in labels.items():
        if X.ndim != 2 or values.shape != X.shape[:1]:
            raise ValueError(
                f"{place} has shape {X.shape} and {keys[role]} {values.shape}; one label a row of "
                "features is needed"
            )
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{place} has dtype {X.dtype}; features must be numbers")
    dtype = X.dtype if X.dtype.kind == "f" else np.float32
    # A row reader, so that whatever is done to rows is done to some at a time.
    rows: Any = PreparedRows(X, np.asarray, dtype)
    return DomainData(rows, labels["target"], labels["domains"], name=Path(place).stem)


def _array(path: str) -> np.ndarray:
    """The one array of a file, which stays on disk."""
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except ValueError as error:
        raise ValueError(
            f"{path} cannot be read as one array of numbers or text; give a .npy file that np.save "
            "wrote"
        ) from error
