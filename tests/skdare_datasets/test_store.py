"""The feature store: rows come back, a killed run goes on, and what is damaged is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import small_tables
from command_line import run
from skdare.datasets import (
    DomainData,
    StoreWriter,
    append_rows,
    read,
    read_chunks,
    read_features,
    read_ids,
    store_info,
    verify,
    write,
    write_store,
)
from skdare.datasets._domain_data import fingerprint
from small_stores import CODED, LABELS, MADE, D, N, begin, feed, rows_of, table

DTYPES = ("float64", "float32", "float16", "uint8")


def joined(parts: list[DomainData]) -> DomainData:
    whole = {
        role: np.concatenate([getattr(part, role) for part in parts])
        for role in ("X", "y", "domains", "split")
    }
    return replace(parts[0], **whole)


def assert_same(back: DomainData, data: DomainData) -> None:
    for role in ("X", "y", "domains", "split"):
        np.testing.assert_array_equal(getattr(back, role), getattr(data, role))
        assert getattr(back, role).dtype.kind == getattr(data, role).dtype.kind
    assert (back.feature_names, back.made) == (data.feature_names, data.made)


def files(store: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in store.iterdir()}


def flip(path: Path) -> None:
    """Alter one bit of the last byte."""
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.fixture(autouse=True)
def hasty_disk(monkeypatch) -> None:
    """Nothing here can tell whether bytes reached the disk, and waiting for it takes long."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


# Rows come back


@pytest.mark.parametrize("rows_per_shard", [None, 5])
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("dtype", DTYPES[:3])
def test_what_is_written_is_read_back(dtype, labels, rows_per_shard, tmp_path):
    data = table(labels, dtype)
    write_store(tmp_path / "table", data, rows_per_shard=rows_per_shard)
    back = read(tmp_path / "table")
    assert_same(back, data)
    assert back.X.dtype == dtype
    assert fingerprint(back) == fingerprint(data)
    assert isinstance(back.X, np.memmap) == (rows_per_shard is None)


@pytest.mark.parametrize("labels", LABELS)
def test_rows_that_come_one_by_one_are_read_back(labels, tmp_path):
    data = replace(table(labels), feature_names=None)
    with begin(tmp_path / "table") as writer:
        feed(writer, data, step=1)
    assert_same(read(tmp_path / "table"), data)


@pytest.mark.parametrize("step", [2, 7, N])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_store_does_not_depend_on_how_rows_come(dtype, step, tmp_path):
    data = table(dtype="float64")
    data = replace(data, X=np.sin(data.X))
    for rows in (1, step):
        with begin(tmp_path / f"{rows}", dtype=dtype) as writer:
            feed(writer, data, step=rows)
    assert files(tmp_path / f"{step}") == files(tmp_path / "1")


@pytest.mark.parametrize("rows_per_shard", [None, 5])
def test_eight_bit_codes_are_off_by_at_most_half_a_step(rows_per_shard, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * [1e-3, 1.0, 1e4, 0.0] + [0.0, 5.0, -1e4, 3.0]
    data = replace(table(), X=X)
    write_store(tmp_path / "table", data, dtype="uint8", rows_per_shard=rows_per_shard)
    back = read(tmp_path / "table").X
    assert back.dtype == np.float32
    step = (X.max(axis=0) - X.min(axis=0)) / 255
    rounding = 4 * np.finfo(np.float32).eps * np.abs(X).max(axis=0)
    assert np.all(np.abs(back - X) <= step / 2 + rounding)
    assert np.abs(back - X)[:, :3].max() > 0


@pytest.mark.parametrize(
    ("dtype", "value", "message"),
    [
        ("float16", 65536.0, r"X has 65536\.0 in row 7, column 2, and float16 ends at 65504"),
        ("float16", -1e6, "float16 ends at 65504"),
        ("float32", 1e39, "float32 ends at"),
        ("uint8", np.nan, "NaN in row 7, column 2, and 8-bit codes have no place for it"),
        ("uint8", 3e38, "uint8 ends at"),
        ("float64", np.inf, "has infinity|has inf"),
    ],
)
def test_what_a_type_cannot_hold_is_refused_before_anything_is_written(
    dtype, value, message, tmp_path, visit_in_chunks_of
):
    visit_in_chunks_of(3)
    data = table(dtype="float64")
    data.X[7, 2] = value
    with pytest.raises(ValueError, match=message):
        write_store(tmp_path / "table", data, dtype=dtype)
    assert not list(tmp_path.iterdir())
    with begin(tmp_path / "table", dtype=dtype) as writer:
        feed(writer, table(), stop=2)
        with pytest.raises(ValueError, match=message):
            writer.append(data.X, data.y, data.domains, data.split, np.arange(N))
    assert store_info(tmp_path / "table").rows == 2


def test_nan_is_kept_where_it_can_be(tmp_path):
    data = table(dtype="float64")
    data.X[3, 1] = np.nan
    write_store(tmp_path / "table", data, dtype="float16")
    np.testing.assert_array_equal(read(tmp_path / "table").X, data.X)


def test_ids_come_back_even_where_they_are_no_valid_text(tmp_path):
    ids = [f"art/élan/{i}.jpg" for i in range(N - 1)] + [os.fsdecode(b"a\xff.jpg")]
    write_store(tmp_path / "table", table(), ids=ids, rows_per_shard=9)
    assert read_ids(tmp_path / "table").tolist() == ids
    write_store(tmp_path / "without", table())
    assert read_ids(tmp_path / "without") is None


def test_held_rows_are_the_writers_own(tmp_path):
    data, X = table(), table().X.copy()
    with begin(tmp_path / "table", rows_per_shard=100) as writer:
        writer.append(X, data.y, data.domains, data.split)
        X[:] = 0
    np.testing.assert_array_equal(read(tmp_path / "table").X, data.X)


def test_names_grow_as_they_come_unless_they_are_given(tmp_path):
    X = np.zeros((2, D))
    with begin(tmp_path / "a") as writer:
        writer.append(X, ["b", "a"], ["y", "x"])
        writer.append(X, ["c", "a"], ["x", "z"])
    assert store_info(tmp_path / "a").classes == ["b", "a", "c"]
    assert store_info(tmp_path / "a").domains == {"y": 1, "x": 2, "z": 1}
    writer = begin(tmp_path / "b", classes=["a", "b"], domains=np.array(["x", "y"]))
    with pytest.raises(ValueError, match="labels has 'c', which is not among the 2 names given"):
        writer.append(X, ["a", "c"], ["x", "y"])
    with pytest.raises(ValueError, match="domains has 'z'"):
        writer.append(X, ["a", "b"], ["x", "z"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.zeros((2, D + 1))}, r"X has shape \(2, 5\) .* rows of 4 numbers are needed"),
        ({"X": np.full((2, D), "a")}, "rows of 4 numbers"),
        ({"labels": ["a"]}, "labels has 1 values but X has 2 rows"),
        ({"labels": ["a", ""]}, "labels has '' in row 1"),
        ({"labels": [1, 2]}, "labels are whole numbers, but those of the store are text"),
        ({"labels": [["a"], ["b"]]}, r"labels has shape \(2, 1\)"),
        ({"domains": [0.5, 1.0]}, "domains are numbers; name them by strings or whole numbers"),
        ({"domains": [1, 2]}, "domains are whole numbers, but those of the store are text"),
        (
            {"split": None},
            "the store has split, and these lack them; give them for all rows or for none",
        ),
        ({"split": [0, 1]}, "True marks the reserved rows"),
        ({"ids": ["a", "b"]}, "the store lacks ids, and these have them"),
        ({"domains": np.array([2**63, 1], np.uint64)}, "beyond 64-bit whole numbers"),
    ],
)
def test_rows_that_do_not_belong_are_refused_and_change_nothing(change, message, tmp_path):
    fine = {"X": np.ones((2, D)), "labels": ["a", "b"], "domains": ["x", "y"]}
    fine["split"] = [True, False]
    with begin(tmp_path / "one") as writer:
        writer.append(**fine)
        with pytest.raises(ValueError, match=message):
            writer.append(**(fine | change))
        writer.append(**fine)
    assert store_info(tmp_path / "one").rows == 4
    assert store_info(tmp_path / "one").domains == {"x": 2, "y": 2}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": 0}, "features 0"),
        ({"dtype": "int8"}, "one of float64, float32, float16, uint8"),
        ({"classes": ["a", "a"]}, "some are alike"),
        ({"domains": [0.5]}, "domains of type float"),
        ({"feature_names": ["a"]}, "4 strings"),
        ({"made": {"when": {1}}}, "made cannot be written as JSON"),
        ({"made": {"score": np.nan}}, "made cannot be written as JSON"),
        ({"rows_per_shard": 0}, "rows_per_shard is 0"),
    ],
)
def test_a_store_that_could_not_be_read_is_not_begun(options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        begin(tmp_path / "table", **options)
    assert not list(tmp_path.iterdir())


# Chunks


@pytest.mark.parametrize("rows", [1, 4, 5, 12, 1000])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("labels", ["text", "real"])
def test_chunks_concatenate_to_the_whole(labels, dtype, rows, tmp_path):
    write_store(tmp_path / "table", table(labels), dtype=dtype, rows_per_shard=5)
    whole, chunks = read(tmp_path / "table"), list(read_chunks(tmp_path / "table", rows))
    assert_same(joined(chunks), whole)
    assert max(len(chunk.X) for chunk in chunks) == min(rows, N)
    assert {chunk.name for chunk in chunks} == {"table"}
    X = read_features(tmp_path / "table", 3, 3 + min(rows, 20))
    np.testing.assert_array_equal(X, whole.X[3 : 3 + min(rows, 20)])


def test_chunks_of_nothing_and_rows_that_are_not_there_are_refused(tmp_path):
    write_store(tmp_path / "table", table())
    with pytest.raises(ValueError, match="rows is 0"):
        read_chunks(tmp_path / "table", 0)
    with pytest.raises(ValueError, match=r"start is 3 and stop is 24, but .* has 23 rows"):
        read_features(tmp_path / "table", 3, 24)
    with pytest.raises(ValueError, match=r"a\.npz is not a feature store"):
        read_chunks(tmp_path / "a.npz")


# Killed, and resumed

KILLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from small_stores import CODED, begin, feed, table

def die_at(moment):
    def counted(real):
        def call(*given):
            die_at.count += 1
            if die_at.count == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*given)
        return call
    die_at.count = 0
    os.fsync, os.replace = counted(lambda _: None), counted(os.replace)

moment, status = 0, signal.SIGKILL
while status == signal.SIGKILL:
    moment += 1
    child = os.fork()
    if not child:
        die_at(moment)
        with begin(Path({folder!r}) / str(moment), **CODED) as writer:
            feed(writer, table())
        os._exit(0)
    status = os.waitpid(child, 0)[1]
sys.exit(status)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_run_killed_at_any_moment_resumes_to_the_same_bytes(tmp_path):
    script = KILLED.format(tests=str(Path(__file__).parents[1]), folder=str(tmp_path))
    subprocess.run([sys.executable, "-c", script], check=True)
    moments = sorted(int(path.name) for path in tmp_path.glob("[0-9]*"))
    whole = files(tmp_path / f"{moments[-1]}")
    seen = set()
    assert len(moments) > 3 * 6 * 2
    for moment in moments[:-1]:
        store = tmp_path / f"{moment}"
        info = store_info(store)
        seen.add(info.rows)
        if not info.finished:  # killed after the last rename, it was
            assert verify(store).ok
            with begin(store, **CODED, resume=True) as writer:
                assert writer.rows == info.rows
                feed(writer, table())
        assert files(store) == whole
    assert seen == {0, 9, 18, N}


def _feed_until(writer: StoreWriter, data: DomainData, stop: int) -> None:
    feed(writer, data, stop=stop)
    raise RuntimeError("out of memory")


@pytest.mark.parametrize("reader", [read, read_chunks, read_features, read_ids])
def test_a_store_left_by_an_exception_is_not_read(reader, tmp_path):
    writer = begin(tmp_path / "table")
    with pytest.raises(RuntimeError, match="out of memory"), writer:
        _feed_until(writer, table(), 12)
    with pytest.raises(ValueError, match="unfinished, with 10 rows on file; run the command"):
        reader(tmp_path / "table")


def test_an_exception_leaves_a_store_that_says_so_and_goes_on(tmp_path):
    data = replace(table(), feature_names=None)
    writer = begin(tmp_path / "table")
    with pytest.raises(RuntimeError, match="out of memory"), writer:
        _feed_until(writer, data, 12)
    info = store_info(tmp_path / "table")
    assert (info.finished, info.rows, sum(info.domains.values())) == (False, 10, 10)
    with pytest.raises(ValueError, match="is closed"):
        writer.append(data.X, data.y, data.domains)
    with begin(tmp_path / "table", resume=True, rows_per_shard=7) as writer:
        assert writer.rows == 10
        feed(writer, data)
    assert_same(read(tmp_path / "table"), data)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": 5}, "was begun with features 4, but 5 is asked for"),
        ({"dtype": "float16"}, "was begun with dtype 'float32', but 'float16' is asked for"),
        ({"made": MADE | {"trial": 1}}, r"with made\['trial'\] 0, but 1 is asked for"),
        ({"made": None}, r"with made\['backbone'\] 'resnet50', but None"),
        ({"feature_names": list("abcd")}, "feature_names None"),
        ({"classes": ["cat"]}, r"classes \['cat', 'dog', 'élan'\], but \['cat'\]"),
    ],
)
def test_a_store_is_resumed_only_as_it_was_begun(options, message, tmp_path):
    writer = begin(tmp_path / "table")
    feed(writer, table())
    writer.close()
    before = files(tmp_path / "table")
    with pytest.raises(ValueError, match=message):
        begin(tmp_path / "table", resume=True, **options)
    assert files(tmp_path / "table") == before


def test_only_what_the_store_would_write_is_dropped_on_resuming(tmp_path):
    writer = begin(tmp_path / "table")
    feed(writer, table())
    writer.close()
    before = files(tmp_path / "table")
    for name in ("features-00009.npy", "labels-00004.npy.partial", "manifest.json.partial"):
        (tmp_path / "table" / name).write_bytes(b"torn")
    (tmp_path / "table" / "README.txt").write_text("mine")
    begin(tmp_path / "table", resume=True).close()
    assert files(tmp_path / "table") == before | {"README.txt": b"mine"}


def test_resuming_begins_where_there_is_nothing_and_refuses_what_is_finished(tmp_path):
    with begin(tmp_path / "table", resume=True) as writer:
        feed(writer, table())
    with pytest.raises(FileExistsError, match="is finished already"):
        begin(tmp_path / "table", resume=True)
    with pytest.raises(FileExistsError, match="exists already"):
        begin(tmp_path / "table")


def test_a_store_without_rows_is_not_finished(tmp_path):
    with pytest.raises(ValueError, match="has no rows"), begin(tmp_path / "table"):
        pass
    assert not store_info(tmp_path / "table").finished


def test_two_writers_do_not_meet(tmp_path):
    pytest.importorskip("fcntl", reason="the system has no such lock")
    writer = begin(tmp_path / "table")
    with pytest.raises(ValueError, match="is being written to"):
        begin(tmp_path / "table", resume=True)
    writer.close()
    begin(tmp_path / "table", resume=True).close()


# More rows


def test_no_file_of_the_store_is_overwritten_whatever_it_is_called(tmp_path):
    write_store(tmp_path / "table", table())
    text = (tmp_path / "table" / "manifest.json").read_text()
    (tmp_path / "table" / "manifest.json").write_text(text.replace("-00000.npy", "-00001.npy"))
    for path in (tmp_path / "table").glob("*.npy"):
        path.rename(path.with_name(path.name.replace("-00000", "-00001")))
    append_rows(tmp_path / "table", table())
    assert verify(tmp_path / "table").ok
    assert_same(read(tmp_path / "table"), joined([table(), table()]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("labels", LABELS)
def test_appended_rows_read_as_if_written_at_once(labels, dtype, tmp_path):
    data = table(labels)
    data = replace(data, X=data.X if dtype == "uint8" else data.X.astype(dtype))
    first, rest = rows_of(data, slice(0, 9)), rows_of(data, slice(9, N))
    rest.domains[-1] = "a new domain"
    write_store(tmp_path / "table", first, dtype=dtype)
    append_rows(tmp_path / "table", rest)
    write_store(tmp_path / "once", joined([first, rest]), dtype=dtype)
    back = read(tmp_path / "table")
    if dtype == "uint8":  # each shard has steps of its own
        np.testing.assert_allclose(back.X, data.X, atol=30 / 255)
        back = replace(back, X=read(tmp_path / "once").X)
    assert_same(back, read(tmp_path / "once"))
    assert verify(tmp_path / "table").ok


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.zeros((N, 5), np.float32)}, "rows of 4 numbers"),
        ({"X": table(dtype="float64").X}, "X has dtype float64, but .* has float32"),
        ({"y": LABELS["whole"]}, "labels are whole numbers, but those of the store are text"),
        ({"split": None}, "these lack them"),
        ({"made": {"trial": 1}}, "made is not that of"),
        ({"feature_names": list("abcd")}, "feature_names is not that of"),
        ({"X": np.zeros((0, D), np.float32)}, "nothing to append"),
    ],
)
def test_rows_that_differ_are_not_appended(change, message, tmp_path):
    write_store(tmp_path / "table", table())
    before = files(tmp_path / "table")
    with pytest.raises(ValueError, match=message):
        append_rows(tmp_path / "table", replace(table(), **change))
    assert files(tmp_path / "table") == before


def test_until_an_append_is_whole_the_store_is_what_it_was(tmp_path, monkeypatch):
    write_store(tmp_path / "table", table())
    before = read(tmp_path / "table")
    real = os.replace

    def fails(source, target):
        if Path(target).name == "manifest.json":
            raise OSError("disk full")
        real(source, target)

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="disk full"):
        append_rows(tmp_path / "table", table())
    assert (tmp_path / "table" / "features-00001.npy").exists()
    assert_same(read(tmp_path / "table"), before)
    monkeypatch.setattr(os, "replace", real)
    append_rows(tmp_path / "table", rows_of(table(), slice(0, 2)))
    assert len(read(tmp_path / "table").X) == N + 2
    assert not list((tmp_path / "table").glob("*.partial"))


def test_rows_are_appended_to_finished_stores_only(tmp_path):
    begin(tmp_path / "table").close()
    with pytest.raises(ValueError, match="is unfinished"):
        append_rows(tmp_path / "table", table())
    with pytest.raises(FileNotFoundError, match="does not exist"):
        append_rows(tmp_path / "nothing", table())


# Damage


@pytest.fixture
def store(tmp_path) -> Path:
    write_store(tmp_path / "table", table(), dtype="uint8", rows_per_shard=9, ids=np.arange(N))
    return tmp_path / "table"


FILES_OF_A_SHARD = ["features", "labels", "domains", "split", "ids", "codebook"]


@pytest.mark.parametrize("key", FILES_OF_A_SHARD)
def test_every_altered_file_is_named(key, store):
    name = f"{key}-00001.npy"
    flip(store / name)
    (bad,) = verify(store).bad
    assert bad.startswith(f"{name} is altered")
    if key != "features":  # too large to hash whenever they are read
        with pytest.raises(ValueError, match=f"{name} is altered"):
            read(store)


@pytest.mark.parametrize("stop", [-1, 50, 0])
@pytest.mark.parametrize("key", FILES_OF_A_SHARD)
def test_every_truncated_file_is_named(key, stop, store):
    name = f"{key}-00001.npy"
    content = (store / name).read_bytes()
    (store / name).write_bytes(content[:stop])
    assert verify(store).bad[0].startswith(f"{name} is truncated")
    with pytest.raises(ValueError, match=f"{name} is truncated"):
        read(store)


@pytest.mark.parametrize("key", FILES_OF_A_SHARD)
def test_every_missing_file_is_named(key, store):
    name = f"{key}-00001.npy"
    (store / name).unlink()
    assert verify(store).bad == (f"{name} is missing, though manifest.json names it",)
    with pytest.raises(ValueError, match=f"{name} is missing"):
        read(store)


def test_a_file_of_another_shape_is_refused_though_its_size_is_right(store):
    X = np.load(store / "features-00000.npy")
    np.save(store / "features-00000.npy", X.reshape(D, -1))
    with pytest.raises(ValueError, match=r"features-00000\.npy has shape \(4, 9\), but"):
        read(store)
    np.save(store / "features-00000.npy", X.view(np.int8))
    with pytest.raises(ValueError, match=r"features-00000\.npy has dtype int8, but .* gives uint8"):
        read(store)


def test_no_link_leads_out_of_the_folder(store):
    (store / "features-00000.npy").rename(store.parent / "elsewhere.npy")
    (store / "features-00000.npy").symlink_to(store.parent / "elsewhere.npy")
    with pytest.raises(ValueError, match=r"features-00000\.npy is a link out of the folder"):
        read(store)


def changed(manifest: dict, place: str, value: object) -> dict:
    """The manifest with one value replaced; ``place`` is a path of keys and numbers."""
    *way, last = [int(key) if key.isdigit() else key for key in place.split(".")]
    inner = manifest
    for key in way:
        inner = inner[key]
    inner[last] = value
    return manifest


HOSTILE = [
    *(("shards.0.files.features.name", name) for name in ("../a.npy", "/etc/passwd", "..", "")),
    *(("shards.0.files.features.name", name) for name in ("a/b.npy", "a\\b", "a\0", ".a", 3, None)),
    ("shards.0.files.features.name", "manifest.json"),
    ("shards.0.files.features.name", "labels-00000.npy"),
    ("shards.0.files.features.bytes", -1),
    ("shards.0.files.features.bytes", "many"),
    ("shards.0.files.features.sha256", "abc"),
    ("shards.0.files.features.sha256", None),
    ("shards.0.files.features", None),
    ("shards.0.files.weights", {"name": "w.npy", "bytes": 1, "sha256": "0" * 64}),
    ("shards.0.files", {}),
    ("shards.0.files", []),
    *(("shards.0.rows", rows) for rows in (-1, 0, 1.5, True, "9", None, 10**30)),
    ("shards.0", None),
    ("shards", {}),
    ("shards", None),
    ("shards", []),
    *(("rows", rows) for rows in (-1, 22, None, "23")),
    *(("features", d) for d in (0, -4, 4.0, True, None, 10**30, 1 << 40)),
    *(("dtype", dtype) for dtype in ("object", "float32", None, ["uint8"], "O")),
    *(("classes", names) for names in ("abc", {}, [["a"]], ["a", 1], ["a", "a"], [None], [1e999])),
    *(("domains", names) for names in (None, "ab", [0.5], [True], [10**30, 1], ["one"], [])),
    ("feature_names", ["a"]),
    ("feature_names", [1, 2, 3, 4]),
    ("made", "resnet50"),
    ("finished", "yes"),
    ("finished", False),
    *(("version", version) for version in (0, -1, "2", 2.5, True, None, 3)),
    ("format", "zarr"),
]


@pytest.mark.parametrize(("place", "value"), HOSTILE)
def test_a_manifest_that_lies_is_refused_by_a_value_error(place, value, store):
    manifest = json.loads((store / "manifest.json").read_text())
    (store / "manifest.json").write_text(json.dumps(changed(manifest, place, value)))
    with pytest.raises(ValueError, match="table"):
        read(store)


@pytest.mark.parametrize("reader", [read, verify, store_info, read_chunks])
@pytest.mark.parametrize("text", ["", "null", "[]", "3", "{", '{"a": ' * 9999, "\udcff"])
def test_a_manifest_of_another_kind_is_refused_by_a_value_error(text, reader, store):
    (store / "manifest.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=r"manifest\.json"):
        reader(store)


def test_version_1_reads_in_chunks_but_has_no_checksums_and_does_not_grow(tmp_path):
    store = small_tables.write_version_1(tmp_path, small_tables.table())
    assert_same(joined(list(read_chunks(store, 4))), read(store))
    assert store_info(store).version == 1
    with pytest.raises(ValueError, match="keeps no checksums"):
        verify(store)
    with pytest.raises(ValueError, match="cannot grow"):
        append_rows(store, small_tables.table())


# Files of other kinds


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".csv.gz", ".parquet", ".safetensors", ""])
@pytest.mark.parametrize("labels", ["text", "whole", "real"])
@pytest.mark.parametrize("named", [True, False])
def test_every_kind_of_file_is_read_back(named, labels, suffix, tmp_path):
    data = table(labels, "float64")
    data = data if named else replace(data, feature_names=None)
    write(tmp_path / f"table{suffix}", data, ids=[f"{i}.jpg" for i in range(N)])
    assert fingerprint(read(tmp_path / f"table{suffix}")) == fingerprint(data)
    if named and suffix != ".safetensors":
        assert read(tmp_path / f"table{suffix}").feature_names == data.feature_names
    assert [path.name for path in tmp_path.iterdir()] == [f"table{suffix}"]


@pytest.mark.parametrize(
    ("name", "change", "options", "message"),
    [
        ("a.pt", {}, {}, r"cannot write a table to .*a\.pt: choose a name that ends in \.npz, "),
        ("a.npz", {}, {"dtype": "uint8"}, "dtype is 'uint8'"),
        ("a.csv", {"feature_names": list("abcy")}, {}, "'y', which cannot name a column"),
        ("a.parquet", {"feature_names": list("aabc")}, {}, "the same name twice"),
        ("a.npz", {"y": np.arange(3)}, {}, "rows do not agree"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(name, change, options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        write(tmp_path / name, replace(table(), **change), **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("suffix", "package"), [(".parquet", "pyarrow"), (".safetensors", "safetensors")]
)
def test_a_package_that_is_needed_to_write_is_named(suffix, package, tmp_path, monkeypatch):
    for name in [n for n in sys.modules if n.split(".")[0] == package] or [package]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install 'skdare"):
        write(tmp_path / f"a{suffix}", table())
    assert not list(tmp_path.iterdir())


# The command line


@pytest.mark.parametrize("command", ["info", "convert", "verify"])
def test_every_command_has_help_with_an_example(command):
    assert f"skdare features {command}" in run("features", command, "--help").output


def test_info_tells_what_a_store_holds_finished_or_not(store, tmp_path):
    told = run("features", "info", store).stdout
    for words in ("finished", "3 shards, 18 files", "23 rows of 4 features, 8-bit codes"):
        assert words in told
    for words in ("3 classes: cat, dog, élan", "backbone: resnet50", "sizes: [256, 224]"):
        assert words in told
    assert told.split("reserved\n")[1].splitlines() == [
        f"{'north':<10}  {12:>10}  {3:>10}",
        f"south, far  {11:>10}  {2:>10}",
    ]
    writer = begin(tmp_path / "torn")
    feed(writer, table())
    writer.close()
    assert "unfinished" in run("features", "info", tmp_path / "torn").stdout


def test_info_reads_any_file_with_what_is_what(tmp_path):
    data = table("real")
    np.savez(tmp_path / "a.npz", X=data.X, dose=data.y, site=data.domains)
    result = run("features", "info", tmp_path / "a.npz", "--target", "dose")
    assert "23 rows of 4 features, float32" in result.stdout
    assert "numbers" in result.stdout
    assert run("features", "info", tmp_path / "a.npz").exit_code == 0  # target or not


@pytest.mark.parametrize("suffix", ["", ".npz", ".csv", ".parquet", ".safetensors"])
def test_convert_writes_what_reads_the_same(suffix, tmp_path):
    write_store(tmp_path / "a", table(), rows_per_shard=5, ids=np.arange(N))
    result = run(
        "features", "convert", tmp_path / "a", tmp_path / f"b{suffix}", "--dtype", "float16"
    )
    assert result.exit_code == 0
    back = read(tmp_path / f"b{suffix}")
    np.testing.assert_array_equal(back.X, table().X)
    if not suffix:
        assert (back.X.dtype, back.made) == (np.float16, MADE)
        assert read_ids(tmp_path / "b").tolist() == [str(i) for i in range(N)]
        assert isinstance(back.X, np.memmap)
    again = run("features", "convert", tmp_path / "a", tmp_path / f"b{suffix}")
    assert again.exit_code == 2
    assert "exists already" in again.stderr


def test_verify_lists_every_bad_file_and_exits_with_one(store):
    assert run("features", "verify", store).stdout == "ok: 18 files\n"
    flip(store / "features-00000.npy")
    (store / "ids-00002.npy").unlink()
    result = run("features", "verify", store)
    assert result.exit_code == 1
    assert [line.split()[0] for line in result.stdout.splitlines()] == [
        "features-00000.npy",
        "ids-00002.npy",
    ]
    assert run("features", "verify", store / "nothing").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["convert", "a.npz", "b", "--dtype", "float16"], "float16 ends at 65504"),
        (
            ["convert", "a.npz", "b.csv", "--dtype", "uint8"],
            "such a file holds float64, float32 or float16",
        ),
        (["convert", "a.npz", "b.pt"], "cannot write a table to b.pt"),
        (["convert", "a.npz", "b", "--target", "class"], "no 'class' for target"),
        (["convert", "c.npz", "b"], "does not exist"),
        (["info", "c.npz"], "does not exist"),
        (["verify", "a.npz"], "is not a feature store"),
    ],
)
def test_a_mistake_exits_with_two_and_leaves_nothing(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("a.npz", X=table().X * 1e6, y=table().y, domain=table().domains)
    result = run("features", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
    assert os.listdir(tmp_path) == ["a.npz"]
