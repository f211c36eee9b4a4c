"""The method: what the intervals, marks and tests of a report are."""

from __future__ import annotations

from skdare.report.summary.summary import Summary

Note = tuple[str, str]
_NORMAL = (
    "Normal 90 % interval",
    "Mean ± 1.645 σ̂/√n over n trials, as the paper prints it. It takes the estimated spread "
    "for the true one, so with three trials it covers the mean 76 times in 100, not 90.",
)
_T = (
    "Mean ± t σ̂/√n with the quantile of Student's law, 2.920 for three trials. It would cover "
    "90 times in 100 if scores were normal and independent. {} would change a score, not how "
    "much other rows would, and tests over trials are optimistic (Nadeau and Bengio, 2003). "
    "Tests over domains and McNemar's test do not rest on trials."
)
_OF_SPLITS = _T.format(
    "But trials are splits of the same rows: their training rows overlap, and where all held-out "
    "rows are scored, they are the same rows each time. So it says how much another split of "
    "these rows"
)
_OF_NETWORKS = _T.format(
    "Every trial has its own network and split, but they split the same rows: their training rows "
    "overlap, and where all held-out rows are scored, they are the same rows each time. So it "
    "says how much another split of these rows, with another network fine-tuned on it,"
)
_SOME_NETWORKS = " Where every trial has its own network, another network is part of it."
_ADVICE = (
    (
        "Advice",
        "Of the heads that are above the baseline on more than half of the held-out domains, the "
        "one with the highest mean; if no head is, the baseline. It does not wait for a "
        "significant difference: with a few domains hardly any is.",
    ),
    (
        "Expected score",
        "The mean over held-out domains; in brackets, where one more domain like them would fall "
        "80 times in 100: mean ± t σ̂ √(1 + 1/n) over n domains, cut to scores that can be. The "
        "head was picked on the same domains, so of many heads the best looks a little too good.",
    ),
)
_REST = (
    (
        "Average and worst domain",
        "Taken within each trial over the held-out domains, then averaged over trials. A trial "
        "that lacks a domain has neither.",
    ),
    (
        "Marks",
        "Bold: the highest mean, by one-sided paired t-tests over trials against every other head "
        "at p = 0.1. Underlined: above the baseline by the same test. As in the paper they are not "
        "corrected for their number, and they are optimistic, as trials share rows. Heads that saw "
        "anything of the held-out domain do not compete, and of two heads that agree on "
        "every row neither is bold.",
    ),
    (
        "Sign-flip test",
        "The share of sign changes of the paired differences that give at least as high a mean. It "
        "does not assume normality, only that without a difference either sign is as likely; with "
        "n differences it cannot go below 1/2ⁿ, so fewer than five domains cannot tell a "
        "difference from chance. It is corrected for the number of heads by changing the signs of "
        "all heads together and comparing with the best of them, each head by its size.",
    ),
    (
        "Evidence",
        "A difference over domains is called evidence where the corrected sign-flip p is below "
        "0.05, and weak evidence below 0.1; the advice says that it may be chance where it is "
        "0.05 or more.",
    ),
    (
        "Holm",
        "The p-values of t-tests and of McNemar's test in brackets are corrected for the number of "
        "heads compared with the baseline, not for the number of domains.",
    ),
    (
        "McNemar's test",
        "Compares two heads on the rows of one split that only one of them gets right. It says "
        "nothing about another split or another domain. It takes rows to be independent, so it is "
        "left out where they come in groups.",
    ),
)


def method_notes(summary: Summary) -> tuple[Note, ...]:
    """What a reader has to know about the numbers of this report."""
    grids = [group.main.grid for group in summary.groups if group.main]
    fresh = {bool(grid.fresh) for grid in grids}
    t = _OF_NETWORKS if fresh == {True} else _OF_SPLITS + _SOME_NETWORKS * (True in fresh)
    return (*_ADVICE, _NORMAL, ("t 90 % interval", t), *_REST)
