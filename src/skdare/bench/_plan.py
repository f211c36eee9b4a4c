"""Plans: the trials to run, with every argument checked before any work."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from skdare._safe_text import counted
from skdare._validation import InputError, check_choice, check_count, check_number
from skdare.bench._ceilings import CEILINGS, RETRAINED
from skdare.bench._diagnostics import ALIGNMENTS, GUESSES
from skdare.bench._feature_set import Data, FeatureSet, sorted_domains
from skdare.bench._fold import RowCounts, count_rows
from skdare.bench._heads import DEFAULT_HEADS, HEADS, check_head, check_options
from skdare.bench._metrics import check_metrics
from skdare.bench._record import NETWORK, TESTED_ON
from skdare.bench._settings import Settings
from skdare.bench._trial import NetworkScore, Trial

TRIALS = 3
EXTRAS = ("ceilings", "sgd", "curve", "diagnostics")
DEFAULT_EXTRAS = ("ceilings", "diagnostics")
CURVE = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

Score = float | NetworkScore
Scores = Mapping[str, Score] | Mapping[tuple[str, int], Score]


@dataclass(frozen=True, eq=False)
class Plan:
    """Trials to run on the same features under the same settings.

    Parameters
    ----------
    feature_sets : mapping from name to FeatureSet
        "given", and "pretrained" where those are compared.
    settings : Settings
    trials : sequence of Trial
    """

    feature_sets: Mapping[str, FeatureSet]
    settings: Settings
    trials: Sequence[Trial]

    @property
    def data(self) -> str:
        """Name of the data."""
        return self.feature_sets["given"].name

    def fingerprint(self, features: str, held_out: str, number: int) -> str | None:
        """Hash of a feature set's table for a held-out domain and trial; None without a table."""
        feature_set = self.feature_sets.get(features)
        return None if feature_set is None else feature_set.fingerprint(held_out, number)

    @property
    def conditions(self) -> str:
        """Hash of what all trials of one table must have in common."""
        task = self.feature_sets["given"].task
        return _digest({"settings": self.settings.of_protocol(), "task": task})

    def key(self, trial: Trial) -> str:
        """Hash of everything that decides the trial's result."""
        # Names are part of the hash, and with other names every finished trial of every run would
        # run again. "seen" and "given" are therefore not called as the fields are.
        fields = asdict(trial)
        fields["seen"] = fields.pop("training_domains")
        fields["given"] = _plain_score(fields.pop("network_score"))
        table = self.fingerprint(trial.features, trial.held_out, trial.number)
        return _digest({"trial": fields, "conditions": self.conditions, "table": table})


def _plain_score(score: dict[str, Any] | None) -> Any:
    """A network's score for the hash: a number alone where its rows are the usual ones."""
    if score is None:
        return None
    reserved = score["tested_on"] == "reserved"
    return score["score"] if reserved else [score["score"], score["tested_on"]]


def _digest(content: dict[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def bench_plan(
    data: Data,
    *,
    heads: Sequence[str] | None = None,
    extras: Sequence[str] = DEFAULT_EXTRAS,
    end_to_end: Scores | None = None,
    networks: Scores | None = None,
    pretrained: Data | None = None,
    settings: Settings | None = None,
    trials: int | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    name: str | None = None,
    task: str | None = None,
    held_out: Sequence[str] | None = None,
    min_rows: int = 1,
) -> Plan:
    """Every head on every held-out domain, and what to show beside them.

    Parameters
    ----------
    data : DomainData, or mapping from held-out domain to DomainData
        A table for each held-out domain where features were fine-tuned without it; by (held-out
        domain, trial) where they were fine-tuned anew in every trial, on that trial's split.
    heads : sequence of str, optional
        Any of "erm", "dare-cv", "dare-cv-adapted", "reweighted", "groupdro", "irm", "anchor"
        (regression only), "dare", "adapted", and the ablations of DARE "no-whitening",
        "no-constraint", "exact-constraint" and "estimated-mean". Default: "erm", "dare-cv",
        "dare-cv-adapted", "dare" and "adapted"; in the paper's protocol, its own.
    extras : sequence of "ceilings", "sgd", "curve", "diagnostics"
        Linear ceilings, solved exactly and by the paper's descent; retraining on labelled rows;
        the diagnostics of the paper's appendix.
    end_to_end : mapping from held-out domain, or (held-out domain, trial), to score, optional
        Scores of a network trained on all domains. A number was measured on the rows set aside;
        `NetworkScore` names other rows. Without a trial, a score belongs to the first.
    networks : the same, optional
        Scores of the network that made the features, on the domain it has not seen;
        `NetworkScore` names the rows.
    pretrained : like data, optional
        Features before fine-tuning, for ceilings.
    settings : Settings, optional
    trials : int, optional
        Default: as many as have a table of their own; 3 where one table serves all trials.
    options : mapping from head to its options, optional
    name, task : str, optional
        What to call the data, and what y is: "classification" or "regression". Default: the
        table's name, and a guess from y.
    held_out : sequence of str, optional
        Domains to hold out; default: every one.
    min_rows : int, default=1
        Leave out domains with fewer rows, in training too.
    """
    for extra in extras:
        check_choice("extras", extra, EXTRAS)
    builder = PlanBuilder.of(
        data,
        heads=heads,
        pretrained=pretrained,
        settings=settings,
        trials=trials,
        options=options,
        name=name,
        task=task,
        held_out=held_out,
        min_rows=min_rows,
    )
    planned = [*_main(builder), *_ceilings(builder, "ceilings" in extras, "sgd" in extras)]
    planned += _curve(builder) if "curve" in extras else []
    planned += _diagnostics(builder) if "diagnostics" in extras else []
    planned += _networks(builder, end_to_end, networks)
    return builder.plan(planned)


@dataclass(frozen=True, eq=False)
class PlanBuilder:
    """The checked arguments of a plan, and the trials that they make.

    Parameters
    ----------
    feature_sets : mapping from name to FeatureSet
    settings : Settings
    numbers : sequence of int
        The trials' numbers.
    heads : sequence of str
    options : mapping from head to its options
    """

    feature_sets: Mapping[str, FeatureSet]
    settings: Settings
    numbers: Sequence[int]
    heads: Sequence[str]
    options: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(
        cls,
        data: Data,
        *,
        heads: Sequence[str] | None = None,
        pretrained: Data | None = None,
        settings: Settings | None = None,
        trials: int | None = None,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        name: str | None = None,
        task: str | None = None,
        held_out: Sequence[str] | None = None,
        min_rows: int = 1,
    ) -> PlanBuilder:
        """Check the arguments of `bench_plan` before any work."""
        features = FeatureSet.of(data, name=name, task=task, held_out=held_out, min_rows=min_rows)
        feature_sets = {"given": features}
        if pretrained is not None:
            other = FeatureSet.of(pretrained, name=name, task=features.task, min_rows=min_rows)
            if not set(features.held_out) & set(other.held_out):
                raise ValueError(
                    "the pretrained features have none of the held-out domains; "
                    f"held out are {', '.join(features.held_out)}"
                )
            feature_sets["pretrained"] = other
        settings = settings or Settings()
        check_metrics(settings.metrics, features.task)
        if settings.class_weight is not None and features.task == "regression":
            raise InputError(
                "class_weight is for classes, and y is numbers", argument="class_weight"
            )
        names = list(dict.fromkeys(DEFAULT_HEADS[settings.protocol] if heads is None else heads))
        numbers = _numbers(features, trials)
        builder = cls(feature_sets, settings, numbers, names, options or {})
        builder._check_features()
        builder._check_heads()
        return builder

    def _check_features(self) -> None:
        for feature_set in self.feature_sets.values():
            shared = [name for name in self.features.held_out if name in feature_set.held_out]
            feature_set.check_tables(shared, self.numbers)
            if self.settings.impute is None:
                feature_set.check_missing_values()

    def _check_heads(self) -> None:
        task = self.features.task
        protocol = self.settings.protocol
        if protocol == "paper" and task == "regression":
            raise ValueError(
                "the paper's protocol stops by accuracy and has no regression; "
                "use protocol='default'"
            )
        if not self.heads:
            raise ValueError(f"no heads are named; choose from {', '.join(HEADS)}")
        for name in self.heads:
            check_head(name, task, protocol)
        for name, options in self.options.items():
            check_options(name, options, task, protocol)

    @property
    def features(self) -> FeatureSet:
        """The features that heads are compared on."""
        return self.feature_sets["given"]

    def folds(self) -> Iterator[tuple[str, int]]:
        """Every held-out domain and trial number."""
        for number in self.numbers:
            for held_out in self.features.held_out:
                yield held_out, number

    def trial(
        self,
        study: str,
        head: str,
        held_out: str,
        number: int,
        *,
        options: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Trial:
        """A trial with the options of its head, overruled by these.

        A variant of DARE has the options given for DARE, but for those in which it differs; a
        searching head has the same whether or not it adapts.
        """
        searching = self.options.get("dare-cv", {}) if head == "dare-cv-adapted" else {}
        combined = {
            **self._options_of_dare(head),
            **searching,
            **self.options.get(head, {}),
            **(options or {}),
        }
        ordered = tuple(sorted(combined.items()))
        return Trial(study, head, held_out, number, options=ordered, **fields)

    def _options_of_dare(self, name: str) -> dict[str, Any]:
        """Options given for DARE that one of its variants shares."""
        head = HEADS.get(name)
        dare = HEADS["dare"]
        if head is None or name == "dare" or head.family != dare.family:
            return {}
        options = self.options.get("dare", {})
        usual = dare.options
        own = head.options
        if self.settings.protocol == "paper":
            usual = dare.paper_options or {}
            own = head.paper_options or {}
            options = {key: value for key, value in options.items() if key in own}
        different = {key for key, value in own.items() if usual.get(key) != value}
        return {key: value for key, value in options.items() if key not in different}

    def plan(self, trials: Iterable[Trial]) -> Plan:
        """A plan of these trials, fold after fold."""
        order = self.features.held_out.index
        ordered = sorted(trials, key=lambda trial: (trial.number, order(trial.held_out)))
        if not ordered:
            raise ValueError("there is nothing to run; ask for other values, heads or domains")
        self._check_groups(ordered)
        self._check_reserved(ordered)
        self._check_whitened(ordered)
        return Plan(self.feature_sets, self.settings, ordered)

    def _check_groups(self, trials: Sequence[Trial]) -> None:
        """Refuse folds in which every training row is of a group that is scored."""
        for held_out, number in dict.fromkeys((t.held_out, t.number) for t in trials):
            table = self.features.table(held_out, number)
            if table.groups is None:
                continue
            others = [d for d in sorted_domains(table.domains) if d != held_out]
            place = held_out, number
            counts = [count_rows(self.features, *place, d, self.settings) for d in others]
            if not any(count.train for count in counts):
                raise InputError(
                    f"groups leaves nothing to train on: with `{held_out}` held out, every other "
                    "row is of a group that is scored in it",
                    "give test_on='reserved', which scores rows set aside alone",
                    argument="groups",
                )

    def _check_reserved(self, trials: Sequence[Trial]) -> None:
        """Refuse trials that are scored on rows set aside where a domain has none."""
        counts: dict[tuple[str, int], RowCounts] = {}
        for trial in trials:
            on_reserved = trial.head in (*CEILINGS, *RETRAINED) or (
                trial.head in HEADS and self.settings.tested_on == "reserved"
            )
            if not on_reserved:
                continue
            place = trial.held_out, trial.number
            if place not in counts:
                counts[place] = count_rows(self.features, *place, trial.held_out, self.settings)
            if not counts[place].reserved:
                raise ValueError(
                    f"{trial.head} is scored on rows set aside, and domain `{trial.held_out}` of "
                    f"{counted(counts[place].rows, 'row')} has none; raise aside, hold out other "
                    f"domains, or leave out {trial.head}"
                )

    def _check_whitened(self, trials: Sequence[Trial]) -> None:
        """Refuse heads that whiten where a domain leaves fewer than two rows to train on."""
        if not any(t.head in HEADS and HEADS[t.head].whitens for t in trials):
            return
        # One table may serve many trials and domains: each is looked at once.
        places = {}
        for t in trials:
            table = self.features.table(t.held_out, t.number)
            own = t.held_out if table.groups is not None else None
            places[id(table), t.number, own] = t.held_out, t.number
        for place in places.values():
            for domain in sorted_domains(self.features.table(*place).domains):
                count = count_rows(self.features, *place, domain, self.settings)
                # A domain whose rows are all of groups that are set aside or scored is not fitted.
                grouped = self.features.table(*place).groups is not None
                if count.train < 2 and not (grouped and count.train == 0):
                    raise ValueError(
                        f"domain `{domain}` has {counted(count.rows, 'row')}, too few to whiten "
                        f"after setting {count.rows - count.train} aside; leave small domains out "
                        "with min_rows=5"
                    )


def _numbers(features: FeatureSet, trials: int | None) -> list[int]:
    """Numbers of the trials: the first ``trials``; by default those with their own tables."""
    if trials is None:
        return features.trials or list(range(TRIALS))
    check_count("trials", trials, 1)
    return list(range(trials))


def _main(builder: PlanBuilder) -> Iterator[Trial]:
    for held_out, number in builder.folds():
        for head in builder.heads:
            yield builder.trial("main", head, held_out, number)


def _ceilings(builder: PlanBuilder, exact: bool, sgd: bool) -> Iterator[Trial]:
    names = [name for name, wanted in zip(CEILINGS, (exact, sgd), strict=True) if wanted]
    for held_out, number in builder.folds():
        for features, feature_set in builder.feature_sets.items():
            if held_out in feature_set.held_out:
                for name in names:
                    yield Trial("ceiling", name, held_out, number, features=features)


def _curve(builder: PlanBuilder) -> Iterator[Trial]:
    regression = builder.features.task == "regression"
    for held_out, number in builder.folds():
        table = builder.features.table(held_out, number)
        y = table.y[table.domains == held_out]
        largest = len(y) if regression else int(np.unique(y, return_counts=True)[1].max())
        for m in CURVE:
            if m <= (1.0 - builder.settings.aside) * largest and (m > 2 or not regression):
                for head in RETRAINED:
                    yield Trial("curve", head, held_out, number, x=m)


def _diagnostics(builder: PlanBuilder) -> Iterator[Trial]:
    whitening = ("shrinkage", "shrinkage_target", "centered")
    of_dare = builder.options.get("dare", {})
    options = tuple(sorted((key, value) for key, value in of_dare.items() if key in whitening))
    for held_out, number in builder.folds():
        for guess in GUESSES:
            yield Trial("adjustment", guess, held_out, number, options=options)
        if len(sorted_domains(builder.features.table(held_out, number).domains)) > 2:
            for which in ALIGNMENTS:
                yield Trial("alignment", which, held_out, number, options=options)


def _networks(
    builder: PlanBuilder, end_to_end: Scores | None, networks: Scores | None
) -> Iterator[Trial]:
    """Scores of networks, which were measured elsewhere."""
    ceilings = _scores_by_trial(builder, "end_to_end", end_to_end, rows="reserved")
    for (held_out, number), score in ceilings.items():
        yield Trial("ceiling", "end-to-end", held_out, number, network_score=score)
    for (held_out, number), score in _scores_by_trial(builder, "networks", networks).items():
        yield Trial(NETWORK, NETWORK, held_out, number, network_score=score)


def _scores_by_trial(
    builder: PlanBuilder, argument: str, scores: Scores | None, rows: str | None = None
) -> dict[tuple[str, int], NetworkScore]:
    """Checked scores by held-out domain and trial.

    Without a trial, a score belongs to the first one; a plain number was measured on ``rows``.
    """
    folds = list(builder.folds())
    metric = check_metrics(builder.settings.metrics, builder.features.task)[0]
    bounded = builder.features.task == "classification" and metric != "neg_log_loss"
    lowest = 0.0 if bounded else -np.inf
    first = folds[0][1]
    checked: dict[tuple[str, int], NetworkScore] = {}
    for key, value in (scores or {}).items():
        domain, number = key if isinstance(key, tuple) else (key, first)
        _check_fold(argument, str(domain), number, folds)
        score = value if isinstance(value, NetworkScore) else NetworkScore(value, rows)
        allowed = (*TESTED_ON, None)
        check_choice(f"tested_on of {argument} for {domain!r}", score.tested_on, allowed)
        check_number(f"{argument} for {domain!r}", score.score, lowest, 1.0)
        if (str(domain), number) in checked:
            raise ValueError(f"{argument} names trial {number} of {domain!r} twice; leave one out")
        checked[str(domain), number] = NetworkScore(float(score.score), score.tested_on)
    return checked


def _check_fold(argument: str, domain: str, number: Any, folds: Sequence[tuple[str, int]]) -> None:
    domains, numbers = (list(dict.fromkeys(part)) for part in zip(*folds, strict=True))
    if domain not in domains:
        names = ", ".join(map(str, domains))
        raise ValueError(f"{argument} names domain {domain!r}; held out are {names}")
    if number not in numbers:
        raise ValueError(
            f"{argument} names trial {number!r} of {domain!r}; the trials are "
            f"{', '.join(map(str, numbers))}"
        )
