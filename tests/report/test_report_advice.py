"""Advice follows from sizes, is the same on screen and page, and careful where it may be luck."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_records import record, records, summary
from skdare.report import Summary
from skdare.report.advice import advise
from skdare.report.summary import frame_of

FLAT = [0.70, 0.72, 0.71, 0.73, 0.70, 0.74]


def above(gain, base=FLAT):
    """Scores above others by about so much, domain by domain."""
    noise = [0.002, -0.002, 0.001, -0.001, 0.002, -0.002]
    return [b + gain + e for b, e in zip(base, noise[: len(base)], strict=True)]


# Scores, what to fit, whether to adapt it, and words of the advice.
CASES = {
    "adapting gains much": (
        {"erm": FLAT, "dare-cv": FLAT, "dare-cv-adapted": above(0.1)},
        "dare-cv", True, "Adapt DARE-CV to unlabelled rows of the new domain: 81.7 % accuracy",
    ),
    "adapting gains nothing": (
        {"erm": FLAT, "dare-cv": above(0.05), "dare-cv-adapted": above(0.05)},
        "dare-cv", False, "Adapting did not help here: adapted, DARE-CV is no better.",
    ),
    "adapting loses": (
        {"erm": FLAT, "dare-cv": FLAT, "dare-cv-adapted": above(-0.1)},
        "erm", False, "Adapting did not help here: adapted, DARE-CV is 10.0 points below ERM.",
    ),
    "adapting gains, but by luck": (
        {"erm": FLAT, "dare-cv-adapted": [0.5, 0.6, 0.75, 0.8, 0.85, 1.0]},
        "erm", False, "Adapting may not help: adapted, DARE-CV is",
    ),
    "nothing gains": (
        {"erm": FLAT, "dare-cv": above(-0.01), "by-hand": above(-0.1)},
        "erm", False, "nothing else was clearly better",
    ),
    "standardising by hand is clearly best": (
        {"erm": FLAT, "dare-cv": FLAT, "dare-cv-adapted": above(0.02), "by-hand": above(0.2)},
        "by-hand", True, "Standardise each domain by its own rows",
    ),
    "by hand wins on three domains of three": (
        {"erm": [0.6, 0.5, 0.7], "dare-cv": [0.6, 0.5, 0.7], "by-hand": [0.8, 0.85, 0.75]},
        "by-hand", True, "3 domains are too few to rule out chance",
    ),
    "by hand is better, but by luck": (
        {
            "erm": FLAT, "dare-cv": FLAT, "dare-cv-adapted": above(0.1),
            "by-hand": [0.5, 0.6, 0.9, 1.0, 0.98, 1.0],
        },
        "dare-cv", True, "less than its standard error",
    ),
    "another unadapted head is clearly best": (
        {"erm": FLAT, "dare-cv": FLAT, "groupdro": above(0.1)},
        "groupdro", False, "Use GroupDRO",
    ),
    "one domain loses": (
        {"erm": FLAT, "dare-cv-adapted": [0.9, 0.9, 0.9, 0.9, 0.9, 0.6]},
        "dare-cv", True, "lost 14.0 points on 'f'",
    ),
    "two domains lose": (
        {"erm": FLAT, "dare-cv-adapted": [0.95, 0.95, 0.95, 0.95, 0.6, 0.6]},
        "dare-cv", True, "and over 1 point on 1 more",
    ),
    "one domain only": (
        {"erm": [0.5], "dare-cv-adapted": [0.8]},
        "dare-cv", True, "1 domain is too few to rule out chance",
    ),
    "worse than guessing": (
        {"erm": [0.4, 0.45], "dare-cv-adapted": [0.45, 0.44]},
        "", False, "Do not use these heads on a new domain",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_advice_follows_from_the_scores(case):
    scores, fits, adapts, words = CASES[case]
    advice = advise(summary(scores))
    assert (advice.fit, advice.adapts) == (fits, adapts)
    assert words in str(advice)
    assert len(advice.sentences) <= 3


@pytest.mark.parametrize("case", ["adapting gains much", "one domain loses", "nothing gains"])
def test_screen_and_page_give_the_same_advice(case):
    made = summary(CASES[case][0])
    page = made.page().replace("\u00a0", " ").replace("&#39;", "'")
    for sentence in advise(made).sentences:
        assert sentence in " ".join(str(made).split())
        assert f"<p>{sentence}</p>" in page


def test_classes_that_are_uneven_are_compared_by_another_metric():
    advice = advise(summary({"erm": [0.93, 0.94]}, majority=0.94))
    assert (advice.fit, advice.metric) == ("", "roc_auc")
    assert "--metric roc_auc" in str(advice)


@pytest.mark.parametrize(
    ("metric", "score", "guess"), [("roc_auc", 0.49, "0.500"), ("r2", -0.1, "0.000"),
                                   ("balanced_accuracy", 0.5, "50.0 %")]
)  # fmt: skip
def test_what_is_no_better_than_guessing_is_not_to_be_used(metric, score, guess):
    advice = advise(summary({"erm": [score, score]}, metric=metric))
    assert str(advice).startswith("Do not use")
    assert str(advice).endswith(f"guessing {guess}.")


def test_a_head_without_all_scores_is_not_recommended():
    made = [*records({"erm": FLAT}), *records({"dare-cv-adapted": above(0.1)})]
    made[-1] = record("dare-cv-adapted", "f", None, reason="it failed")
    assert advise(Summary({"data": "t"}, frame_of(made))).head == "erm"
    nothing = [record("erm", "a", None, reason="it failed")]
    text = str(advise(Summary({"data": "t"}, frame_of(nothing))))
    assert text.startswith("No head has a score")


def test_the_ridge_that_served_most_domains_is_given_on():
    made = records({"erm": FLAT})
    for i, each in enumerate(made):
        each.values["l2"] = 0.1 if i else 0.001
    assert advise(Summary({"data": "t"}, frame_of(made))).l2 == 0.1


def test_there_is_one_p_value_for_one_comparison():
    """What is called chance in the advice is what the table's p says."""
    rng = np.random.default_rng(0)
    words = {True: 0, False: 0}
    for _ in range(30):
        gains = rng.normal(0.03, 0.04, size=7)
        made = summary({
            "erm": [0.7] * 7,
            "irm": (0.7 + rng.normal(0, 0.01, 7)).tolist(),
            "dare-cv-adapted": (0.7 + gains).tolist(),
        })  # fmt: skip
        advice = advise(made)
        if advice.head == "dare-cv-adapted":
            chance = "may be chance" in str(advice)
            assert chance == (made.p_values[advice.head] >= 0.05)
            words[chance] += 1
    assert min(words.values()) > 0


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(*(st.floats(0.0, 1.0) for _ in range(4))), min_size=1, max_size=8))
def test_advice_is_never_below_the_baseline_and_says_its_score(rows):
    heads = ("erm", "by-hand", "dare-cv", "dare-cv-adapted")
    made = summary(dict(zip(heads, map(list, zip(*rows, strict=True)), strict=True)))
    advice = advise(made)
    means = made.scores.mean()
    assert means[advice.head] >= means["erm"] - 0.01
    assert made.scale.score(means[advice.head]) in str(advice)
    assert not re.search(r"(DARE-CV|ERM) (is|\d).* (above|below) \1[.,]", str(advice))
