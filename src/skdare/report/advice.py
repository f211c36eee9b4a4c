"""The recommendation, in at most three sentences."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from skdare.errors import counted
from skdare.report.summary import Summary

# Holm's p-value from which on a gain is put down to more than chance.
_EVIDENCE = 0.05
_ROUNDING = 1e-9  # of means of the same scores
# Share of the most frequent class from which on accuracy says little.
_UNEVEN = 0.8


@dataclass(frozen=True)
class Advice:
    """The head to use, whether to adapt it, and why.

    Parameters
    ----------
    head : str
        A head of the bench.
    sentences : list of str
    fit : str
        Value of ``skdare fit --head``; empty if no head beats guessing, or for an estimator of the
        user.
    adapts : bool
        Whether to adapt it to rows of the new domain.
    l2 : float, optional
        The strength of ridge that served it on most held-out domains.
    metric : str
        A metric by which heads should be compared instead; empty if this one will do.
    """

    head: str
    sentences: list[str] = field(default_factory=list)
    fit: str = ""
    adapts: bool = False
    l2: float | None = None
    metric: str = ""

    def __str__(self) -> str:
        return " ".join(self.sentences)


@lru_cache(maxsize=1)  # the screen, the next commands and the page give one advice
def advise(summary: Summary) -> Advice:
    """Recommend a head, with the score to expect and the domains that lose.

    Size decides, and p-values only comment: a head is preferred to a simpler one if it is better by
    more than a step of the metric and by more than one standard error over held-out domains.
    """
    complete = [head for head in summary.lines if not summary.scores[head].isna().any()]
    if not complete:
        text = "No head has a score on every held-out domain, so none can be recommended."
        return Advice(summary.baseline, [text])
    plain = _best(summary, [head for head in complete if not summary.lines[head].adapts])
    adapted = _best(summary, [head for head in complete if summary.lines[head].adapts])
    helps = adapted is not None and (plain is None or _clearly_better(summary, adapted, plain))
    head = adapted if helps or plain is None else plain
    assert head is not None
    line = summary.lines[head]
    useless = _no_better_than_guessing(summary, head)
    if useless:
        return Advice(head, [useless], metric=_better_metric(summary))
    sentences = [_recommendation(summary, head), _losses(summary, head)]
    if helps and plain is not None:
        sentences.append(_without_rows(summary, plain))
    elif adapted is not None:
        sentences.append(_adapting_did_not_help(summary, adapted, head))
    ridges = summary.frame.loc[summary.frame["head"] == head, "l2"].dropna()
    l2 = float(ridges.mode().max()) if len(ridges) else None
    return Advice(head, [s for s in sentences if s], line.fits, line.adapts, l2)


def _clearly_better(summary: Summary, head: str, over: str) -> bool:
    gain = summary.gain(head, over)
    return summary.scale.matters(gain.mean) and not gain.mean <= gain.standard_error


def _best(summary: Summary, heads: list[str]) -> str | None:
    """The choosing head, unless another is clearly better; ERM if nothing gains."""
    if not heads:
        return None
    usual = next((head for head in heads if summary.lines[head].fits == "dare-cv"), heads[0])
    better = [head for head in heads if _clearly_better(summary, head, usual)]
    best = max(better, key=lambda head: summary.scores[head].mean(), default=usual)
    loses = summary.baseline in heads and summary.gain(best).mean <= 0
    return summary.baseline if loses else best


def _majority(summary: Summary) -> float:
    return float(summary.frame["majority"].astype(float).mean())


def _no_better_than_guessing(summary: Summary, head: str) -> str:
    scale = summary.scale
    mean = summary.scores[head].mean()
    of_majority = summary.metric == "accuracy"
    floor = _majority(summary) if of_majority else scale.useless
    if floor is None or floor != floor or mean > floor + _ROUNDING:
        return ""
    guess = "always naming the most frequent class" if of_majority else "guessing"
    words = (
        f"Do not use these heads on a new domain: the best, {summary.lines[head].name}, reaches "
        f"{scale.prose(mean)}, and {guess} {scale.score(floor)}."
    )
    if _better_metric(summary):
        words += (
            " With classes this uneven accuracy says little: compare by the area under the ROC "
            "curve, --metric roc_auc."
        )
    return words


def _better_metric(summary: Summary) -> str:
    uneven = summary.metric == "accuracy" and _majority(summary) > _UNEVEN
    return "roc_auc" if uneven else ""


def _recommendation(summary: Summary, head: str) -> str:
    scale, line = summary.scale, summary.lines[head]
    means = summary.scores.mean()
    expected = f"{scale.prose(means[head])} on average over held-out domains"
    if head == summary.baseline:
        return f"Use {line.name}: {expected}; nothing else was clearly better."
    verb = f"Use {line.name}"
    if line.adapts:
        verb = f"Adapt {line.name} to unlabelled rows of the new domain"
        if line.fits == "by-hand":
            verb = "Standardise each domain by its own rows"
    words = f"{verb}: {expected}, {_compared(summary, head, summary.baseline)}"
    if line.adapts and "by-hand" in means and head != "by-hand":
        words += f", {_compared(summary, head, 'by-hand')}"
        # It would have been advised if the difference were clear.
        if scale.matters(means["by-hand"] - means[head]):
            words += ", less than its standard error"
    return words + "."


def _compared(summary: Summary, head: str, other: str) -> str:
    """How far a head is above another, which is named with its score if it is not the baseline."""
    scale = summary.scale
    difference = summary.scores[head].mean() - summary.scores[other].mean()
    name = "standardising by hand" if other == "by-hand" else summary.lines[other].name
    if name == summary.lines[head].name:
        name += " unadapted"
    if other != summary.baseline:
        name += f" ({scale.score(summary.scores[other].mean())})"
    if not scale.matters(abs(difference)):
        return f"level with {name}"
    return f"{scale.difference(difference)} {'above' if difference > 0 else 'below'} {name}"


def _losses(summary: Summary, head: str) -> str:
    """On how many domains it is better, who loses, and whether all may be chance."""
    if head == summary.baseline:
        return ""
    gain, scale = summary.gain(head), summary.scale
    base = summary.lines[summary.baseline].name
    if not any(scale.matters(abs(difference)) for difference in gain.differences):
        return f"No domain is more than {scale.step_words} from {base}."
    words = f"It beat {base} on {gain.better} of {counted(len(gain), 'domain')}"
    worst = gain.differences.idxmin()
    lost = sum(scale.matters(-difference) for difference in gain.differences)
    if lost:
        more = f", and over {scale.step_words} on {lost - 1} more" if lost > 1 else ""
        words += f" and lost {scale.difference(gain.differences.min())} on '{worst}'{more}"
    else:
        words += f" and lost more than {scale.step_words} on none"
    if 0.5 ** len(gain) > _EVIDENCE:
        few = "is" if len(gain) == 1 else "are"
        return words + f"; {counted(len(gain), 'domain')} {few} too few to rule out chance."
    p = summary.p_values[head]
    return words + ("." if p < _EVIDENCE else "; the difference may be chance.")


def _without_rows(summary: Summary, plain: str) -> str:
    scale, scores = summary.scale, summary.scores[plain]
    words = (
        f"Without such rows expect {scale.score(scores.mean())} from {summary.lines[plain].name}"
    )
    if plain != summary.baseline:
        words += f", {_compared(summary, plain, summary.baseline)}"
    return f"{words}, and {scale.score(scores.min())} on a domain like '{scores.idxmin()}'."


def _adapting_did_not_help(summary: Summary, adapted: str, head: str) -> str:
    gain = summary.gain(adapted, over=head)
    line = summary.lines[adapted]
    name = "standardising by hand" if line.fits == "by-hand" else f"adapted, {line.name}"
    if not summary.scale.matters(abs(gain.mean)):
        return f"Adapting did not help here: {name} is no better."
    compared = _compared(summary, adapted, head)
    if gain.mean < 0:
        return f"Adapting did not help here: {name} is {compared}."
    return (
        f"Adapting may not help: {name} is {compared} on average, and better on {gain.better} of "
        f"{counted(len(gain), 'domain')}."
    )
