"""Adjustments: rows become (X - m) W, in whatever form W is cheapest to hold."""

import numpy as np
import pytest
from scipy import linalg, sparse

import paper_formulas as paper
from array_libraries import LIBRARIES, held_in, libraries
from domain_problems import make_problem
from skdare.arrays import to_numpy
from skdare.whitening.adjustment import Adjustment, average, mean_shift
from skdare.whitening.guess import guess_adjustment, guess_shares
from skdare.whitening.moments import Moments
from skdare.whitening.roots import inverse_scales, root_of_matrix, root_of_rows
from skdare.whitening.whitening import Whitening

STRENGTHS = [0.0, 0.1, 0.5, 0.999, 1.0]
LABELS = ["north", "south", "west"]


def rows_of(label):
    problem = make_problem("binary")
    return problem.X[problem.rows(label)]


def dense(W, d):
    """W as a matrix."""
    return W.to_numpy().apply(np.eye(d))


def adjusted_by(whitening, domains, library="numpy"):
    moments = [Moments.of(held_in(library, X)) for X in domains]
    return whitening.adjustments(moments, moments[0].mean.dtype)


# -- Whitening ---------------------------------------------------------------------------------


@libraries
@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("label", LABELS)
def test_a_whitened_domain_has_identity_covariance(library, label, centered):
    X = rows_of(label)
    [W] = adjusted_by(Whitening(True, centered, 0.0, "scaled"), [X], library)
    Z = to_numpy(W.rows(held_in(library, X)))
    np.testing.assert_allclose(paper.second_moment(Z, centered=centered), np.eye(5), atol=1e-9)


@libraries
@pytest.mark.parametrize("target", ["scaled", "identity", "diagonal"])
@pytest.mark.parametrize("rho", STRENGTHS)
@pytest.mark.parametrize("centered", [True, False])
def test_every_adjustment_is_the_root_written_in_the_paper(library, centered, rho, target):
    domains, _ = make_problem("binary").parts()
    options = {"shrinkage": rho, "shrinkage_target": target, "centered": centered}
    expected = paper.adjustments(domains, **options)
    found = adjusted_by(Whitening(True, centered, rho, target), domains, library)
    for W, root in zip(found, expected, strict=True):
        np.testing.assert_allclose(dense(W, 5), root, rtol=0, atol=1e-9 * np.abs(root).max())


@pytest.mark.parametrize("target", ["scaled", "identity"])
def test_the_inverse_root_is_symmetric_and_positive(target):
    [W] = adjusted_by(Whitening(True, True, 0.2, target), [rows_of("west")])
    W = dense(W, 5)
    np.testing.assert_allclose(W, W.T, rtol=0, atol=1e-14)
    assert np.linalg.eigvalsh(W).min() > 0


@pytest.mark.parametrize("library", [*LIBRARIES, "csr"])
@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("target", ["scaled", "identity", "diagonal"])
@pytest.mark.parametrize("rho", [0.01, 0.5, 0.999, 1.0])
def test_few_rows_of_many_features_give_the_root_of_their_matrix(library, rho, target, centered):
    rng = np.random.default_rng(0)
    domains = [rng.normal(size=(n, 12)) * np.linspace(0.5, 3, 12) + 2.0 for n in (4, 9)]
    options = {"shrinkage": rho, "shrinkage_target": target, "centered": centered}
    expected = paper.adjustments(domains, **options)
    held = [sparse.csr_array(X) if library == "csr" else held_in(library, X) for X in domains]
    moments = [Moments.of(X) for X in held]
    found = Whitening(True, centered, rho, target).adjustments(moments, moments[0].mean.dtype)
    for W, root in zip(found, expected, strict=True):
        assert W.matrix is None  # nothing of features by features
        np.testing.assert_allclose(dense(W, 12), root, rtol=0, atol=1e-9 * np.abs(root).max())


@libraries
@pytest.mark.parametrize("rows", [2, 4, 7])
def test_a_rank_deficient_domain_is_projected(library, rows):
    Z = np.random.default_rng(0).normal(size=(rows, 10)) * np.linspace(0.5, 3, 10)
    S = Z.T @ Z / rows
    projection = np.linalg.pinv(Z) @ Z
    held = held_in(library, Z)
    for W in (
        root_of_rows(held, rows, 0.0, 0.0),
        root_of_matrix(held_in(library, S), 0.0, 0.0, held.dtype),
    ):
        root = dense(W, 10)
        np.testing.assert_allclose(root @ S @ root, projection, atol=1e-9)


@pytest.mark.parametrize("values", [[4.0, 0.25, 0.0], [4.0, 0.25, 1e-30], [4.0, 0.25, 3e-16]])
def test_directions_below_the_cut_off_map_to_zero(values):
    W = root_of_matrix(np.diag(values), 0.0, 0.0, np.float64).matrix
    np.testing.assert_allclose(W, np.diag([0.5, 2.0, 0.0]), atol=1e-14)


def decaying(d, direction=1.2, seed=0):
    """A second moment like that of features: a fast spectrum, and a mean far above all of it."""
    rng = np.random.default_rng(seed)
    basis = linalg.qr(rng.normal(size=(d, d)))[0]
    mean = direction * rng.normal(size=d)
    return (basis * (50.0 * np.arange(1, d + 1.0) ** -1.5)) @ basis.T + np.outer(mean, mean)


@pytest.mark.parametrize("rho", [0.9, 0.7, 0.5, 0.1, 0.01])
def test_a_root_for_float32_products_has_three_digits_more_than_they_need(rho):
    S = decaying(260)
    ridge = rho * np.trace(S) / len(S)
    exact = paper.inverse_root((1 - rho) * S + ridge * np.eye(len(S)))
    single = root_of_matrix(S, rho, ridge, np.float32).matrix
    double = root_of_matrix(S, rho, ridge, np.float64).matrix
    assert single.dtype == np.float32
    assert linalg.norm(single - exact) <= 2e-4 * linalg.norm(exact)
    assert linalg.norm(double - exact) <= 1e-9 * linalg.norm(exact)


@pytest.mark.parametrize("rho", [0.7, 0.9])
def test_a_root_for_float32_products_takes_a_second_moment_of_one_direction(rho):
    v = np.random.default_rng(0).normal(size=300)
    S = np.outer(v, v)
    ridge = rho * np.trace(S) / len(S)
    expected = paper.inverse_root((1 - rho) * S + ridge * np.eye(len(S)))
    W = root_of_matrix(S, rho, ridge, np.float32).matrix
    np.testing.assert_allclose(W, expected, atol=1e-3 * np.abs(expected).max())


def test_a_root_in_float32_keeps_weak_directions_that_a_ridge_supports():
    # The first eigenvalue is 10,000 times the rest: a cut-off relative to it would drop the others.
    X = np.random.default_rng(0).normal(size=(400, 64)) + 30.0
    S = Moments.of(X).second_moment(centered=False)
    ridge = 1e-3 * np.trace(S) / 64
    exact = paper.inverse_root((1 - 1e-3) * S + ridge * np.eye(64))
    single = root_of_matrix(S, 1e-3, ridge, np.float32).matrix
    assert linalg.norm(single - exact) <= 1e-3 * linalg.norm(exact)


@pytest.mark.parametrize("rho", [0.9, 0.1, 1e-3])
@pytest.mark.parametrize("spectrum", ["flat", "decaying", "one direction"])
def test_the_root_by_products_alone_is_the_inverse_root(rho, spectrum):
    from skdare.whitening.roots import _iterated_root

    torch = pytest.importorskip("torch", reason="torch is not installed")
    values = {
        "flat": np.linspace(0.9, 1.1, 40),
        "decaying": np.arange(1, 41) ** -2.0,
        "one direction": np.r_[100.0, np.ones(39)],
    }[spectrum]
    U = np.linalg.qr(np.random.default_rng(0).normal(size=(40, 40)))[0]
    S = (1 - rho) * (U * values) @ U.T
    ridge = float(rho * values.mean())
    W = to_numpy(_iterated_root(torch.asarray(S), ridge))
    np.testing.assert_allclose(W @ (S + ridge * np.eye(40)) @ W, np.eye(40), atol=1e-9)
    assert _iterated_root(torch.zeros((4, 4), dtype=torch.float64), 0.0) is None


# -- Units -------------------------------------------------------------------------------------


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("rho", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("constant", [1e-3, 7.0, 1e6])
def test_the_scaled_target_undoes_a_common_change_of_unit(constant, rho, centered):
    domains, _ = make_problem("binary").parts()
    whitening = Whitening(True, centered, rho, "scaled")
    scaled = adjusted_by(whitening, [constant * X for X in domains])
    for W, V, X in zip(adjusted_by(whitening, domains), scaled, domains, strict=True):
        np.testing.assert_allclose(V.rows(constant * X), W.rows(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [4, 40], ids=["few rows", "many rows"])
@pytest.mark.parametrize("adjusts", [True, False], ids=["by domain", "overall"])
@pytest.mark.parametrize("shift", ["none", "own mean", "mean of means"])
@pytest.mark.parametrize("rho", [0.0, 0.4, 1.0])
def test_towards_the_diagonal_any_feature_may_have_any_unit(rho, shift, adjusts, n):
    rng = np.random.default_rng(0)
    domains = [rng.normal(size=(n, 6)) * rng.uniform(0.5, 2, 6) + 1.0 for _ in range(3)]
    units = np.geomspace(1e-4, 1e4, 6)
    whitening = Whitening(adjusts, True, rho, "diagonal", shift)
    scaled = adjusted_by(whitening, [X * units for X in domains])
    for W, V, X in zip(adjusted_by(whitening, domains), scaled, domains, strict=True):
        np.testing.assert_allclose(V.rows(X * units), W.rows(X), rtol=1e-7, atol=1e-7)


def test_a_feature_that_is_all_but_constant_in_a_domain_is_not_blown_up():
    domains, _ = make_problem("binary").parts()
    domains[0][:, 0] = 3.0 + 1e-9 * domains[0][:, 0]
    [W, *_] = adjusted_by(Whitening(True, True, 1.0, "diagonal"), domains)
    assert W.diagonal.max() / np.median(W.diagonal) < 20


def test_rows_that_are_all_the_same_take_the_scale_of_all_domains():
    domains, _ = make_problem("binary").parts()
    domains[0][:] = domains[0][0]
    for target in ("scaled", "diagonal"):
        whitening = Whitening(True, True, 0.5, target)
        moments = [Moments.of(X) for X in domains]
        assert not whitening.can_adjust(moments[0])
        [W, *_] = whitening.adjustments(moments, np.float64)
        unit = np.concatenate(domains).var(axis=0).mean() ** -0.5
        np.testing.assert_allclose(dense(W, 5), unit * np.eye(5), rtol=0.1)


def test_a_feature_that_never_varies_has_no_scale():
    np.testing.assert_array_equal(inverse_scales(np.array([4.0, 0.0])), [0.5, 0.0])


@pytest.mark.parametrize("centered", [True, False])
def test_where_all_domains_are_alike_the_ridge_means_the_same_with_and_without_whitening(centered):
    X = rows_of("west") - (rows_of("west").mean(axis=0) if not centered else 0.0)
    moments = [Moments.of(X)] * 3
    plain = Whitening(False, True, 0.0, "scaled")
    whitens = Whitening(True, centered, 1.0, "scaled")
    for whitening in (plain, whitens):
        [W, *_] = whitening.adjustments(moments, np.float64)
        # l2/2 ‖B‖² with V = W B: the same in V.
        assert whitening.ridge(moments, 0.3) / W.diagonal**2 == pytest.approx(
            0.3 * X.var(axis=0).mean(), rel=1e-9
        )


# -- Shifts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["scalar", "diagonal", "dense", "low rank", "scaled low rank"])
@pytest.mark.parametrize("shifted", [True, False], ids=["shifted", "not shifted"])
@libraries
def test_raw_weights_score_raw_rows_as_canonical_weights_score_adjusted_ones(
    library, shifted, form
):
    W, matrix = made_forms(library)[form]
    rng = np.random.default_rng(1)
    X, B, b, m = (rng.normal(size=size) for size in ((7, 12), (12, 3), 3, 12))
    W = with_shift(W, held_in(library, m) if shifted else None)
    Z = (X - m * shifted) @ matrix
    np.testing.assert_allclose(to_numpy(W.rows(held_in(library, X))), Z, atol=1e-12)
    V, offset = W.raw_weights(held_in(library, B), held_in(library, b))
    np.testing.assert_allclose(X @ to_numpy(V) + to_numpy(offset), Z @ B + b, atol=1e-11)


@pytest.mark.parametrize("form", ["scalar", "diagonal", "dense", "low rank", "scaled low rank"])
@libraries
def test_the_gradient_of_raw_weights_is_their_transpose(library, form):
    W, _ = made_forms(library)[form]
    rng = np.random.default_rng(1)
    B, b, G, g, m = (rng.normal(size=size) for size in ((12, 3), 3, (12, 3), 3, 12))
    W = with_shift(W, held_in(library, m))
    V, offset = W.raw_weights(held_in(library, B), held_in(library, b))
    back = W.gradient(held_in(library, G), held_in(library, g))
    forth = np.sum(to_numpy(V) * G) + np.sum(to_numpy(offset) * g)
    assert forth == pytest.approx(np.sum(B * to_numpy(back)) + b @ g, rel=1e-12)


def with_shift(W, shift):
    return Adjustment(W.diagonal, W.matrix, W.U, W.core, W.V, shift)


def test_what_is_subtracted_from_a_domain():
    domains, _ = make_problem("binary").parts()
    means = [X.mean(axis=0) for X in domains]

    def shifts(shift):
        return [W.shift for W in adjusted_by(Whitening(True, True, 0.5, "scaled", shift), domains)]

    assert shifts("none") == [None] * 3
    for shift in ("own mean", "own mean in training"):
        np.testing.assert_allclose(shifts(shift), means, rtol=1e-12)
    np.testing.assert_allclose(shifts("mean of means"), [np.mean(means, axis=0)] * 3, rtol=1e-12)


# -- Forms and averages ------------------------------------------------------------------------


def made_forms(library, d=12):
    """An adjustment of every form, with its matrix written out."""
    rng = np.random.default_rng(3)
    made = {"scalar": (Adjustment(0.7), 0.7 * np.eye(d))}
    c = rng.uniform(0.5, 2.0, d)
    made["diagonal"] = (Adjustment(held_in(library, c)), np.diag(c))
    for name, rank in {"low rank": 2, "rank one": 1}.items():
        U = rng.normal(size=(d, rank))
        C = rng.normal(size=(rank, rank))
        C = C + C.T
        W = Adjustment(0.4, None, held_in(library, U), held_in(library, C))
        made[name] = (W, 0.4 * np.eye(d) + U @ C @ U.T)
    scaled = (c[:, None] * U, C, U)
    W = Adjustment(held_in(library, 0.4 * c), None, *(held_in(library, part) for part in scaled))
    made["scaled low rank"] = (W, np.diag(0.4 * c) + scaled[0] @ C @ U.T)
    A = rng.normal(size=(d, d))
    made["dense"] = (Adjustment(0.2, held_in(library, A)), 0.2 * np.eye(d) + A)
    return made


@libraries
@pytest.mark.parametrize("form", ["scalar", "diagonal", "low rank", "scaled low rank", "dense"])
def test_applying_an_adjustment_is_multiplying_by_its_matrix(library, form):
    W, matrix = made_forms(library)[form]
    B = np.random.default_rng(1).normal(size=(12, 3))
    np.testing.assert_allclose(to_numpy(W.apply(held_in(library, B))), matrix @ B, atol=1e-13)
    np.testing.assert_allclose(to_numpy(W.back(held_in(library, B))), matrix.T @ B, atol=1e-13)
    np.testing.assert_allclose(W.to_numpy().apply(B), matrix @ B, atol=1e-13)


@libraries
@pytest.mark.parametrize("shares", [[1 / 3] * 3, [0.7, 0.2, 0.1]], ids=["even", "uneven"])
@pytest.mark.parametrize(
    "names",
    [
        ["scalar", "scalar", "scalar"],
        ["scalar", "diagonal", "diagonal"],
        ["low rank", "rank one", "scalar"],
        ["low rank", "low rank", "low rank"],
        ["scaled low rank", "low rank", "scalar"],
        ["scaled low rank", "scaled low rank", "diagonal"],
        ["low rank", "scaled low rank", "dense"],
        ["scalar", "dense", "dense"],
    ],
    ids="-".join,
)
def test_the_average_of_adjustments_is_that_of_their_matrices(library, names, shares):
    made = [made_forms(library)[name] for name in names]
    found = average([W for W, _ in made], shares)
    expected = np.average([matrix for _, matrix in made], axis=0, weights=shares)
    B = np.random.default_rng(1).normal(size=(12, 3))
    np.testing.assert_allclose(to_numpy(found.apply(held_in(library, B))), expected @ B, atol=1e-12)
    np.testing.assert_allclose(
        to_numpy(found.back(held_in(library, B))), expected.T @ B, atol=1e-12
    )


def test_the_average_of_adjustments_of_low_rank_is_of_low_rank():
    made = made_forms("numpy")
    found = average([made[name][0] for name in ("low rank", "rank one", "scalar")], [1 / 3] * 3)
    assert found.matrix is None
    assert found.U.shape == (12, 3)


def test_the_shift_of_an_average_is_the_average_of_the_shifts():
    made = [
        Adjustment(1.0, shift=np.array([1.0, 0.0])),
        Adjustment(2.0, shift=np.array([3.0, 4.0])),
    ]
    np.testing.assert_array_equal(average(made, [0.5, 0.5]).shift, [2.0, 2.0])
    assert mean_shift([Adjustment(1.0)] * 2, [0.5, 0.5]) is None


# -- Guesses for an unseen domain --------------------------------------------------------------


def guessed(guess, whitening):
    domains, _ = make_problem("binary").parts()
    moments = [Moments.of(X) for X in domains]
    adjustments = whitening.adjustments(moments, np.float64)
    W = guess_adjustment(guess, LABELS, moments, adjustments, whitening)
    return domains, [dense(own, 5) for own in adjustments], W


def test_the_guess_is_the_mean_of_the_adjustments():
    _, roots, W = guessed("mean", Whitening(True, False, 0.3, "scaled"))
    np.testing.assert_allclose(dense(W, 5), np.mean(roots, axis=0), atol=1e-12)


@pytest.mark.parametrize("centered", [True, False])
def test_the_guess_by_covariance_is_the_root_of_the_mean_moment(centered):
    domains, _, W = guessed("covariance", Whitening(True, centered, 0.3, "scaled", "own mean"))
    S = np.mean([paper.second_moment(X, centered=centered) for X in domains], axis=0)
    S = 0.7 * S + 0.3 * np.trace(S) / 5 * np.eye(5)
    np.testing.assert_allclose(dense(W, 5), paper.inverse_root(S), atol=1e-9)
    means = [X.mean(axis=0) for X in domains]
    np.testing.assert_allclose(W.shift, np.mean(means, axis=0), rtol=1e-12)


def test_the_guess_by_name_weighs_the_domains_that_it_names():
    guess = {"north": 3.0, "west": 1.0}
    _, roots, W = guessed(guess, Whitening(True, False, 0.3, "scaled"))
    np.testing.assert_allclose(dense(W, 5), 0.75 * roots[0] + 0.25 * roots[2], atol=1e-12)
    np.testing.assert_array_equal(guess_shares(guess, LABELS), [0.75, 0.0, 0.25])
