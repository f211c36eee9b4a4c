"""Workers of a Dask cluster give the heads of this process, to the bit."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import skdare
from interrupts import PATIENCE
from skdare import cluster as clusters
from skdare.data.synthetic import make_latent_domains
from skdare.errors import InputError

distributed = pytest.importorskip("distributed", reason="Dask is not installed")
da = pytest.importorskip("dask.array", reason="Dask is not installed")

# All in one process where tests run side by side: two clusters would only wait for each other.
pytestmark = pytest.mark.xdist_group("processes")

QUIET = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
HEADS = {
    "DAREClassifier": {"adaptation": "centered"},
    "DARERegressor": {"mean_penalty": 1.0},
    "ERMClassifier": {},
    "GroupDROClassifier": {"max_iter": 1, "tol": 1e-2},
    "IRMClassifier": {"max_iter": 2},
    "AnchorRegressor": {"adjust": True},
}


@pytest.fixture(autouse=True, scope="module")
def small_groups():
    """Cut the few rows of a test into several groups."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skdare.arrays.rows._GROUP_BYTES", 3_000)
        patch.setattr("skdare.arrays.rows._chunk_rows", lambda *_: 50)
        yield


@pytest.fixture(scope="module", params=[1, 3], ids=["1 worker", "3 workers"])
def client(request):
    """In scope, with this many workers, which are threads of this process."""
    with (
        distributed.LocalCluster(n_workers=request.param, processes=False, **QUIET) as made,
        distributed.Client(made) as client,
    ):
        yield client


def problem(name, dtype=np.float64):
    task = "regression" if "Regressor" in name else "classification"
    data = make_latent_domains(3, 300, 6, task=task, random_state=0)
    order = np.random.default_rng(0).permutation(len(data.y))
    return data.X[order].astype(dtype), data.y[order], data.domains[order]


def mapped(folder, X):
    """A view of a memory map that does not begin where the file does."""
    np.save(folder / "X.npy", np.concatenate([X[:100] + 7, X]))
    return np.load(folder / "X.npy", mmap_mode="r")[100:]


WAYS = {
    "memory map": mapped,
    "dask.array": lambda _, X: da.from_array(X, chunks=(130, 4)),
}
ways = pytest.mark.parametrize("way", WAYS)


def fitted(name, X, y, domains):
    return getattr(skdare, name)(**HEADS[name]).fit(X, y, domains=domains)


def alone(name, X, y, domains):
    """The head that this process gives, whoever is in scope."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clusters, "_client_in_scope", lambda: None)
        return fitted(name, X, y, domains)


def assert_same_bits(found, want):
    np.testing.assert_array_equal(found.coef_, want.coef_)
    np.testing.assert_array_equal(found.intercept_, want.intercept_)


def held_by(client, expected=0):
    """What the scheduler still knows of, once it has heard of what was dropped."""
    end = time.monotonic() + PATIENCE
    while True:
        tasks = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))
        if len(tasks) == expected or time.monotonic() > end:
            return tasks
        time.sleep(0.01)


@pytest.fixture
def passes(monkeypatch):
    """The number of tasks of each pass over rows that workers made."""
    made = []
    results = clusters.ClusterRows._results

    def counted(self, tasks):
        made.append(len(tasks))
        return results(self, tasks)

    monkeypatch.setattr(clusters.ClusterRows, "_results", counted)
    return made


# -- The same head -----------------------------------------------------------------------------


@ways
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name.startswith("DARE") else pytest.mark.slow)
        for name in HEADS
    ],
)
def test_workers_give_the_head_of_this_process(tmp_path, client, passes, name, way):
    X, y, domains = problem(name)
    want = alone(name, mapped(tmp_path, X), y, domains)
    assert not passes
    found = fitted(name, WAYS[way](tmp_path, X), y, domains)
    assert_same_bits(found, want)
    assert max(passes) == len(client.nthreads()), "one task for each thread"
    assert held_by(client) == []


@ways
def test_rows_in_single_precision_give_the_same_bits(tmp_path, client, way):
    X, y, domains = problem("ERMClassifier", np.float32)
    want = alone("DAREClassifier", mapped(tmp_path, X), y, domains)
    found = fitted("DAREClassifier", WAYS[way](tmp_path, X), y, domains)
    assert_same_bits(found, want)
    for label in found.domains_:
        ours, theirs = found.moments_[label], want.moments_[label]
        np.testing.assert_array_equal(ours.scatter, theirs.scatter)


def test_large_arguments_are_handed_over_once_a_pass(tmp_path, client, monkeypatch):
    X, y, domains = problem("ERMClassifier")
    want = alone("ERMClassifier", mapped(tmp_path, X), y, domains)
    monkeypatch.setattr(clusters, "_SMALL", 0)
    assert_same_bits(fitted("ERMClassifier", mapped(tmp_path, X), y, domains), want)
    assert held_by(client) == []


def test_rows_in_memory_stay_in_this_process(tmp_path, client, passes, monkeypatch):
    X, y, domains = problem("ERMClassifier")
    fitted("ERMClassifier", X, y, domains)
    monkeypatch.setattr("skdare.arrays.rows._GROUP_BYTES", 1 << 26)
    fitted("ERMClassifier", mapped(tmp_path, X), y, domains)  # so few that workers are no help
    assert not passes


def test_a_fit_inside_a_task_stays_there(tmp_path, client, passes):
    X, y, domains = problem("ERMClassifier")
    rows = mapped(tmp_path, X)
    want = alone("ERMClassifier", rows, y, domains)
    found = client.submit(fitted, "ERMClassifier", rows, y, domains, pure=False).result()
    assert_same_bits(found, want)
    assert not passes


def test_rows_that_are_not_finite_are_found_where_they_are_stored(tmp_path, client):
    X, y, domains = problem("ERMClassifier")
    X[700, 2] = np.nan
    with pytest.raises(InputError, match="contains NaN, first in feature 2"):
        fitted("DAREClassifier", mapped(tmp_path, X), y, domains)
    assert held_by(client) == []


# -- dask.array --------------------------------------------------------------------------------


def test_blocks_that_a_caller_keeps_stay(client):
    X, y, domains = problem("ERMClassifier")
    blocks = da.from_array(X, chunks=(130, 6)).persist()
    fitted("ERMClassifier", blocks, y, domains)
    assert len(held_by(client, 7)) == 7
    np.testing.assert_array_equal(blocks.compute(), X)
    del blocks
    assert held_by(client) == []


def test_blocks_of_unknown_size_are_measured(client):
    X, y, domains = problem("ERMClassifier")
    some = domains != 1
    blocks = da.from_array(X, chunks=(130, 6))[da.from_array(some, chunks=130)]
    want = fitted("ERMClassifier", X[some], y[some], domains[some])
    np.testing.assert_allclose(
        fitted("ERMClassifier", blocks, y[some], domains[some]).coef_, want.coef_, atol=1e-9
    )


@pytest.mark.slow
def test_a_dask_array_needs_no_client(monkeypatch):
    monkeypatch.setattr(clusters, "_client_in_scope", lambda: None)
    X, y, domains = problem("ERMClassifier")
    rows = da.from_array(X, chunks=(130, 4))
    head = fitted("DAREClassifier", X, y, domains)
    np.testing.assert_allclose(
        fitted("DAREClassifier", rows, y, domains).coef_, head.coef_, atol=1e-8
    )
    np.testing.assert_array_equal(head.predict(rows), head.predict(X))
    np.testing.assert_allclose(head.adapt(rows).coef_, head.adapt(X).coef_, rtol=1e-9)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((900,), "X has 1 dimensions; pass rows by features"),
        ((900, np.nan), r"unknown number of features; call X\.compute_chunk_sizes"),
    ],
)
def test_a_dask_array_that_is_no_table_is_refused(shape, message):
    X = da.zeros((900, 2)[: len(shape)])
    if len(shape) == 2:
        X = X[:, da.from_array(np.array([True, False]))]
    with pytest.raises(InputError, match=message):
        skdare.ERMClassifier().fit(X, np.arange(900) % 2)


# -- Memory maps -------------------------------------------------------------------------------


def test_a_view_of_a_memory_map_is_known_by_its_file_and_offset(tmp_path):
    X, _, _ = problem("ERMClassifier")
    rows = clusters._mapped_rows(mapped(tmp_path, X))
    again = pickle.loads(pickle.dumps(rows.read))
    np.testing.assert_array_equal(again(slice(3, 9)), X[3:9])


def test_only_whole_rows_of_numbers_in_a_file_are_mapped(tmp_path):
    X, _, _ = problem("ERMClassifier")
    rows = mapped(tmp_path, X)
    assert clusters.is_mapped(rows)
    assert clusters.is_mapped(rows[5:90])
    for other in (X, rows[:, 1:], rows[::2], rows[0], rows[:0], rows.T):
        assert not clusters.is_mapped(other)


@pytest.mark.slow
def test_dask_is_imported_only_when_it_is_used(tmp_path):
    X, _, _ = problem("ERMClassifier")
    np.save(tmp_path / "X.npy", X)
    code = f"""
import sys
import numpy as np
import skdare
X = np.load({str(tmp_path / "X.npy")!r}, mmap_mode="r")
skdare.ERMClassifier().fit(X, (X[:, 0] > 0).astype(int))
assert not {{"dask", "distributed"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# -- Faults ------------------------------------------------------------------------------------


def test_an_interruption_leaves_nothing_behind(tmp_path, client, monkeypatch):
    X, y, domains = problem("ERMClassifier")
    head = fitted("DAREClassifier", X, y, domains)
    before = head.coef_.copy()
    results = clusters.ClusterRows._results
    count = []

    def interrupted(self, tasks):
        count.append(1)
        if len(count) == 2:
            raise KeyboardInterrupt
        return results(self, tasks)

    monkeypatch.setattr(clusters.ClusterRows, "_results", interrupted)
    with pytest.raises(KeyboardInterrupt):
        head.fit(mapped(tmp_path, X), y, domains=domains)
    np.testing.assert_array_equal(head.coef_, before)
    del interrupted
    assert held_by(client) == []


def test_an_error_of_a_worker_is_told_as_it_is_here(tmp_path, client):
    X, y, domains = problem("ERMClassifier")
    rows = mapped(tmp_path, X)
    (tmp_path / "X.npy").unlink()
    head = skdare.DAREClassifier()
    with pytest.raises(FileNotFoundError, match=r"X\.npy"):
        head.fit(rows, y, domains=domains)
    assert not hasattr(head, "state_")
    assert held_by(client) == []


@pytest.mark.slow
def test_a_cluster_without_workers_says_how_to_start_one(tmp_path, monkeypatch):
    X, y, domains = problem("ERMClassifier")
    monkeypatch.setattr(clusters, "WORKER_WAIT", 0.5)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, **QUIET) as made,
        distributed.Client(made),
        pytest.raises(RuntimeError, match=r"no worker for .* seconds; start one with `dask worker"),
    ):
        fitted("ERMClassifier", mapped(tmp_path, X), y, domains)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@ways
def test_a_killed_worker_changes_no_bit(tmp_path, way):
    X, y, domains = problem("DAREClassifier")
    want = alone("DAREClassifier", mapped(tmp_path, X), y, domains)
    with (
        distributed.LocalCluster(n_workers=2, processes=True, **QUIET) as made,
        distributed.Client(made) as client,
    ):
        rows = WAYS[way](tmp_path, X)
        pid = next(iter(client.run(os.getpid).values()))
        timer = threading.Timer(0.3, lambda: os.kill(pid, signal.SIGKILL))
        timer.start()
        for _ in range(6):  # until and beyond the kill
            assert_same_bits(fitted("DAREClassifier", rows, y, domains), want)
        timer.join()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_lost_scheduler_says_what_to_do(tmp_path, monkeypatch):
    X, y, domains = problem("ERMClassifier")
    results = clusters.ClusterRows._results
    count = []
    made = distributed.LocalCluster(n_workers=1, processes=False, **QUIET)

    def lost(self, tasks):
        count.append(1)
        if len(count) == 3:
            made.close()
        return results(self, tasks)

    monkeypatch.setattr(clusters.ClusterRows, "_results", lost)
    with (
        distributed.Client(made),
        pytest.raises(RuntimeError, match=r"the scheduler is gone; .* fit again"),
    ):
        fitted("ERMClassifier", mapped(tmp_path, X), y, domains)
