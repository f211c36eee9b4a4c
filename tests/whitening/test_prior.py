"""How many rows of a new domain the training domains are worth."""

import numpy as np
import pytest

from skdare.whitening.adjustment import Adjustment
from skdare.whitening.moments import Moments
from skdare.whitening.prior import PriorRows, Trust
from skdare.whitening.whitening import Whitening

STANDARDISE = Whitening(True, True, 1.0, "diagonal")
WHITEN = Whitening(True, True, 0.5, "scaled")


def domains(spread, scales, *, n=400, d=6, E=40, seed=0):
    """Rows of E domains, whose means vary by ``spread`` and log scales by ``scales``."""
    rng = np.random.default_rng(seed)
    return [
        np.exp(scales * rng.normal(size=d)) * rng.normal(size=(n, d)) + spread * rng.normal(size=d)
        for _ in range(E)
    ]


@pytest.mark.parametrize("spread", [0.1, 0.5, 2.0])
def test_the_prior_of_a_mean_is_its_variance_within_domains_over_that_between(spread):
    moments = [Moments.of(X) for X in domains(spread, 0.0)]
    expected = max(1.0, 1.0 / spread**2)
    assert PriorRows.of_domains(moments, WHITEN).mean == pytest.approx(expected, rel=0.3)


@pytest.mark.parametrize("scales", [0.1, 0.3])
def test_the_prior_of_scales_is_that_of_log_variances(scales):
    moments = [Moments.of(X) for X in domains(0.0, scales)]
    expected = 2.0 / (2.0 * scales) ** 2  # the variance of log s² is 2/n, and log σ² = 2 log σ
    assert PriorRows.of_domains(moments, STANDARDISE).adjustment == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize("whitening", [WHITEN, STANDARDISE])
def test_domains_that_are_alike_are_worth_many_rows(whitening):
    prior = PriorRows.of_domains([Moments.of(X) for X in domains(0.0, 0.0)], whitening)
    assert min(prior.mean, prior.adjustment) > 200


@pytest.mark.parametrize("n", [4, 400], ids=["few rows", "many rows"])
@pytest.mark.parametrize("whitening", [WHITEN, STANDARDISE])
def test_the_prior_has_no_units(whitening, n):
    rows = domains(0.4, 0.2, n=n, E=10)
    units = np.array([1e-3, 1.0, 50.0, 2.0, 0.1, 7.0])
    plain, scaled = (
        PriorRows.of_domains([Moments.of(X * u) for X in rows], whitening) for u in (1.0, units)
    )
    assert scaled.mean == pytest.approx(plain.mean, rel=1e-9)
    assert scaled.adjustment == pytest.approx(plain.adjustment, rel=1e-9)


@pytest.mark.parametrize("E", [2, 5])
def test_few_rows_of_many_features_have_the_prior_of_their_matrices(E):
    rng = np.random.default_rng(0)
    moments = [Moments.of(rng.normal(size=(4, 30)) * rng.uniform(0.5, 2, 30)) for _ in range(E)]
    whole = [Moments(m.n, m.mean, m.dense_scatter(), None) for m in moments]
    few, many = (PriorRows.of_domains(some, WHITEN) for some in (moments, whole))
    assert few.mean == pytest.approx(many.mean, rel=1e-9)
    assert few.adjustment == pytest.approx(many.adjustment, rel=1e-9)


def test_a_matrix_needs_more_rows_than_a_mean():
    prior = PriorRows.of_domains([Moments.of(X) for X in domains(0.5, 0.2)], WHITEN)
    assert prior.adjustment > 3 * prior.mean


def test_one_domain_counts_as_many_rows_as_there_are_features():
    moments = [Moments.of(domains(0.5, 0.2, E=1)[0])]
    assert PriorRows.of_domains(moments, WHITEN) == PriorRows(6.0, 6.0, 10.0)


def test_trust_grows_with_the_rows():
    assert PriorRows(10.0, 90.0).trust(10) == Trust(0.5, 0.1, 1.0)
    assert PriorRows(0.0, 0.0).trust(1) == Trust(1.0, 1.0, 1.0)
    assert PriorRows(0.0, 0.0, 10.0).trust(5).head == 0.2
    assert PriorRows(0.0, 0.0, 10.0).trust(20).head == 0.8


def test_the_matrix_and_the_shift_are_each_blended_as_far_as_trusted():
    own, rest = (Adjustment(scale, shift=np.full(2, scale)) for scale in (4.0, 8.0))
    blend = Trust(mean=0.75, adjustment=0.25, head=1.0).blend(own, rest)
    assert blend.diagonal == 7.0
    np.testing.assert_array_equal(blend.shift, [5.0, 5.0])
    assert Trust(0.5, 0.5, 1.0).blend(Adjustment(1.0), Adjustment(2.0)).shift is None
