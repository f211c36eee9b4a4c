"""Which trials a bench has, and which of them are still to do."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Set
from dataclasses import asdict, dataclass

from skdare.bench.settings import Settings


@dataclass(frozen=True)
class Trial:
    """One head on one held-out domain, once."""

    head: str
    held_out: str
    repeat: int

    def key(self, fingerprint: str, settings: Settings, version: str = "") -> str:
        """A hash of everything that decides the result; ``version`` is of the head."""
        parts = [fingerprint, settings.decisive(), asdict(self), version]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:20]


@dataclass(frozen=True)
class Plan:
    """The trials of a bench, by key, in the order in which they run."""

    trials: dict[str, Trial]

    @classmethod
    def of(cls, settings: Settings, fingerprint: str, versions: Mapping[str, str]) -> Plan:
        """All heads on all held-out domains; ``versions`` tell heads that users bring apart."""
        trials = [
            Trial(head, held_out, repeat)
            for held_out in settings.held_out
            for repeat in range(settings.repeats)
            for head in settings.heads
        ]
        keys = [t.key(fingerprint, settings, versions.get(t.head, "")) for t in trials]
        return cls(dict(zip(keys, trials, strict=True)))

    def folds(self, done: Set[str]) -> Iterator[tuple[str, int, dict[str, str]]]:
        """Held-out domain, repeat, and the heads that are not done, each by the trial's key."""
        waiting: dict[tuple[str, int], dict[str, str]] = {}
        for key, trial in self.trials.items():
            if key not in done:
                waiting.setdefault((trial.held_out, trial.repeat), {})[key] = trial.head
        for (held_out, repeat), heads in waiting.items():
            yield held_out, repeat, heads
