"""What `skdare fit` does: read a table, prepare its rows, fit a head, and sum it up."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from skdare._input_error import InputError
from skdare._safe_text import counted
from skdare._validation import warn
from skdare.arrays import RowReader, work_dtype
from skdare.bench._feature_set import some_rows, sorted_domains, without_small_domains
from skdare.bench._heads import HEADS
from skdare.bench._metrics import Predictions, check_metrics, measure, scoring_of
from skdare.bench._preparation import Preparation, PreparationStep, Steps
from skdare.cli._on_disk import (
    check_same_features,
    is_larger_than_memory,
    joined_groups,
    table_on_disk,
)
from skdare.cli._options import set_options
from skdare.cli._output import say
from skdare.cli._quantities import listed
from skdare.cli._saved_model import size
from skdare.cli._table_check import check_target, say_findings
from skdare.cli._tables import option_name, read_table, table_keys
from skdare.cli._training_rows import (
    check_domain_sizes,
    check_no_missing_values,
    preparation_of,
)
from skdare.datasets import DomainData, guess_task, open_table
from skdare.datasets._entries import called
from skdare.datasets._formats import open_stream
from skdare.datasets._lazy_rows import PreparedRows, transformed
from skdare.datasets._manifest import MANIFEST
from skdare.datasets._roles import ONE_DOMAIN
from skdare.diagnosis import Rehearsal, rehearse
from skdare.diagnosis._forecast import foresee_unseen
from skdare.diagnosis._recommendation import expectation
from skdare.heads._adjusted import AdjustedHead
from skdare.persist import passing_folder

_NO_MEDIANS = (
    "--impute finds medians, which needs all rows in memory, and these stay on disk; give "
    "--in-memory and rows and labels in one file, or fill them before"
)
# Up to this many domains are rehearsed unasked: a few fits each.
_FEW_DOMAINS = 100


@dataclass(frozen=True, eq=False)
class Fitting:
    """A head, and the rows that it is fitted to.

    Parameters
    ----------
    data : DomainData
        Features may stay on disk.
    head : head
    preparation : Preparation
    rehearse : bool, optional
        Whether each domain is held out once after the fit. None: nobody asked, it costs little,
        and where it is refused the head is saved without.
    metric : str
        What it is scored by.
    held_out : list of DomainData
        Domains that it is scored on, and not fitted to.
    """

    data: DomainData
    head: Any
    preparation: Preparation
    rehearse: bool | None
    metric: str
    held_out: Sequence[DomainData] = ()

    @classmethod
    def of(cls, places: Sequence[str], options: dict[str, Any], room: Room) -> Fitting:
        """Read the table, and refuse before the fit all that can be refused before it."""
        table = without_small_domains(_table(places, options, room), options["min_rows"])
        data, held_out = apart(table, options["held_out"] or [])
        head = _unfitted_head(options["head"], options["task"] or guess_task(data.y))
        task = "classification" if is_classifier(head) else "regression"
        given = options["metrics"]
        (metric,) = check_metrics(None if given is None else [given], task)
        head.set_params(**_choices(head, data, metric, options))
        head.set_params(**set_options(head, options["options"]))
        if options["impute"] and isinstance(data.X, RowReader):
            raise ValueError(_NO_MEDIANS)
        if options["head"] != "erm" and np.all(data.domains == data.domains[0]):
            raise InputError(
                f"there is one domain to train on, {str(data.domains[0])!r}, and {options['head']} "
                "learns from how domains differ",
                "name their column with --domains, or give --head erm, which needs none",
            )
        check_domain_sizes(data.domains, options)
        for domain in held_out:
            if not options["impute"] and not isinstance(domain.X, RowReader):
                check_no_missing_values(domain.X, "held-out")
        check_target(data.y, options["task"])
        if not options["quiet"]:
            _say_findings(data, table, places, options)
        preparation = preparation_of(options, data.X)
        rehearse = _rehearses(head, data, options)
        if rehearse is None and not options["quiet"]:
            count = counted(len(np.unique(data.domains)), "domain")
            say(f"each of {count} is also held out once; --no-rehearse spares that", err=True)
        return cls(data, head, preparation, rehearse, metric, held_out)

    def fit(self, progress: Callable[[str], None]) -> Any:
        """The fitted head, in a pipeline where rows are prepared."""
        X = self.data.X
        if isinstance(X, RowReader):
            return self._fit_on_disk(progress)
        if self.preparation.impute is None:
            check_no_missing_values(X, "training")
        model = self._fit_in_memory()
        self._rehearse(
            lambda: rehearse(
                model,
                X,
                self.data.y,
                self.data.domains,
                groups=self.data.groups,
                progress=progress,
            )
        )
        return model

    def _rehearse(self, run: Callable[[], object]) -> None:
        """Run the rehearsal where it is wanted; one that nobody asked for may be refused."""
        if self.rehearse is False:
            return
        try:
            run()
        except ValueError as refusal:
            if self.rehearse:
                raise
            warn(f"the head was not rehearsed: {refusal}")

    def _fit_in_memory(self) -> Any:
        """The fitted head; one that leaves domains out prepares rows anew for each."""
        y = self.data.y
        labels = labels_of(self.data, self.head)
        if not self.preparation.steps():
            return self._named([], self.head.fit(self.data.X, y, **labels))
        if "preparation" not in self.head.get_params():
            steps = self.preparation.fit(self.data.X)
            head = self.head.fit(transformed(steps, self.data.X), y, **labels)
            return self._named(steps, head)
        head = self.head.set_params(preparation=PreparationStep(self.preparation))
        head.fit(self.data.X, y, **labels)
        return self._named(head.preparation_.steps_, head._without_preparation())

    def _fit_on_disk(self, progress: Callable[[str], None]) -> Any:
        """The fitted head; rows are prepared by all of them, whenever they are read."""
        y = self.data.y
        domains = self.data.domains
        X: Any = self.data.X
        steps = self.preparation.fit(X)
        if steps:
            X = PreparedRows(X, partial(transformed, steps), work_dtype(X))
        self.head.fit(X, y, **labels_of(self.data, self.head))
        groups = self.data.groups
        self._rehearse(
            lambda: self.head.rehearse(X, y, domains=domains, groups=groups, progress=progress)
        )
        return self._named(steps, self.head)

    def _named(self, steps: Steps, head: Any) -> Any:
        """The model, told the names of the columns, so that it finds them again by name."""
        names = self.data.feature_names
        if names is not None:
            for step in (*(step for _, step in steps), head):
                step.feature_names_in_ = np.array(names, dtype=object)
        head._remember_names(self.data.target_name, self.data.domain_name)
        return Pipeline([*steps, ("head", head)]) if steps else head

    def held_out_scores(self, model: Any) -> list[dict[str, Any]]:
        """The metric on each held-out domain, as the head is and adapted to its rows."""
        *steps, (_, head) = model.steps if isinstance(model, Pipeline) else [("head", model)]
        scores = []
        for domain in self.held_out:
            X: Any = domain.X
            if steps and isinstance(X, RowReader):
                X = PreparedRows(X, partial(transformed, steps), work_dtype(X))
            elif steps:
                X = transformed(steps, X)
            adapted = self._adapted(head, X)
            scores.append(
                {
                    "domain": domain.domains[0].item(),
                    "rows": len(domain.y),
                    "metric": self.metric,
                    "score": self._score(head, X, domain.y),
                    "adapted": None if adapted is None else self._score(adapted, X, domain.y),
                }
            )
        return scores

    def _score(self, head: Any, X: Any, y: np.ndarray) -> float | None:
        """The metric; None where it is not defined, such as an AUC on one class."""
        score = measure(self.metric, y, Predictions.of(head, X, [self.metric]))
        return None if np.isnan(score) else score

    def _adapted(self, head: Any, X: Any) -> Any:
        """The head adapted to some rows; None where it does not adapt to them."""
        if not isinstance(head, AdjustedHead) or len(X) < 2:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that adapting was declined is seen from the result
            adapted = head.adapt(X)
        return None if adapted.adapted_rows_ is None else adapted

    def summary(self, model: Any, path: str) -> dict[str, Any]:
        """What was fitted to what, and where it was saved."""
        labels, counts = np.unique(self.data.domains, return_counts=True)
        classes = self.head.classes_.tolist() if is_classifier(self.head) else None
        *_, head = model.steps[-1] if isinstance(model, Pipeline) else [model]
        rehearsal = getattr(head, "rehearsal_", None)
        return {
            "file": path,
            "bytes": size(path),
            "head": type(self.head).__name__,
            "rows": len(self.data.y),
            "features": int(self.data.X.shape[1]),
            "feature_names": self.data.feature_names is not None,
            "target_name": self.data.target_name,
            "domain_name": self.data.domain_name,
            "domains": [
                {"domain": domain, "rows": n}
                for domain, n in zip(labels.tolist(), counts.tolist(), strict=True)
            ],
            "classes": classes,
            "preparation": [name for name, _ in self.preparation.steps()],
            "rehearsed": rehearsal is not None,
            "expected": None if rehearsal is None else _expected(rehearsal),
            "converged": self.head.solution_.converged,
            "choice": getattr(self.head, "choice_", None),
        }


def labels_of(data: DomainData, head: Any) -> dict[str, Any]:
    """What a fit is told of the rows beside their targets; only a search asks for groups."""
    labels = {"domains": data.domains}
    if data.groups is not None and "cv" in head.get_params():
        labels["groups"] = data.groups
    return labels


def _expected(rehearsal: Rehearsal) -> dict[str, Any]:
    """What to expect on a new domain, before any row of it is seen."""
    outlook = foresee_unseen(rehearsal)
    return {
        "text": expectation(outlook, rehearsal),
        "use": asdict(outlook.use),
        "adapt": None if outlook.adapt is None else asdict(outlook.adapt),
    }


def _say_findings(
    data: DomainData, table: DomainData, places: Sequence[str], options: dict[str, Any]
) -> None:
    """Print what is odd about the rows to fit to."""
    place = places[0]
    # Labels in files of their own are not known to a check.
    known = None if Path(place).suffix.lower() == ".npy" else place
    if Path(place).is_file() and data.domain_name is None:
        options = {**options, "domains": ""}
    whole = len(places) == 1 and len(data.y) == len(table.y) and not options["drop_missing"]
    say_findings(data, options, known, whole=whole and options["min_rows"] == 1)


def _rehearses(head: Any, data: DomainData, options: dict[str, Any]) -> bool | None:
    """Whether the head is rehearsed; None where nobody asked, and it is cheap to do."""
    if options["rehearse"] is not None:
        return bool(options["rehearse"])
    cheap = not isinstance(data.X, RowReader) and len(np.unique(data.domains)) <= _FEW_DOMAINS
    return None if isinstance(head, AdjustedHead) and options["adaptable"] and cheap else False


def _choices(head: Any, data: DomainData, metric: str, options: dict[str, Any]) -> dict[str, Any]:
    """Parameters of the head that --metric and --class-weight stand for."""
    chosen: dict[str, Any] = {}
    searches = "scoring" in head.get_params()
    leaves_out = searches or _rehearses(head, data, options) is not False
    if data.groups is not None and not (leaves_out or options["held_out"]):
        raise ValueError(
            f"--groups keeps groups together in left-out domains, and --head {options['head']} "
            "leaves none out; give --held-out, or drop --groups"
        )
    if options["class_weight"] is not None:
        if not is_classifier(head):
            raise ValueError("--class-weight is for classes, and y is numbers; leave it out")
        if "class_weight" not in head.get_params():
            raise ValueError("--class-weight is an option of dare-cv; give --head dare-cv")
        chosen["class_weight"] = options["class_weight"]
    if searches:
        chosen["scoring"] = scoring_of(metric, len(np.unique(data.y)))
    elif options["metrics"] is not None and not options["held_out"]:
        raise ValueError(
            "--metric is what dare-cv chooses by, and what held-out domains are scored by; "
            "give --head dare-cv, or --held-out"
        )
    return chosen


def _unfitted_head(name: str, task: str) -> Any:
    if task not in HEADS[name].tasks:
        raise ValueError(f"--head {name} is for regression only; choose dare, or --task regression")
    return HEADS[name].estimator_class(task)()


def apart(table: DomainData, held_out: Sequence[str]) -> tuple[DomainData, list[DomainData]]:
    """The rows to fit to, none of a group that is held out, and those of each held-out domain."""
    names = table.domains.astype(str)
    there = sorted_domains(names)
    for name in held_out:
        if name not in there:
            raise InputError(
                f"held-out domain `{name}` is not in the table", f"it has {listed(there)}"
            )
    if held_out and set(there) == set(held_out):
        raise InputError("every domain is held out, and none is left to train on", "name fewer")
    apart = [some_rows(table, np.flatnonzero(names == name)) for name in dict.fromkeys(held_out)]
    if not apart:
        return table, []
    train = ~np.isin(names, held_out)
    if table.groups is not None:
        train &= ~np.isin(table.groups, table.groups[~train])
        if not train.any():
            raise InputError(
                "every row to train on is of a group that is held out", "name fewer with --held-out"
            )
    return some_rows(table, np.flatnonzero(train)), apart


class Room:
    """Where a fit puts rows that do not go into memory: a folder beside the head, made when needed.

    Parameters
    ----------
    out : str
        The file of the head.
    stack : ExitStack
        Removes the folder.
    """

    def __init__(self, out: str, stack: ExitStack) -> None:
        self._out = Path(out).resolve()
        self._stack = stack

    def folder(self) -> Path:
        """A folder that is gone after the fit."""
        return self._stack.enter_context(passing_folder(self._out))


def _table(places: Sequence[str], options: dict[str, Any], room: Room) -> DomainData:
    """The rows of all files, one after the other."""
    keys = table_keys(options)
    missing = "drop" if options["drop_missing"] else "refuse"
    if options["head"] == "erm" and keys["domains"] is None:
        keys["domains"] = _domains_of_any(places)
    files = [p for p in places if Path(p).is_file() and Path(p).suffix.lower() != ".npy"]
    stays = options["on_disk"]
    if stays is None and files:
        stays = is_larger_than_memory(files, keys)
    if stays and len(files) == len(places):
        if options["impute"]:
            raise ValueError(_NO_MEDIANS)
        if options["drop_missing"]:
            raise InputError(
                "--drop-missing needs the rows in memory, and these stay on disk",
                "give --in-memory, or leave rows without a label out of the file",
            )
        if not options["quiet"]:
            say("note: features stay on disk, in a copy beside the head during the fit", err=True)
        return table_on_disk(places, keys, room.folder())
    tables = [_one_table(place, keys, missing) for place in places]
    first = tables[0]
    if len(tables) == 1:
        return first
    for place, table in zip(places, tables, strict=True):
        if isinstance(table.X, RowReader):
            raise ValueError(f"{place} stays on disk, and cannot be joined; give it alone")
        check_same_features(place, table, places[0], first)
    return replace(
        first,
        X=np.concatenate([table.X for table in tables]),
        y=np.concatenate([table.y for table in tables]),
        domains=np.concatenate([table.domains for table in tables]),
        split=None,
        groups=joined_groups(tables),
    )


def _domains_of_any(places: Sequence[str]) -> str | None:
    """None where the tables name their domains, "" where none does: all rows are one then."""
    files = [place for place in places if Path(place).is_file()]
    unnamed = [p for p in files if not called(open_stream(p, lambda name: False), "domains")]
    return "" if unnamed and len(unnamed) == len(places) else None


def _one_table(place: str, keys: dict[str, str | None], missing: str) -> DomainData:
    if (Path(place) / MANIFEST).exists():
        for key, value in keys.items():
            if value is not None:
                raise ValueError(
                    f"{option_name(key)} is given, but the feature store {place} already says "
                    "which columns are which; leave it out"
                )
        return open_table(place)
    if Path(place).suffix.lower() == ".npy":
        return _arrays(place, keys)
    return read_table(place, keys, missing=missing)


def _arrays(place: str, keys: dict[str, str | None]) -> DomainData:
    """Features that stay on disk, and labels in files beside them."""
    missing = [option_name(role) for role in ("target", "domains") if keys[role] is None]
    if missing:
        raise ValueError(f"{place} has features alone; name a .npy file with {missing[0]}")
    X = _array(place)
    labels = {
        role: np.array(_array(str(keys[role]))) for role in ("target", "domains") if keys[role]
    }
    for role, values in labels.items():
        if X.ndim != 2 or values.shape != X.shape[:1]:
            raise ValueError(
                f"{place} has shape {X.shape} and {keys[role]} {values.shape}; pass one "
                "label per row"
            )
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{place} has dtype {X.dtype}; features must be numbers")
    dtype = X.dtype if X.dtype.kind == "f" else np.float32
    # A row reader, so that whatever is done to rows is done to some at a time.
    rows: Any = PreparedRows(X, np.asarray, dtype)
    domains = labels.get("domains", np.full(len(X), ONE_DOMAIN))
    return DomainData(rows, labels["target"], domains, name=Path(place).stem)


def _array(path: str) -> np.ndarray:
    """The one array of a file, which stays on disk."""
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except ValueError as error:
        raise ValueError(
            f"{path} cannot be read as one array of numbers or text; give a .npy file that np.save "
            "wrote"
        ) from error
