"""Files and folders that are there whole, or as they were before: one law for all that write."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from skdare.data import RowWriter, write, write_store
from skdare.errors import InputError
from skdare.files import check_writable, locked, whole_file, whole_folder
from small_tables import table

posix = pytest.mark.skipif(os.name != "posix", reason="modes and signals are POSIX's")


def plain(path: Path) -> None:
    with whole_file(path) as file:
        file.write(b"new")


def rows(path: Path) -> None:
    with RowWriter(path) as writer:
        writer.write({"id": np.arange(3)})


def tables(path: Path) -> None:
    write(table(), path)


def folder(path: Path) -> None:
    with whole_folder(path) as partial:
        partial.mkdir()
        (partial / "a").write_text("new")


REPLACING = {"head.safetensors": plain, "p.csv": rows, "p.csv.gz": rows, "p.parquet": rows}
REPLACING |= {"t.csv": tables, "t.npz": tables, "t.feather": tables}
NEW = {"folder": folder, "store": lambda path: write_store(path, table())}

replacing = pytest.mark.parametrize(("name", "writer"), REPLACING.items(), ids=REPLACING)
everything = pytest.mark.parametrize(
    ("name", "writer"), (REPLACING | NEW).items(), ids=REPLACING | NEW
)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
@replacing
def test_a_private_file_stays_private(name, writer, mode, tmp_path):
    path = tmp_path / name
    path.touch()
    path.chmod(mode)
    writer(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.stat().st_size > 0


@posix
def test_no_byte_of_a_private_file_is_ever_readable_by_others(tmp_path):
    (tmp_path / "file").touch(0o600)
    with whole_file(tmp_path / "file") as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600


@posix
@everything
def test_what_is_new_has_the_mode_that_the_umask_leaves(name, writer, tmp_path):
    before = os.umask(0o027)
    try:
        writer(tmp_path / name)
    finally:
        os.umask(before)
    mode = stat.S_IMODE((tmp_path / name).stat().st_mode)
    assert mode == (0o750 if (tmp_path / name).is_dir() else 0o640)


@everything
def test_what_killed_processes_left_is_removed_after_an_hour_and_nothing_else_is(
    name, writer, tmp_path
):
    left = tmp_path / f"{name}.{'0' * 32}.partial"
    left.mkdir() if name in NEW else left.touch()
    others = [f"{name}.partial", f"other.{'0' * 32}.partial", f"{name}.mine.partial"]
    young = f"{name}.{'1' * 32}.partial"
    for other in (*others, young):
        (tmp_path / other).touch()
    for path in tmp_path.iterdir():
        if path.name != young:
            os.utime(path, (time.time() - 4000,) * 2)
    writer(tmp_path / name)
    assert names(tmp_path) == sorted([name, young, *others])


@everything
def test_a_full_disk_leaves_what_was_there_and_names_the_file(name, writer, tmp_path, monkeypatch):
    if name in REPLACING:
        (tmp_path / name).write_text("old")

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    if name == "folder":
        monkeypatch.setattr(os, "rename", lambda *_: full(0))
    with pytest.raises(OSError, match=f"No space left.*{name}'$") as raised:
        writer(tmp_path / name)
    assert ".partial" not in str(raised.value)
    assert names(tmp_path) == [name] * (name in REPLACING)
    if name in REPLACING:
        assert (tmp_path / name).read_text() == "old"


LIMITED = """
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from test_files import REPLACING
REPLACING[{name!r}](Path({path!r}))
"""


def run(script: str) -> subprocess.CompletedProcess:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])
    }
    return subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )


@posix
@pytest.mark.slow
@pytest.mark.parametrize("name", ["t.csv", "t.npz", "t.feather"])
def test_a_disk_that_is_full_halfway_leaves_what_was_there(name, tmp_path):
    (tmp_path / name).write_text("old")
    ended = run(LIMITED.format(name=name, path=str(tmp_path / name)))
    assert ended.returncode == 1
    assert "File too large" in ended.stderr
    assert (tmp_path / name).read_text() == "old"
    assert names(tmp_path) == [name]


KILLED = """
import os, signal
from pathlib import Path
from test_files import NEW, REPLACING
os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
(REPLACING | NEW)[{name!r}](Path({path!r}))
"""


@posix
@pytest.mark.slow
@pytest.mark.parametrize("name", ["p.csv", "t.npz", "store"])
def test_a_killed_writer_leaves_what_was_there(name, tmp_path):
    if name in REPLACING:
        (tmp_path / name).write_text("old")
    ended = run(KILLED.format(name=name, path=str(tmp_path / name)))
    assert ended.returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 1 + (name in REPLACING)  # and what the next but one clears
    if name in REPLACING:
        assert (tmp_path / name).read_text() == "old"
    (REPLACING | NEW)[name](tmp_path / name)
    assert (tmp_path / name).exists()


@everything
def test_an_exception_leaves_what_was_there_and_is_not_blamed_on_the_file(name, writer, tmp_path):
    error = ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
    context = whole_folder if name in NEW else whole_file
    with pytest.raises(ConnectionResetError) as raised, context(tmp_path / name):
        raise error
    assert raised.value is error
    assert name not in str(error)
    with pytest.raises(FileNotFoundError, match=r"'input\.npy'"), context(tmp_path / name):
        Path("input.npy").read_bytes()
    assert names(tmp_path) == []


@replacing
def test_a_link_stays_a_link_and_its_target_is_replaced(name, writer, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / name).symlink_to(tmp_path / "elsewhere" / name)
    writer(tmp_path / name)
    assert (tmp_path / name).is_symlink()
    assert names(tmp_path / "elsewhere") == [name]


@posix
@everything
def test_what_is_written_is_on_disk_before_it_has_its_name_and_the_name_after(
    name, writer, tmp_path, monkeypatch
):
    path, steps = tmp_path / name, []
    sync = os.fsync

    def noted(descriptor):
        steps.append((path.exists(), stat.S_ISDIR(os.fstat(descriptor).st_mode)))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    writer(path)
    assert name == "folder" or steps[0] == (False, False)
    assert steps[-1] == (True, True)


def test_of_two_writers_each_writes_a_whole_file_and_the_last_one_stays(tmp_path):
    path = tmp_path / "file"
    contents = [bytes([65 + i]) * 200_000 for i in range(4)]

    def writing(content: bytes) -> None:
        for _ in range(5):
            with whole_file(path) as file:
                for start in range(0, len(content), 20_000):
                    file.write(content[start : start + 20_000])
            assert path.read_bytes() in contents

    threads = [threading.Thread(target=writing, args=[content]) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in contents
    assert names(tmp_path) == ["file"]


def test_of_two_who_make_a_folder_one_is_told(tmp_path):
    def slow() -> None:
        with whole_folder(tmp_path / "folder") as partial:
            partial.mkdir()
            (partial / "mine").touch()
            folder(tmp_path / "folder")

    with pytest.raises(InputError, match=r"'.*folder' exists already"):
        slow()
    assert names(tmp_path) == ["folder"]
    assert names(tmp_path / "folder") == ["a"]


def test_a_lock_keeps_others_out(tmp_path):
    order = []

    def second() -> None:
        with locked(tmp_path / "file"):
            order.append("second")

    with locked(tmp_path / "file"):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.1)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere/file", "cannot write to '.*file'; there is no folder '.*nowhere'"),
        ("folder", "cannot write to '.*folder'; it is a folder; give the name of a file"),
        ("pipe", "cannot write to '.*pipe'; it is not a file"),
    ],
)
def test_a_name_that_no_file_can_have_is_refused_before_any_work(name, words, tmp_path):
    (tmp_path / "folder").mkdir()
    if name == "pipe":
        if not hasattr(os, "mkfifo"):
            pytest.skip("the system has no named pipes")
        os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match=words):
        check_writable(tmp_path / name)
    with pytest.raises(InputError, match=words):
        plain(tmp_path / name)


READ_ONLY = """
import os, sys
from pathlib import Path
from test_files import NEW, REPLACING
if os.getuid() == 0:
    os.setuid(65534)
(REPLACING | NEW)[{name!r}](Path({path!r}))
"""


@posix
@pytest.mark.slow
@pytest.mark.parametrize("name", ["p.csv", "store"])
def test_an_unwritable_folder_is_reported_by_the_name_that_was_given(name):
    import tempfile

    with tempfile.TemporaryDirectory() as outside:
        Path(outside).chmod(0o755)
        (Path(outside) / "sealed").mkdir(mode=0o555)
        path = Path(outside) / "sealed" / name
        ended = run(READ_ONLY.format(name=name, path=str(path)))
    assert (
        ended.stderr.splitlines()[-1]
        == f"PermissionError: [Errno 13] Permission denied: {str(path)!r}"
    )
