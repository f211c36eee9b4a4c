"""The verdict: which head to use and what to expect of it, in a few plain sentences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from skdare._safe_text import counted
from skdare._scale import Scale
from skdare.bench._record import NOTHING, UNLABELLED
from skdare.report._names import Naming
from skdare.report._numbers import p_value, scale_of_grid
from skdare.report.summary.advice import TIE, Advice, HeadOutlook, advise
from skdare.report.summary.main_study import MainStudy, PairedTest
from skdare.report.summary.summary import SummaryGroup

# The paper marks at 0.1; what is above 0.05 after correction is called weak.
EVIDENCE = 0.05
WEAK_EVIDENCE = 0.1
FEW = 4  # domains, from which on an interval over them is called rough
DARE = "dare"


def verdict(group: SummaryGroup, label: Naming) -> tuple[str, ...]:
    """Which head to use, what to expect of it on a new domain, and how sure that is."""
    if group.main is None:
        return ()
    writer = _Writer(group.main, scale_of_grid(group.main.grid), label)
    return tuple(writer.sentences(advise(group.main)))


class _Writer:
    """Writes advice in plain sentences."""

    def __init__(self, main: MainStudy, scale: Scale, label: Naming) -> None:
        self.main = main
        self.scale = scale
        self.label = label
        self.baseline = label(main.baseline)

    def sentences(self, advice: Advice) -> Iterator[str]:
        """At most three sentences: the head to use, the other case, the caution."""
        best = advice.best
        if best is None:
            yield (
                "No head has a score on every held-out domain in any trial, so there is no average."
            )
            return
        if self._useless(best):
            yield (
                f"Do not use these heads on a new domain: the best, {self.label(best.head)}, can "
                f"be expected to reach {self._score(best)}, {self.scale.uselessness}."
            )
            return
        where = " there" if self.main.uses[best.head] != NOTHING else " on a new domain"
        expected = f"expect {self._score(best, where)}{self._standing(best)}"
        yield f"Use {self._how(best)}: {expected}{self._unbeaten(best, advice)}."
        if advice.adapted and advice.without:
            without = advice.without
            name = self.label(without.head)
            score = self._score(without)
            if self._useless(without):
                yield f"Without such rows use none: {name} reaches {score}."
            else:
                rest = self._standing(without) or self._unbeaten(without, advice)
                yield f"Without such rows use {name}, {score}{rest}."
        else:
            yield from self._runner_up(best, advice)
        yield from self._caution(best)

    def _useless(self, outlook: HeadOutlook) -> bool:
        """Whether guessing would do as well."""
        return self.scale.useless is not None and outlook.expected.mean <= self.scale.useless

    def _how(self, outlook: HeadOutlook) -> str:
        """The head, and what to do with rows of the new domain."""
        uses = self.main.uses[outlook.head]
        name = self.label(outlook.head)
        if uses == NOTHING:
            return name
        before = self.label.before_adapting(outlook.head)
        rows = f"{uses} of the new domain"
        return f"{before} and adapt it to {rows}" if before else f"{name} with {rows}"

    def _score(self, outlook: HeadOutlook, where: str = "") -> str:
        """The expected score and its range."""
        expected = outlook.expected
        text = self.scale.prose(expected.mean) + where
        if math.isnan(expected.half_width):
            return text
        return f"{text} ({self.scale.span(expected.low, expected.high)})"

    def _standing(self, outlook: HeadOutlook) -> str:
        """How far the head is above the baseline, and on how many domains."""
        if not outlook.mostly_better:
            return ""
        distance = f"{self.scale.distance(outlook.gain)} above {self.baseline}"
        if outlook.domains == 1:
            return f", {distance}"
        return f", {distance} and better on {outlook.better} of {outlook.domains} domains"

    def _unbeaten(self, outlook: HeadOutlook, advice: Advice) -> str:
        """What the baseline was held against, where it is what to use."""
        nothing = [o for o in advice.rivals if self.main.uses[o.head] == NOTHING]
        rivals = nothing if advice.adapted else advice.rivals
        if outlook.mostly_better or not rivals:
            return ""
        if rivals[0].expected.mean > outlook.expected.mean and rivals[0].domains > 1:
            return "; nothing tested here is better on most domains"
        return "; nothing tested here beats it"

    def _runner_up(self, best: HeadOutlook, advice: Advice) -> Iterator[str]:
        """The best of the others: one that adapts, if any was tried, else any."""
        adapting = [o for o in advice.rivals if self.main.uses[o.head] == UNLABELLED]
        rivals = adapting if self.main.uses[best.head] == NOTHING else []
        if not rivals:
            if advice.rivals:
                rival = advice.rivals[0]
                yield f"Next is {self.label(rival.head)}, {self._place(rival)}."
            return
        rival = rivals[0]
        lost = rival.gain <= TIE
        pays = "does not pay here" if lost else "is no better" if rival.mostly_better else ""
        start = f"Adapting {pays or 'is not sure to pay'}"
        yield f"{start}: {self.label(rival.head)} is {self._place(rival)}."

    def _place(self, outlook: HeadOutlook) -> str:
        """Where a head stands that is not recommended."""
        if outlook.head == self.main.baseline:
            return f"at {self._score(outlook)}"
        on = f"better on {outlook.better} of {counted(outlook.domains, 'domain')}"
        if not self.scale.gain(outlook.gain).startswith(("+", "−")):
            return f"level with {self.baseline} on average, {on}"
        side = "above" if outlook.gain > 0 else "below"
        far = f"{self.scale.distance(outlook.gain)} {side} {self.baseline}{self.scale.within}"
        return f"{far} on average, {on}"

    def _caution(self, best: HeadOutlook) -> Iterator[str]:
        """How far these domains can be trusted to stand for others."""
        n = len(self.main.grid.domains)
        if n == 1:
            yield "One domain was held out, so nothing here says what another would give."
            return
        test = self.main.comparison.across_domains.get(best.head)
        unsure = best.mostly_better and test is not None and test.difference.low <= 0
        few = f"Only {n} domains were held out" if n <= FEW else ""
        if unsure and test is not None:
            d = test.difference
            interval = self.scale.interval(d.low, d.high)
            start = f"{few}, and the" if few else "The"
            yield f"{start} difference may be chance (90 % interval {interval})."
        elif few:
            yield f"{few}, so the range is rough."


def remarks(group: SummaryGroup, label: Naming) -> tuple[str, ...]:
    """What to know with the advice: what its numbers are, and what they lack."""
    return () if group.main is None else tuple(_remarks(group, group.main, label))


def _choices(main: MainStudy, label: Naming) -> Iterator[str]:
    """What heads that choose chose, a sentence each, the most frequent first."""
    for head, by_domain in main.chosen.items():
        counts = Counter[str]()
        for strategies in by_domain.values():
            counts.update(strategies)
        alike = all(len(strategies) == 1 for strategies in by_domain.values())
        if alike:  # the same in every trial of a domain
            counts = Counter(name for strategies in by_domain.values() for name in strategies)
        (first, n), *rest = ((label(name), times) for name, times in counts.most_common())
        others = "".join(f", {name} in {times:,}" for name, times in rest)
        total = counted(counts.total(), "domain" if alike else "trial")
        yield f"{label(head)} chose {first} in {n:,} of {total}{others}."


def _remarks(group: SummaryGroup, main: MainStudy, label: Naming) -> Iterator[str]:
    yield from _choices(main, label)
    n = len(main.grid.domains)
    if n > 1 and advise(main).best is not None:
        yield (
            "In brackets after a score: where one more domain like these would fall four times in "
            f"five (t interval over {n} domains)."
        )
    if len(main.grid.trials) == 1:
        other = "another split or network" if main.grid.fresh else "another split"
        yield f"There is one trial, so nothing here says how much {other} would change."
    failed = sum(f.study == "main" for f in group.failures)
    if failed:
        yield f"{counted(failed, 'trial')} failed and {'is' if failed == 1 else 'are'} left out."
    if group.missing:
        verb = "is" if group.missing == 1 else "are"
        trials = counted(group.missing, "trial")
        yield f"{trials} {verb} not on record yet: the run is not finished."
    warnings = len(group.conditions.warnings)
    if warnings:
        given = counted(warnings, "warning")
        yield f"Fitting gave {given}; the report lists them under “How it was run”."


def evidence(main: MainStudy, label: Naming) -> tuple[str, ...]:
    """What tests make of the best head, of DARE, and of the best head that adapts."""
    scale = scale_of_grid(main.grid)
    best = main.grid.best(main.competitors)
    look = main.grid.best(h for h in main.grid.lines if h not in main.competitors)
    heads = dict.fromkeys((best, DARE, look))
    return (
        *(
            _against_baseline(main, head, scale, label)
            for head in heads
            if head is not None
            # A head that failed on some domains has no average to compare.
            and head in main.comparison.across_domains
            and not math.isnan(main.grid.column(head).average.mean)
        ),
        *_worst(main, scale, label),
        *_rows(main, label),
    )


def _against_baseline(main: MainStudy, head: str, scale: Scale, label: Naming) -> str:
    """How far a head is from the baseline across domains, and what that is worth."""
    test = main.comparison.across_domains[head]
    d = test.difference
    where = f"{label(main.baseline)}{scale.within} on average over {counted(d.n, 'domain')}"
    side = "above" if d.mean > 0 else "below" if d.mean < 0 else "from"
    start = f"{label(head)} is {scale.distance(d.mean)} {side} {where}"
    # One domain says nothing of others: it has no interval and no test.
    if math.isnan(d.p):
        return f"{start}."
    p, holm = (d.p_lower, test.holm_lower) if d.mean < 0 else (d.p, test.holm)
    corrected = f", {p_value(holm)} after Holm over {test.family} heads" if test.family > 1 else ""
    interval = f"90 % interval {scale.interval(d.low, d.high)}"
    return f"{start} ({interval}; one-sided p {p_value(p)}{corrected}): {_evidence(test)}."


def _evidence(test: PairedTest) -> str:
    """What a difference is worth, by the same standard either way."""
    for p, side in ((test.holm, "higher"), (test.holm_lower, "lower")):
        if p < EVIDENCE:
            return f"evidence that it is {side}"
        if p < WEAK_EVIDENCE:
            return f"weak evidence that it is {side}"
    return "not enough evidence of a difference"


def _worst(main: MainStudy, scale: Scale, label: Naming) -> Iterator[str]:
    means = {h: main.grid.column(h).worst.mean for h in main.competitors}
    means = {h: mean for h, mean in means.items() if not math.isnan(mean)}
    if len(means) < 2 or len(main.grid.domains) < 2:
        return
    best = max(means, key=lambda h: means[h])
    text = f"On the worst domain {label(best)} scores highest, {scale.prose(means[best])}"
    if best != main.baseline and main.baseline in means:
        text += f" against {scale.prose(means[main.baseline])} for {label(main.baseline)}"
    yield text + "."


def _rows(main: MainStudy, label: Naming) -> Iterator[str]:
    """What the test rows of the only trial say of the best head and the baseline."""
    best = main.grid.best(main.competitors)
    head = DARE if best == main.baseline else best
    if len(main.grid.trials) > 1 or head is None or head not in main.comparison.all_rows:
        return
    test = main.comparison.all_rows[head].test
    yield (
        f"Of the {counted(test.n, 'test row')} of the only trial, {label(head)} alone is right on "
        f"{test.only_a:,} and {label(main.baseline)} alone on {test.only_b:,} "
        f"(McNemar, two-sided p {p_value(test.p)})."
    )


def ceiling_gap(group: SummaryGroup, label: Naming) -> Iterator[str]:
    """How far the baseline is below the linear ceiling on the same features."""
    main = group.main
    if group.ceilings is None or main is None or main.reserved is None:
        return
    line = next((x for x in ("ceiling-exact", "ceiling-sgd") if x in group.ceilings.lines), None)
    if line is None:
        return
    scale = scale_of_grid(main.grid)
    ceiling = group.ceilings.column(line).average.mean
    gap = ceiling - main.reserved.column(main.baseline).average.mean
    if math.isnan(gap):
        return
    yield (
        "A linear head on the same features that is given labels of the held-out domain reaches "
        f"{scale.prose(ceiling)} on the reserved rows, {scale.distance(gap)} "
        f"{'above' if gap > 0 else 'below'} {label(main.baseline)}."
    )
