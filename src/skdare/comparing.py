"""Heads against each other on one's own rows: what `skdare bench` does, as an object in Python."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object

from skdare._logger import Progress
from skdare._validation import InputError, Labels, check_count, check_domains, check_groups, warn
from skdare.arrays import Array
from skdare.heads import DomainAdjusted
from skdare.heads._estimator import Head

# What takes long to import is imported where it is used: `skdare.compare` is one name among many.
if TYPE_CHECKING:
    from skdare.bench import Plan, Record
    from skdare.bench._fold import Fold
    from skdare.bench._plan import PlanBuilder
    from skdare.report._document import Section
    from skdare.report.summary.summary import Summary

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Scores of heads on domains that each was not fitted to, and the advice that follows.

    Print it, or show it in a notebook: the advice comes first, then the picture, then the table.

    Parameters
    ----------
    records : tuple of Record
        One for each head, held-out domain and trial.
    """

    records: tuple[Record, ...]

    @cached_property
    def summary(self) -> Summary:
        """Everything that the records say, as `skdare.report.summarise` gives it."""
        from skdare.report import summarise

        return summarise(self.records)

    @property
    def verdict(self) -> str:
        """Which head to use, and what to expect of it, in at most three sentences."""
        return " ".join(self._section.verdict)

    @cached_property
    def _section(self) -> Section:
        from skdare.report._sections import document

        return document(self.summary).sections[0]

    def frame(self) -> Any:
        """A pandas data frame with a row for each head, held-out domain and trial.

        Returns
        -------
        pandas.DataFrame
            ``uses`` says what a head saw of the held-out domain: "nothing", or "unlabelled rows".
            Further metrics have columns of their own; ``reason`` says why a trial failed.
        """
        import pandas

        rows = []
        for record in self.records:
            values = record.values
            further = {
                name.removeprefix("metric:"): value
                for name, value in values.items()
                if name.startswith("metric:")
            }
            rows.append(
                {
                    "head": record.head,
                    "held_out": record.held_out,
                    "trial": record.trial,
                    "uses": record.uses,
                    record.metric: np.nan if record.score is None else record.score,
                    **further,
                    "chosen": values.get("chosen"),
                    "rows": values.get("n_test"),
                    "seconds": record.seconds,
                    "reason": record.reason,
                }
            )
        return pandas.DataFrame(rows)

    def plot(self, ax: Any = None) -> Any:
        """Differences from the baseline: a dot for each held-out domain, and the mean of each head.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Default: new ones.

        Returns
        -------
        matplotlib axes
        """
        from skdare.report._pyplot import drawn

        picture = self._section.picture
        if picture is None:
            raise ValueError(
                "there is no other head to hold against the baseline; compare at least two"
            )
        return drawn(picture, ax)

    def __repr__(self) -> str:
        from skdare.report import text

        return text(self.summary)

    def _repr_html_(self) -> str:
        section = self._section
        first, *rest = section.verdict
        words = f"<p><strong>{escape(first)}</strong> {escape(' '.join(rest))}</p>"
        small = "".join(f"<p><small>{escape(remark)}</small></p>" for remark in section.remarks)
        inside = words + self._picture_html() + small + self._table_html()
        return f'<div class="skdare-comparison">{inside}</div>'

    def _picture_html(self) -> str:
        try:
            from skdare.report._figures import draw
        except ImportError:  # without matplotlib there are words and numbers
            return ""
        picture = self._section.picture
        return "" if picture is None else f'<div style="max-width: 40em">{draw(picture)}</div>'

    def _table_html(self) -> str:
        table = self._section.parts[0].tables[0]
        header = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>"
            for row in table.rows
        )
        return f"<table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>"


def compare(
    heads: Sequence[Any] | Mapping[str, Any] | None,
    X: Array,
    y: Array,
    *,
    domains: Labels,
    groups: Labels | None = None,
    metric: str | Sequence[str] | None = None,
    impute: str | None = None,
    standardize: bool = False,
    trials: int = 1,
    held_out: Sequence[str] | None = None,
    name: str = "data",
    verbose: int = 0,
) -> Comparison:
    """Hold each domain out in turn, and score every head on it.

    Parameters
    ----------
    heads : sequence, mapping from name to estimator, or None
        Names of the bench ("erm", "dare-cv", "dare-cv-adapted", "dare", "adapted", …), estimators,
        or both; any classifier or regressor of scikit-learn will do, and is fitted without domains
        if it takes none. What is around a head, such as ``GridSearchCV``, hands domains on to it by
        scikit-learn's metadata routing, which need not be switched on. An estimator that can
        adapt is scored as it is, and again after adapting to unlabelled rows of the held-out
        domain. None: those of `skdare bench`. The others are held against "erm", if that is among
        them, else against the first.
    X : array of shape (n, d)
        In memory.
    y : array of shape (n,)
        Class labels, or numbers.
    domains : sequence of n labels
    groups : sequence of n labels, optional
        The patient, song or specimen that each row is of. Rows whose group is scored are not
        trained on.
    metric : str or sequence of str, optional
        Names of scikit-learn's scorers, as `skdare.bench.Settings` lists them; the advice is by
        the first. Default: accuracy, or R².
    impute : "median" or None
        Fill missing values by the medians of the training rows of each trial. Default: refuse them.
    standardize : bool, default=False
        Standardise features by the training rows of each trial.
    trials : int, default=1
        How often, each with other rows of the training domains set aside.
    held_out : sequence of str, optional
        Domains to hold out. Default: every one.
    name : str, default="data"
        What to call the data.
    verbose : int, default=0
        1 prints a line now and then.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skdare import compare
    >>> from skdare.datasets import make_latent_domains
    >>> data = make_latent_domains(3, 60, random_state=0)
    >>> heads = ["erm", "dare", LogisticRegression()]
    >>> comparison = compare(heads, data.X, data.y, domains=data.domains)
    >>> comparison.summary.groups[0].main.grid.lines
    ('erm', 'dare', 'LogisticRegression')
    """
    from skdare.bench import Settings, run
    from skdare.bench._plan import PlanBuilder

    check_count("verbose", verbose, 0)
    names, estimators = _told_apart(heads)
    metrics = (metric,) if isinstance(metric, str) else metric
    builder = PlanBuilder.of(
        _data(X, y, domains, groups, name),
        # A plan has a head at least, be it only for the checks of the rows.
        heads=["erm"] if names == [] else names,
        settings=Settings(
            metrics=tuple(metrics) if metrics else None, impute=impute, standardize=standardize
        ),
        trials=trials,
        held_out=held_out,
    )
    named = [] if names == [] else list(builder.heads)
    lines = {line.name: line for estimator in estimators.items() for line in _lines(*estimator)}
    _check_distinct([*named, *lines])
    progress = Progress(
        "comparing", len(list(builder.folds())) * (len(named) + len(lines)), shown=verbose > 0
    )
    records: list[Record] = []

    def keep(record: Record) -> None:
        records.append(record)
        progress.done(f"{record.head}, {record.held_out} held out")

    if named:
        for record in run(_plan(builder, named)):
            keep(record)
    if lines:
        for record in _estimator_records(_plan(builder, lines), lines):
            keep(record)
    order = [*named, *lines]
    return Comparison(tuple(sorted(records, key=lambda record: order.index(record.head))))


def _told_apart(heads: Any) -> tuple[list[str] | None, dict[str, Any]]:
    """Names of the bench, or None for its own choice, and estimators by name."""
    if heads is None:
        return None, {}
    if isinstance(heads, Mapping):
        heads = [(str(name), estimator) for name, estimator in heads.items()]
    elif isinstance(heads, str) or not isinstance(heads, Sequence):
        raise InputError(
            f"heads is {heads!r}",
            "pass a list of names and estimators, or a dict of estimators by name",
            argument="heads",
        )
    else:
        heads = [(None, head) for head in heads]
    names: list[str] = []
    estimators: dict[str, Any] = {}
    for name, head in heads:
        if name is not None and isinstance(head, str):
            raise InputError(
                f"heads calls {head!r} {name!r}",
                "pass a name of the bench in a list, where it keeps its name",
                argument="heads",
            )
        if isinstance(head, str):
            names.append(head)
            continue
        if isinstance(head, type) or not _predicts(head):
            raise InputError(
                f"heads has {head!r}",
                "use names of the bench, and estimators with fit and predict",
                argument="heads",
            )
        name = name or type(_last_step(head)).__name__
        if name in estimators:
            raise InputError(
                f"heads has two of {name}", "pass a dict with a name for each", argument="heads"
            )
        estimators[name] = head
    if not names and not estimators:
        raise InputError("heads is empty", "name at least one", argument="heads")
    return names, estimators


def _predicts(estimator: Any) -> bool:
    """Whether it can be fitted and predicts; some have no ``predict`` before they are fitted."""
    known = is_classifier(estimator) or is_regressor(estimator)
    return hasattr(estimator, "fit") and (known or hasattr(estimator, "predict"))


def _check_distinct(names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                f"heads has two that are called {name!r}",
                "pass a dict with a name for each",
                argument="heads",
            )


def _data(X: Any, y: Any, domains: Labels, groups: Labels | None, name: str) -> Any:
    """The rows as the bench takes them, with domains by name."""
    from skdare.datasets import DomainData

    feature_names = [str(column) for column in X.columns] if hasattr(X, "columns") else None
    X = np.asarray(X)
    if X.ndim != 2:
        raise InputError(f"X has shape {X.shape}", "pass rows by features", argument="X")
    rows = check_domains(domains, len(X), np.ones(len(X)))
    labels = np.empty(len(X), dtype=object)
    for label, index in zip(rows.labels, rows.index, strict=True):
        labels[index] = str(label)
    codes = None if groups is None else check_groups(groups, len(X))[1]
    return DomainData(
        X,
        np.asarray(y),
        labels.astype(str),
        name=name,
        feature_names=feature_names,
        groups=codes,
    )


@dataclass(frozen=True, eq=False)
class _Line:
    """An estimator in the table, as it is or adapted to the held-out domain.

    Parameters
    ----------
    name : str
    estimator : classifier or regressor
    adapted_from : str
        Its name before it is adapted; empty for one that is not.
    """

    name: str
    estimator: Any
    adapted_from: str = ""

    def fitted(self, fold: Fold) -> Any:
        """The estimator fitted to the training rows of a fold, with what it takes of their labels.

        Adapting has the unlabelled rows that are trained on where the domain is not held out, as
        for heads of the bench.
        """
        model = fold.once(("estimator", id(self.estimator)), lambda: self._fit(fold))
        return model.adapt(fold.training_rows(fold.held_out).X) if self.adapted_from else model

    def _fit(self, fold: Fold) -> Any:
        train = fold.train
        beside = {"domains": train.domains, "groups": train.groups}
        labels = {
            key: value
            for key, value in beside.items()
            if value is not None and _takes(self.estimator, key)
        }
        # What is around a head hands labels on to it by scikit-learn's routing, and only then. An
        # estimator that takes them itself does so either way.
        routed = labels.keys() - inspect.signature(self.estimator.fit).parameters
        with config_context(enable_metadata_routing=bool(routed)):
            return clone(self.estimator).fit(train.X, train.y, **labels)


def _takes(estimator: Any, labels: str) -> bool:
    """Whether an estimator takes such labels in fit, or hands them on to one that does."""
    if labels in inspect.signature(estimator.fit).parameters:
        return True
    with config_context(enable_metadata_routing=True):
        try:
            return bool(get_routing_for_object(estimator).consumes("fit", [labels]))
        except NotImplementedError:  # a meta-estimator to which scikit-learn gives no routing
            return False


def _last_step(estimator: Any) -> Any:
    return estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator


def _given_domains(estimator: Any) -> Any:
    """The estimator, or a Pipeline in its place that hands domains on to its head."""
    if type(estimator) is Pipeline and isinstance(_last_step(estimator), Head):
        return DomainAdjusted(estimator.steps)
    return estimator


def _lines(name: str, estimator: Any) -> Iterator[_Line]:
    estimator = _given_domains(estimator)
    if not _takes(estimator, "domains") and _has_a_head(estimator):
        warn(
            f"{type(estimator).__name__} does not hand domains on to its head, which is fitted as "
            "if all rows were of one domain"
        )
    yield _Line(name, estimator)
    fixed = getattr(_last_step(estimator), "adaptation", "raw") is None
    if hasattr(estimator, "adapt") and not fixed:
        yield _Line(f"{name} adapted", estimator, adapted_from=name)


def _has_a_head(estimator: Any) -> bool:
    """Whether an estimator is, or is around, a head of skdare."""
    parts = estimator.get_params().values() if hasattr(estimator, "get_params") else ()
    return any(isinstance(part, Head) for part in (estimator, *parts))


def _plan(builder: PlanBuilder, heads: Iterable[str]) -> Plan:
    return builder.plan(
        builder.trial("main", head, *fold) for fold in builder.folds() for head in heads
    )


def _estimator_records(plan: Plan, lines: Mapping[str, _Line]) -> Iterator[Record]:
    """Records of estimators that the bench has no name for."""
    from skdare.bench._record import NOTHING, UNLABELLED
    from skdare.bench._run import run_trials
    from skdare.bench._scores import Fit

    def fit(fold: Fold, name: str, *_: Any) -> Fit:
        return Fit(lines[name].fitted(fold))

    for record in run_trials(plan, plan.trials, fit=fit):
        adapted_from = lines[record.head].adapted_from
        yield replace(
            record,
            uses=UNLABELLED if adapted_from else NOTHING,
            values={**record.values, "adapted_from": adapted_from},
        )
