"""Rows wherever they are stored, and sums over them in one fixed order."""

import pickle
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from scipy import sparse

from array_libraries import held_in, libraries, rows_at_a_time
from skdare.arrays import (
    BlockReader,
    MappedFile,
    Part,
    Rows,
    Tree,
    chunks,
    group_bounds,
    length,
    map_reduce,
    scores,
    take,
    to_numpy,
    trees_of_groups,
)

N = 53
INDEX = {
    "a slice": slice(5, 41),
    "numbers": np.array([0, 3, 4, 20, 21, 52]),
    "all": slice(0, N),
    "none": slice(7, 7),
}
indexed = pytest.mark.parametrize("index", INDEX.values(), ids=INDEX)


def made(dtype=np.float64):
    return np.random.default_rng(0).integers(-9, 9, (N, 4)).astype(dtype)


def in_blocks(X):
    ends = [10, 11, 30, len(X)]
    starts = [0, *ends]
    return Rows(X.shape, X.dtype, BlockReader(ends, lambda b: X[starts[b] : ends[b]]))


def in_a_file(X, folder):
    (folder / "X.bin").write_bytes(b"header" + np.ascontiguousarray(X).tobytes())
    file = MappedFile(str(folder / "X.bin"), X.dtype, len(b"header"), X.shape)
    return Rows(X.shape, X.dtype, file, is_portable=True)


STORAGES = {
    "memory": lambda X, _: X,
    "blocks": lambda X, _: in_blocks(X),
    "a file": in_a_file,
    "csr": lambda X, _: sparse.csr_array(X),
    "torch": lambda X, _: held_in("torch", X),
    "array_api_strict": lambda X, _: held_in("array_api_strict", X),
}
stored = pytest.mark.parametrize("storage", STORAGES)


def as_dense(rows):
    return rows.toarray() if sparse.issparse(rows) else to_numpy(rows)


@stored
@indexed
def test_rows_are_taken_by_number_wherever_they_are_stored(tmp_path, storage, index):
    X = made()
    found = take(STORAGES[storage](X, tmp_path), index)
    np.testing.assert_array_equal(as_dense(found), X[index])


@stored
@indexed
@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_chunks_are_all_rows_in_order(monkeypatch, tmp_path, storage, index, rows):
    X = made()
    rows_at_a_time(monkeypatch, rows)
    held = STORAGES[storage](X, tmp_path)
    parts = list(chunks(held, index))
    places = [place for place, _ in parts]
    assert [n for place in places for n in range(place.start, place.stop)] == [
        *range(length(index))
    ]
    assert all(part.shape[0] <= rows for _, part in parts)
    whole = [as_dense(part) for _, part in parts]
    np.testing.assert_array_equal(np.concatenate([X[:0], *whole]), X[index])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("storage", ["memory", "blocks", "a file"])
def test_products_of_half_precision_are_in_single(tmp_path, storage, dtype):
    X = made(dtype)
    rows = take(STORAGES[storage](X, tmp_path), slice(0, N))
    assert rows.dtype == ("float64" if dtype == "float64" else "float32")
    np.testing.assert_array_equal(rows, X)


def test_a_chunk_of_contiguous_rows_in_memory_is_a_view():
    X = made()
    for _, rows in chunks(X, slice(3, 40)):
        assert np.shares_memory(rows, X)


# -- Rows outside memory -----------------------------------------------------------------------

ANY_INDEX = [
    7,
    -1,
    slice(None),
    slice(40, 12, -3),
    slice(2, 30, 5),
    np.array([52, 0, 7, 7]),
    [4, -2],
    np.arange(N) % 3 == 0,
    np.array([], dtype=int),
]


@pytest.mark.parametrize("index", ANY_INDEX, ids=str)
@pytest.mark.parametrize("storage", ["blocks", "a file"])
def test_rows_outside_memory_are_indexed_as_an_array_is(tmp_path, storage, index):
    X = made()
    rows = STORAGES[storage](X, tmp_path)
    np.testing.assert_array_equal(rows[index], X[index])
    assert (len(rows), rows.shape, rows.ndim) == (N, X.shape, 2)


def test_rows_outside_memory_are_never_loaded_by_accident():
    with pytest.raises(TypeError, match=r"X\[:\] loads all of them"):
        np.asarray(in_blocks(made()))


def test_a_block_is_read_once_for_neighbouring_rows_and_is_not_sent_to_workers():
    read = []

    def block(number):
        read.append(number)
        return np.full((10, 2), number)

    reader = BlockReader([10, 20, 30], block)
    for start in range(0, 30, 5):
        reader(slice(start, start + 5))
    assert read == [0, 1, 2]
    assert reader.__getstate__()["_rows"] is None


def test_rows_of_a_file_can_be_sent_to_other_processes(tmp_path):
    X = made()
    again = pickle.loads(pickle.dumps(in_a_file(X, tmp_path)))
    np.testing.assert_array_equal(again[5:9], X[5:9])


# -- Sums --------------------------------------------------------------------------------------


class Written(str):
    """A sum that shows in which order it was added up."""

    def __add__(self, other):
        return Written(f"({self!s}+{other!s})")


def leaf(number):
    return Written(number) if number % 4 != 2 else None  # some groups have no row of a part


@pytest.mark.parametrize("groups", [1, 2, 5, 8, 13])
def test_a_sum_does_not_depend_on_who_has_which_groups(groups):
    whole = Tree()
    for number in range(groups):
        whole.add((0, number, leaf(number)))
    draw = Random(groups)
    for cuts in range(groups):
        bounds = [0, *sorted(draw.sample(range(1, groups), cuts)), groups]
        total = Tree()
        for start, stop in pairwise(bounds):
            share = Tree()
            for number in range(start, stop):
                share.add((0, number, leaf(number)))
            for branch in share.branches:
                total.add(branch)
        assert total.total == whole.total


def column_sums(part, power):
    total = 0.0
    for place, rows in chunks(part.X, part.index):
        total = total + part.columns[0][place] @ rows**power
    return total


@pytest.fixture
def small_groups(monkeypatch):
    monkeypatch.setattr("skdare.arrays.rows._GROUP_BYTES", 200)
    rows_at_a_time(monkeypatch, 3)


@pytest.mark.parametrize("storage", ["memory", "blocks", "a file"])
def test_a_sum_over_rows_is_that_of_each_part_with_its_argument(small_groups, tmp_path, storage):
    X = made()
    weight = np.random.default_rng(1).random(N)
    indices = [slice(0, 20), np.arange(20, N, 2), np.array([21])]
    rows = STORAGES[storage](X, tmp_path)
    assert len(group_bounds(rows)) > 4
    parts = [Part(rows, index, (weight[index],)) for index in indices]
    found = map_reduce(column_sums, parts, [1, 2, 1])
    for total, index, power in zip(found, indices, [1, 2, 1], strict=True):
        np.testing.assert_allclose(total, weight[index] @ X[index] ** power, rtol=1e-12)


def test_groups_that_others_sum_give_the_same_bits(small_groups):
    X = made() * np.pi
    bounds = group_bounds(X)
    part = Part(X, slice(0, N), (np.ones(N),))
    [want] = map_reduce(column_sums, [part], [1])
    total = Tree()
    for groups in (slice(0, 3), slice(3, len(bounds) - 1)):
        [share] = trees_of_groups(column_sums, [part], [1], bounds, groups)
        for branch in share.branches:
            total.add(branch)
    np.testing.assert_array_equal(total.total, want)


@pytest.mark.parametrize("n", [1, 100, 10_000, 123_457])
@pytest.mark.parametrize("group_bytes", [1 << 10, 1 << 16, 1 << 26])
def test_groups_are_neighbouring_rows_that_depend_on_the_size_alone(monkeypatch, n, group_bytes):
    monkeypatch.setattr("skdare.arrays.rows._GROUP_BYTES", group_bytes)
    kinds = [np.zeros((n, 3), np.float32), Rows((n, 3), np.dtype(np.float32), lambda index: None)]
    bounds, same = map(group_bounds, kinds)
    assert bounds == same
    assert (bounds[0], bounds[-1]) == (0, n)
    assert bounds == sorted(set(bounds))
    assert len(bounds) <= 1025


@indexed
@pytest.mark.parametrize(("start", "stop"), [(0, N), (3, 22), (22, 23), (50, N)])
def test_the_rows_of_a_part_between_two_numbers(index, start, stop):
    X = made()
    everyone = np.arange(N)[index]
    part = Part(X, index, (everyone * 10,)).between(start, stop)
    wanted = everyone[(everyone >= start) & (everyone < stop)]
    if not len(wanted):
        assert part is None
        return
    np.testing.assert_array_equal(np.arange(N)[part.index], wanted)
    np.testing.assert_array_equal(part.columns[0], wanted * 10)


# -- Scores ------------------------------------------------------------------------------------


@stored
@pytest.mark.parametrize("rows", [7, 1000])
def test_scores_are_products_with_the_weights_in_float64(monkeypatch, tmp_path, storage, rows):
    X = made()
    V, b = np.random.default_rng(1).normal(size=(4, 3)), np.array([0.1, -2.0, 3.0])
    rows_at_a_time(monkeypatch, rows)
    found = scores(STORAGES[storage](X, tmp_path), V, b)
    assert "float64" in str(found.dtype)
    np.testing.assert_allclose(to_numpy(found), X @ V + b, rtol=1e-12)


@libraries
def test_scores_of_float32_rows_keep_their_digits(library):
    X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    V, b = np.full((4, 1), 1e-3), np.array([1e6])
    found = to_numpy(scores(held_in(library, X), V, b))
    np.testing.assert_allclose(found - 1e6, X.astype(float) @ V, atol=1e-8)
