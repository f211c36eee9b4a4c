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
# Held-out domains from which on a difference can be told from chance: with fewer, no sign-flip
# test goes below 0.05 (1/2⁴ is 0.0625), and a t-test takes for granted that they are normal.
ENOUGH = 5
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
            yield from self._few_domains()
            return
        where = " there" if self.main.uses[best.head] != NOTHING else " on a new domain"
        expected = f"expect {self._score(best, where)}"
        if len(self.main.grid.domains) == 1:
            expected = self._score(best, " on the domain that was held out")
        yield (
            f"Use {self._how(best)}: {expected}{self._standing(best)}"
            f"{self._unbeaten(best, advice)}."
        )
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
        yield from self._caution(advice)

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
        far = _far(self.scale, outlook.gain, self.baseline)
        if outlook.domains == 1:
            return f", {far}"
        return f", {far} and better on {outlook.better} of {outlook.domains} domains"

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
        pays = "did not pay here" if lost else "is no better" if rival.mostly_better else ""
        start = f"Adapting {pays or 'is not sure to pay'}"
        yield f"{start}: {self.label(rival.head)} is {self._place(rival)}."

    def _place(self, outlook: HeadOutlook) -> str:
        """Where a head stands that is not recommended."""
        if outlook.head == self.main.baseline:
            return f"at {self._score(outlook)}"
        far = _far(self.scale, outlook.gain, self.baseline) + self.scale.within
        if outlook.domains == 1:
            return far
        return f"{far} on average, better on {outlook.better} of {outlook.domains} domains"

    def _caution(self, advice: Advice) -> Iterator[str]:
        """How far these domains can be trusted to stand for others."""
        if len(self.main.grid.domains) < ENOUGH:
            yield from self._few_domains()
            return
        tests = self.main.comparison.across_domains
        outlooks = (advice.adapted, advice.without)
        above = [o.head for o in outlooks if o and o.mostly_better and not self._useless(o)]
        unsure = [head for head in above if tests[head].higher >= EVIDENCE]
        if not unsure:
            return
        which = "The difference"
        if len(above) == 2:
            which = "Both differences"
            if len(unsure) == 1:
                which = f"The difference between {self.label(unsure[0])} and {self.baseline}"
        p = " and ".join(p_value(tests[head].higher) for head in unsure)
        yield f"{which} may be chance (p {p}{_corrected(tests[unsure[0]])})."

    def _few_domains(self) -> Iterator[str]:
        """What so few domains cannot tell."""
        n = len(self.main.grid.domains)
        if n == 1:
            yield "One domain was held out, so nothing here says what another would give."
        elif n < ENOUGH and self.main.comparison.across_domains:
            yield (
                f"Only {n} domains were held out: too few to tell a difference from chance, and "
                "the range is rough."
            )
        elif n < ENOUGH:
            yield f"Only {n} domains were held out, so the range is rough."


def _far(scale: Scale, gain: float, baseline: str) -> str:
    """How far above or below the baseline a head is, as far as the digits show."""
    if not scale.gain(gain).startswith(("+", "−")):
        return f"level with {baseline}"
    return f"{scale.distance(gain)} {'above' if gain > 0 else 'below'} {baseline}"


def _corrected(test: PairedTest) -> str:
    """What a corrected p is corrected for."""
    return f", corrected for {test.heads} heads" if test.heads > 1 else ""


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
    far = _far(scale, d.mean, label(main.baseline)) + scale.within
    # One domain says nothing of others: it has no interval and no test.
    if d.n == 1:
        return f"{label(head)} is {far} on the only domain."
    start = f"{label(head)} is {far} on average over {d.n} domains"
    interval = f"90 % interval {scale.interval(d.low, d.high)}"
    if d.n < ENOUGH:
        return f"{start} ({interval}): too few domains to tell that from chance."
    p = test.lower if d.mean < 0 else test.higher
    tested = f"one-sided sign-flip p {p_value(p)}{_corrected(test)}"
    return f"{start} ({interval}; {tested}): {_evidence(test)}."


def _evidence(test: PairedTest) -> str:
    """What a difference is worth, by the same standard either way."""
    for p, side in ((test.higher, "higher"), (test.lower, "lower")):
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
    all_heads = len(main.competitors) == len(main.grid.lines)
    text = "" if all_heads else "Of the heads that saw nothing of the held-out domain, "
    text += f"{label(best)} scores highest on the worst domain, {scale.prose(means[best])}"
    if best != main.baseline and main.baseline in means:
        text += f" against {scale.prose(means[main.baseline])} for {label(main.baseline)}"
    yield text + "."


def _rows(main: MainStudy, label: Naming) -> Iterator[str]:
    """What the test rows of the only trial say of the best head and the baseline."""
    if len(main.grid.trials) > 1:
        return
    comparison = main.comparison
    if comparison.grouped:
        yield "Rows of one group are not independent, so heads are not compared row by row."
    best = main.grid.best(main.competitors)
    head = DARE if best == main.baseline else best
    if head is None or head not in comparison.all_rows:
        return
    test = comparison.all_rows[head].test
    heads = len(comparison.all_rows)
    holm = p_value(comparison.all_rows[head].holm)
    corrected = f", corrected by Holm for {heads} heads" if heads > 1 else ""
    yield (
        f"Of the {counted(test.n, 'test row')} of the only trial, {label(head)} alone is right on "
        f"{test.only_a:,} and {label(main.baseline)} alone on {test.only_b:,} (McNemar, two-sided "
        f"p {holm}{corrected}); that is about more rows of these domains, not about another domain."
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
