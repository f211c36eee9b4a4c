"""TOML files of options: whatever is in them, a command starts or says what is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from damage import damaged
from skdare.cli import main
from watching import command, harmless

COMMANDS = {"bench": ["bench"], "ablate": ["ablate", "lambda"]}
VALUES = ["1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "10" + "0" * 21, "-1", "0", "nan"]
VALUES += ["inf", "-inf", "1e400", '""', '"x"', "[]", "[[1]]", "{}", "{a = 1}", "true", "false"]
VALUES += [
    "[1, 'a', true]",
    '"\\u0000"',
    "0x7fffffffffffffff",
    '["a", "b"]',
    '"' + "a" * 9999 + '"',
]
VALUES += ["{a = {b = {c = [1]}}}", "[1979-05-27]", '"1,2,x"', "1.5", "'''a\nb'''", "'matched'"]


def options(name: str) -> list[str]:
    """Names that a file may have, of options and arguments."""
    found = main.get_command(None, name)
    return [p.opts[0].lstrip("-") for p in found.params if p.opts[0] != "--config"]


def config(name: str, rng: np.random.Generator) -> bytes:
    """Some options with values of any kind, perhaps a key that none has, perhaps damaged."""
    names = options(name)
    chosen = rng.permutation(names)[: rng.integers(1, 4)].tolist()
    if rng.random() < 0.1:
        chosen.append(['"a b"', "heads.x", "Heads", "config", '""', "--trials"][rng.integers(6)])
    lines = [f"{key} = {VALUES[rng.integers(len(VALUES))]}" for key in chosen]
    text = "\n".join(lines).encode()
    return damaged(text, rng) if rng.random() < 0.2 else text


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_of_options_is_taken_or_refused_in_words(hunt, name):
    for case in hunt(rate=100):
        with case:
            path = case.folder / "a.toml"
            path.write_bytes(config(name, case.rng))
            # There are no features: what is wrong with the options is told first, and nothing runs.
            missing = case.folder / "missing.npz"
            with harmless(path.stat().st_size, room=8 << 20, allowed=("compile", "exec")):
                result = command(*COMMANDS[name], missing, "--config", path)
            assert result.exit_code == 2
            assert sorted(case.folder.iterdir()) == [path]


def layout(rng: np.random.Generator) -> bytes:
    """What a study says of its images, with values of any kind."""
    usual = {"domains": '["a", "b"]', "also": '{a = ["c"]}', "images": "{b = 1}"}
    keys = ["domains", "classes", "images", "total", "also", "splits", "lists", "table", "remark"]
    for key in rng.permutation(keys)[: rng.integers(0, 3)].tolist():
        usual[key] = VALUES[rng.integers(len(VALUES))]
    return "\n".join(["", "[data]", *(f"{key} = {value}" for key, value in usual.items())]).encode()


@pytest.mark.parametrize("of_images", [False, True])
def test_a_study_is_taken_or_refused_in_words(hunt, of_images):
    pytest.importorskip("torch", reason="networks are trained with torch")
    for case in hunt(rate=60):
        with case:
            path = case.folder / "study.toml"
            text = layout(case.rng) if of_images else config("reproduce", case.rng)
            path.write_bytes(text)
            result = command("reproduce", path, "--source", case.folder / "missing")
            assert result.exit_code == 2, result.output
            assert sorted(Path(case.folder).iterdir()) == [path]
