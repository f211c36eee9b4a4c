"""Verdicts follow from what was measured: every sentence, and sentences that are made wrong."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

from skdare.paper.theory import CHAPTERS, Adversary, Chapter, Claim, eigen_root
from skdare.paper.theory import anchors as anchors
from skdare.paper.theory import closed_form_claims as closed_form_claims
from skdare.paper.theory import environments_claims as environments_claims
from skdare.paper.theory import just_in_time_claims as just_in_time_claims
from skdare.paper.theory.charts import Map
from skdare.paper.theory.page import chapter_text


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_sentence_is_confirmed_by_its_own_numbers(chapter, seed):
    claims = CHAPTERS[chapter](seed, True).claims
    assert len(claims) > 5
    assert [claim for claim in claims if not claim.confirmed] == []


@pytest.mark.slow
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_repeats_itself_and_its_pictures_can_be_drawn(chapter):
    first = CHAPTERS[chapter](3, True)
    again = CHAPTERS[chapter](3, True)
    assert [claim.measured for claim in first.claims] == [claim.measured for claim in again.claims]
    assert len(first.pictures) > 1
    for picture in first.pictures:
        if isinstance(picture, Map):
            assert picture.values.shape == (len(picture.at_y), len(picture.at_x))
            assert picture.values.min() < 0 < picture.values.max()
            continue
        for curve in picture.curves.values():
            assert curve.x.shape == curve.y.shape
            assert np.isfinite(curve.y).all()
            # A logarithmic axis has no place for zero.
            assert "y" not in picture.logarithmic or (curve.y > 0).all()


def times(factor, function):
    """The function, off by a factor."""
    return lambda *args, **options: factor * function(*args, **options)


def overstated(function):
    """The closed form, with coefficients and scale that are too large."""

    def solve(model, **options):
        solution = function(model, **options)
        return replace(solution, coef=1.3 * solution.coef, scale=1.3 * solution.scale)

    return solve


def with_factor(head):
    """The head of a penalty, with twice that penalty."""
    return lambda penalty: head(2.0 * penalty)


# A chapter, a quantity in it and something wrong in its place, and the statements that must fail.
WRONG = {
    "another root": (
        "closed forms",
        (closed_form_claims, "symmetric_root", lambda root: eigen_root),
        {"assumption 1"},
    ),
    "a scale that is too large": (
        "closed forms",
        (closed_form_claims, "closed_form", overstated),
        {"theorem 1, classification", "theorem 1, regression"},
    ),
    "a supremum that is too large": (
        "worst cases",
        (Adversary, "printed_supremum", lambda supremum: times(1.1, supremum)),
        {"theorem 2, supremum, regression, B ≤ 1", "theorem 2, supremum, classification"},
    ),
    "a supremum that is too small": (
        "worst cases",
        (Adversary, "supremum", lambda supremum: times(0.9, supremum)),
        {"theorem 2, supremum, B > 1", "theorem 2, minimaxity, B > 0", "lemma on assumption 3"},
    ),
    "nothing projected out": (
        "number of domains",
        (environments_claims, "mean_null_projection", lambda _: lambda B: np.eye(len(B))),
        {"theorem 3, item 1"},
    ),
    "a share that is too large": (
        "number of domains",
        (environments_claims, "expected_kept", lambda share: times(1.5, share)),
        {"theorem 3, remark"},
    ),
    "an expansion that is too large": (
        "just-in-time adaptation",
        (just_in_time_claims, "just_in_time_expected", lambda risk: times(2.0, risk)),
        {"theorem 4"},
    ),
    "a bound that is too small": (
        "just-in-time adaptation",
        (just_in_time_claims, "whitening_error_bound", lambda bound: times(0.1, bound)),
        {"theorem 4, lemma on the root"},
    ),
    "a penalty with a factor": (
        "anchor regression",
        (anchors, "_whitened_head", with_factor),
        {"appendix A, last display"},
    ),
    "an anchor for domains of another size": (
        "anchor regression",
        (anchors, "textbook_anchor", lambda solve: times(1.5, solve)),
        {"appendix A"},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_quantity_is_not_confirmed(monkeypatch, wrong):
    chapter, (owner, name, spoil), where = WRONG[wrong]
    monkeypatch.setattr(owner, name, spoil(getattr(owner, name)))
    claims = CHAPTERS[chapter](0, True).claims
    assert where <= {claim.where for claim in claims if claim.told == "not confirmed"}


def test_a_claim_that_is_not_confirmed_is_told_so():
    claim = Claim("theorem 0", "1 < 2.", "It is.", np.bool_(False), "holds in part")
    assert "not confirmed" in " ".join(chapter_text(Chapter("A", [claim]), 200).split())
    assert "holds" not in chapter_text(Chapter("A", [claim]), 200)
    assert asdict(claim)["confirmed"] is False
    assert Claim("theorem 0", "1 < 2.", "It is.", True, "holds in part").told == "holds in part"
