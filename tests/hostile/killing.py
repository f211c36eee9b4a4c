"""Work that is killed at any moment: a process of its own forks a child for every try.

It imports once what the work needs, so that a moment that is drawn falls into the work and not into
the imports. Run as a program, this module is that process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np

TESTS = Path(__file__).parents[1]
CAN_KILL = hasattr(os, "fork")
ROWS, CALLS = 400, 4


@dataclass(frozen=True)
class Work:
    """Something to do in a folder, again and again until it is whole; and what it imports."""

    do: Callable[[Path], None]
    imports: tuple[str, ...]


def bench(folder: Path) -> None:
    """A small bench from the command line; its table is beside the folder."""
    _command(
        *("bench", folder.parent / "t.npz", "--trials", "3", "--heads", "erm,dare", "--jobs", "2"),
        *("--with", "none", "--out", folder / "run", "--quiet"),
    )


def save(folder: Path) -> None:
    """Two heads that take turns in one file."""
    import skdare

    heads = [skdare.load(folder.parent / name) for name in ("old", "new")]
    for number in range(1, 20):
        heads[number % 2].save(folder / "head")


def store(folder: Path) -> None:
    """A store of some shards, taken up where it was left."""
    from skdare.datasets import store_info
    from small_stores import CODED, begin, feed, table

    path = folder / "table"
    if not ((path / "manifest.json").exists() and store_info(path).finished):
        with begin(path, **CODED, resume=True) as writer:
            feed(writer, table())


def convert(folder: Path) -> None:
    """A table written as every kind of file, and as a store, each at once."""
    for name in ("a.npz", "a.csv.gz", "a"):
        if not (folder / name).exists():
            _command("features", "convert", folder.parent / "t.npz", folder / name)


def adapt(folder: Path) -> None:
    """A stream that several calls go on with; those whose rows it has seen are left out."""
    import skdare

    state = folder / "stream"
    head = skdare.load(folder.parent / "head")
    seen = head.resume(state).n_seen_ if state.exists() else 0
    assert seen % ROWS == 0
    for call in range(seen // ROWS, CALLS):
        rows = folder.parent / f"rows-{call}.npy"
        _command(
            "adapt", folder.parent / "head", rows, "--state", state, "--out", folder / "adapted"
        )


def train(folder: Path) -> None:
    """A small network, with a state kept after every block of steps."""
    from dataclasses import replace

    from skdare.features.training import trainer as module
    from skdare.features.training.recipe import Job
    from small_networks import FAST, trainer

    module.SAVE_EVERY = 0.0
    trainer(folder / "run", recipe=replace(FAST, steps=60, check_every=15))([Job("a", 0)])


def extract(folder: Path) -> None:
    """Features of a small network, in shards of ten rows."""
    from skdare.features import Extractor, backbone, extractor, reader
    from small_networks import images

    extractor._ROWS_PER_SHARD["cpu"] = 10
    reader.CHUNK["cpu"] = 10
    Extractor(images(), backbone("tiny"), device="cpu").pretrained(folder / "store")


def _command(*arguments: object) -> None:
    from skdare.cli import main

    main([str(argument) for argument in arguments], standalone_mode=False)


_NETWORKS = ("torch", "small_networks", "skdare.features")
WORKS = {
    "bench": Work(bench, ("skdare.bench", "skdare.cli._bench", "skdare.report")),
    "save": Work(save, ("skdare.heads",)),
    "store": Work(store, ("small_stores",)),
    "convert": Work(convert, ("skdare.datasets", "skdare.cli._features", "skdare.cli._options")),
    "adapt": Work(adapt, ("skdare.heads", "skdare.datasets", "skdare.cli._adapt")),
    "train": Work(train, _NETWORKS),
    "extract": Work(extract, _NETWORKS),
}


class Mortal:
    """Does a work in children that can be killed.

    Parameters
    ----------
    work : str
        One of `WORKS`.
    log : Path
        What the children say on the way.
    """

    def __init__(self, work: str, log: Path) -> None:
        self._log = log.open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__, work],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._log.close()

    def _ask(self, folder: Path, seconds: float | None) -> dict[str, Any]:
        self._process.stdin.write(json.dumps([str(folder), seconds]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def finish(self, folder: Path) -> float:
        """Do the work to its end; how many seconds that took."""
        told = self._ask(folder, None)
        assert told["status"] == 0, f"the work failed, as {self._log.name} says"
        return told["seconds"]

    def kill(self, folder: Path, seconds: float) -> None:
        """Begin the work, and kill it after so many seconds; it may be done by then."""
        told = self._ask(folder, seconds)
        assert told["status"] in (0, signal.SIGKILL), f"it failed, as {self._log.name} says"

    def survive(self, folder: Path, whole: float, rng: np.random.Generator) -> int:
        """Kill the work some times at random moments of what is left of it; how often."""
        kills = int(rng.integers(1, 4))
        for _ in range(kills):
            self.kill(folder, float(whole * rng.random()))
        return kills


def _serve(work: Work) -> None:
    """Answer requests for the work; each is done by a child of its own."""
    for name in work.imports:
        import_module(name)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what children print is no answer
    for line in sys.stdin:
        folder, seconds = json.loads(line)
        begin = time.monotonic()
        child = os.fork()
        if not child:
            try:
                work.do(Path(folder))
            except BaseException:
                import traceback

                traceback.print_exc()
                sys.stderr.flush()
                os._exit(1)
            os._exit(0)
        if seconds is not None:
            time.sleep(seconds)
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        print(json.dumps({"status": status, "seconds": time.monotonic() - begin}), file=answers)
        answers.flush()


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    _serve(WORKS[sys.argv[1]])
