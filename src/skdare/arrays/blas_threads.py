"""Threads of BLAS: one for small problems, whose products are over before threads have met."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

from skdare.arrays.libraries import Array

# Numbers in the rows, or in a matrix of features by features, from which threads are worth it. A
# product below takes about a millisecond. Threads that find a processor each gain less than that;
# where other programs have the processors, every product waits for the scheduler instead. With two
# threads on two busy processors, a search on 1,797 rows of 64 features took six times as long.
_SHARED = 1 << 20


class _SingleThread:
    """BLAS on one thread as long as anybody needs it so; the number is one for the process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._before: list[tuple[Any, int]] = []

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """One thread from the first who enters to the last who leaves."""
        with self._lock:
            if not self._users:
                self._before = [(library, library.num_threads) for library in _libraries()]
                for library in _libraries():
                    library.set_num_threads(1)
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._restore()

    def _restore(self) -> None:
        """The numbers before, unless somebody else has set others meanwhile."""
        for library, number in self._before:
            if library.num_threads == 1:
                library.set_num_threads(number)


_single_thread = _SingleThread()


@contextmanager
def threads_for(X: Array) -> Iterator[None]:
    """As many BLAS threads as help with rows: one for few small rows, else as many as are set."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    is_small = len(shape) == 2 and shape[1] * max(shape) < _SHARED
    with _single_thread() if is_small else nullcontext():
        yield


@cache
def _libraries() -> list[Any]:
    """The BLAS libraries of this process; to find them takes longer than a small fit."""
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)
