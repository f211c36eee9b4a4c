"""The command line, run within the test's own process, and tables for it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skdare.cli import app, main

ROLES = ("--target", "died", "--domains", "site")


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def errors(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.startswith("error: ")]


@contextlib.contextmanager
def _as_found() -> Iterator[None]:
    """What a process has once is put back: arguments, the handler of SIGTERM, options of files."""
    arguments, handler, config = sys.argv, signal.getsignal(signal.SIGTERM), app.config
    try:
        yield
    finally:
        sys.argv = arguments
        signal.signal(signal.SIGTERM, handler)
        app.config = config


def run(*words: object, folder: Path, stdin: str = "") -> Done:
    """A command, in a folder."""
    out, err = io.StringIO(), io.StringIO()
    rows = io.TextIOWrapper(io.BytesIO(stdin.encode()))
    code = 0
    with _as_found(), contextlib.chdir(folder):
        sys.argv = ["skdare", *map(str, words)]
        before, sys.stdin = sys.stdin, rows
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        finally:
            sys.stdin = before
    return Done(code, out.getvalue(), err.getvalue())


def text(*words: object, folder: Path) -> str:
    """The answer of a command that must go well."""
    done = run(*words, folder=folder)
    assert done.code == 0, done.err
    return done.out


def answer(*words: object, folder: Path) -> Any:
    """The same as JSON, which has no NaN and is one line."""
    out = text(*words, "--json", folder=folder)
    assert out.count("\n") == 1
    return json.loads(out, parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def typed(command: str, **instead: str) -> list[str]:
    """The words after ``skdare`` of a command that was printed, with file names in their places."""
    program, *words = shlex.split(command)
    assert program == "skdare"
    return [instead.get(Path(word).stem, word) if word.isupper() or "NEW" in word else word
            for word in words]  # fmt: skip


def hospitals(rows: int = 80, seed: int = 1) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Four hospitals whose instruments differ, so that adapting pays, and a fifth one."""
    rng = np.random.default_rng(seed)
    tables = []
    for site in ("north", "south", "east", "west", "new"):
        y = rng.integers(2, size=rows)
        X = rng.normal(size=(rows, 3)) + np.outer(2 * y - 1, [1.0, 0.6, 0.0])
        X = X * np.exp(rng.normal(scale=0.7, size=3)) + rng.normal(scale=2.0, size=3)
        table = pd.DataFrame(X, columns=["a", "b", "c"])
        table.insert(0, "patient", [f"{site}{i}" for i in range(rows)])
        table["site"] = site
        table["died"] = np.where(y == 1, "yes", "no")
        tables.append(table)
    new = tables.pop()
    return pd.concat(tables, ignore_index=True), new


def snapshot(folder: Path) -> dict[Path, bytes | None]:
    """All that is in a folder but locks."""
    return {
        path: path.read_bytes() if path.is_file() and os.access(path, os.R_OK) else None
        for path in folder.rglob("*")
        if path.suffix != ".lock"
    }
