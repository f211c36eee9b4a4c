"""What no reading of a file may do, and the law for files that others wrote or that are damaged.

Whatever is in a file, opening it ends in a result or in an error in words that names the file. It
runs no code, and takes no more memory than some times the file's size.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import array_api_compat.numpy  # noqa: F401 (runs code when it is imported, so before we watch)
import numpy as np
from click.testing import CliRunner, Result

import skdare
from skdare.cli import main
from skdare.datasets import DomainData

# Text and headers become Python objects, some tens of bytes for each of theirs.
TIMES, ROOM = 40, 1 << 20
# Libraries open files with buffers of their own, whatever the file's size.
LIBRARY_ROOM = 24 << 20
FORBIDDEN = ("compile", "exec", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen")
FORBIDDEN += ("socket.connect", "ctypes.dlopen", "pickle.find_class", "os.remove", "shutil.rmtree")
# Where the code of a module that is imported late comes from.
INSTALLED = (sys.prefix, sys.base_prefix, "<frozen ", str(Path(skdare.__file__).parent))
WATCH: dict[str, Any] = {"on": False, "seen": []}


def hear(event: str, arguments: tuple) -> None:
    if WATCH["on"] and event in FORBIDDEN:
        code = ""
        if event == "exec":
            code = getattr(arguments[0], "co_filename", "")
        elif event == "compile":
            code = str(arguments[1])
        if not code.startswith(INSTALLED):
            WATCH["seen"].append(event)


sys.addaudithook(hear)


@contextmanager
def harmless(size: int, *, times: int = TIMES, room: int = ROOM, allowed=()) -> Iterator[None]:
    """Within, nothing forbidden happens, and memory stays within what ``size`` bytes explain."""
    tracemalloc.start()
    WATCH["on"] = True
    try:
        yield
    finally:
        WATCH["on"] = False
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        seen, WATCH["seen"] = [e for e in WATCH["seen"] if e not in allowed], []
    assert not seen, f"reading did what it must not: {seen}"
    assert peak < times * size + room, f"{peak:,} bytes were taken for a file of {size:,}"


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files of a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.lstat().st_size for file in files if not file.is_dir())


def read_or_refuse(look: Callable[[Path], Any], path: Path) -> Any:
    """What ``look`` makes of a file, or None where it refuses it by name."""
    try:
        return look(path)
    except (ValueError, OSError) as error:
        if path.name not in str(error):
            raise AssertionError(f"refused without the file's name: {error}") from error
        return None


def command(*arguments: object) -> Result:
    """Run a command of ours: it ends well, or in one line that says why not."""
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in (0, 1, 2), result.exit_code
    assert "Traceback" not in result.output
    if result.exit_code == 2:
        assert "error: " in result.stderr.lower(), result.stderr
    return result


def assert_consistent(data: DomainData) -> None:
    """Rows of everything agree, there are some, and no value is infinite."""
    n = len(data.y)
    assert n > 0
    assert data.X.ndim == 2
    assert data.X.dtype.kind == "f"
    assert len(data.X) == len(data.domains) == n
    assert data.split is None or (len(data.split) == n and data.split.dtype == bool)
    assert not np.isinf(np.asarray(data.X)).any()
    assert len(data.domains)
    assert data.y.dtype.kind != "f" or np.isfinite(data.y).all()
    assert data.feature_names is None or len(data.feature_names) == data.X.shape[1]
