"""Workers of a cluster killed at random moments of a fit: the head has the same bits."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

distributed = pytest.importorskip("distributed", reason="Dask is not installed")
pytest.importorskip("dask.array", reason="Dask is not installed")

from skdare.engines import _cluster_rows  # noqa: E402
from small_clusters import WAYS, fit, held_by, problem, processes  # noqa: E402

# Not beside other tests of clusters: both look for free ports.
pytestmark = pytest.mark.xdist_group("processes")
HEADS = ["DAREClassifier", "GroupDRORegressor"]


@pytest.fixture(autouse=True)
def small_groups(monkeypatch):
    """Cut the few rows of a test into several groups."""
    monkeypatch.setattr(_cluster_rows, "GROUP_BYTES", 12_000)


@pytest.fixture(scope="module")
def mortal(tmp_path_factory):
    """Two workers that come back."""
    with processes(tmp_path_factory.mktemp("mortal"), "--nanny", "--nanny") as (client, _):
        yield client


def kill_soon(pids: list[int], seconds: float) -> threading.Timer:
    def kill() -> None:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    timer = threading.Timer(seconds, kill)
    timer.start()
    return timer


@pytest.mark.parametrize("name", HEADS)
def test_a_worker_killed_at_any_moment_does_not_change_the_head(hunt, mortal, name):
    data = problem("regression" if "Regressor" in name else "classification")
    with mortal.as_current():
        ways = ["in memory", *WAYS]
        for case in hunt(rate=0.7):
            with case:
                way = ways[case.rng.integers(len(ways))]
                X = data.X if way == "in memory" else WAYS[way](case.folder, data)
                mortal.wait_for_workers(2, timeout=600)
                begin = time.monotonic()
                want = fit(name, data, X, engine="dask")
                took = time.monotonic() - begin
                pids = list(mortal.run(os.getpid).values())
                victims = [pids[case.rng.integers(len(pids))]]
                timer = kill_soon(victims, float(took * case.rng.random()))
                try:
                    found = fit(name, data, X, engine="dask")
                finally:
                    timer.cancel()
                    timer.join()
                np.testing.assert_array_equal(found.coef_, want.coef_)
                np.testing.assert_array_equal(found.intercept_, want.intercept_)
                assert held_by(mortal) == []
