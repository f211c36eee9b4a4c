"""Streams: any chunks, fading rows, a root kept while it serves, and a file to go on from."""

import errno
import os
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from heads_alike import assert_same_head
from skdare import Adapter, LabelShiftWarning
from skdare.adapting.label_shift import PredictedClasses
from skdare.adapting.stale_root import StaleRoot
from skdare.adapting.stream_moments import Forgetting
from skdare.fitting.canonical_fit import raw_weights
from skdare.fitting.domain_fit import domain_fit_of
from skdare.persist import TensorFile
from skdare.whitening.moments import Moments, RunningSums
from skdare.whitening.prior import Trust
from small_streams import FORMS, assert_same_bits, fit, rows_of_a_domain

pytestmark = pytest.mark.filterwarnings("ignore::skdare.LabelShiftWarning")


def drifting_rows(n):
    """From one domain into another."""
    t = np.linspace(0, 1, n)[:, None]
    return (1 - t) * rows_of_a_domain(n, 9) + t * rows_of_a_domain(n, 10)


STREAMS = {"stationary": lambda n: rows_of_a_domain(n, 9), "drifting": drifting_rows}


def fed(adapter, X, sizes):
    """The adapter after X in chunks of these sizes, over and over."""
    start, i = 0, 0
    while start < len(X):
        adapter.partial_fit(X[start : start + sizes[i % len(sizes)]])
        start, i = start + sizes[i % len(sizes)], i + 1
    return adapter


def assert_same_weights(head, expected, atol=1e-9):
    assert_same_head(head, expected, atol=atol)


# Few rows, rows that are gathered, and blocks longer than two rows a feature.
@pytest.mark.parametrize("n", [20, 700])
@pytest.mark.parametrize("sizes", [[1], [3, 50, 300]], ids=str)
@pytest.mark.parametrize("half_life", [None, 40.0])
@pytest.mark.parametrize("form", FORMS)
def test_chunks_do_not_matter(form, half_life, sizes, n):
    head, X = fit(adaptation=form), rows_of_a_domain(n, 9)
    whole = fed(head.adapter(half_life=half_life), X, [n])
    adapter = fed(head.adapter(half_life=half_life), X, sizes)
    assert adapter.n_seen_ == n
    assert_same_weights(adapter.head_, whole.head_)


@pytest.mark.parametrize("n", [20, 700])
@pytest.mark.parametrize("form", FORMS)
def test_a_row_counts_half_after_its_half_life(form, n):
    head, X = fit(adaptation=form, shrinkage=0.3), drifting_rows(n)
    weight = 0.5 ** (np.arange(n)[::-1] / 40.0)
    moments = Moments.of(X, sample_weight=weight)
    adaptation = domain_fit_of(head).adaptation
    trust = adaptation.prior_rows.trust(weight.sum())
    W = adaptation.blended(adaptation.adjustment(moments, None), trust)
    V, b = raw_weights((adaptation.B, adaptation.b), W, adaptation.shift(moments.mean, trust))
    V = trust.head * V + (1.0 - trust.head) * head.coef_.T
    b = trust.head * b + (1.0 - trust.head) * head.intercept_
    adapted = fed(head.adapter(half_life=40), X, [7]).head_
    np.testing.assert_allclose(adapted.coef_.T, V, rtol=0, atol=1e-9)
    np.testing.assert_allclose(adapted.intercept_, b, rtol=0, atol=1e-9)


def test_class_shares_fade_with_the_rows():
    head = fit()
    X = rows_of_a_domain(8000, 0)
    most = X[head.predict(X) == np.bincount(head.predict(X)).argmax()]
    # In the end the rows are as in training, so a stream that forgets has nothing to say.
    training = np.concatenate([rows_of_a_domain(150, seed) for seed in range(3)])
    training = np.random.default_rng(0).permutation(np.tile(training, (9, 1)))
    with pytest.warns(LabelShiftWarning):
        _ = head.adapter().partial_fit(most).partial_fit(training).head_
    with warnings.catch_warnings():
        warnings.simplefilter("error", LabelShiftWarning)
        _ = head.adapter(half_life=400).partial_fit(most).partial_fit(training).head_


@pytest.mark.parametrize("half_life", [None, 500.0, 10_000.0])
def test_class_shares_of_a_long_stream_are_those_of_all_rows(half_life):
    head, X = fit(), rows_of_a_domain(40_000, 0)
    whole, parts = (PredictedClasses(head, Forgetting(half_life)) for _ in range(2))
    whole.add(X)
    for rows in np.split(X, [1, 500, 9000, 9003, 30_001]):
        parts.add(rows)
    np.testing.assert_allclose(parts.counts, whole.counts, rtol=1e-9)
    assert parts.squares == pytest.approx(whole.squares, rel=1e-9)
    weight = 0.5 ** (np.arange(40_000)[::-1] / (half_life or np.inf))
    shares = np.bincount(head.predict(X), weight, 4) / weight.sum()
    np.testing.assert_allclose(whole.counts / whole.counts.sum(), shares, rtol=0, atol=0.02)
    # Their precision is that of fewer rows, and is said to be.
    effective = whole.counts.sum() ** 2 / whole.squares
    assert effective <= weight.sum() ** 2 / np.sum(weight**2) * (1 + 1e-9)
    assert effective > 500


@pytest.mark.parametrize("size", [100, 1024])
def test_float32_chunks_keep_their_digits_beside_a_large_mean(size):
    X = (rows_of_a_domain(3000, 9) + 1000.0).astype(np.float32)
    head = fit(adaptation="centered")
    exact = head.adapt(X.astype(np.float64), prior_rows=0)
    streamed = fed(head.adapter(prior_rows=0), X, [size]).head_
    assert_same_weights(streamed, exact, atol=1e-4 * np.abs(exact.intercept_).max())
    np.testing.assert_allclose(streamed.coef_, exact.coef_, rtol=0, atol=1e-5)


def test_a_mean_that_wanders_off_costs_no_digits():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(6000, 4))
    X = (Z + np.linspace(0, 4000, 6000)[:, None]).astype(np.float32)
    sums = RunningSums(np.zeros(4))
    for rows in np.split(X, 60):
        sums.decay(1e-3)
        sums.add(rows, None)
        sums.follow()
    weight = 1e-3 ** (59 - np.arange(6000) // 100)
    expected = Moments.of(X.astype(np.float64), sample_weight=weight)
    moments = Moments(*sums.about_mean())
    np.testing.assert_allclose(moments.mean, expected.mean, rtol=1e-7)
    scatter = expected.scatter
    np.testing.assert_allclose(moments.scatter, scatter, atol=2e-5 * np.abs(scatter).max())


def test_sums_that_follow_the_mean_are_the_same_sums():
    X = rows_of_a_domain(200, 9) + np.linspace(0, 50, 200)[:, None]
    sums = RunningSums(X[0])
    for rows in np.split(X, 20):
        sums.add(rows, None)
        sums.follow()
    moments, expected = Moments(*sums.about_mean()), Moments.of(X)
    for name in ("mean", "scatter", "cubic", "quartic"):
        ours, theirs = getattr(moments, name), getattr(expected, name)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10 * np.abs(theirs).max())


def test_chunks_may_come_in_different_libraries(array_library):
    head, X = fit(), rows_of_a_domain(600, 9)
    adapter = head.adapter().partial_fit(X[:100]).partial_fit(array_library.asarray(X[100:300]))
    adapter.partial_fit(sparse.csr_array(X[300:400])).partial_fit(X[400:])
    assert_same_weights(adapter.head_, head.adapt(X))


def test_the_caller_may_use_one_buffer_for_every_chunk():
    head, X, buffer = fit(), rows_of_a_domain(90, 9), np.empty((9, 24))
    adapter = head.adapter()
    for chunk in np.split(X, 10):
        buffer[:] = chunk
        adapter.partial_fit(buffer)
    assert_same_weights(adapter.head_, head.adapt(X))


def stale_distances(head, X, options, chunk=40):
    """How far each head is from the exact one on the rows seen, as they count; and the adapter."""
    adapter, distances = head.adapter(**options), []
    exact = head.adapter(half_life=options.get("half_life"))
    b = domain_fit_of(head).adaptation.b
    for stop in range(chunk, len(X) + 1, chunk):
        rows = X[stop - chunk : stop]
        ours, theirs = adapter.partial_fit(rows).head_, exact.partial_fit(rows).head_
        F, G = (h.decision_function(X[:stop]) - b for h in (ours, theirs))
        weight = 0.5 ** (np.arange(stop)[::-1, None] / options.get("half_life", np.inf))
        distances.append(np.sqrt(np.sum(weight * (F - G) ** 2) / np.sum(weight * G**2)))
    assert exact.n_refreshes_ == len(distances)
    return np.array(distances), adapter


@pytest.mark.parametrize(
    "shrinkage", [0.9, *(pytest.param(s, marks=pytest.mark.slow) for s in (0.05, "ledoit-wolf"))]
)
@pytest.mark.parametrize("staleness", [0.02, 0.1])
@pytest.mark.parametrize("half_life", [None, 300.0])
@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("form", FORMS)
def test_stale_scores_stay_within_the_bound(form, stream, half_life, staleness, shrinkage):
    head, X = fit(adaptation=form, shrinkage=shrinkage), STREAMS[stream](4000)
    options = {"staleness": staleness} | ({} if half_life is None else {"half_life": half_life})
    distances, adapter = stale_distances(head, X, options)
    assert distances.max() <= staleness
    if staleness == 0.1:
        # It was put to use: most roots were not computed, and some scores are not exact.
        assert adapter.n_refreshes_ < 0.5 * len(distances)
        assert distances.max() > 0.3 * staleness


def test_a_stationary_stream_needs_ever_fewer_roots():
    head, X = fit(adaptation="raw"), rows_of_a_domain(8000, 9)
    adapter, refreshes = head.adapter(staleness=0.01), []
    for chunk in np.split(X, 200):
        _ = adapter.partial_fit(chunk).head_
        refreshes.append(adapter.n_refreshes_)
    assert refreshes[-1] < 40
    assert refreshes[-1] - refreshes[100] <= 3


@pytest.mark.parametrize("form", FORMS)
def test_the_foreseen_change_of_scores_is_the_true_one_to_first_order(form):
    # Variances over four decades, little shrinkage: halving ‖E B‖ would be off by a factor here.
    head, rng = fit(adaptation=form, shrinkage=0.01), np.random.default_rng(1)
    X = rows_of_a_domain(300, 9) * np.exp(np.linspace(-2, 2, 24))
    Y = X + 2e-4 * rng.normal(size=X.shape) * X.std(axis=0)
    adaptation = domain_fit_of(head).adaptation
    before, after = Moments.of(X), Moments.of(Y)
    stale = StaleRoot(adaptation, adaptation.spectrum(before), 0.01)
    assert stale.is_bounded
    new = adaptation.adjustment(after, None)
    trust = Trust(mean=0.9, adjustment=0.7)
    V, U = (
        raw_weights((adaptation.B, adaptation.b), adaptation.blended(W, trust))[0]
        for W in (new, stale.adjustment)
    )
    shift = adaptation.shift(after.mean, trust)
    Z = Y if shift is None else Y - shift
    true = np.linalg.norm(Z @ (V - U)) / np.linalg.norm(Z @ V)
    assert stale.score_change(after, trust) == pytest.approx(true, rel=0.03)
    assert stale.score_change(before, trust) < 1e-6 * true + 1e-12


def test_a_head_without_shrinkage_is_never_kept_while_directions_are_missing():
    head, X = fit(shrinkage=0.0), rows_of_a_domain(20, 9)
    adapter, exact = head.adapter(staleness=0.1), head.adapter()
    for row in np.split(X, 10):
        ours, theirs = adapter.partial_fit(row).head_, exact.partial_fit(row).head_
        assert_same_weights(ours, theirs)
    assert adapter.n_refreshes_ == 10


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"half_life": 0}, "use a positive number, or leave it out"),
        ({"half_life": -3}, "a finite number of 0 or more"),
        ({"half_life": "long"}, "a finite number of 0 or more"),
        ({"staleness": 0.5}, r"in \[0, 0.1\]"),
        ({"staleness": None}, r"in \[0, 0.1\]"),
    ],
)
def test_bad_options_are_refused(options, remedy):
    with pytest.raises(ValueError, match=remedy):
        fit().adapter(**options)


def test_a_pooled_target_has_no_staleness():
    head = fit(shrinkage_target="pooled")
    with pytest.raises(ValueError, match="leave staleness at 0"):
        head.adapter(staleness=0.01)


# Among the few rows, among gathered ones, and on a whole number of blocks.
@pytest.mark.parametrize("at", [10, 333, 600])
@pytest.mark.parametrize(
    "options", [{}, {"half_life": 100.0, "staleness": 0.05, "prior_rows": 3.0}], ids=str
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_stream_taken_up_again_ends_at_the_same_bits(tmp_path, at, options, dtype):
    head, X = fit(), drifting_rows(1000).astype(dtype)
    adapter = fed(head.adapter(**options), X[:at], [5])
    if options:
        _ = adapter.head_  # a root to be kept
    adapter.save(tmp_path / "stream")
    resumed = head.resume(tmp_path / "stream")
    assert isinstance(resumed, Adapter)
    assert repr(resumed) == repr(adapter)
    for rows in np.split(X[at:], [4, 30, 300]):
        ours, theirs = resumed.partial_fit(rows).head_, adapter.partial_fit(rows).head_
        assert_same_bits(ours, theirs)
    assert resumed.n_refreshes_ == adapter.n_refreshes_
    assert resumed.n_seen_ == 1000


def test_an_adapter_is_saved_before_its_first_row(tmp_path):
    head, X = fit(), rows_of_a_domain(100, 9)
    head.adapter().save(tmp_path / "stream")
    assert_same_bits(head.resume(tmp_path / "stream").partial_fit(X).head_, head.adapt(X))


def test_saving_changes_nothing_of_what_follows(tmp_path):
    head, X = fit(), rows_of_a_domain(1000, 9)
    saved, plain = head.adapter(), head.adapter()
    for rows in np.split(X, 40):
        saved.partial_fit(rows).save(tmp_path / "stream")
        plain.partial_fit(rows)
    assert_same_bits(saved.head_, plain.head_)
    assert os.listdir(tmp_path) == ["stream"]


@pytest.fixture
def saved(tmp_path):
    """A head, and the file of one of its streams."""
    head = fit()
    head.adapter().partial_fit(rows_of_a_domain(100, 9)).save(tmp_path / "stream")
    return head, tmp_path / "stream"


@pytest.mark.parametrize("change", [{"shrinkage": 0.5}, {"adaptation": "centered"}, {"l2": 0.5}])
def test_a_file_of_another_head_is_refused(saved, change):
    _, path = saved
    with pytest.raises(ValueError, match="saved for another head"):
        fit(**change).resume(path)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_file_that_was_cut_off_is_refused(saved, share):
    head, path = saved
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match="cannot be read"):
        head.resume(path)


@pytest.mark.parametrize("seed", range(20))
def test_an_altered_file_is_refused_or_says_the_same(saved, seed):
    head, path = saved
    content = bytearray(path.read_bytes())
    content[np.random.default_rng(seed).integers(len(content))] ^= 0xFF
    expected = head.resume(path).head_
    path.write_bytes(content)
    try:
        resumed = head.resume(path).head_
    except ValueError:
        return
    assert_same_bits(resumed, expected)


@pytest.mark.parametrize(
    "write",
    [
        lambda path: np.savez(path, X=np.ones(3)),
        lambda path: np.save(path, np.ones(3)),
        lambda path: path.write_text("hello"),
    ],
    ids=["npz", "npy", "text"],
)
def test_files_that_others_wrote_are_refused(write, tmp_path):
    write(tmp_path / "other.npy")
    [path] = tmp_path.iterdir()
    with pytest.raises(ValueError, match="cannot be read"):
        fit().resume(path)


def test_files_of_other_kinds_are_refused(saved, tmp_path):
    head, path = saved
    file = TensorFile.read(path)
    replace(file, version=99).write(tmp_path / "newer")
    with pytest.raises(ValueError, match="update skdare"):
        head.resume(tmp_path / "newer")
    head.save(tmp_path / "head")
    with pytest.raises(ValueError, match="holds a head"):
        head.resume(tmp_path / "head")
    with pytest.raises(FileNotFoundError):
        head.resume(tmp_path / "missing")


def test_a_full_disk_leaves_the_file_that_was_there(saved, monkeypatch):
    head, path = saved
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    adapter = head.resume(path).partial_fit(rows_of_a_domain(50, 9))
    with pytest.raises(OSError, match="what was there is unchanged") as caught:
        adapter.save(path)
    assert caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]
