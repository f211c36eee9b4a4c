"""Questions: what is asked of the features, checked before any work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from skdare._validation import InputError, check_count, check_number
from skdare.bench._ceilings import CEILINGS, RETRAINED
from skdare.bench._fold import rows_and_reserved
from skdare.bench._heads import DEFAULT_HEADS, HEADS, check_head
from skdare.bench._paper import OPTIONS as PAPER_OPTIONS
from skdare.bench._source import Data, Source, distinct
from skdare.bench._trial import Plan, Settings, Trial

TRIALS = 3


@dataclass(frozen=True, eq=False)
class Questions:
    """What is asked of the features: every argument of a plan, checked."""

    sources: Mapping[str, Source]
    settings: Settings
    numbers: Sequence[int]
    heads: Sequence[str]
    options: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(
        cls,
        data: Data,
        *,
        pretrained: Data | None = None,
        settings: Settings | None = None,
        trials: int | None = None,
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
        chosen = list(dict.fromkeys(DEFAULT_HEADS[given.task] if heads is None else heads))
        numbers = _numbers(given, trials)
        asked = cls(sources, settings or Settings(), numbers, chosen, options or {})
        asked._check_features()
        asked._check_heads()
        return asked

    def _check_features(self) -> None:
        for source in self.sources.values():
            shared = [domain for domain in self.source.held_out if domain in source.held_out]
            source.refuse_absent(shared, self.numbers)
            if self.settings.impute is None:
                source.refuse_missing()

    def _check_heads(self) -> None:
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
                known[place] = rows_and_reserved(self.source, *place, trial.held_out, share)
            if on_reserved and not known[place][1]:
                raise InputError(
                    f"{trial.head} is scored on rows set aside, and domain `{trial.held_out}` of "
                    f"{known[place][0]} rows has none",
                    "raise aside, hold out other domains, or leave it out",
                    argument="aside",
                )

    def _check_whitened(self, trials: Sequence[Trial]) -> None:
        """Refuse heads that whiten where a domain leaves fewer than two rows to train on."""
        if not any(t.head in HEADS and HEADS[t.head].whitens for t in trials):
            return
        # Where one table serves many trials and domains, once is enough.
        places = {
            (id(self.source.table(t.held_out, t.number)), t.number): (t.held_out, t.number)
            for t in trials
        }
        for place in places.values():
            for domain in distinct(self.source.table(*place).domains):
                n, aside = rows_and_reserved(self.source, *place, domain, self.settings.aside)
                if n - aside < 2:
                    raise ValueError(
                        f"domain `{domain}` has {n} rows, too few to whiten once {aside} are "
                        "set aside; leave small domains out with min_rows=5"
                    )

    def folds(self) -> Iterator[tuple[str, int]]:
        """Held-out domain and trial number."""
        for number in self.numbers:
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


def _numbers(source: Source, trials: int | None) -> list[int]:
    """The trials to run: the first so many; by default those with features of their own."""
    if trials is None:
        return source.trials or list(range(TRIALS))
    check_count("trials", trials, 1)
    return list(range(trials))


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
