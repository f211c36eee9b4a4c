"""Plans: which trials answer a question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from skdare._validation import check_choice, check_count, check_number
from skdare.bench._ceilings import CEILINGS, RETRAINED
from skdare.bench._diagnostics import ALIGNMENTS, GUESSES
from skdare.bench._fold import rows_and_reserved
from skdare.bench._heads import DEFAULT_HEADS, HEADS, check_head
from skdare.bench._paper import OPTIONS as PAPER_OPTIONS
from skdare.bench._source import Source, distinct
from skdare.bench._trial import Plan, Settings, Trial
from skdare.datasets import DomainData

Data = DomainData | Mapping[str, DomainData]
EXTRAS = ("ceilings", "sgd", "curve", "diagnostics")
DEFAULT_EXTRAS = ("ceilings", "diagnostics")
CURVE = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True, eq=False)
class Questions:
    """What is asked of the features: every argument of a plan, checked."""

    sources: Mapping[str, Source]
    settings: Settings
    trials: int
    heads: Sequence[str]
    options: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(
        cls,
        data: Data,
        *,
        pretrained: Data | None = None,
        settings: Settings | None = None,
        trials: int = 3,
        heads: Sequence[str] | None = None,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        name: str | None = None,
        task: str | None = None,
        held_out: Sequence[str] | None = None,
        min_rows: int = 1,
    ) -> Questions:
        """Check everything before any work."""
        more: dict[str, Any] = {"name": name, "min_rows": min_rows}
        sources = {"given": Source.of(data, task=task, held_out=held_out, **more)}
        given = sources["given"]
        if pretrained is not None:
            sources["pretrained"] = Source.of(pretrained, task=given.task, **more)
            if not set(given.held_out) & set(sources["pretrained"].held_out):
                raise ValueError(
                    "the pretrained features have none of the held-out domains; "
                    f"held out are {', '.join(given.held_out)}"
                )
        settings = settings or Settings()
        if settings.impute is None:
            for source in sources.values():
                source.refuse_missing()
        chosen = list(dict.fromkeys(DEFAULT_HEADS[given.task] if heads is None else heads))
        asked = cls(sources, settings, trials, chosen, options or {})
        asked._check()
        return asked

    def _check(self) -> None:
        check_count("trials", self.trials, 1)
        task, protocol = self.source.task, self.settings.protocol
        if protocol == "paper" and task == "regression":
            raise ValueError(
                "the paper's protocol stops by accuracy and has no regression; "
                "use protocol='default'"
            )
        if not self.heads:
            raise ValueError(f"no heads are named; there are {', '.join(HEADS)}")
        for name in self.heads:
            check_head(name, task, protocol)
        for name, options in self.options.items():
            check_options(name, options, task, protocol)

    @property
    def source(self) -> Source:
        """The features in question."""
        return self.sources["given"]

    def plan(self, trials: Iterable[Trial]) -> Plan:
        """These trials, fold after fold."""
        order = self.source.held_out.index
        ordered = sorted(trials, key=lambda trial: (trial.number, order(trial.held_out)))
        if not ordered:
            raise ValueError("there is nothing to run; ask for other values, heads or domains")
        self._check_reserved(ordered)
        self._check_whitened(ordered)
        return Plan(self.sources, self.settings, ordered)

    def _check_reserved(self, trials: Sequence[Trial]) -> None:
        """Refuse trials that are scored on rows set aside where a domain has none."""
        share, known = self.settings.aside, {}
        for trial in trials:
            on_reserved = trial.head in (*CEILINGS, *RETRAINED) or (
                trial.head in HEADS and self.settings.tested_on == "reserved"
            )
            place = trial.held_out, trial.number
            if on_reserved and place not in known:
                known[place] = rows_and_reserved(self.source.tables[place[0]], *place, share)
            if on_reserved and not known[place][1]:
                raise ValueError(
                    f"{trial.head} is scored on rows set aside, and domain `{trial.held_out}` of "
                    f"{known[place][0]} rows has none; raise aside (--aside), hold out other "
                    "domains, or leave it out (--with none)"
                )

    def _check_whitened(self, trials: Sequence[Trial]) -> None:
        """Refuse heads that whiten where a domain leaves fewer than two rows to train on."""
        if not any(t.head in HEADS and HEADS[t.head].whitens for t in trials):
            return
        numbers = {trial.number for trial in trials}
        for table in self.source.distinct_tables:
            for domain in distinct(table.domains):
                for number in numbers:
                    n, aside = rows_and_reserved(table, domain, number, self.settings.aside)
                    if n - aside < 2:
                        raise ValueError(
                            f"domain `{domain}` has {n} rows, too few to whiten once {aside} are "
                            "set aside; leave small domains out with min_rows (--min-rows 5)"
                        )

    def folds(self) -> Iterator[tuple[str, int]]:
        """Held-out domain and trial number."""
        for number in range(self.trials):
            for held_out in self.source.held_out:
                yield held_out, number

    def trial(self, study: str, head: str, held_out: str, number: int, **more: Any) -> Trial:
        """A trial with the options that the head was given, and then these.

        A variant of DARE has the options given for DARE, but for those in which it differs.
        """
        given = {**self._of_dare(head), **self.options.get(head, {})}
        options = {**given, **more.pop("options", {})}
        return Trial(study, head, held_out, number, options=tuple(sorted(options.items())), **more)

    def _of_dare(self, head: str) -> dict[str, Any]:
        entry = HEADS.get(head)
        if entry is None or head == "dare" or entry.family != HEADS["dare"].family:
            return {}
        given, own = self.options.get("dare", {}), entry.options
        if self.settings.protocol == "paper":
            usual, mine = PAPER_OPTIONS["dare"], PAPER_OPTIONS[head]
            own = {key: value for key, value in mine.items() if usual.get(key) != value}
            given = {key: value for key, value in given.items() if key in mine}
        return {key: value for key, value in given.items() if key not in own}


def check_options(name: str, options: Mapping[str, Any], task: str, protocol: str) -> None:
    """A head takes these options, and these values of them."""
    entry = check_head(name, task, protocol)
    known = list(PAPER_OPTIONS[name] if protocol == "paper" else entry.make(task).get_params())
    for key, value in options.items():
        if key not in known:
            close = get_close_matches(key, known, n=1)
            hint = (
                f"did you mean {close[0]!r}?" if close else f"it has {', '.join(known) or 'none'}"
            )
            raise ValueError(f"head `{name}` has no option {key!r} in protocol {protocol}; {hint}")
        if protocol == "paper" and not isinstance(PAPER_OPTIONS[name][key], bool):
            check_number(f"{name}.{key}", value, high=1.0 if key == "shrinkage" else np.inf)
    if protocol != "paper":
        entry.make(task, **options)._check_options()


def bench_plan(
    data: Data,
    *,
    extras: Sequence[str] = DEFAULT_EXTRAS,
    end_to_end: Mapping[str, float] | None = None,
    **asked: Any,
) -> Plan:
    """Every head on every held-out domain, and what is to be shown beside them.

    Parameters
    ----------
    data : DomainData, or mapping from held-out domain to DomainData
        A table for each held-out domain where features were fine-tuned without it.
    extras : sequence of "ceilings", "sgd", "curve", "diagnostics"
        Linear ceilings, solved exactly and by the paper's descent; retraining on labelled rows;
        the diagnostics of the paper's appendix.
    end_to_end : mapping from held-out domain to score, optional
        Of a network trained on all domains, measured elsewhere.
    pretrained : like data, optional
        Features before fine-tuning, for ceilings.
    settings : Settings, optional
    trials : int, default=3
    heads : sequence of str, optional
        Default: those of the paper, and the adapted one.
    options : mapping from head to its options, optional
    name, task : str, optional
        What to call the data, and what y is; guessed where not given.
    held_out : sequence of str, optional
        Domains to hold out; default: every one.
    min_rows : int, default=1
        Leave out domains of fewer rows, in training too.
    """
    for extra in extras:
        check_choice("extras", extra, EXTRAS)
    q = Questions.of(data, **asked)
    trials = [*_main(q), *_ceilings(q, "ceilings" in extras, "sgd" in extras)]
    trials += [*_curve(q)] if "curve" in extras else []
    trials += [*_diagnostics(q)] if "diagnostics" in extras else []
    for held_out, score in (end_to_end or {}).items():
        if held_out not in q.source.held_out:
            names = ", ".join(q.source.held_out)
            raise ValueError(f"end_to_end names domain {held_out!r}; held out are {names}")
        trials.append(Trial("ceiling", "end-to-end", held_out, 0, given=float(score)))
    return q.plan(trials)


def _main(q: Questions) -> Iterator[Trial]:
    for held_out, number in q.folds():
        for head in q.heads:
            yield q.trial("main", head, held_out, number)


def _ceilings(q: Questions, exact: bool, sgd: bool) -> Iterator[Trial]:
    names = [name for name, asked in zip(CEILINGS, (exact, sgd), strict=True) if asked]
    for held_out, number in q.folds():
        for features, source in q.sources.items():
            if held_out in source.held_out:
                for name in names:
                    yield Trial("ceiling", name, held_out, number, features=features)


def _curve(q: Questions) -> Iterator[Trial]:
    for held_out, number in q.folds():
        table = q.source.tables[held_out]
        y = table.y[table.domains == held_out]
        whole = q.source.task == "regression"
        most = len(y) if whole else int(np.unique(y, return_counts=True)[1].max())
        for m in CURVE:
            if m <= (1.0 - q.settings.aside) * most and (m > 2 or not whole):
                for head in RETRAINED:
                    yield Trial("curve", head, held_out, number, x=m)


def _diagnostics(q: Questions) -> Iterator[Trial]:
    whitening = ("shrinkage", "shrinkage_target", "centered")
    given = q.options.get("dare", {})
    options = tuple(sorted((k, v) for k, v in given.items() if k in whitening))
    for held_out, number in q.folds():
        for guess in GUESSES:
            yield Trial("adjustment", guess, held_out, number, options=options)
        if len(distinct(q.source.tables[held_out].domains)) > 2:
            for which in ALIGNMENTS:
                yield Trial("alignment", which, held_out, number, options=options)
