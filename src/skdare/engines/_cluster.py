"""A Dask cluster as passes see it: places for tasks, objects held there, and word of losses."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from typing import Any

# Seconds: between looks at the cluster while tasks run; until a lost scheduler, and until the
# first worker after all were lost, are given up.
_LOOK = 1.0
SCHEDULER_WAIT = 15.0
WORKER_WAIT = 60.0


class Lost(Exception):
    """Tasks, or what they needed, went with a worker or a connection."""


class Cluster:
    """What passes need of a client.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        # Kept, because a client that was closed has forgotten it.
        self.address = client.scheduler.address

    def places(self) -> list[str]:
        """The address of each worker, once for each of its threads; waits for the first."""
        deadline = time.monotonic() + WORKER_WAIT
        while True:
            self._await_scheduler()
            threads = self._ask(self.client.nthreads)
            if threads:
                return [worker for worker in sorted(threads) for _ in range(threads[worker])]
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"the scheduler at {self.address} has had no worker for {WORKER_WAIT:.0f} "
                    f"seconds; start one with `dask worker {self.address}`, and fit again: the "
                    "head and its data are as they were"
                )
            time.sleep(0.2)

    def hold(self, values: Sequence[Any], place: str | None = None) -> list[Any]:
        """Futures of objects that lie with a worker."""
        workers = None if place is None else [place]
        options = {"workers": workers, "hash": False, "timeout": 10}
        return self._ask(lambda: self.client.scatter(list(values), **options))

    def held(self, futures: Sequence[Any]) -> list[bool]:
        """Whether what each future stands for is still somewhere."""
        there = [future for future in futures if future.status == "finished"]
        holders = self._ask(lambda: self.client.who_has(there)) if there else {}
        return [bool(holders.get(future.key)) for future in futures]

    def submit(self, function: Callable[..., Any], *arguments: Any, place: str | None) -> Any:
        """A future of a function of objects, some of which are futures."""
        workers = None if place is None else [place]
        return self._ask(
            lambda: self.client.submit(function, *arguments, workers=workers, pure=False)
        )

    def results(self, futures: Sequence[Any], places: set[str]) -> list[Any]:
        """What tasks returned, or the error of one; `Lost` where workers went.

        ``places`` are the workers that the tasks need.
        """
        # By hand, not client.gather alone: a task bound to a worker that is gone waits for ever.
        loop = self.client.loop.asyncio_loop
        gathered = asyncio.run_coroutine_threadsafe(self._gather(futures), loop)
        try:
            while True:
                try:
                    return gathered.result(timeout=_LOOK)
                except TimeoutError:
                    if gathered.done():
                        raise
                    self._look_for(places)
        except CancelledError as error:
            raise Lost from error
        except Exception as error:
            if type(error).__module__.partition(".")[0] == "distributed":
                raise Lost from error
            raise
        finally:
            gathered.cancel()
            del gathered  # it has the error, the error this frame, and this frame the futures

    async def _gather(self, futures: Sequence[Any]) -> list[Any]:
        return await self.client.gather(list(futures), asynchronous=True)

    def _look_for(self, places: set[str]) -> None:
        if self.client.status != "running":
            raise Lost(f"the client is {self.client.status}")
        present = self._ask(self.client.nthreads)
        if not present or not places <= set(present):
            raise Lost("workers are gone")

    def _ask(self, question: Callable[[], Any]) -> Any:
        """Talk to the scheduler."""
        try:
            return question()
        except (OSError, TimeoutError, LookupError, ValueError, CancelledError) as error:
            raise Lost from error
        except RuntimeError as error:
            if self.client.status == "running":
                raise
            raise Lost from error

    def _await_scheduler(self) -> None:
        """Wait for a connection that was lost to come back."""
        deadline = time.monotonic() + SCHEDULER_WAIT
        while self.client.status != "running":
            if self.client.status in ("closing", "closed") or time.monotonic() > deadline:
                raise RuntimeError(
                    f"the scheduler at {self.address} is gone; the head and its data are as they "
                    "were: start it and its workers again, make a new client, and fit again"
                )
            time.sleep(0.1)


def release(futures: Iterable[Any]) -> None:
    """Let workers drop what futures stand for, whoever else still has these."""
    for future in futures:
        future.release()
