"""A table of accuracy on held-out domains, to which one function adds a row.

    OPENBLAS_NUM_THREADS=1 python benchmarks/leaderboard.py --data DIR --records scores.jsonl
    python benchmarks/leaderboard.py --data fetch --sets heart gas office
    python benchmarks/leaderboard.py --data DIR --records scores.jsonl --method mine.py:my_method

Each domain of a set is held out in turn (``--domains N``: N of them, evenly spread), and a method
predicts its rows from all others. A method is one function, as `leaderboard_methods.py` says;
``--method FILE.py:FUNCTION`` adds one from any file, and changes nothing else. What was measured is
kept in ``--records`` and not measured again, unless the function's code, skdare's version or the
data changed; what failed is tried again. Progress goes to stderr, the table to stdout.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import inspect
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import skdare
from leaderboard_methods import METHODS, Method
from real_data import LOADERS, Fold, Root, available, data_root, standardized_folds
from tables import average, percent, table, unique

DOMAINS = 5


def main(argv: Sequence[str] | None = None) -> None:
    """Measure what is not measured yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder of the sets (default: $SKDARE_DATA), or `fetch`")
    parser.add_argument("--sets", nargs="+", choices=LOADERS, help="default: all of classes")
    parser.add_argument("--domains", type=int, default=DOMAINS, help="held out of each set")
    parser.add_argument("--method", action="append", default=[], metavar="FILE.py:FUNCTION")
    parser.add_argument("--records", type=Path, help="JSONL file of scores, to go on from")
    options = parser.parse_args(argv)
    methods = [*METHODS, *map(load_method, options.method)]
    check_names(methods)
    root = data_root(options.data)
    board = Board.read(options.records)
    warnings.simplefilter("ignore")  # label shift, and solvers that stop early: it is in the scores
    records = []
    for fold in chosen_folds(root, options.sets or available(root), options.domains):
        records += [board.record(method, fold) for method in methods]
    print(report(records, methods))


def load_method(place: str) -> Method:
    """The function that FILE.py:FUNCTION names."""
    file, _, name = place.rpartition(":")
    if not Path(file).is_file():
        raise SystemExit(f"no file {file or place}; give --method FILE.py:FUNCTION")
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    method = getattr(module, name, None)
    if not callable(method):
        raise SystemExit(f"{file} has no function {name}")
    return method


def check_names(methods: Sequence[Method]) -> None:
    """Refuse two methods of one name: their scores could not be told apart."""
    for name, times in Counter(method.__name__ for method in methods).items():
        if times > 1:
            raise SystemExit(f"{times} methods are called {name}; rename the one that you add")


def chosen_folds(root: Root, names: Sequence[str], domains: int) -> Iterator[Fold]:
    """Some folds of each set of classes, evenly spread."""
    for name in names:
        folds = standardized_folds(name, root)
        if folds[0].task != "classification":
            continue
        spread = np.linspace(0, len(folds) - 1, min(domains, len(folds)))
        yield from (folds[int(i)] for i in spread)


@dataclass
class Board:
    """Scores that are known, and a file that new ones are added to.

    Parameters
    ----------
    known : dict of key to record
    file : Path, optional
    """

    known: dict[str, dict]
    file: Path | None = None

    @classmethod
    def read(cls, file: Path | None) -> Board:
        """The scores of a file, if there is one; failures are left out, to be tried again."""
        lines = file.read_text(encoding="utf-8").splitlines() if file and file.exists() else []
        records = [json.loads(line) for line in lines]
        return cls({record["key"]: record for record in records if "score" in record}, file)

    def record(self, method: Method, fold: Fold) -> dict:
        """The record of a method on a fold, measured if it is not known."""
        key = _key(method, fold)
        if key not in self.known:
            self.known[key] = {"key": key, **measured(method, fold)}
            print(self.known[key], file=sys.stderr, flush=True)
            if self.file:
                with self.file.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(self.known[key]) + "\n")
        return self.known[key]


def _key(method: Method, fold: Fold) -> str:
    """Set, domain, method, and digits that change with its code, with skdare and with the data."""
    digest = hashlib.sha256(inspect.getsource(method).encode())
    digest.update(skdare.__version__.encode())
    for rows in (fold.train, fold.test):
        digest.update(np.ascontiguousarray(rows.X).data)
        for labels in (rows.y, rows.domains):
            digest.update("\n".join(map(str, labels)).encode())
    return f"{fold.name} {fold.held_out} {method.__name__} {digest.hexdigest()[:16]}"


def measured(method: Method, fold: Fold) -> dict:
    """Accuracy and seconds of a method on a fold, or why there is none."""
    record = {"set": fold.name, "held_out": fold.held_out, "method": method.__name__}
    train = fold.train
    # A method may work in place, and the next one has the same fold.
    arrays = [array.copy() for array in (train.X, train.y, train.domains, fold.test.X)]
    # Of the processor, with one thread: other work on the machine does not count.
    start = time.process_time()
    try:
        labels = np.asarray(method(*arrays))
    except Exception as error:
        return record | {"failed": f"{type(error).__name__}: {error}"}
    seconds = time.process_time() - start
    if labels.shape != fold.test.y.shape:
        needed = f"{len(fold.test.y)} labels are needed, one for each new row"
        return record | {"failed": f"returned an array of shape {labels.shape}; {needed}"}
    return record | {"score": float(np.mean(labels == fold.test.y)), "seconds": seconds}


def report(records: Sequence[dict], methods: Sequence[Method]) -> str:
    """Markdown: the table, what each method is, and what failed."""
    scored = [record for record in records if "score" in record]
    failed = [record for record in records if "failed" in record]
    sets = unique(records, "set")
    means = average(scored, "method", "set")
    lost = {(record["method"], record["set"]) for record in failed}
    seconds = average(scored, "method", value="seconds")
    rows = []
    for method in methods:
        name = method.__name__
        cells = [means[name, s] if (name, s) not in lost else None for s in sets]
        # A mean over fewer sets could not be compared.
        cells.append(None if None in cells else float(np.mean(cells)))
        accuracies = ["–" if cell is None else percent(cell) for cell in cells]
        time_taken = f"{seconds[name,]:.1f}" if (name,) in seconds else "–"
        rows.append((cells[-1] or 0.0, [f"`{name}`", *accuracies, time_taken]))
    rows.sort(key=lambda row: row[0], reverse=True)
    header = ["method", *sets, "mean", "seconds"]
    held_out = [f"{s} {len({r['held_out'] for r in records if r['set'] == s})}" for s in sets]
    parts = [
        table(header, [cells for _, cells in rows]),
        f"Accuracy (%), mean over held-out domains: {', '.join(held_out)}. “Mean” is over sets, "
        "“seconds” is processor time for one held-out domain, choices and adapting included.\n",
        "".join(f"- `{m.__name__}`: {_first_line(m)}\n" for m in methods),
        "".join(f"- {r['method']} on {r['set']} {r['held_out']}: {r['failed']}\n" for r in failed),
    ]
    return "\n".join(part for part in parts if part)


def _first_line(method: Method) -> str:
    return (inspect.getdoc(method) or "no description").splitlines()[0]


if __name__ == "__main__":
    main()
