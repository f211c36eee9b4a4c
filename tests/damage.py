"""Damaged bytes, and what no reading of a damaged file may do."""

from __future__ import annotations

import os
import signal
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

# SEED=12 pytest -m hostile tries other cases.
SEED = int(os.environ.get("SEED", "0"))
# Far beyond what a case takes, on any machine.
_SECONDS = 60
_FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect")
_FORBIDDEN += ("ctypes.dlopen", "pickle.find_class", "os.remove", "shutil.rmtree")
_WATCH: dict = {"on": False, "seen": []}


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Bits flipped, bytes replaced, pieces cut out, doubled or moved, or the end cut off."""
    changed = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        if not changed:
            break
        a, c = (int(place) for place in rng.integers(len(changed), size=2))
        b = min(a + int(rng.integers(1, 64)), len(changed))
        match rng.integers(8):
            case 0 | 1:
                changed[a] ^= 1 << int(rng.integers(8))
            case 2:
                changed[a:b] = rng.bytes(b - a)
            case 3:
                del changed[a:b]
            case 4:
                changed[a:a] = changed[a:b]
            case 5:
                del changed[a:]
            case 6:
                changed[:8] = int(rng.integers(1 << 62)).to_bytes(8, "little")
            case 7:
                changed[a:b], changed[c : c + b - a] = changed[c : c + b - a], changed[a:b]
    return bytes(changed)


def _hear(event: str, arguments: tuple) -> None:
    if _WATCH["on"] and event in _FORBIDDEN:
        _WATCH["seen"].append(event)


sys.addaudithook(_hear)


@contextmanager
def harmless(path: Path, *, times: int = 60, room: int = 32 << 20) -> Iterator[None]:
    """Within, nothing hangs, no code of others runs, and memory stays near the file's size."""

    def ring(number: int, frame: object) -> None:
        raise AssertionError(f"this hangs: it is not over after {_SECONDS} seconds")

    files = path.rglob("*") if path.is_dir() else [path]
    size = sum(file.stat().st_size for file in files if file.is_file())
    before = signal.signal(signal.SIGALRM, ring) if hasattr(signal, "SIGALRM") else None
    tracemalloc.start()
    _WATCH["on"] = True
    try:
        if before is not None:
            signal.alarm(_SECONDS)
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        _WATCH["on"] = False
        tracemalloc.stop()
        if before is not None:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
        seen, _WATCH["seen"] = _WATCH["seen"], []
    assert not seen, f"reading did what it must not: {seen}"
    assert peak < times * size + room, f"{peak:,} bytes were taken for a file of {size:,}"
