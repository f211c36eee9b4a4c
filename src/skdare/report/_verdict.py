"""The verdict: what the statistics of a group say, in a few plain sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator

from skdare.report._names import Naming
from skdare.report._numbers import Scale, count, p_value, scale_of
from skdare.report.summary.grid import estimate
from skdare.report.summary.groups import Group
from skdare.report.summary.standing import Paired, Standing

# The paper marks at 0.1; what is above 0.05 after correction is called weak.
EVIDENCE, WEAK = 0.05, 0.1
OURS = "dare"


def verdict(group: Group, label: Naming) -> tuple[str, ...]:
    """Who is best, whether the evidence bears it out, and what to keep in mind."""
    standing = group.main
    if standing is None:
        return ()
    scale = scale_of(group.metric)
    return (
        *_best(standing, scale, label),
        *_peeking(standing, scale, label),
        *_worst(standing, scale, label),
        *_ceiling(group, standing, scale, label),
        *_cautions(group, standing, label),
    )


def _best(standing: Standing, scale: Scale, label: Naming) -> Iterator[str]:
    """The highest average, and how far it is from the baseline; the same of DARE."""
    best = standing.grid.best(standing.competitors)
    if best is None:
        yield "No head has a score on every held-out domain in any trial, so there is no average."
        return
    value = scale.value(estimate(standing.grid.average(best)).mean, unit=True)
    rank = "the highest" if len(standing.competitors) > 1 else "an"
    start = f"{label(best)} has {rank} average {scale.name}, {value}"
    found = standing.against.across.get(best)
    if found is None or math.isnan(found.difference.p):
        yield f"{start}."
    else:
        yield f"{start}: {_evidence(found, label(standing.baseline))}."
    named = [best] if best != standing.baseline else []
    if OURS in standing.competitors and OURS not in (best, standing.baseline):
        named.append(OURS)
    for head in named:
        # A head that failed on some domains has no average to speak of.
        whole = not math.isnan(estimate(standing.grid.average(head)).mean)
        if whole and head in standing.against.across:
            yield against_baseline(standing, head, scale, label)


def against_baseline(standing: Standing, head: str, scale: Scale, label: Naming) -> str:
    """How far a head is from the baseline across domains, and what that is worth."""
    found = standing.against.across[head]
    d, heads = found.difference, found.family
    where = f"{label(standing.baseline)}{scale.within} on average over {count(d.n, 'domain')}"
    side = "above" if d.mean > 0 else "below" if d.mean < 0 else "from"
    # One domain says nothing of others: it has no interval and no test.
    if math.isnan(d.p):
        return f"{label(head)} is {scale.distance(d.mean)} {side} {where}."
    lower = d.mean < 0
    p, after = (d.p_lower, found.holm_lower) if lower else (d.p, found.holm)
    corrected = f", {p_value(after)} after Holm over {heads} heads" if heads > 1 else ""
    inside = f"90 % interval {scale.interval(d.low, d.high)}; one-sided p {p_value(p)}{corrected}"
    return (
        f"{label(head)} is {scale.distance(d.mean)} {side} {where} ({inside}): {_evidence(found)}."
    )


def _evidence(found: Paired, baseline: str = "") -> str:
    """What a difference is worth, by the same standard either way; with a name, from whom."""
    than, of = (f" than {baseline}", f" from {baseline}") if baseline else ("", "")
    for p, side in ((found.holm, "higher"), (found.holm_lower, "lower")):
        if p < EVIDENCE:
            return f"evidence that it is {side}{than}"
        if p < WEAK:
            return f"weak evidence that it is {side}{than}"
    return f"not enough evidence of a difference{of}"


def _peeking(standing: Standing, scale: Scale, label: Naming) -> Iterator[str]:
    """The best head among those that saw something of the held-out domain."""
    others = [h for h in standing.grid.lines if h not in standing.competitors]
    best = standing.grid.best(others)
    if best in standing.against.across and best is not None:
        sentence = against_baseline(standing, best, scale, label)
        yield f"With {standing.uses[best]} of the held-out domain, {sentence}"


def _worst(standing: Standing, scale: Scale, label: Naming) -> Iterator[str]:
    means = {h: estimate(standing.grid.worst(h)).mean for h in standing.competitors}
    known = {h: v for h, v in means.items() if not math.isnan(v)}
    if len(known) < 2 or len(standing.grid.domains) < 2:
        return
    best = max(known, key=lambda h: known[h])
    text = (
        f"On the worst domain {label(best)} scores highest, {scale.value(known[best], unit=True)}"
    )
    if best != standing.baseline and standing.baseline in known:
        theirs = scale.value(known[standing.baseline], unit=True)
        text += f" against {theirs} for {label(standing.baseline)}"
    yield text + "."


def _ceiling(group: Group, standing: Standing, scale: Scale, label: Naming) -> Iterator[str]:
    """How far the baseline is below the linear ceiling on the same features."""
    if group.ceilings is None or standing.reserved is None:
        return
    line = next((x for x in ("ceiling-exact", "ceiling-sgd") if x in group.ceilings.lines), None)
    if line is None:
        return
    top = estimate(group.ceilings.average(line)).mean
    gap = top - estimate(standing.reserved.average(standing.baseline)).mean
    if math.isnan(gap):
        return
    yield (
        "A linear head on the same features that is given labels of the held-out domain reaches "
        f"{scale.value(top, unit=True)} on the reserved rows, {scale.distance(gap)} "
        f"{'above' if gap > 0 else 'below'} {label(standing.baseline)}."
    )


def _cautions(group: Group, standing: Standing, label: Naming) -> Iterator[str]:
    if len(standing.grid.trials) == 1:
        other = "another split or network" if standing.grid.fresh else "another split"
        yield f"There is one trial, so nothing here says how much {other} would change."
        yield from _rows(standing, label)
    failed = sum(f.study == "main" for f in group.failures)
    if failed:
        yield f"{count(failed, 'trial')} failed and {'is' if failed == 1 else 'are'} left out."
    if group.missing:
        verb = "is" if group.missing == 1 else "are"
        yield f"{count(group.missing, 'trial')} {verb} not on record yet: the run is not finished."


def _rows(standing: Standing, label: Naming) -> Iterator[str]:
    """Of one trial: what the rows of its split say of the best head and the baseline."""
    best = standing.grid.best(standing.competitors)
    head = OURS if best == standing.baseline else best
    found = standing.against.pooled.get(head or "")
    if found is None or head is None:
        return
    test, base = found.test, label(standing.baseline)
    yield (
        f"Of its {count(test.n, 'test row')}, {label(head)} alone is right on {test.only_a:,} and "
        f"{base} alone on {test.only_b:,} (McNemar, two-sided p {p_value(test.p)})."
    )
