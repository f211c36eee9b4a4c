"""Records of held-out domains in a file, so that a benchmark goes on where it was stopped."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

from real_data import Fold


def resumed(
    out: str, folds: Iterable[Fold], measure: Callable[[Fold], Iterable[dict]]
) -> list[dict]:
    """All records: those in the file, and those of folds that it lacks, which are written to it.

    Parameters
    ----------
    out : str
        Path of a file with a record in each line.
    folds : iterable of Fold
    measure : callable
        From a fold to its records; each says its ``set`` and ``held_out``.
    """
    path = Path(out)
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {(record["set"], str(record["held_out"])) for record in done}
    with path.open("a", encoding="utf-8") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for fold in folds:
            if (fold.name, str(fold.held_out)) in known:
                continue
            lines = [json.dumps(record) for record in measure(fold)]
            # As they will be read from the file: keys are text there.
            done += map(json.loads, lines)
            file.writelines(f"{line}\n" for line in lines)
            file.flush()
            print(f"{fold.name} {fold.held_out}", file=sys.stderr, flush=True)
    return done
