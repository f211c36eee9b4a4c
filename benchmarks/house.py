"""The size of the house, and what a newcomer walks through: python benchmarks/house.py

Lines and files by folder of the package and of its tests, and the modules and functions of ours
that a fit, a prediction and other calls cross on a small problem. Functions are counted as Python
3.12 runs them: comprehensions belong to the function that they stand in.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import skdare
from skdare.data.synthetic import make_latent_domains

SOURCE = Path(skdare.__file__).parent
TESTS = Path(__file__).resolve().parents[1] / "tests"
# Modules and functions of ours that a walk may cross; None has no goal.
GOALS: dict[str, tuple[int | None, int | None]] = {
    "fit": (20, 140),
    "predict": (5, None),
    "adapt": (16, None),
    "save": (4, None),
    "search": (30, 280),
    "bench of a CSV file": (50, None),
}
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<module>")


@dataclass
class Walk:
    """Functions of ours, by module, in the order in which they were first called."""

    functions: dict[str, dict[str, None]] = field(default_factory=dict)

    @contextmanager
    def recorded(self) -> Iterator[None]:
        def record(frame: Any, event: str, _: Any) -> None:
            code = frame.f_code
            if event == "call" and code.co_filename.startswith(str(SOURCE)):
                name = code.co_qualname
                if not name.endswith(_COMPREHENSIONS):
                    module = str(Path(code.co_filename).relative_to(SOURCE))
                    self.functions.setdefault(module, {})[name] = None

        before = sys.getprofile()
        sys.setprofile(record)
        try:
            yield
        finally:
            sys.setprofile(before)

    @property
    def modules(self) -> int:
        return len(self.functions)

    @property
    def count(self) -> int:
        return sum(map(len, self.functions.values()))


def walks(names: tuple[str, ...] = tuple(GOALS)) -> dict[str, Walk]:
    """The walks of these names on 900 rows of 8 features and 3 domains, after one that warms up."""
    data = make_latent_domains(n_domains=4, random_state=0)
    new = data.domains == 3
    DAREClassifier, DAREClassifierCV = skdare.DAREClassifier, skdare.DAREClassifierCV
    X, y, domains = data.X[~new], data.y[~new], data.domains[~new]
    head = DAREClassifier().fit(X, y, domains=domains)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "rows.csv")
        columns = ",".join([*(f"x{j}" for j in range(X.shape[1])), "y", "domain"])
        rows = np.column_stack([X, y, domains])
        np.savetxt(table, rows, "%.6g", ",", header=columns, comments="")

        def bench() -> None:
            from skdare.cli import app

            records = Path(tempfile.mkdtemp(dir=folder))
            words = f"bench {table} --target y --domains domain --heads erm,dare --out {records}"
            nothing = open(os.devnull, "w")  # noqa: SIM115
            with nothing, redirect_stdout(nothing), redirect_stderr(nothing), suppress(SystemExit):
                app.meta(words.split(), exit_on_error=False, print_error=False)

        calls: dict[str, Callable[[], Any]] = {
            "fit": lambda: DAREClassifier().fit(X, y, domains=domains),
            "predict": lambda: head.predict(data.X[new]),
            "adapt": lambda: head.adapt(data.X[new]),
            "save": lambda: head.save(f"{folder}/head.safetensors"),
            "search": lambda: DAREClassifierCV().fit(X, y, domains=domains),
            "bench of a CSV file": bench,
        }
        found = {}
        for name in names:
            found[name] = Walk()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                calls[name]()  # imports and caches are no part of the walk
                with found[name].recorded():
                    calls[name]()
    return found


def sizes(folder: Path) -> dict[str, tuple[int, int]]:
    """Lines and files of Python by folder below this one."""
    found: dict[str, tuple[int, int]] = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).parts
        name = parts[0] + "/" if len(parts) > 1 else parts[0]
        lines, files = found.get(name, (0, 0))
        found[name] = lines + len(path.read_text("utf-8").splitlines()), files + 1
    return found


def main() -> None:
    for folder in (SOURCE, TESTS):
        by_folder = sizes(folder)
        print(f"{folder.name:<24}{'lines':>8}{'files':>8}")
        for name, (lines, files) in by_folder.items():
            print(f"  {name:<22}{lines:>8,}{files:>8}")
        lines, files = np.sum(list(by_folder.values()), axis=0)
        print(f"  {'all':<22}{lines:>8,}{files:>8}\n")
    print(f"{'walk':<24}{'modules':>8}{'goal':>8}{'functions':>11}{'goal':>8}")
    for name, walk in walks().items():
        modules, functions = ("" if goal is None else str(goal) for goal in GOALS[name])
        print(f"  {name:<22}{walk.modules:>8}{modules:>8}{walk.count:>11}{functions:>8}")
    if "-v" in sys.argv:
        for name, walk in walks().items():
            print(f"\n{name}")
            for module, functions in walk.functions.items():
                print(f"  {module}: {', '.join(functions)}")


if __name__ == "__main__":
    main()
