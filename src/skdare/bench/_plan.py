"""Plans: which trials answer a question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np

from skdare._validation import check_choice, check_count
from skdare.bench._ceilings import RETRAINED
from skdare.bench._diagnostics import ALIGNMENTS
from skdare.bench._heads import DEFAULT_HEADS, HEADS, check_head
from skdare.bench._paper import OPTIONS as PAPER_OPTIONS
from skdare.bench._source import Source, distinct
from skdare.bench._trial import Plan, Settings, Trial

EXTRAS = ("ceilings", "sgd", "curve", "diagnostics")
CURVE = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True, eq=False)
class Questions:
    """What is asked of the features.

    Parameters
    ----------
    sources : mapping from name to Source
        "given", and "pretrained" where those are to be compared.
    settings : Settings
    trials : int
    heads : sequence of str, optional
        Default: those of the paper, and the adapted one.
    options : mapping from head to its options
    """

    sources: Mapping[str, Source]
    settings: Settings = field(default_factory=Settings)
    trials: int = 3
    heads: Sequence[str] | None = None
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_count("trials", self.trials, 1)
        task, protocol = self.source.task, self.settings.protocol
        if protocol == "paper" and task == "regression":
            raise ValueError(
                "the paper's protocol stops by accuracy and has no regression; "
                "use protocol='default'"
            )
        if not self.chosen_heads:
            raise ValueError(f"no heads are named; there are {', '.join(HEADS)}")
        for name in self.chosen_heads:
            check_head(name, task, protocol)
        for name, options in self.options.items():
            check_options(name, options, task, protocol)

    @property
    def source(self) -> Source:
        """The features in question."""
        return self.sources["given"]

    @property
    def chosen_heads(self) -> list[str]:
        """Names of the heads to compare."""
        heads = DEFAULT_HEADS[self.source.task] if self.heads is None else self.heads
        return list(dict.fromkeys(heads))

    def plan(self, trials: Iterator[Trial]) -> Plan:
        """These trials, fold after fold."""
        ordered = sorted(trials, key=lambda t: (t.number, self.source.held_out.index(t.held_out)))
        prints = {
            (name, domain): source.fingerprints[domain]
            for name, source in self.sources.items()
            for domain in source.held_out
        }
        return Plan(self.settings, ordered, prints)

    def folds(self) -> Iterator[tuple[str, int]]:
        """Held-out domain and trial number."""
        for number in range(self.trials):
            for held_out in self.source.held_out:
                yield held_out, number

    def trial(self, study: str, head: str, held_out: str, number: int, **more: Any) -> Trial:
        """A trial with the options that the head was given."""
        options = {**self.options.get(head, {}), **more.pop("options", {})}
        return Trial(study, head, held_out, number, options=tuple(sorted(options.items())), **more)


def check_options(name: str, options: Mapping[str, Any], task: str, protocol: str) -> None:
    """A head takes these options; values are checked when it is fitted."""
    entry = check_head(name, task, protocol)
    known = list(PAPER_OPTIONS[name] if protocol == "paper" else entry.make(task).get_params())
    for key in options:
        if key not in known:
            close = get_close_matches(key, known, n=1)
            hint = (
                f"did you mean {close[0]!r}?" if close else f"it has {', '.join(known) or 'none'}"
            )
            raise ValueError(f"head `{name}` has no option {key!r} in protocol {protocol}; {hint}")


def bench_plan(
    questions: Questions,
    extras: Sequence[str] = ("ceilings", "diagnostics"),
    end_to_end: Mapping[str, float] | None = None,
) -> Plan:
    """Every head on every held-out domain, and what is to be shown beside them."""
    for extra in extras:
        check_choice("extras", extra, EXTRAS)
    ask = _Asking(questions)
    trials = list(ask.main())
    if "ceilings" in extras or "sgd" in extras:
        trials += ask.ceilings("ceilings" in extras, "sgd" in extras)
    if "curve" in extras:
        trials += ask.curve()
    if "diagnostics" in extras:
        trials += ask.diagnostics()
    for held_out, score in (end_to_end or {}).items():
        if held_out not in questions.source.held_out:
            names = ", ".join(questions.source.held_out)
            raise ValueError(f"end_to_end names domain {held_out!r}; held out are {names}")
        trials.append(Trial("ceiling", "end-to-end", held_out, 0, given=float(score)))
    return questions.plan(iter(trials))


@dataclass(frozen=True, eq=False)
class _Asking:
    questions: Questions

    def main(self) -> Iterator[Trial]:
        q = self.questions
        for held_out, number in q.folds():
            for head in q.chosen_heads:
                yield q.trial("main", head, held_out, number)

    def ceilings(self, exact: bool, sgd: bool) -> Iterator[Trial]:
        names = ["ceiling-exact"] * exact + ["ceiling-sgd"] * sgd
        for held_out, number in self.questions.folds():
            for features, source in self.questions.sources.items():
                if held_out in source.held_out:
                    for name in names:
                        yield Trial("ceiling", name, held_out, number, features=features)

    def curve(self) -> Iterator[Trial]:
        source, aside = self.questions.source, self.questions.settings.aside
        for held_out, number in self.questions.folds():
            table = source.tables[held_out]
            y = table.y[table.domains == held_out]
            whole = source.task == "regression"
            most = len(y) if whole else int(np.unique(y, return_counts=True)[1].max())
            for m in CURVE:
                if m <= (1.0 - aside) * most and (m > 2 or not whole):
                    for head in RETRAINED:
                        yield Trial("curve", head, held_out, number, x=m)

    def diagnostics(self) -> Iterator[Trial]:
        q = self.questions
        whitening = ("shrinkage", "shrinkage_target", "centered")
        options = {k: v for k, v in q.options.get("dare", {}).items() if k in whitening}
        chosen = tuple(sorted(options.items()))
        for held_out, number in q.folds():
            yield Trial("adjustment", "dare", held_out, number, options=chosen)
            if len(distinct(q.source.tables[held_out].domains)) > 2:
                for which in ALIGNMENTS:
                    yield Trial("alignment", which, held_out, number, options=chosen)
