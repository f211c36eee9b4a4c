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

from skdare.data import DomainData, Store, StoreWriter, read, write_store
from skdare.errors import InputError
from small_tables import NAMES, D, N, table

pytestmark = pytest.mark.filterwarnings("ignore::skdare.errors.DataNote")


@pytest.fixture(autouse=True)
def hasty_disk(request, monkeypatch) -> None:
    """Nothing here can tell whether bytes reached the disk, and waiting for it takes long."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def begin(folder: Path, **options) -> StoreWriter:
    return StoreWriter(folder, NAMES, **{"dtype": "float64", "rows_per_shard": 5} | options)


def feed(writer: StoreWriter, data: DomainData, step: int = 4, stop: int = N) -> None:
    for start in range(writer.rows, stop, step):
        part = slice(start, min(start + step, stop))
        writer.append(data.X[part], **{name: v[part] for name, v in data.labels.items()})


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}


@pytest.mark.parametrize("task", ["classification", "codes", "regression"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_what_is_written_is_read_back(dtype, task, tmp_path):
    data = table(task)
    write_store(tmp_path / "table", data, dtype=dtype, made={"net": "r18"})
    back = read(tmp_path / "table")
    assert back.X.dtype == dtype
    np.testing.assert_array_equal(back.X, data.X)
    for name, values in data.labels.items():
        np.testing.assert_array_equal(getattr(back, name), values)
    assert Store.open(tmp_path / "table").made == {"net": "r18"}


@pytest.mark.parametrize("step", [1, 7, N])
def test_a_store_does_not_depend_on_how_its_rows_come(step, tmp_path):
    for name, rows in (("a", 4), ("b", step)):
        with begin(tmp_path / name) as writer:
            feed(writer, table(), rows)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_rows_in_memory_are_the_writers_own(tmp_path):
    X = table().X.copy()
    with begin(tmp_path / "table", rows_per_shard=100) as writer:
        writer.append(X, y=table().y)
        X[:] = 0
    np.testing.assert_array_equal(read(tmp_path / "table").X, table().X)


@pytest.mark.parametrize(
    ("dtype", "value", "words"),
    [
        ("float16", 65536.0, r"reaches 6.55e\+04, which float16 cannot hold"),
        ("float32", -1e39, r"reaches 1e\+39, which float32 cannot hold"),
        ("float64", np.inf, "X has infinity"),
    ],
)
def test_what_a_type_cannot_hold_is_refused_and_nothing_is_left(dtype, value, words, tmp_path):
    data = table()
    X = data.X.copy()
    X[7, 2] = value
    data = replace(data, X=X)
    with pytest.raises(InputError, match=words):
        write_store(tmp_path / "table", data, dtype=dtype)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"X": np.zeros((2, D + 1))}, r"X has shape \(2, 4\) .*; pass rows of 3 numbers"),
        ({"X": np.full((2, D), "a")}, "dtype <U1"),
        ({"y": ["a"]}, r"y has shape \(1,\) and X has 2 rows"),
        ({"y": [["a"], ["b"]]}, r"y has shape \(2, 1\)"),
        ({"y": [1j, 2j]}, "dtype complex128; use numbers or text"),
        ({"more": [1, 2]}, r"columns \['X', 'domains', 'more', 'y'\] follow"),
    ],
)
def test_rows_that_do_not_belong_are_refused_and_change_nothing(change, words, tmp_path):
    fine = {"X": np.ones((2, D)), "y": ["a", "b"], "domains": ["x", "y"]}
    with begin(tmp_path / "table") as writer:
        for given in (fine, fine | change, fine):
            X, columns = given["X"], {name: v for name, v in given.items() if name != "X"}
            if given is fine:
                writer.append(X, **columns)
                continue
            with pytest.raises(InputError, match=words):
                writer.append(X, **columns)
    assert read(tmp_path / "table").y.tolist() == ["a", "b"] * 2


def test_a_column_cannot_be_called_as_the_features_are(tmp_path):
    with begin(tmp_path / "table") as writer:
        with pytest.raises(InputError, match="a column is called 'X'"):
            writer.append(np.ones((1, D)), X=[1])
        writer.append(np.ones((1, D)), self=[1], y=[0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dtype": "int8"}, "use float64, float32, float16"),
        ({"made": {"when": {1}}}, "made is not JSON"),
        ({"made": {"score": np.nan}}, "made is not JSON"),
    ],
)
def test_a_store_that_could_not_be_read_is_not_begun(options, words, tmp_path):
    with pytest.raises(InputError, match=words):
        begin(tmp_path / "table", **options)
    with pytest.raises(InputError, match="two columns called 'a'"):
        StoreWriter(tmp_path / "table", ["a", "a"])
    assert not list(tmp_path.iterdir())


def test_a_store_without_rows_is_not_finished(tmp_path):
    with pytest.raises(InputError, match="has no rows"), begin(tmp_path / "table"):
        pass
    with pytest.raises(InputError, match="unfinished, with 0 rows"):
        read(tmp_path / "table")


def test_nothing_is_overwritten(tmp_path):
    write_store(tmp_path / "table", table())
    before = contents(tmp_path / "table")
    (tmp_path / "mine").mkdir()
    for action in (begin, lambda folder: write_store(folder, table())):
        for name in ("table", "mine"):
            with pytest.raises(InputError, match="exists already"):
                action(tmp_path / name)
    assert contents(tmp_path / "table") == before
    assert not list((tmp_path / "mine").iterdir())


def test_text_that_follows_numbers_is_refused_and_numbers_that_follow_text_are_text(tmp_path):
    for first, then in (([1], ["a"]), (["a"], [1])):
        writer = begin(tmp_path / str(first[0]), rows_per_shard=1)
        writer.append(np.ones((1, D)), y=first)
        if first == [1]:
            with pytest.raises(InputError, match="column y has numbers at first, and then 'a'"):
                writer.append(np.ones((1, D)), y=then)
            continue
        with writer:
            writer.append(np.ones((1, D)), y=then)
        assert read(tmp_path / "a").y.tolist() == ["a", "1"]


def test_other_columns_come_back_as_ids_with_nothing_where_there_was_nothing(tmp_path):
    with begin(tmp_path / "table") as writer:
        for start in (0, 5):
            names = [f"art/élan {i}.jpg" for i in range(start, start + 4)]
            ids = np.array([None, *names], dtype=object)
            writer.append(np.ones((5, D)), y=np.arange(5), path=ids, shot=np.arange(5) / 2)
    back = read(tmp_path / "table")
    assert back.ids["path"].tolist()[4:7] == ["art/élan 3.jpg", None, "art/élan 5.jpg"]
    assert back.ids["shot"].tolist() == [0.0, 0.5, 1.0, 1.5, 2.0] * 2


# -- Stopped, killed, resumed ----------------------------------------------------------------------


def stopped(folder: Path, rows: int = 12, **options) -> None:
    def run() -> None:
        with begin(folder, **options) as writer:
            feed(writer, table(), stop=rows)
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        run()


def test_a_store_left_by_an_exception_says_so_and_goes_on(tmp_path):
    stopped(tmp_path / "table")
    with pytest.raises(InputError, match="unfinished, with 10 rows; run the command"):
        read(tmp_path / "table")
    with begin(tmp_path / "table") as writer:
        assert writer.rows == 10
        feed(writer, table())
    assert read(tmp_path / "table").fingerprint() == table().fingerprint()


@pytest.mark.parametrize("options", [{"dtype": "float16"}, {"made": {"net": "r50"}}])
def test_a_store_is_resumed_only_as_it_was_begun(options, tmp_path):
    stopped(tmp_path / "table")
    before = contents(tmp_path / "table")
    with pytest.raises(InputError, match=f"was begun with another {next(iter(options))}"):
        begin(tmp_path / "table", **options)
    with pytest.raises(InputError, match="was begun with another feature_names"):
        StoreWriter(tmp_path / "table", ["a"], dtype="float64")
    assert contents(tmp_path / "table") == before


def test_two_writers_of_one_store_are_kept_apart(tmp_path):
    with begin(tmp_path / "table") as writer:
        feed(writer, table())
        with pytest.raises(InputError, match="another process is writing to"):
            begin(tmp_path / "table")
    assert read(tmp_path / "table").fingerprint() == table().fingerprint()


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_data_store import begin, feed, table

moment, status = 0, signal.SIGKILL
while status == signal.SIGKILL:
    moment += 1
    child = os.fork()
    if not child:
        count = 0
        def counted(real):
            def call(*given, **more):
                global count
                count += 1
                if count == moment:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*given, **more)
            return call
        os.fsync, os.replace = counted(lambda _: None), counted(os.replace)
        with begin(Path({folder!r}) / str(moment)) as writer:
            feed(writer, table())
        os._exit(0)
    status = os.waitpid(child, 0)[1]
sys.exit(status)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_run_killed_at_any_moment_resumes_to_the_same_bytes(tmp_path):
    here = str(Path(__file__).parent)
    script = KILLED.format(tests=here, folder=str(tmp_path))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)
    moments = sorted(int(path.name) for path in tmp_path.iterdir())
    whole = contents(tmp_path / f"{moments[-1]}")
    seen = set()
    assert len(moments) > 5 * 5
    for moment in moments[:-1]:
        folder = tmp_path / f"{moment}"
        if not (folder / "manifest.json").exists():  # killed before it was begun
            (folder / ".lock").unlink()
            for left in folder.iterdir():
                left.unlink()
            folder.rmdir()
        else:
            store = Store.open(folder, unfinished=True)
            assert store.damaged() == []
            seen.add(store.rows)
            if store.finished:
                continue
        with begin(folder) as writer:
            feed(writer, table())
        left = {name for name in contents(folder) if name.endswith(".partial")}
        assert {n: c for n, c in contents(folder).items() if n not in left} == whole
    assert seen == {0, 5, 10, 15, 20, N}


# -- Damage ----------------------------------------------------------------------------------------


@pytest.fixture
def stored(tmp_path) -> Path:
    with begin(tmp_path / "table") as writer:
        feed(writer, table())
    return tmp_path / "table"


def test_an_altered_file_is_found_by_its_checksum(stored):
    path = stored / "features-00002.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert Store.open(stored).damaged() == ["features-00002.npy"]


@pytest.mark.parametrize("name", ["features-00001.npy", "column1-00003.npy"])
@pytest.mark.parametrize("kind", ["missing", "shape", "type", "bytes", "link", "pipe", "zip"])
def test_a_file_that_is_not_what_was_written_is_named(kind, name, stored, tmp_path):
    path = stored / name
    values, content = np.load(path), path.read_bytes()
    path.unlink()
    if kind == "shape":
        np.save(path, values[:-1])
    elif kind == "type":
        np.save(path, values.astype("M8[s]" if values.dtype.kind == "i" else ">f8"))
    elif kind == "bytes":
        path.write_bytes(content[:-9])
    elif kind == "link":
        (tmp_path / "elsewhere.npy").write_bytes(content)
        path.symlink_to(tmp_path / "elsewhere.npy")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "zip":
        with path.open("wb") as file:
            np.savez(file, values)
    with pytest.raises(InputError, match=name):
        read(stored)


# What stands where something else was meant.
OTHERS = (
    None,
    True,
    -1,
    0.5,
    10**30,
    float("nan"),
    "x",
    "../x",
    [],
    {},
    [None],
    ["x", 1],
    {"x": {}},
)


def test_a_manifest_of_which_any_value_is_another_is_refused_or_read(stored):
    path = stored / "manifest.json"
    whole = json.loads(path.read_text())

    def places(node, trail=()):
        if isinstance(node, dict | list):
            for key in node if isinstance(node, dict) else range(len(node)):
                yield (*trail, key)
                yield from places(node[key], (*trail, key))

    said = []
    for trail in places(whole):
        for other in (..., *OTHERS):
            forged = json.loads(json.dumps(whole))
            node = forged
            for key in trail[:-1]:
                node = node[key]
            if other is ...:
                del node[trail[-1]]
            else:
                node[trail[-1]] = other
            path.write_text(json.dumps(forged))
            try:
                data = read(stored)
            except InputError as error:
                said.append(str(error))
            else:
                assert data.X.shape[0] == len(data.y) <= N
    assert all("table" in text for text in said)
    assert len(said) > 500


NO_MANIFESTS = [b"", b"null", b"[]", b"3", b'"x"', b"{", b"\xff\xfe{}", b'{"a":' * 50_000]
NO_MANIFESTS += [b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}", b"{}", b'{"format": 1}']


@pytest.mark.parametrize("content", NO_MANIFESTS, ids=range(len(NO_MANIFESTS)))
def test_a_manifest_of_another_kind_is_refused(content, stored):
    (stored / "manifest.json").write_bytes(content)
    with pytest.raises(InputError, match="damaged or of another version"):
        read(stored)
