"""Rows that are never all in memory give the heads that rows in memory give."""

from __future__ import annotations

import errno
import os
import pickle

import numpy as np
import pytest

import skdare
from interrupts import ended
from skdare.datasets import (
    ChunkedRows,
    DomainData,
    StoreWriter,
    append_rows,
    make_latent_domains,
    open_table,
    write_store,
)
from skdare.fitting.domain_fit import domain_fit_of

HEADS = {
    "classification": (
        "ERMClassifier",
        "ReweightedClassifier",
        "GroupDROClassifier",
        "IRMClassifier",
        "DAREClassifier",
    ),
    "regression": (
        "ERMRegressor",
        "GroupDRORegressor",
        "AnchorRegressor",
        "DARERegressor",
    ),
}
EVERY = [(task, name) for task, names in HEADS.items() for name in names]


def problem(task: str, *, sorted_rows: bool = False, dtype=np.float32) -> DomainData:
    data = make_latent_domains(3, 700, 6, task=task, random_state=0)
    order = np.arange(len(data.y))
    if not sorted_rows:
        order = np.random.default_rng(0).permutation(len(order))
    # Exact in float16, so that every way of keeping them keeps the same numbers.
    X = data.X[order].astype(np.float16).astype(dtype)
    return DomainData(X, data.y[order], data.domains[order])


def in_shards(path, data: DomainData, dtype: str = "float32", rows: int = 400):
    with StoreWriter(path, features=data.X.shape[1], dtype=dtype, rows_per_shard=rows) as writer:
        writer.append(data.X, data.y, data.domains)
    return open_table(path)


def chunked(data: DomainData, rows: int = 130):
    made = []

    def chunks():
        made.append(1)
        return (data.X[i : i + rows] for i in range(0, len(data.X), rows))

    return ChunkedRows(chunks, *data.X.shape, data.X.dtype), made


def fit(name: str, X, data: DomainData):
    return getattr(skdare, name)().fit(X, data.y, domains=data.domains)


def mapped(tmp_path, data: DomainData):
    np.save(tmp_path / "X.npy", data.X)
    return np.load(tmp_path / "X.npy", mmap_mode="r")


WAYS = {
    "store": lambda path, data: in_shards(path / "store", data).X,
    "float16 store": lambda path, data: in_shards(path / "store", data, "float16").X,
    "memory map": mapped,
    "chunks": lambda path, data: chunked(data)[0],
}


@pytest.mark.parametrize("sorted_rows", [True, False])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("task", "name"), EVERY)
@pytest.mark.filterwarnings("ignore:.*IRM")
def test_a_head_does_not_depend_on_where_its_rows_lie(tmp_path, task, name, way, sorted_rows):
    data = problem(task, sorted_rows=sorted_rows)
    want, found = fit(name, data.X, data), fit(name, WAYS[way](tmp_path, data), data)
    np.testing.assert_array_equal(found.coef_, want.coef_)
    np.testing.assert_array_equal(found.intercept_, want.intercept_)


def test_codes_are_decoded_chunk_by_chunk(tmp_path):
    data = problem("classification")
    table = in_shards(tmp_path / "store", data, "uint8")
    X = np.concatenate([table.X[i : i + 100] for i in range(0, len(data.y), 100)])
    assert np.max(np.abs(X - data.X)) < np.ptp(data.X, axis=0).max() / 500
    rows = np.array([0, 3, 399, 400, 401, 1999])
    np.testing.assert_array_equal(table.X[rows], X[rows])
    want, found = fit("DAREClassifier", X, data), fit("DAREClassifier", table.X, data)
    np.testing.assert_array_equal(found.coef_, want.coef_)


@pytest.mark.parametrize("way", ["store", "chunks"])
def test_rows_that_lie_elsewhere_are_predicted_and_adapted_to(tmp_path, way):
    data = problem("classification")
    head, X = fit("DAREClassifier", data.X, data), WAYS[way](tmp_path, data)
    np.testing.assert_array_equal(head.predict_proba(X), head.predict_proba(data.X))
    np.testing.assert_array_equal(head.adapt(X).coef_, head.adapt(data.X).coef_)
    few = data.X[:4]
    assert head.adapt(ChunkedRows(lambda: [few], 4, 6, few.dtype)).coef_.shape == (1, 6)


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
def test_any_rows_of_a_store_are_those_of_the_array(tmp_path, dtype):
    data = problem("classification")
    rows = in_shards(tmp_path / "store", data, dtype).X
    whole = np.concatenate([rows[i : i + 1] for i in range(len(rows))])
    for part in (slice(0, 0), slice(0, 2100), slice(399, 401), slice(400, 800), slice(2099, 2100)):
        np.testing.assert_array_equal(rows[part], whole[part])
    for numbers in (
        [],
        [0],
        [399, 400],
        [5, 700, 1200, 2099],
        [2099, 3, 700, 3],
        range(0, 2100, 7),
    ):
        index = np.array(list(numbers), dtype=int)
        np.testing.assert_array_equal(rows[index], whole[index])
        chunks = ChunkedRows(lambda: np.array_split(whole, 13), *whole.shape, whole.dtype)
        np.testing.assert_array_equal(chunks[index], whole[index])
    again = pickle.loads(pickle.dumps(rows))
    np.testing.assert_array_equal(again[300:500], whole[300:500])
    assert len(pickle.dumps(rows)) < 20_000


@pytest.mark.parametrize("way", ["store", "chunks"])
def test_rows_that_lie_elsewhere_are_rehearsed_and_diagnosed(tmp_path, way):
    data = problem("classification")
    found = []
    for X in (data.X, WAYS[way](tmp_path, data)):
        head = fit("DAREClassifier", X, data).rehearse(X, data.y, domains=data.domains)
        found.append((head.rehearsal_, head.diagnose(X).to_dict()))
    assert found[0] == found[1]


def test_a_pass_over_sorted_rows_reads_every_chunk_once():
    data = problem("classification", sorted_rows=True)
    X, made = chunked(data)
    head = fit("DAREClassifier", X, data)
    passes = len(made)
    X, made = chunked(problem("classification"))
    fit("DAREClassifier", X, problem("classification"))
    # Value and gradient of one fit and of the one for adapt, moments, and a few sums.
    assert passes < 3 * (
        head.solution_.n_evaluations + domain_fit_of(head).adaptation.solution.n_iter
    )
    assert len(made) > 2 * passes


@pytest.mark.slow
def test_a_fit_needs_a_fraction_of_the_memory_of_its_rows(tmp_path):
    """240 MB of features, in a process that may have 150 MB beyond what imports take."""
    script = f"""
import resource
import numpy as np
from skdare import DAREClassifier
from skdare.datasets import StoreWriter, open_table
rng = np.random.default_rng(0)
path = {str(tmp_path / "store")!r}
with StoreWriter(path, features=300, dtype="float32", rows_per_shard=50_000) as writer:
    for domain in "abcd":
        for part in range(5):
            X = rng.normal(size=(10_000, 300)).astype(np.float32)
            y = (X[:, 0] + rng.logistic(size=10_000) > 0).astype(int)
            writer.append(X, y, np.full(10_000, domain))
used = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_DATA, (used + 150_000_000, resource.RLIM_INFINITY))
table = open_table(path)
try:
    np.asarray(table.X[0:200_000]) + 1
    raise SystemExit("the limit does not bind")
except MemoryError:
    pass
head = DAREClassifier().fit(table.X, table.y, domains=table.domains)
print(head.score(table.X, table.y))
"""
    run = ended(script)
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) > 0.6


# -- Bad input ------------------------------------------------------------------------------------


def test_chunks_that_end_early_or_have_another_width_are_told(tmp_path):
    data = problem("classification")
    short = ChunkedRows(lambda: [data.X[:100]], *data.X.shape)
    with pytest.raises(ValueError, match="end after 100 rows, and 2100 were announced"):
        fit("ERMClassifier", short, data)
    narrow = ChunkedRows(lambda: [data.X[:, :5]], *data.X.shape)
    with pytest.raises(ValueError, match=r"a chunk has shape \(2100, 5\), and 6 features"):
        fit("ERMClassifier", narrow, data)


def test_rows_that_are_not_finite_are_refused_wherever_they_lie(tmp_path):
    data = problem("classification")
    X = data.X.copy()
    X[1500, 2] = np.nan
    bad = ChunkedRows(lambda: np.array_split(X, 9), *X.shape)
    with pytest.raises(ValueError, match="contains NaN, first in feature 2"):
        fit("DAREClassifier", bad, data)


def test_labels_shorter_than_features_are_refused(tmp_path):
    data = problem("classification")
    table = in_shards(tmp_path / "store", data)
    with pytest.raises(ValueError, match="y has 2099 entries but X has 2100 rows"):
        skdare.DAREClassifier().fit(table.X, table.y[:-1], domains=table.domains)


def test_a_shard_that_is_not_there_is_named(tmp_path):
    write_store(tmp_path / "store", problem("classification"))
    next((tmp_path / "store").glob("features*.npy")).unlink()
    with pytest.raises((ValueError, OSError), match="features"):
        open_table(tmp_path / "store")


@pytest.mark.parametrize("dtype", ["float16", "float32", "uint8"])
def test_a_store_may_be_put_on_a_device(dtype, tmp_path):
    torch = pytest.importorskip("torch")
    data = make_latent_domains(random_state=0)
    write_store(tmp_path / "store", data, dtype=dtype, rows_per_shard=100)
    there, here = open_table(tmp_path / "store", device="cpu"), open_table(tmp_path / "store")
    assert isinstance(there.X, torch.Tensor)
    assert there.X.numpy().dtype == here.X.dtype
    np.testing.assert_array_equal(there.X.numpy(), here.X[0 : len(here.y)])
    ours = skdare.DAREClassifier().fit(there.X, there.y, domains=there.domains)
    theirs = skdare.DAREClassifier().fit(here.X, here.y, domains=here.domains)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-4)


@pytest.fixture(scope="module")
def latent_rows():
    """Domains of a small table, and its rows as float32."""
    data = make_latent_domains(random_state=0)
    return data, data.X.astype(np.float32)


@pytest.fixture(scope="module", params=["store", "chunks"])
def reader(request, latent_rows, tmp_path_factory):
    """The rows, read from a store or given in chunks."""
    data, X = latent_rows
    if request.param == "chunks":
        return ChunkedRows(lambda: np.array_split(X, 7), *X.shape, X.dtype)
    folder = tmp_path_factory.mktemp("rows") / "store"
    write_store(folder, data, dtype="float32", rows_per_shard=100)
    return open_table(folder).X


@pytest.mark.parametrize(
    "index",
    [
        slice(0, 100, 7), slice(50, 10, -3), slice(None), 5, -1, [3, 1, -2],
        np.array([], int), (slice(2, 9), ...), (np.arange(4), slice(None)),
    ],
    ids=str,
)  # fmt: skip
def test_rows_are_taken_as_from_an_array(reader, latent_rows, index):
    _, X = latent_rows
    np.testing.assert_array_equal(reader[index], X[index])


@pytest.mark.parametrize("form", [np.asarray, list])
def test_rows_are_taken_by_a_mask(reader, latent_rows, form):
    data, X = latent_rows
    mask = data.domains == 2
    assert mask.any()
    np.testing.assert_array_equal(reader[form(mask)], X[mask])


@pytest.mark.parametrize(
    "index_for",
    [
        lambda mask: [len(mask)],
        lambda mask: [-len(mask) - 1],
        lambda mask: mask[:-1],
        lambda mask: 1.5,
        lambda mask: "a",
        lambda mask: np.zeros((2, 2), int),
    ],
    ids=["after the last", "before the first", "short mask", "a fraction", "text", "a matrix"],
)
def test_rows_that_are_not_there_are_refused(reader, latent_rows, index_for):
    data, _ = latent_rows
    index = index_for(data.domains == 2)
    with pytest.raises(IndexError, match=r"slice, a mask|was asked for"):
        reader[index]


def test_rows_are_not_all_loaded_unasked(reader):
    with pytest.raises(TypeError, match=r"X\[:\] loads all"):
        np.asarray(reader)


def test_chunks_that_are_not_what_was_announced_are_refused():
    X = np.random.default_rng(0).normal(size=(60, 4))
    with pytest.raises(TypeError, match="gives the chunks anew"):
        ChunkedRows(iter([X]), 60, 4)
    with pytest.raises(ValueError, match="float64, and float32 was announced"):
        skdare.ERMClassifier().fit(ChunkedRows(lambda: [X], 60, 4), np.arange(60) % 2)


@pytest.mark.parametrize("bounds", [[], [50]], ids=["one chunk", "two chunks"])
@pytest.mark.parametrize(
    ("rows", "message"), [(50, "go on after the 50 rows"), (70, "end after 60 rows")]
)
def test_chunks_of_more_or_fewer_rows_than_announced_are_refused(rows, message, bounds):
    X = np.random.default_rng(0).normal(size=(60, 4))
    chunked = ChunkedRows(lambda: np.split(X, bounds), rows, 4, np.float64)
    with pytest.raises(ValueError, match=message):
        skdare.ERMClassifier().fit(chunked, np.arange(rows) % 2)


def test_a_shard_that_goes_missing_is_named(tmp_path):
    data = make_latent_domains(random_state=0)
    write_store(tmp_path / "store", data, rows_per_shard=100)
    table = open_table(tmp_path / "store")
    (tmp_path / "store" / "features-00003.npy").unlink()
    with pytest.raises(ValueError, match=r"features-00003\.npy is missing"):
        skdare.DAREClassifier().fit(table.X, table.y, domains=table.domains)


def test_a_full_disk_leaves_a_store_as_it_was(tmp_path, monkeypatch):
    data, folder = make_latent_domains(random_state=0), tmp_path / "store"
    write_store(folder, data, rows_per_shard=400)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def full(file):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"is unchanged; make room.*store"):
        append_rows(folder, data)
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
