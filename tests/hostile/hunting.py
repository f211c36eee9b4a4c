"""A hunt: the cases of one test, each with a number, randomness and a folder of its own.

A case that breaks the law does not end the hunt. Its folder is kept, and the test fails at the end
with one case of every kind of failure, and with the words to run it again.
"""

from __future__ import annotations

import shutil
import signal
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

SEED, MINUTES = 7, 3.0
# Far beyond what any case takes, on any machine: a case that is not over by then hangs.
SECONDS = 600


@contextmanager
def no_hang() -> Iterator[None]:
    """Fail where what is done within does not end; where the system has no alarm, it waits."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def ring(number: int, frame: object) -> None:
        raise AssertionError(f"this hangs: it is not over after {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@dataclass
class Case:
    """One try; used as a context manager, it notes what is raised within and goes on.

    Parameters
    ----------
    number : int
    rng : numpy.random.Generator
        Depends on the seed, the test and the number alone.
    folder : Path
        Empty; removed afterwards unless the case fails.
    """

    number: int
    rng: np.random.Generator
    folder: Path
    failure: Exception | None = None

    def __enter__(self) -> Case:
        self.folder.mkdir()
        self._alarm = no_hang()
        self._alarm.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self._alarm.__exit__(None, None, None)
        if isinstance(error, Exception):
            self.failure = error
            return True
        if error is None:
            shutil.rmtree(self.folder)
        return False

    def kind(self) -> tuple[str, str]:
        """What was raised, and where: failures of one kind have one cause as a rule."""
        places = traceback.extract_tb(self.failure.__traceback__)
        ours = [place for place in places if "skdare" in Path(place.filename).parts] or places
        return type(self.failure).__name__, f"{ours[-1].filename}:{ours[-1].lineno}"


@dataclass(frozen=True)
class Hunt:
    """As many cases as the budget pays for."""

    test: str
    folder: Path
    seed: int
    minutes: float
    only: int | None = None
    failed: dict[tuple[str, str], list[Case]] = field(default_factory=dict)

    def count(self, rate: float) -> int:
        """Cases in all, of so many a minute of budget; at least one."""
        return max(1, round(rate * self.minutes))

    def case(self, number: int) -> Case:
        """The case of this number, which depends on no other."""
        rng = np.random.default_rng([self.seed, zlib.crc32(self.test.encode()), number])
        return Case(number, rng, self.folder / f"case-{number}")

    def __call__(self, rate: float) -> Iterator[Case]:
        """Cases, one after the other; afterwards, a failure where one of them failed."""
        numbers = range(self.count(rate)) if self.only is None else [self.only]
        for number in numbers:
            case = self.case(number)
            yield case
            if case.failure is not None:
                self.failed.setdefault(case.kind(), []).append(case)
        if self.failed:
            raise ExceptionGroup(self._summary(len(numbers)), list(self._failures()))

    def _summary(self, tried: int) -> str:
        count = sum(map(len, self.failed.values()))
        return f"{count} of {tried} cases failed, in {len(self.failed)} ways"

    def _failures(self) -> Iterator[Exception]:
        """The first of every kind, with what is needed to see it again."""
        for cases in self.failed.values():
            first = cases[0]
            first.failure.add_note(
                f"case {first.number} of {self.test}, and {len(cases) - 1} more like it\n"
                f"again: pytest tests/hostile/{self.test!r} --seed {self.seed} "
                f"--case {first.number}\nits files: {first.folder}"
            )
            yield first.failure


@dataclass(frozen=True)
class Search:
    """A law that hypothesis tries to break, with as many examples as the budget pays for."""

    hunt: Hunt

    def __call__(self, rate: float, **strategies: Any) -> Callable[[Callable[..., None]], None]:
        """A decorator that looks for a counterexample at once."""
        from hypothesis import HealthCheck, Phase, given, settings
        from hypothesis import seed as seeded

        chosen = settings(
            max_examples=self.hunt.count(rate),
            deadline=None,
            database=None,
            # To explain takes longer than to find.
            phases=[Phase.explicit, Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )

        def look(law: Callable[..., None]) -> None:
            seed = zlib.crc32(f"{self.hunt.seed} {self.hunt.test}".encode())
            try:
                seeded(seed)(chosen(given(**strategies)(law)))()
            except Exception as error:
                error.add_note(
                    f"again: pytest tests/hostile/{self.hunt.test!r} --seed {self.hunt.seed} "
                    f"--minutes {self.hunt.minutes:g}"
                )
                raise

        return look
