"""Files that are there whole, or as they were before: one law for everything that writes one."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from made_records import record
from skdare import DAREClassifier
from skdare.bench import Log
from skdare.datasets import make_latent_domains, rows_to, write, write_store
from skdare.persist import PARTIAL, lock, partial_file, whole_file
from skdare.report import write_report

DATA = make_latent_domains(3, 40, 4, random_state=0)
HEAD = DAREClassifier().fit(DATA.X, DATA.y, domains=DATA.domains)
posix = pytest.mark.skipif(os.name != "posix", reason="locks and modes are POSIX's")


def _rows(path: Path) -> None:
    with rows_to(path) as writer:
        writer.write({"id": np.arange(3)})


def _report(path: Path) -> None:
    if not (path.parent / "run").exists():
        with Log(path.parent / "run").open() as log:
            log.append(record())
    write_report(path.parent / "run", path.parent, [path.suffix[1:]])


def _planned(path: Path) -> None:
    Log(path.parent).announce("data", "default", ["a"])


# A file's name, what writes it, and the package that it needs.
REPLACING = {
    "head": (HEAD.save, None),
    "stream": (HEAD.adapter().partial_fit(DATA.X).save, None),
    "fleet": (HEAD.fleet().partial_fit(DATA.X, DATA.domains).save, None),
    "head.onnx": (HEAD.to_onnx, "onnx"),
    "p.csv": (_rows, None),
    "p.csv.gz": (_rows, None),
    "p.jsonl": (_rows, None),
    "p.parquet": (_rows, "pyarrow"),
    "report.html": (_report, "matplotlib"),
    "report.md": (_report, None),
    "report.tex": (_report, None),
    "planned.json": (_planned, None),
}
# These never replace anything.
NEW = {
    f"t{suffix}": (lambda path: write(path, DATA), package)
    for suffix, package in {
        ".npz": None,
        ".csv": None,
        ".csv.gz": None,
        ".parquet": "pyarrow",
        ".safetensors": "safetensors",
        ".store": None,
    }.items()
}


def _writers(*tables):
    return pytest.mark.parametrize(
        ("name", "writer"),
        [
            pytest.param(
                name,
                writer,
                id=name,
                marks=pytest.mark.skipif(
                    package is not None and find_spec(package) is None,
                    reason=f"{package} is not installed",
                ),
            )
            for table in tables
            for name, (writer, package) in table.items()
        ],
    )


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "run")


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
@_writers(REPLACING)
def test_a_private_file_stays_private(name, writer, mode, tmp_path):
    path = tmp_path / name
    writer(path)
    path.chmod(mode)
    writer(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.stat().st_size > 0


@posix
@_writers(REPLACING, NEW)
def test_a_new_file_has_the_mode_that_the_umask_leaves(name, writer, tmp_path):
    before = os.umask(0o027)
    try:
        writer(tmp_path / name)
    finally:
        os.umask(before)
    mode = stat.S_IMODE((tmp_path / name).stat().st_mode)
    assert mode == (0o750 if (tmp_path / name).is_dir() else 0o640)


@posix
def test_no_byte_of_a_private_file_is_ever_readable_by_others(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "file").chmod(0o600)
    with whole_file(tmp_path / "file") as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600


@posix
@_writers(REPLACING, NEW)
def test_what_killed_processes_left_is_cleared_by_the_next_writer(name, writer, tmp_path):
    hidden = "." if name == "t.store" else ""
    left = tmp_path / f"{hidden}{name}.{'0' * 32}{PARTIAL}"
    left.write_bytes(b"torn")
    if hidden:
        left.with_suffix("").mkdir()
        (left.with_suffix("") / "features-00000.npy").write_bytes(b"torn")
    others = [f"{hidden}{name}.{PARTIAL}", f"other.{'0' * 32}{PARTIAL}", f"{name}.mine.partial"]
    for other in others:
        (tmp_path / other).write_bytes(b"mine")
    writer(tmp_path / name)
    expected = {name, *others}
    assert set(_names(tmp_path)) - {"report.csv", "records.csv"} == expected


@posix
@_writers(REPLACING, NEW)
def test_what_another_process_holds_is_left_to_it(name, writer, tmp_path):
    hidden = "." if name == "t.store" else ""
    left = tmp_path / f"{hidden}{name}.{'0' * 32}{PARTIAL}"
    with left.open("w+b") as file:
        assert lock(file.fileno())
        writer(tmp_path / name)
        assert left.exists()


KILLED = """
import os, signal, sys
sys.path[:0] = [{tests!r}, {here!r}]
from pathlib import Path
from test_whole_file import NEW, REPLACING

name, folder = {name!r}, Path({folder!r})
os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
(REPLACING | NEW)[name][0](folder / name)
"""


@posix
@pytest.mark.parametrize("name", ["head", "t.store"])
def test_a_killed_writer_leaves_what_the_next_one_clears(name, tmp_path):
    here = Path(__file__).parent
    given = {"tests": str(here.parent), "here": str(here), "name": name}
    script = KILLED.format(**given, folder=str(tmp_path))
    killed = subprocess.run([sys.executable, "-c", script], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert _names(tmp_path)
    assert name not in _names(tmp_path)
    (REPLACING | NEW)[name][0](tmp_path / name)
    assert _names(tmp_path) == [name]


@_writers(REPLACING, NEW)
def test_a_full_disk_leaves_what_was_there_and_nothing_else(name, writer, tmp_path, monkeypatch):
    if name in REPLACING:
        writer(tmp_path / name)
        before = (tmp_path / name).read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        writer(tmp_path / name)
    if name in REPLACING:
        assert (tmp_path / name).read_bytes() == before
    assert _names(tmp_path) == [name] * (name in REPLACING)


@_writers(REPLACING)
def test_a_link_stays_a_link(name, writer, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / name).symlink_to(tmp_path / "elsewhere" / name)
    writer(tmp_path / name)
    assert (tmp_path / name).is_symlink()
    assert _names(tmp_path / "elsewhere") == [name]


@posix
@_writers(REPLACING, NEW)
def test_a_file_is_on_disk_before_it_has_its_name_and_the_name_after(
    name, writer, tmp_path, monkeypatch
):
    path, steps = tmp_path / name, []
    sync = os.fsync

    def noted(descriptor):
        steps.append((path.exists(), stat.S_ISDIR(os.fstat(descriptor).st_mode)))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    writer(path)
    assert steps[0] == (False, False)
    assert steps[-1] == (True, True)


@posix
def test_a_file_that_was_cleared_away_before_it_was_locked_is_begun_anew(tmp_path, monkeypatch):
    from skdare.persist import _whole_file

    def cleared(descriptor):
        if not seen:
            next(tmp_path.glob(f"*{PARTIAL}")).unlink()
        seen.append(descriptor)
        return lock(descriptor)

    seen = []
    monkeypatch.setattr(_whole_file, "lock", cleared)
    with partial_file(tmp_path / "file") as partial:
        assert partial.path.exists()
        partial.keep(tmp_path / "file")
    assert len(seen) == 2
    assert _names(tmp_path) == ["file"]


@posix
def test_a_store_that_fails_leaves_nothing(tmp_path, monkeypatch):
    from skdare.datasets import _store_writer

    def fail(*_):
        raise RuntimeError("halfway")

    monkeypatch.setattr(_store_writer._HashedFile, "write", fail)
    with pytest.raises(RuntimeError, match="halfway"):
        write_store(tmp_path / "store", DATA)
    assert _names(tmp_path) == []


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(errno.ENOENT, "No such file or directory", "input.npy"),
        ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"),
    ],
)
def test_an_error_of_something_else_is_not_blamed_on_the_file(error, tmp_path):
    with pytest.raises(type(error)) as raised, whole_file(tmp_path / "file"):
        raise error
    assert raised.value is error
    assert _names(tmp_path) == []
