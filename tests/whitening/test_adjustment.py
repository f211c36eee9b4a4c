"""Adjustments: inverse roots of second moments, in whatever form is cheapest to hold."""

import numpy as np
import pytest

from oracle import adjustments, inverse_root, second_moment, shrunk
from skdare import DAREClassifier
from skdare.whitening.adjustment import Adjustment, average
from skdare.whitening.moments import Moments
from skdare.whitening.roots.eigen import Spectrum, inverse_sqrt
from skdare.whitening.roots.few_rows import FewRowsSpectrum
from skdare.whitening.roots.krylov import deflated_inverse_root
from skdare.whitening.roots.newton_schulz import newton_schulz_inverse_root
from skdare.whitening.shrinkage import ridge_of
from skdare.whitening.whitening import Whitening

STRENGTHS = [0.0, 0.1, 0.5, 0.999, 1.0]


def deviations(rows, d, seed=0):
    """Rows about a point: fewer than d make a second moment of deficient rank."""
    return np.random.default_rng(seed).normal(size=(rows, d)) * np.linspace(0.5, 3, d)


def routes(array_library, Z, n):
    """A second moment decomposed from its few rows, and from the matrix."""
    few_rows = FewRowsSpectrum.of_rows(array_library.asarray(Z), n)
    full = Spectrum.of_matrix(array_library.asarray(Z.T @ Z / n))
    return {"few rows": few_rows, "full": full}


@pytest.mark.parametrize("label", ["north", "south", "west"])
def test_whitened_domain_has_identity_covariance(three_classes, array_library, label):
    X = three_classes.X[three_classes.rows(label)]
    S = Moments.of(array_library.asarray(X)).second_moment()
    W = array_library.to_numpy(inverse_sqrt(S))
    np.testing.assert_allclose(second_moment(X @ W, centered=True), np.eye(X.shape[1]), atol=1e-10)


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("rho", [0.0, 0.4, 1.0])
def test_shrinking_towards_the_diagonal_whitens_correlations_in_any_units(
    three_classes, array_library, rho, centered
):
    X = three_classes.X[three_classes.rows("north")]
    units = np.geomspace(0.3, 2.0, X.shape[1])
    whitening = Whitening(True, centered, rho, "diagonal")
    W, scaled = (
        whitening.adjustment(Moments.of(array_library.asarray(rows))).to_numpy()
        for rows in (X, X * units)
    )
    (expected,) = adjustments([X], shrinkage=rho, target="diagonal", centered=centered)
    np.testing.assert_allclose(W.dense(), expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose((X * units) @ scaled.dense(), X @ expected, rtol=0, atol=1e-8)


def test_an_adjustment_that_is_not_symmetric_goes_back_by_its_transpose(three_classes):
    W = Whitening(True, True, 0.4, "diagonal").adjustment(Moments.of(three_classes.X))
    B, G = np.random.default_rng(0).normal(size=(2, W.d, 3))
    assert np.sum(W.apply(B) * G) == pytest.approx(np.sum(B * W.back(G)), rel=1e-12)
    assert not np.allclose(W.dense(), W.dense().T)


def test_a_feature_that_is_constant_in_a_domain_is_not_blown_up(three_classes):
    X = three_classes.X.copy()
    X[:, 0] = 3.0 + 1e-9 * X[:, 0]
    W = Whitening(True, True, 1.0, "diagonal").adjustment(Moments.of(X))
    assert W.diagonal.max() / np.median(W.diagonal) < 20


@pytest.mark.parametrize("rho", [0.4, 1.0])
def test_the_average_of_diagonal_adjustments_is_that_of_their_matrices(three_classes, rho):
    whitening = Whitening(True, True, rho, "diagonal")
    parts = [whitening.adjustment(Moments.of(X)) for X in three_classes.parts()[0]]
    expected = np.mean([W.dense() for W in parts], axis=0)
    np.testing.assert_allclose(average(parts).dense(), expected, rtol=0, atol=1e-12)
    first = parts[0]
    mixed = average([first, Adjustment(first.d, 2.0)], [0.25, 0.75]).dense()
    expected = 0.25 * first.dense() + 1.5 * np.eye(first.d)
    np.testing.assert_allclose(mixed, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("label", ["north", "south", "west"])
def test_raw_whitened_domain_has_identity_raw_second_moment(three_classes, array_library, label):
    X = three_classes.X[three_classes.rows(label)]
    S = Moments.of(array_library.asarray(X)).second_moment(centered=False)
    W = array_library.to_numpy(inverse_sqrt(S))
    np.testing.assert_allclose(second_moment(X @ W, centered=False), np.eye(X.shape[1]), atol=1e-10)


def test_float32_decomposition_whitens_to_its_own_precision(three_classes):
    S = Moments.of(three_classes.X.astype(np.float32)).second_moment()
    W = Spectrum.of_matrix(S, np.float32).inverse_root().dense()
    assert W.dtype == np.float32
    np.testing.assert_allclose(W @ S @ W, np.eye(len(S)), atol=1e-4)


def test_the_inverse_root_is_symmetric_and_positive(three_classes):
    W = inverse_sqrt(second_moment(three_classes.X, centered=True))
    np.testing.assert_allclose(W, W.T, rtol=0, atol=1e-14)
    assert np.linalg.eigvalsh(W).min() > 0


@pytest.mark.parametrize("route", ["few rows", "full"])
@pytest.mark.parametrize("rows", [2, 4, 7])
def test_a_rank_deficient_domain_is_projected(array_library, rows, route):
    Z = deviations(rows, 10)
    S = Z.T @ Z / rows
    spectrum = routes(array_library, Z, rows)[route]
    W = array_library.to_numpy(spectrum.inverse_root().dense())
    projection = np.linalg.pinv(Z) @ Z
    np.testing.assert_allclose(W @ S @ W, projection, atol=1e-9)


@pytest.mark.parametrize("values", [[4.0, 0.25, 0.0], [4.0, 0.25, 1e-30], [4.0, 0.25, 3e-16]])
def test_directions_below_the_cut_off_map_to_zero(values):
    np.testing.assert_allclose(inverse_sqrt(np.diag(values)), np.diag([0.5, 2.0, 0.0]), atol=1e-14)


def test_the_cut_off_can_be_chosen():
    W = inverse_sqrt(np.diag([4.0, 0.25, 1e-4]), rtol=0.1)
    np.testing.assert_allclose(W, np.diag([0.5, 0.0, 0.0]), atol=1e-14)


@pytest.mark.parametrize("target", ["scaled", "identity"])
@pytest.mark.parametrize("rho", STRENGTHS)
@pytest.mark.parametrize("rows", [3, 6, 9], ids="{} rows of 10 features".format)
def test_the_route_by_few_rows_equals_the_full_route(array_library, rows, rho, target):
    spectra = routes(array_library, deviations(rows, 10), rows)
    assert spectra["few rows"].values.shape == (rows,)
    assert spectra["few rows"].scale == pytest.approx(spectra["full"].scale, rel=1e-12)
    ridge = ridge_of(rho, target, spectra["full"].scale)
    B = array_library.asarray(np.random.default_rng(1).normal(size=(10, 2)))
    few_rows, full = (
        array_library.to_numpy(spectra[name].inverse_root(rho, ridge).apply(B))
        for name in ("few rows", "full")
    )
    np.testing.assert_allclose(few_rows, full, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rows", [3, 6])
def test_the_route_by_few_rows_obeys_the_cut_off_in_directions_it_does_not_list(rows):
    Z = deviations(rows, 10)
    ridge = 0.01 * np.sum(Z**2) / rows / 10
    few_rows = FewRowsSpectrum.of_rows(Z, rows).inverse_root(0.01, ridge, rtol=0.2).dense()
    full = Spectrum.of_matrix(Z.T @ Z / rows).inverse_root(0.01, ridge, rtol=0.2).dense()
    np.testing.assert_allclose(few_rows, full, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("target", ["scaled", "identity"])
@pytest.mark.parametrize("rho", STRENGTHS)
def test_shrinking_the_spectrum_equals_shrinking_the_matrix(
    three_classes, array_library, rho, target, centered
):
    moments = Moments.of(array_library.asarray(three_classes.X))
    spectrum = Spectrum.of_matrix(moments.second_moment(centered=centered))
    B = np.random.default_rng(1).normal(size=(moments.d, 2))
    S = array_library.to_numpy(moments.second_moment(centered=centered))
    root = spectrum.inverse_root(rho, ridge_of(rho, target, spectrum.scale))
    ours = root.apply(array_library.asarray(B))
    strength = moments.shrinkage(rho, centered=centered)
    expected = inverse_root(shrunk(S, strength, target)) @ B
    np.testing.assert_allclose(array_library.to_numpy(ours), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("rho", [0.0, 0.3, 1.0, "ledoit-wolf", "oas"])
@pytest.mark.parametrize("constant", [1e-3, 7.0, 1e6])
def test_the_scaled_target_makes_the_adjustment_undo_a_change_of_unit(
    three_classes, constant, rho, centered
):
    def root(X):
        moments = Moments.of(X)
        strength = moments.shrinkage(rho, centered=centered)
        spectrum = Spectrum.of_matrix(moments.second_moment(centered=centered))
        return spectrum.inverse_root(strength, strength * spectrum.scale).dense()

    unit, scaled = root(three_classes.X), root(constant * three_classes.X)
    np.testing.assert_allclose(constant * scaled, unit, rtol=1e-9, atol=1e-9)


def forms(array_library, d=12):
    """A scalar, two of low rank and a dense one, each with its matrix written out."""
    rng = np.random.default_rng(3)
    made = {"scalar": (Adjustment(d, 0.7), 0.7 * np.eye(d))}
    for name, rank in {"low rank": 2, "rank one": 1}.items():
        U = np.linalg.qr(rng.normal(size=(d, rank)))[0]
        f = rng.normal(size=rank)
        W = Adjustment(d, 0.4, None, array_library.asarray(U), array_library.asarray(f))
        made[name] = (W, 0.4 * np.eye(d) + U @ np.diag(f) @ U.T)
    A = rng.normal(size=(d, d))
    made["dense"] = (Adjustment(d, 0.2, array_library.asarray(A + A.T)), 0.2 * np.eye(d) + A + A.T)
    return made


@pytest.mark.parametrize("form", ["scalar", "low rank", "dense"])
def test_applying_an_adjustment_is_multiplying_by_its_matrix(array_library, form):
    adjustment, W = forms(array_library)[form]
    B = np.random.default_rng(1).normal(size=(12, 3))
    applied = array_library.to_numpy(adjustment.apply(array_library.asarray(B)))
    np.testing.assert_allclose(applied, W @ B, atol=1e-13)
    host = adjustment.to_numpy()
    np.testing.assert_allclose(host.dense(), W, atol=1e-13)


@pytest.mark.parametrize("weights", [None, [0.7, 0.2, 0.1]])
@pytest.mark.parametrize(
    "names",
    [
        ["scalar", "scalar", "scalar"],
        ["low rank", "rank one", "scalar"],
        ["low rank", "low rank", "low rank"],
        ["scalar", "dense", "dense"],
        ["dense", "scalar", "low rank"],
    ],
    ids="-".join,
)
def test_the_average_of_adjustments_equals_the_average_of_their_matrices(
    array_library, names, weights
):
    made = [forms(array_library)[name] for name in names]
    mean = average([adjustment for adjustment, _ in made], weights)
    expected = np.average([W for _, W in made], axis=0, weights=weights)
    B = np.random.default_rng(1).normal(size=(12, 3))
    applied = array_library.to_numpy(mean.apply(array_library.asarray(B)))
    np.testing.assert_allclose(applied, expected @ B, atol=1e-13)


def test_the_average_of_adjustments_of_low_rank_is_of_low_rank(array_library):
    made = forms(array_library)
    mean = average([made[name][0] for name in ("low rank", "rank one", "scalar")])
    assert (mean.matrix, mean.U.shape) == (None, (12, 3))


@pytest.mark.parametrize("shrinkage", [0.1, 0.5, 0.9])
def test_a_float32_spectrum_keeps_weak_directions_that_a_ridge_supports(shrinkage):
    # Features with a large mean: the first eigenvalue is 10,000 times the rest, so that a cut-off
    # relative to it in float32 would drop every other direction.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 64)) + 30.0
    S = Moments.of(X).second_moment(centered=False)
    rho, ridge = shrinkage / 100, shrinkage / 100 * np.trace(S) / 64
    exact = Spectrum.of_matrix(S).inverse_root(rho, ridge).dense()
    single = Spectrum.of_matrix(S, np.float32).inverse_root(rho, ridge).dense()
    assert np.linalg.norm(single - exact) <= 1e-2 * np.linalg.norm(exact)


def features_with_a_decaying_spectrum(n, d):
    """Rectified features with a mean, as a network gives them."""
    rng = np.random.default_rng(0)
    load = rng.normal(size=(d, d)) / np.arange(1, d + 1)[:, None] ** 0.8
    return np.maximum(rng.normal(size=(n, d)) @ load + 0.3 * rng.normal(size=(n, d)), 0.0)


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("shrinkage", [0.8, 0.9, 0.99])
def test_a_deflated_root_is_the_full_one_to_its_stated_tolerance(centered, shrinkage):
    moments = Moments.of(features_with_a_decaying_spectrum(1200, 768))
    S, scale = moments.second_moment(centered=centered), moments.scale(centered=centered)
    W = deflated_inverse_root(S, shrinkage, shrinkage * scale, np.float32)
    exact = Spectrum.of_matrix(S).inverse_root(shrinkage, shrinkage * scale).dense()
    assert W is not None
    assert np.linalg.norm(W - exact) <= 1e-4 * np.linalg.norm(exact)


def test_deflation_gives_up_where_the_spectrum_is_not_flat_enough():
    S = Moments.of(features_with_a_decaying_spectrum(1200, 768)).second_moment()
    assert deflated_inverse_root(S, 0.01, 0.01 * np.trace(S) / 768, np.float32) is None


def test_float32_heads_use_the_deflated_root_and_stay_close_to_float64():
    X = features_with_a_decaying_spectrum(2000, 768)
    domains = np.repeat([0, 1], 1000)
    y = X[:, :20].sum(axis=1) + X[:, 0] * domains > np.median(X[:, :20].sum(axis=1))
    double = DAREClassifier(adaptation=None).fit(X, y, domains=domains)
    single = DAREClassifier(adaptation=None).fit(X.astype(np.float32), y, domains=domains)
    assert np.abs(single.coef_ - double.coef_).max() <= 2e-3 * np.abs(double.coef_).max()


@pytest.mark.parametrize("shrinkage", [0.9, 0.1, 1e-3])
@pytest.mark.parametrize("spectrum", ["flat", "decaying", "one direction"])
def test_the_iterated_root_is_the_inverse_root(array_library, shrinkage, spectrum):
    values = {
        "flat": np.linspace(0.9, 1.1, 40),
        "decaying": np.arange(1, 41) ** -2.0,
        "one direction": np.r_[100.0, np.ones(39)],
    }[spectrum]
    U = np.linalg.qr(np.random.default_rng(0).normal(size=(40, 40)))[0]
    S, ridge = (U * values) @ U.T, float(shrinkage * values.mean())
    W = newton_schulz_inverse_root(array_library.asarray(S), shrinkage, ridge)
    W = array_library.to_numpy(W)
    A = (1 - shrinkage) * S + ridge * np.eye(40)
    np.testing.assert_allclose(W @ A @ W, np.eye(40), atol=1e-9)


def test_the_iterated_root_gives_up_where_there_is_none():
    assert newton_schulz_inverse_root(np.zeros((4, 4)), 0.0, 0.0) is None
    assert newton_schulz_inverse_root(np.full((4, 4), np.nan), 0.5, 0.1) is None


@pytest.mark.parametrize("rho", [0.7, 0.9])
def test_deflation_takes_a_second_moment_of_one_direction(rho):
    v = np.random.default_rng(0).normal(size=800)
    S = np.outer(v, v)
    ridge = rho * np.trace(S) / len(S)
    W = deflated_inverse_root(S, rho, ridge, np.float32)
    expected = Spectrum.of_matrix(S).inverse_root(rho, ridge).dense()
    assert W is not None
    np.testing.assert_allclose(W, expected, atol=1e-3 * np.abs(expected).max())
