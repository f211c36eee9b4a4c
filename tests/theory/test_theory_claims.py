"""Verdicts follow from what was measured: every sentence, and sentences that are made wrong."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

from skdare.report._theory import chapter_text
from skdare.theory import CHAPTERS, VERDICTS, Adversary, Chapter, Claim
from skdare.theory import _chapter_anchors as anchors
from skdare.theory import _chapter_closed_form as closed_forms
from skdare.theory import _chapter_environments as environments
from skdare.theory import _chapter_just_in_time as just_in_time
from skdare.theory import _closed_form_samples as samples
from skdare.theory._roots import eigen_root


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_sentence_is_confirmed_by_its_own_numbers(chapter, seed):
    claims = CHAPTERS[chapter](seed, True).claims
    assert [claim for claim in claims if not claim.confirmed] == []


def times(factor, function):
    """The function, off by a factor."""
    return lambda *given, **options: factor * function(*given, **options)


# A quantity, something wrong in its place, and the statements that must then fail.
WRONG = {
    "another root": (
        "closed forms",
        (closed_forms, "symmetric_root", eigen_root),
        {"assumption 1"},
    ),
    "a scale that is too large": (
        "closed forms",
        (samples, "closed_form", lambda model, intercept=False: _scaled(model, intercept)),
        {"theorem 1, classification", "theorem 1, regression"},
    ),
    "a supremum that is too large": (
        "worst cases",
        (Adversary, "printed_supremum", times(1.1, Adversary.printed_supremum)),
        {"theorem 2, supremum, regression, B ≤ 1", "theorem 2, supremum, classification"},
    ),
    "a supremum that is too small": (
        "worst cases",
        (Adversary, "supremum", times(0.9, Adversary.supremum)),
        {"theorem 2, supremum, B > 1", "theorem 2, minimaxity, B > 0", "lemma on assumption 3"},
    ),
    "nothing projected out": (
        "number of domains",
        (environments, "mean_null_projection", lambda B: np.eye(len(B))),
        {"theorem 3, item 1"},
    ),
    "a share that is too large": (
        "number of domains",
        (environments, "expected_kept", times(1.5, environments.expected_kept)),
        {"theorem 3, remark"},
    ),
    "an expansion that is too large": (
        "just-in-time adaptation",
        (just_in_time, "just_in_time_expected", times(2.0, just_in_time.just_in_time_expected)),
        {"theorem 4"},
    ),
    "a bound that is too small": (
        "just-in-time adaptation",
        (just_in_time, "whitening_error_bound", times(0.1, just_in_time.whitening_error_bound)),
        {"theorem 4, lemma on the root"},
    ),
    "a penalty with a factor": (
        "anchor regression",
        (anchors, "_whitened_head", lambda gamma: _head(2.0 * gamma)),
        {"appendix A, last display"},
    ),
    "an anchor for domains of another size": (
        "anchor regression",
        (anchors, "textbook_anchor", times(1.5, anchors.textbook_anchor)),
        {"appendix A"},
    ),
}
_head, _solution = anchors._whitened_head, samples.closed_form


def _scaled(model, intercept):
    found = _solution(model, intercept=intercept)
    return type(found)(1.3 * found.coef, found.projection, 1.3 * found.scale, found.intercept)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_quantity_is_not_confirmed(monkeypatch, wrong):
    chapter, (owner, name, instead), where = WRONG[wrong]
    monkeypatch.setattr(owner, name, instead)
    claims = CHAPTERS[chapter](0, True).claims
    assert where <= {claim.where for claim in claims if claim.told == "not confirmed"}


def test_a_claim_that_is_not_confirmed_is_told_so():
    claim = Claim("theorem 0", "1 < 2.", "It is.", np.bool_(False), "holds in part")
    assert "not confirmed" in " ".join(chapter_text(Chapter("A", [claim]), 200).split())
    assert "holds" not in chapter_text(Chapter("A", [claim]), 200)
    assert asdict(claim)["confirmed"] is False
    assert Claim("theorem 0", "1 < 2.", "It is.", True, "holds in part").told == "holds in part"


def test_a_verdict_is_one_of_three():
    assert len(VERDICTS) == 3
    with pytest.raises(ValueError, match="verdict is 'perhaps'; use one of 'holds'"):
        Claim("theorem 0", "1 < 2.", "It is.", True, "perhaps")
