"""Workers of a Dask cluster give the heads that this process gives."""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
import time
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from sklearn.base import clone

import skdare
from interrupts import PATIENCE
from skdare.datasets import DomainData
from skdare.engines import DaskEngine, _cluster, _cluster_rows, _placement, _route
from skdare.engines._tree import branches, root, total
from skdare.heads._estimator import fit_sharing

distributed = pytest.importorskip("distributed", reason="Dask is not installed")
da = pytest.importorskip("dask.array", reason="Dask is not installed")

from small_clusters import WAYS, fit, held_by, in_store, mapped, problem, processes  # noqa: E402

# All in one process where tests run side by side: two clusters would only wait for each other.
pytestmark = [pytest.mark.xdist_group("processes"), pytest.mark.filterwarnings("ignore:.*IRM")]

EVERY = [
    ("regression" if "Regressor" in name else "classification", name)
    for name in skdare.__all__
    if re.search(r"(Classifier|Regressor)(CV)?$", name)
]


@pytest.fixture(autouse=True, scope="module")
def small_groups():
    """Cut the few rows of a test into several groups."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_cluster_rows, "GROUP_BYTES", 12_000)
        yield


@pytest.fixture(scope="module")
def cluster():
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with distributed.LocalCluster(n_workers=2, **options) as made:
        yield made


@pytest.fixture(scope="module")
def connection(cluster):
    with distributed.Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture
def client(connection):
    """In scope for one test."""
    with connection.as_current():
        yield connection


def weights(data: DomainData) -> np.ndarray:
    drawn = np.random.default_rng(1).integers(0, 4, size=len(data.y))
    return drawn.astype(float)


def assert_same(found, want, rtol=1e-10):
    for name in ("coef_", "intercept_"):
        a, b = np.atleast_1d(getattr(found, name)), np.atleast_1d(getattr(want, name))
        assert np.max(np.abs(a - b)) <= rtol * np.max(np.abs(b)), name


@pytest.fixture
def passes(monkeypatch):
    """What is called before the results of each pass are waited for, and how many there were."""

    class Passes(list):
        before = staticmethod(lambda number: None)

    seen, results = Passes(), _cluster.Cluster.results

    def counted(self, futures, places):
        seen.append(len(futures))
        seen.before(len(seen))
        return results(self, futures, places)

    monkeypatch.setattr(_cluster.Cluster, "results", counted)
    return seen


# -- The same head --------------------------------------------------------------------------------


@pytest.mark.parametrize(("task", "name"), EVERY)
def test_workers_give_the_head_of_this_process(client, passes, task, name):
    data = problem(task)
    want = fit(name, data, sample_weight=weights(data), engine="local")
    assert not passes
    assert_same(fit(name, data, sample_weight=weights(data), engine="dask"), want)
    assert passes[-1] == 2, "one task for each worker"
    assert held_by(client) == []


def test_trust_region_steps_are_the_same(client):
    data = problem()
    want = fit("ERMClassifier", data, solver="trust-ncg", engine="local")
    assert_same(fit("ERMClassifier", data, solver="trust-ncg", engine="dask"), want)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["DAREClassifier", "ERMClassifier"])
def test_rows_are_visited_wherever_they_lie(tmp_path, client, passes, name, way):
    data = problem()
    X = WAYS[way](tmp_path, data)
    rows = X if way in ("store", "float16 store", "codes") else None
    want = fit(name, data, rows, engine="local")
    tight = 1e-4 if "16" in way or way == "codes" else 1e-10  # those are float32 products
    assert_same(fit(name, data, X, engine="dask"), want, rtol=tight)
    assert passes
    assert held_by(client) == []


@pytest.fixture(scope="module")
def heads_by_workers(tmp_path_factory, cluster, connection, small_groups):
    """Heads that one, two and three workers give, from rows in memory and from float32 rows."""
    data, narrow = problem(), problem(dtype=np.float32)
    rows = mapped(tmp_path_factory.mktemp("narrow"), narrow)
    heads: dict[int, dict] = {}
    for workers in (3, 1, 2):
        cluster.scale(workers)
        end = time.monotonic() + PATIENCE
        while len(connection.nthreads()) != workers:
            assert time.monotonic() < end, "the cluster does not scale"
            time.sleep(0.02)
        with connection.as_current():
            heads[workers] = {
                "in memory": fit("DAREClassifier", data, engine="dask"),
                "float32 on disk": fit("DAREClassifier", narrow, rows),
            }
    return heads


@pytest.mark.slow
@pytest.mark.parametrize("rows", ["in memory", "float32 on disk"])
@pytest.mark.parametrize("workers", [1, 3])
def test_the_head_does_not_depend_on_the_number_of_workers(heads_by_workers, workers, rows):
    head, want = heads_by_workers[workers][rows], heads_by_workers[2][rows]
    np.testing.assert_array_equal(head.coef_, want.coef_)
    np.testing.assert_array_equal(head.moments_[0].scatter, want.moments_[0].scatter)


def test_a_sum_over_the_tree_does_not_depend_on_who_has_which_groups():
    def leaf(node):
        return {0: f"{node[1]}"} if node[0] == 0 and node[1] < 13 else None

    class Sum(str):
        def __add__(self, other):
            return Sum(f"({self}+{other})")

    def known(bounds):
        made = {}
        for start, stop in pairwise(bounds):
            for node in branches(start, stop):
                made[node] = total(node, lambda n: {0: Sum(leaf(n)[0])} if leaf(n) else None)
        return made.get

    want, draw = total(root(13), known([0, 13])), Random(0)
    assert want[0].startswith("((((0+1)+(2+3))+((4+5)+(6+7)))+")
    for cuts in range(1, 12):
        bounds = [0, *sorted(draw.sample(range(1, 13), cuts)), 13]
        assert total(root(13), known(bounds)) == want


def test_large_weights_are_handed_over_once_a_pass(client, monkeypatch, passes):
    data = problem()
    want = fit("DAREClassifier", data, engine="dask")
    monkeypatch.setattr(_route, "_SMALL", 0)
    np.testing.assert_array_equal(fit("DAREClassifier", data, engine="dask").coef_, want.coef_)
    assert held_by(client) == []


@pytest.mark.slow
def test_a_rehearsal_runs_with_workers(client, passes):
    data, found = problem(), []
    for engine in ("local", "dask"):
        head = fit("DAREClassifier", data, engine=engine)
        head.rehearse(data.X, data.y, domains=data.domains)
        found.append(head.rehearsal_.domains)
    for here, there in zip(*found, strict=True):
        assert there.as_is == here.as_is
        assert there.adapted == here.adapted
        assert there.both_right == here.both_right
    assert held_by(client) == []


@pytest.mark.parametrize("way", ["store", "CSR", "dask.array"])
def test_workers_compute_with_tensors(tmp_path, client, way):
    pytest.importorskip("torch", reason="torch is not installed")
    data = problem()
    X, engine = WAYS[way](tmp_path, data), DaskEngine(device="cpu")
    if way == "CSR":
        with pytest.raises(ValueError, match="keeps dense rows"):
            fit("DAREClassifier", data, X, engine=engine)
        return
    assert_same(fit("DAREClassifier", data, X, engine=engine), fit("DAREClassifier", data))


# -- dask.array -----------------------------------------------------------------------------------


def blocks(data: DomainData) -> dict:
    column = {"chunks": 200}
    return {
        "X": da.from_array(data.X, chunks=(130, 4)),
        "y": da.from_array(data.y, **column),
        "domains": da.from_array(data.domains, **column),
        "sample_weight": da.from_array(weights(data), **column),
    }


def test_every_argument_may_be_a_dask_array(client, passes):
    data = problem()
    want = fit("DAREClassifier", data, sample_weight=weights(data))
    found = skdare.DAREClassifier().fit(**blocks(data))
    assert_same(found, want)
    assert passes[-1] == 7, "one task for each block of rows"
    assert held_by(client) == []


def test_blocks_that_a_caller_keeps_stay(client):
    data = problem()
    X = da.from_array(data.X, chunks=(130, 6)).persist()
    fit("ERMClassifier", data, X)
    assert len(held_by(client, 7)) == 7
    np.testing.assert_array_equal(X.compute(), data.X)
    del X
    assert held_by(client) == []


def test_a_dask_array_needs_no_client(passes):
    data = problem()
    X = blocks(data)["X"]
    want, found = fit("DAREClassifier", data), skdare.DAREClassifier().fit(**blocks(data))
    assert not passes
    assert_same(found, fit("DAREClassifier", data, sample_weight=weights(data)))
    np.testing.assert_array_equal(want.predict_proba(X), want.predict_proba(data.X))
    np.testing.assert_array_equal(want.decision_function(X), want.decision_function(data.X))
    np.testing.assert_array_equal(want.adapt(X).coef_, want.adapt(data.X).coef_)
    numbers = np.array([899, 3, 130, 129, 3])
    np.testing.assert_array_equal(_placement.as_rows(X)[numbers], data.X[numbers])


def test_blocks_of_unknown_size_are_measured(client):
    data = problem()
    X, y = blocks(data)["X"], blocks(data)["y"]
    kept = X[y == 1]
    some = data.y == 1
    rows = DomainData(data.X[some], data.domains[some] % 2, data.domains[some])
    want = fit("ERMClassifier", rows)
    assert_same(fit("ERMClassifier", rows, kept), want)


# -- The choice of an engine ----------------------------------------------------------------------


def test_auto_takes_a_client_for_rows_on_disk_and_only_for_those(tmp_path, client, passes):
    data = problem()
    disk, store = mapped(tmp_path, data), WAYS["store"](tmp_path, data)
    fit("ERMClassifier", data)
    for X in (disk, store):
        fit("ERMClassifier", data, X, engine="local")
    assert not passes
    for X in (disk, store):
        fit("ERMClassifier", data, X)
        assert passes
        passes.clear()


def test_a_client_may_be_given(connection, passes):
    data, engine = problem(), DaskEngine(connection)
    fitted = fit("ERMClassifier", data, engine=engine)
    assert passes
    assert clone(fitted).engine is engine
    again = pickle.loads(pickle.dumps(fitted))
    assert again.engine.client is None
    np.testing.assert_array_equal(again.predict(data.X), fitted.predict(data.X))


def test_dask_without_a_client_says_how_to_start_one():
    with pytest.raises(RuntimeError, match=r"needs a client in scope; start one with client = "):
        fit("ERMClassifier", problem(), engine="dask")


def test_dask_that_is_not_installed_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install 'skdare\[dask\]'"):
        fit("ERMClassifier", problem(), engine="dask")


def test_other_engines_and_arrays_are_refused(client):
    with pytest.raises(ValueError, match="engine is 'spark'; use one of 'auto', 'local', 'dask'"):
        fit("ERMClassifier", problem(), engine="spark")
    with pytest.raises(TypeError, match=r"client is a str; pass a distributed\.Client"):
        fit("ERMClassifier", problem(), engine=DaskEngine("tcp://here"))
    xp = pytest.importorskip("array_api_strict")
    with pytest.raises(TypeError, match="workers are handed NumPy arrays"):
        fit("ERMClassifier", problem(), xp.asarray(problem().X), engine="dask")


def test_a_fit_inside_a_task_stays_there(tmp_path, client):
    data = problem()
    X = mapped(tmp_path, data)
    want = fit("ERMClassifier", data, X, engine="local")
    found = client.submit(fit, "ERMClassifier", data, X, pure=False).result()
    np.testing.assert_array_equal(found.coef_, want.coef_)
    refused = client.submit(fit, "ERMClassifier", data, engine="dask", pure=False)
    with pytest.raises(RuntimeError, match="inside a task"):
        refused.result()
    refused.release()


def test_dask_is_imported_only_when_it_is_used(tmp_path):
    np.save(tmp_path / "X.npy", problem().X)
    code = f"""
import sys
import numpy as np
import skdare
X = np.load({str(tmp_path / "X.npy")!r}, mmap_mode="r")
skdare.ERMClassifier().fit(X, (X[:, 0] > 0).astype(int))
assert not {{"dask", "distributed"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# -- Errors and interruptions ---------------------------------------------------------------------


def test_rows_that_are_not_finite_are_found_where_they_lie(tmp_path, client, passes):
    data = problem()
    data.X[700, 2] = np.nan
    with pytest.raises(ValueError, match="contains NaN, first in feature"):
        fit("DAREClassifier", data, mapped(tmp_path, data))
    assert len(passes) == 1
    assert held_by(client) == []


def test_a_missing_shard_is_told_as_it_is_here(tmp_path, client):
    data = problem()
    X = in_store(tmp_path / "store", data, "float64")
    last = sorted((tmp_path / "store").glob("features*.npy"))[-1]
    last.unlink()
    errors = []
    for engine in ("local", "dask"):
        head = skdare.DAREClassifier(engine=engine)
        with pytest.raises(ValueError, match=last.name) as caught:
            head.fit(X, data.y, domains=data.domains)
        assert not hasattr(head, "coef_")
        errors.append(caught.value)
    assert type(errors[0]) is type(errors[1])
    assert str(errors[0]) == str(errors[1])
    assert "same path on every machine" in errors[1].__notes__[0]
    assert held_by(client) == []


@pytest.fixture
def interruptible():
    """Ctrl-C raises, even where this process was started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interruption_leaves_nothing_behind(client, passes, interruptible):
    data = problem()
    head = fit("DAREClassifier", data)
    before = head.coef_.copy()
    passes.before = lambda number: signal.raise_signal(signal.SIGINT) if number == 4 else None
    with pytest.raises(KeyboardInterrupt):
        head.set_params(engine="dask").fit(data.X, data.y, domains=data.domains)
    assert len(passes) == 4
    np.testing.assert_array_equal(head.coef_, before)
    assert held_by(client) == []


# -- Faults, with processes as a user starts them -------------------------------------------------


def kill_workers(client, how_many: int) -> None:
    pids = list(client.run(os.getpid).values())
    for pid in pids[:how_many]:
        os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def mortal(tmp_path_factory):
    """Two workers that come back, for tests that kill one."""
    with processes(tmp_path_factory.mktemp("mortal"), "--nanny", "--nanny") as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("way", ["in memory", "store", "dask.array"])
def test_a_worker_killed_in_a_fit_does_not_change_the_head(tmp_path, mortal, passes, way):
    data, (client, _) = problem(), mortal
    X = data.X if way == "in memory" else WAYS[way](tmp_path, data)
    with client.as_current():
        client.wait_for_workers(2, timeout=PATIENCE)
        want = fit("DAREClassifier", data, X, engine="dask")
        passes.clear()
        passes.before = lambda number: kill_workers(client, 1) if number == 5 else None
        found = fit("DAREClassifier", data, X, engine="dask")
        assert len(passes) > 5
        np.testing.assert_array_equal(found.coef_, want.coef_)
        np.testing.assert_array_equal(found.intercept_, want.intercept_)
        assert held_by(client) == []


@pytest.mark.slow
def test_one_worker_left_is_enough_and_none_is_told(tmp_path, monkeypatch, passes):
    monkeypatch.setattr(_cluster, "WORKER_WAIT", 1.0)
    data = problem()
    with processes(tmp_path, *["--no-nanny"] * 3) as (client, _):
        head = fit("DAREClassifier", data, engine="dask")
        before = head.coef_.copy()

        passes.clear()
        passes.before = lambda number: kill_workers(client, 2) if number == 5 else None
        np.testing.assert_array_equal(fit("DAREClassifier", data, engine="dask").coef_, before)

        passes.clear()
        passes.before = lambda number: kill_workers(client, 1) if number == 5 else None
        with pytest.raises(RuntimeError, match="has had no worker for 1 seconds; start one with"):
            head.fit(data.X, data.y, domains=data.domains)
        np.testing.assert_array_equal(head.coef_, before)
        assert held_by(client) == []


@pytest.mark.slow
def test_a_lost_scheduler_is_told_and_nothing_is_changed(mortal, monkeypatch, passes):
    """The last test that uses these processes."""
    monkeypatch.setattr(_cluster, "SCHEDULER_WAIT", 1.0)
    client, scheduler = mortal
    data = problem()
    X, y = data.X.copy(), data.y.copy()
    with client.as_current():
        head = fit("DAREClassifier", data, engine="dask")
        before = head.coef_.copy()
        passes.clear()
        passes.before = lambda number: scheduler.kill() if number == 5 else None
        with pytest.raises(RuntimeError, match=r"the scheduler at tcp://\S+ is gone; the head"):
            head.fit(data.X, data.y, domains=data.domains)
    np.testing.assert_array_equal(head.coef_, before)
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)


def test_fits_that_share_statistics_share_none_of_rows_that_are_gone(client):
    # Fewer rows than features in every domain: these are kept as rows.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 30)), rng.integers(0, 3, 60)
    domains, held = np.repeat(np.arange(3), 20), {}
    fit_sharing(skdare.ReweightedClassifier(engine="dask"), held, X, y, domains)
    ours = fit_sharing(skdare.DAREClassifier(engine="dask"), held, X, y, domains)
    here = fit_sharing(skdare.DAREClassifier(engine="local"), held, X, y, domains)
    alone = skdare.DAREClassifier(engine="local").fit(X, y, domains=domains)
    np.testing.assert_allclose(ours.coef_, alone.coef_, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(here.coef_, alone.coef_)


def test_threads_of_a_search_run_here_whatever_the_engine(client):
    data = problem()
    head = skdare.DAREClassifierCV(n_jobs=2, engine=DaskEngine(client))
    threads = head.fit(data.X, data.y, domains=data.domains)
    alone = skdare.DAREClassifierCV(engine="local").fit(data.X, data.y, domains=data.domains)
    assert threads.best_params_ == alone.best_params_
    np.testing.assert_array_equal(
        threads.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"]
    )
    assert_same(threads, alone, rtol=1e-6)


def test_rows_that_lie_with_workers_cannot_be_standardised_here(client):
    data = problem()
    head = skdare.DAREClassifierCV(standardize=True)
    with pytest.raises(ValueError, match="standardize is True, and the rows lie with workers"):
        head.fit(da.from_array(data.X, chunks=(50, -1)), data.y, domains=data.domains)
    held = head.set_params(engine=DaskEngine(client))
    here = skdare.DAREClassifierCV(standardize=True, engine="local")
    both = [one.fit(data.X, data.y, domains=data.domains) for one in (held, here)]
    assert_same(*both, rtol=1e-6)
