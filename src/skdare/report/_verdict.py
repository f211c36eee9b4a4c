"""The verdict: what the statistics of a group say, in a few plain sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator

from skdare.report._names import Naming
from skdare.report._numbers import Scale, count, p_value, scale_of
from skdare.report.summary.main_study import MainStudy, PairedTest
from skdare.report.summary.summary import SummaryGroup

# The paper marks at 0.1; what is above 0.05 after correction is called weak.
EVIDENCE = 0.05
WEAK_EVIDENCE = 0.1
DARE = "dare"


def verdict(group: SummaryGroup, label: Naming) -> tuple[str, ...]:
    """Which head is best, whether the evidence bears it out, and what to keep in mind."""
    main = group.main
    if main is None:
        return ()
    scale = scale_of(group.metric)
    return (
        *_best(main, scale, label),
        *_best_with_a_look(main, scale, label),
        *_worst(main, scale, label),
        *_ceiling(group, main, scale, label),
        *_cautions(group, main, label),
    )


def _best(main: MainStudy, scale: Scale, label: Naming) -> Iterator[str]:
    """The highest average, and how far it is from the baseline; the same of DARE."""
    best = main.grid.best(main.competitors)
    if best is None:
        yield "No head has a score on every held-out domain in any trial, so there is no average."
        return
    value = scale.value(main.grid.column(best).average.mean, unit=True)
    rank = "the highest" if len(main.competitors) > 1 else "an"
    start = f"{label(best)} has {rank} average {scale.name}, {value}"
    test = main.comparison.across_domains.get(best)
    if test is None or math.isnan(test.difference.p):
        yield f"{start}."
    else:
        yield f"{start}: {_evidence(test, label(main.baseline))}."
    heads = [best] if best != main.baseline else []
    if DARE in main.competitors and DARE not in (best, main.baseline):
        heads.append(DARE)
    for head in heads:
        # A head that failed on some domains has no average to compare.
        averaged = not math.isnan(main.grid.column(head).average.mean)
        if averaged and head in main.comparison.across_domains:
            yield _against_baseline(main, head, scale, label)


def _against_baseline(main: MainStudy, head: str, scale: Scale, label: Naming) -> str:
    """How far a head is from the baseline across domains, and what that is worth."""
    test = main.comparison.across_domains[head]
    d = test.difference
    where = f"{label(main.baseline)}{scale.within} on average over {count(d.n, 'domain')}"
    side = "above" if d.mean > 0 else "below" if d.mean < 0 else "from"
    start = f"{label(head)} is {scale.distance(d.mean)} {side} {where}"
    # One domain says nothing of others: it has no interval and no test.
    if math.isnan(d.p):
        return f"{start}."
    p, holm = (d.p_lower, test.holm_lower) if d.mean < 0 else (d.p, test.holm)
    corrected = f", {p_value(holm)} after Holm over {test.family} heads" if test.family > 1 else ""
    interval = f"90 % interval {scale.interval(d.low, d.high)}"
    return f"{start} ({interval}; one-sided p {p_value(p)}{corrected}): {_evidence(test)}."


def _evidence(test: PairedTest, baseline: str = "") -> str:
    """What a difference is worth, by the same standard either way; the baseline may be named."""
    than = f" than {baseline}" if baseline else ""
    for p, side in ((test.holm, "higher"), (test.holm_lower, "lower")):
        if p < EVIDENCE:
            return f"evidence that it is {side}{than}"
        if p < WEAK_EVIDENCE:
            return f"weak evidence that it is {side}{than}"
    return "not enough evidence of a difference" + (f" from {baseline}" if baseline else "")


def _best_with_a_look(main: MainStudy, scale: Scale, label: Naming) -> Iterator[str]:
    """The best head among those that saw something of the held-out domain."""
    best = main.grid.best(h for h in main.grid.lines if h not in main.competitors)
    if best is not None and best in main.comparison.across_domains:
        sentence = _against_baseline(main, best, scale, label)
        yield f"With {main.uses[best]} of the held-out domain, {sentence}"


def _worst(main: MainStudy, scale: Scale, label: Naming) -> Iterator[str]:
    means = {h: main.grid.column(h).worst.mean for h in main.competitors}
    means = {h: mean for h, mean in means.items() if not math.isnan(mean)}
    if len(means) < 2 or len(main.grid.domains) < 2:
        return
    best = max(means, key=lambda h: means[h])
    text = (
        f"On the worst domain {label(best)} scores highest, {scale.value(means[best], unit=True)}"
    )
    if best != main.baseline and main.baseline in means:
        baseline = scale.value(means[main.baseline], unit=True)
        text += f" against {baseline} for {label(main.baseline)}"
    yield text + "."


def _ceiling(group: SummaryGroup, main: MainStudy, scale: Scale, label: Naming) -> Iterator[str]:
    """How far the baseline is below the linear ceiling on the same features."""
    if group.ceilings is None or main.reserved is None:
        return
    line = next((x for x in ("ceiling-exact", "ceiling-sgd") if x in group.ceilings.lines), None)
    if line is None:
        return
    ceiling = group.ceilings.column(line).average.mean
    gap = ceiling - main.reserved.column(main.baseline).average.mean
    if math.isnan(gap):
        return
    yield (
        "A linear head on the same features that is given labels of the held-out domain reaches "
        f"{scale.value(ceiling, unit=True)} on the reserved rows, {scale.distance(gap)} "
        f"{'above' if gap > 0 else 'below'} {label(main.baseline)}."
    )


def _cautions(group: SummaryGroup, main: MainStudy, label: Naming) -> Iterator[str]:
    if len(main.grid.trials) == 1:
        other = "another split or network" if main.grid.fresh else "another split"
        yield f"There is one trial, so nothing here says how much {other} would change."
        yield from _rows(main, label)
    failed = sum(f.study == "main" for f in group.failures)
    if failed:
        yield f"{count(failed, 'trial')} failed and {'is' if failed == 1 else 'are'} left out."
    if group.missing:
        verb = "is" if group.missing == 1 else "are"
        yield f"{count(group.missing, 'trial')} {verb} not on record yet: the run is not finished."


def _rows(main: MainStudy, label: Naming) -> Iterator[str]:
    """What the test rows of the only trial say of the best head and the baseline."""
    best = main.grid.best(main.competitors)
    head = DARE if best == main.baseline else best
    if head is None or head not in main.comparison.all_rows:
        return
    test = main.comparison.all_rows[head].test
    yield (
        f"Of its {count(test.n, 'test row')}, {label(head)} alone is right on {test.only_a:,} and "
        f"{label(main.baseline)} alone on {test.only_b:,} "
        f"(McNemar, two-sided p {p_value(test.p)})."
    )
