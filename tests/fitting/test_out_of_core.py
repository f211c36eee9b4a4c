"""Rows that are never all in memory give the heads of rows that are."""

import numpy as np
import pytest

import skdare
from domain_problems import make_problem, problem_for
from interrupts import ended
from skdare.arrays import BlockReader, MappedFile, Rows
from skdare.errors import InputError

HEADS = {
    "DAREClassifier": {"adaptation": "centered"},
    "DARERegressor": {"mean_penalty": 1.0},
    "ERMClassifier": {},
    "AnchorRegressor": {},
}


class Counted:
    """Blocks of rows, and how often each was read."""

    def __init__(self, X, size=20):
        self.X = X
        self.ends = [*range(size, len(X), size), len(X)]
        self.read = []

    def __call__(self, number):
        self.read.append(number)
        return self.X[([0, *self.ends])[number] : self.ends[number]]

    @property
    def rows(self):
        return Rows(self.X.shape, self.X.dtype, BlockReader(self.ends, self))


def in_a_file(folder, X):
    np.save(folder / "X.npy", X)
    mapped = np.load(folder / "X.npy", mmap_mode="r")
    file = MappedFile(str(folder / "X.npy"), X.dtype, mapped.offset, X.shape)
    return Rows(X.shape, X.dtype, file, is_portable=True)


WAYS = {"blocks": lambda _, X: Counted(X).rows, "a file": in_a_file}
ways = pytest.mark.parametrize("way", WAYS)


@ways
@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_a_head_does_not_depend_on_where_its_rows_are_stored(tmp_path, name, way, dtype):
    data = problem_for(name)
    X = data.X.astype(dtype)
    kind = getattr(skdare, name)
    want = data.fit(kind(**HEADS[name]), X)
    found = data.fit(kind(**HEADS[name]), WAYS[way](tmp_path, X))
    np.testing.assert_array_equal(found.coef_, want.coef_)
    rows = WAYS[way](tmp_path, X)
    np.testing.assert_array_equal(found.predict(rows), want.predict(X))
    if hasattr(found, "adapt"):
        np.testing.assert_array_equal(found.adapt(rows).coef_, want.adapt(X).coef_)


@ways
def test_rows_outside_memory_are_rehearsed_and_diagnosed(tmp_path, way):
    data = make_problem("classification")
    found = []
    for X in (data.X, WAYS[way](tmp_path, data.X)):
        head = data.fit(skdare.DAREClassifier(), X)
        rehearsal = head.rehearse(X, data.y, domains=data.domains)
        found.append((str(rehearsal), str(head.diagnose(X))))
    assert found[0] == found[1]


def test_a_pass_over_sorted_rows_reads_every_block_once():
    data = make_problem("classification")
    data = data.permuted(np.argsort(data.domains, kind="stable"))
    blocks = Counted(data.X)
    head = skdare.ReweightedClassifier(max_iter=5, tol=1e-12)
    with pytest.warns(match="max_iter"):
        data.fit(head, blocks.rows)
    passes = len(blocks.read) / len(blocks.ends)
    assert passes <= 2 * head.n_iter_ + 6  # of the solver, and for checks and moments
    shuffled = Counted(make_problem("classification").X)
    with pytest.warns(match="max_iter"):
        make_problem("classification").fit(
            skdare.ReweightedClassifier(max_iter=5, tol=1e-12), shuffled.rows
        )
    assert len(shuffled.read) > 1.5 * len(blocks.read)


@ways
def test_rows_that_are_not_finite_are_refused_wherever_they_are_stored(tmp_path, way):
    data = make_problem("classification")
    X = data.X.copy()
    X[100, 2] = np.nan
    with pytest.raises(InputError, match="contains NaN, first in feature 2"):
        data.fit(skdare.DAREClassifier(), WAYS[way](tmp_path, X))


@pytest.mark.slow
def test_a_fit_needs_a_fraction_of_the_memory_of_its_rows(tmp_path):
    """240 MB of features, in a process that may have 150 MB beyond what imports take."""
    script = f"""
import resource
import numpy as np
from skdare import DAREClassifier
path = {str(tmp_path / "X.npy")!r}
X = np.lib.format.open_memmap(path, "w+", np.float32, (200_000, 300))
rng = np.random.default_rng(0)
y = np.empty(200_000, int)
for start in range(0, 200_000, 10_000):
    part = rng.normal(size=(10_000, 300)).astype(np.float32)
    X[start : start + 10_000] = part
    y[start : start + 10_000] = part[:, 0] + rng.logistic(size=10_000) > 0
del X
X = np.load(path, mmap_mode="r")
used = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_DATA, (used + 150_000_000, resource.RLIM_INFINITY))
try:
    np.asarray(X) + 1
    raise SystemExit("the limit does not bind")
except MemoryError:
    pass
head = DAREClassifier().fit(X, y, domains=np.repeat(list("abcd"), 50_000))
print(head.score(X, y))
"""
    run = ended(script)
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) > 0.6
