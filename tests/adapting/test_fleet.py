"""Fleets: every device as if it had an adapter of its own, in a few vectors each."""

import numpy as np
import pytest
from scipy import sparse

from skdare import DAREClassifier, DARERegressor, Fleet
from skdare.adapting.sketch import Sketches
from skdare.adapting.stream_moments import Forgetting
from small_streams import FORMS, assert_same_bits, fit, rows_of_a_domain

pytestmark = pytest.mark.filterwarnings("ignore::skdare.LabelShiftWarning")


def mixed(sizes, seed=0):
    """Rows of several devices in no order, and their labels."""
    X = np.concatenate([rows_of_a_domain(n, 20 + i) for i, n in enumerate(sizes)])
    devices = np.repeat([f"device {i}" for i in range(len(sizes))], sizes)
    order = np.random.default_rng(seed).permutation(len(X))
    return X[order], devices[order]


@pytest.mark.parametrize("half_life", [None, 5.0])
@pytest.mark.parametrize("prior_rows", [None, 0.0])
@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_lost_while_a_device_has_at_most_rank_rows(form, prior_rows, half_life):
    head, (X, devices) = fit(adaptation=form), mixed([3, 16, 11])
    options = {"prior_rows": prior_rows, "half_life": half_life}
    fleet = head.fleet(rank=16, **options)
    for part in np.array_split(np.arange(len(X)), 4):
        fleet.partial_fit(X[part], devices[part])
    assert sorted(fleet.devices_) == ["device 0", "device 1", "device 2"]
    for device in fleet.devices_:
        rows = X[devices == device]
        expected = head.adapter(**options).partial_fit(rows).head_
        ours = fleet.head_of(device)
        assert fleet.n_seen(device) == ours.adapted_rows_ == len(rows)
        np.testing.assert_allclose(ours.coef_, expected.coef_, rtol=0, atol=2e-5)
        np.testing.assert_allclose(ours.intercept_, expected.intercept_, rtol=0, atol=2e-5)
        dense = expected.adjustment_.dense()
        np.testing.assert_allclose(ours.adjustment_.dense(), dense, rtol=0, atol=2e-5)


@pytest.mark.parametrize("form", FORMS)
def test_with_every_direction_kept_a_device_has_the_head_of_an_adapter(form):
    head, (X, devices) = fit(adaptation=form), mixed([200, 90])
    fleet = head.fleet(rank=24).partial_fit(X[:100], devices[:100])
    fleet.partial_fit(X[100:], devices[100:])
    assert sorted(fleet.devices_) == ["device 0", "device 1"]
    for device in fleet.devices_:
        expected = head.adapt(X[devices == device])
        np.testing.assert_allclose(fleet.head_of(device).coef_, expected.coef_, rtol=0, atol=1e-4)


@pytest.mark.parametrize("half_life", [None, 30.0])
@pytest.mark.parametrize("rank", [1, 4, 16])
def test_the_trace_and_the_mean_are_exact_at_any_rank(rank, half_life):
    X, sketches = rows_of_a_domain(300, 9), Sketches(rank, 24, Forgetting(half_life))
    slot = sketches.new()
    for rows in np.split(X, [1, 20, 150]):
        sketches.add(slot, rows)
    weight = np.ones(300) if half_life is None else 0.5 ** (np.arange(300)[::-1] / half_life)
    mean = weight @ X / weight.sum()
    variance = weight @ (X - mean) ** 2 / weight.sum()
    moments = sketches.moments(slot, centered=True)
    np.testing.assert_allclose(moments.mean, mean, rtol=0, atol=1e-5)
    assert moments.scale == pytest.approx(variance.mean(), rel=1e-5)
    raw = sketches.moments(slot, centered=False)
    assert raw.scale == pytest.approx((variance + mean**2).mean(), rel=1e-5)


def test_the_largest_directions_are_kept():
    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.normal(size=(24, 24)))[0]
    X = rng.normal(size=(2000, 24)) * np.r_[[20.0, 10.0, 5.0], np.full(21, 0.1)] @ U.T
    sketches = Sketches(3, 24, Forgetting(None))
    sketches.add(sketches.new(), X)
    moments = sketches.moments(0, centered=True)
    exact = np.linalg.eigvalsh(np.cov(X, rowvar=False, bias=True))
    np.testing.assert_allclose(moments.values, exact[-3:], rtol=1e-3)
    assert moments.rest == pytest.approx(exact[:-3].mean(), rel=1e-2)


@pytest.mark.parametrize("task", ["classification", "binary", "regression"])
@pytest.mark.parametrize("form", FORMS)
def test_every_row_is_predicted_by_the_head_of_its_device(make, head_for, task, form):
    problem = make(task)
    head = problem.fit(head_for(task, "DARE", adaptation=form))
    fleet = head.fleet(rank=3).partial_fit(problem.X, problem.domains)
    X, devices = problem.X[::2], problem.domains[::2].copy()
    devices[::5] = "x"
    said = fleet.predict(X, devices)
    for device in np.unique(devices):
        rows = devices == device
        own = head if device == "x" else fleet.head_of(device)
        if task == "regression":
            np.testing.assert_allclose(said[rows], own.predict(X[rows]), rtol=1e-9)
            continue
        np.testing.assert_array_equal(said[rows], own.predict(X[rows]))
        scores = fleet.decision_function(X, devices)[rows]
        np.testing.assert_allclose(scores, own.decision_function(X[rows]), rtol=0, atol=1e-9)
        P = fleet.predict_proba(X, devices)[rows]
        np.testing.assert_allclose(P, own.predict_proba(X[rows]), rtol=0, atol=1e-9)


def test_one_row_of_a_device_is_too_few_to_adapt_to():
    head, X = fit(), rows_of_a_domain(6, 9)
    fleet = head.fleet(min_rows=3).partial_fit(X[:2], ["a", "a"])
    np.testing.assert_array_equal(fleet.decision_function(X, ["a"] * 6), head.decision_function(X))
    with pytest.raises(ValueError, match="at least 3 rows of a device, and device 'a' has 2"):
        fleet.head_of("a")
    with pytest.raises(ValueError, match="device 'b' has 0"):
        fleet.head_of("b")
    fleet.partial_fit(X[2:], ["a"] * 4)
    assert np.abs(fleet.decision_function(X, ["a"] * 6) - head.decision_function(X)).max() > 1e-3


def test_rows_that_are_all_the_same_adapt_nothing():
    head, X = fit(adaptation="centered"), rows_of_a_domain(6, 9)
    fleet = head.fleet().partial_fit(np.repeat(X[:1], 5, axis=0), ["a"] * 5)
    np.testing.assert_array_equal(fleet.decision_function(X, ["a"] * 6), head.decision_function(X))
    with pytest.raises(ValueError, match="rows of device 'a' are all the same"):
        fleet.head_of("a")


def test_rows_may_be_held_in_any_way(array_library):
    head, (X, devices) = fit(), mixed([30, 50])
    expected = head.fleet(rank=8).partial_fit(X, devices)
    for held in (array_library.asarray(X), sparse.csr_array(X)):
        fleet = head.fleet(rank=8).partial_fit(held, devices)
        scores = expected.decision_function(X, devices)
        np.testing.assert_allclose(
            fleet.decision_function(held, devices), scores, rtol=0, atol=1e-9
        )


def test_the_bytes_of_a_device_are_those_of_the_arrays():
    head = fit()
    fleet = head.fleet(rank=6)
    fleet.partial_fit(np.repeat(rows_of_a_domain(200, 9), 5, axis=0), np.arange(1000))
    sketches = fleet._sketches
    held = sum(value.nbytes for value in vars(sketches).values() if isinstance(value, np.ndarray))
    assert held == fleet.bytes_per_device * len(sketches.n)
    assert len(sketches.n) < 2 * len(fleet.devices_)
    assert fleet.bytes_per_device == 4 * 24 * 7 + 32


@pytest.mark.parametrize("half_life", [None, 20.0])
def test_a_fleet_taken_up_again_ends_at_the_same_bits(tmp_path, half_life):
    head, (X, devices) = fit(), mixed([40, 3, 70, 20])
    fleet = head.fleet(rank=5, half_life=half_life, prior_rows=7)
    fleet.partial_fit(X[:60], devices[:60]).save(tmp_path / "fleet")
    resumed = head.resume(tmp_path / "fleet")
    assert isinstance(resumed, Fleet)
    assert repr(resumed) == repr(fleet)
    for part in (fleet, resumed):
        part.partial_fit(X[60:], devices[60:]).partial_fit(X[:5], ["new"] * 5)
    assert resumed.devices_ == fleet.devices_
    for device in fleet.devices_:
        assert_same_bits(resumed.head_of(device), fleet.head_of(device))


def test_only_plain_labels_are_saved(tmp_path):
    fleet = fit().fleet().partial_fit(rows_of_a_domain(4, 9), [frozenset("a")] * 4)
    with pytest.raises(ValueError, match="use text or numbers"):
        fleet.save(tmp_path / "fleet")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"shrinkage_target": "pooled"}, "shrinkage_target='scaled' or 'identity'"),
        ({"shrinkage_target": "diagonal"}, "shrinkage_target='scaled' or 'identity'"),
        ({"shrinkage": "ledoit-wolf"}, "fit with a number"),
        ({"adaptation": None}, "set adaptation='centered' or 'raw'"),
    ],
)
def test_heads_that_a_sketch_cannot_follow_are_refused(options, remedy):
    with pytest.raises(ValueError, match=remedy):
        fit(**options).fleet()


@pytest.mark.parametrize("method", ["partial_fit", "predict"])
@pytest.mark.parametrize(
    ("devices", "remedy"),
    [
        (None, "devices is None; pass one label per row"),
        (["a"] * 3, "devices has 3 labels but X has 4 rows"),
        ("abcd", "pass one label per row"),
        (["a", None, "b", "c"], "devices has no label in row 1"),
        ([["a"]] * 4, "devices has labels that are not hashable"),
    ],
)
def test_bad_labels_are_refused_before_any_row_is_taken(devices, remedy, method):
    fleet, X = fit().fleet(), rows_of_a_domain(4, 9)
    with pytest.raises(ValueError, match=remedy):
        getattr(fleet, method)(X, devices)
    assert fleet.devices_ == []


@pytest.mark.parametrize(
    ("name", "value"), [("rank", 0), ("rank", 2.5), ("half_life", 0), ("min_rows", 1)]
)
def test_bad_options_are_refused(name, value):
    with pytest.raises(ValueError, match=name):
        fit().fleet(**{name: value})


def test_rows_with_other_features_are_refused():
    with pytest.raises(ValueError, match="features"):
        fit().fleet().partial_fit(np.ones((2, 3)), ["a", "b"])


@pytest.mark.parametrize("method", ["decision_function", "predict_proba"])
def test_a_fleet_of_a_regressor_has_numbers_only(make, method):
    problem = make("regression")
    fleet = problem.fit(DARERegressor()).fleet().partial_fit(problem.X, problem.domains)
    with pytest.raises(AttributeError, match="use predict"):
        getattr(fleet, method)(problem.X, problem.domains)


def test_ten_thousand_devices():
    head = DAREClassifier().fit(*(fit_rows := rows_for_many()), domains=np.arange(300) % 3)
    rng = np.random.default_rng(0)
    fleet, devices = head.fleet(rank=2), np.repeat(np.arange(10_000), 3)
    X = rng.normal(size=(30_000, 5)) * rng.uniform(0.5, 2, size=(10_000, 5))[devices]
    fleet.partial_fit(X, devices)
    assert len(fleet.devices_) == 10_000
    some = devices == 4711
    expected = head.adapt(X[some]).decision_function(fit_rows[0])
    ours = fleet.decision_function(fit_rows[0], np.full(300, 4711))
    # Two directions hold the scatter of three rows.
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-4)


def rows_for_many():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 5))
    return X, (X @ rng.normal(size=(5, 3))).argmax(axis=1)


@pytest.mark.parametrize("form", ["centered"])
def test_a_fleet_that_only_centres_is_an_adapter_for_each_device(form):
    head = fit(adaptation=form, adjust=False, mean_penalty=0.0)
    X = rows_of_a_domain(60, 9)
    fleet = head.fleet(rank=24).partial_fit(X, ["a"] * len(X))
    adapted = head.adapt(X)
    expected = adapted.decision_function(X)
    np.testing.assert_allclose(fleet.decision_function(X, ["a"] * len(X)), expected, atol=1e-4)
    np.testing.assert_allclose(fleet.head_of("a").coef_, adapted.coef_, atol=1e-5)
