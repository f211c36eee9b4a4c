"""Whatever is in a file, a command works or ends with one line of error, and changes nothing."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pytest

from commands import ROLES, run, snapshot, text
from damage import SEED, damaged
from skdare.cli import options_of

pytestmark = pytest.mark.hostile
CASES = 80
VALUES = ["1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "10" + "0" * 21, "-1", "0", "nan"]
VALUES += ["inf", "-inf", "1e400", '""', '"x"', "[]", "[[1]]", "{}", "{a = 1}", "true", "false"]
VALUES += ["[1, 'a', true]", '"\\u0000"', '["a", "b"]', '"' + "a" * 9999 + '"', "1.5", "'erm'"]
ODD = [None, True, -1, 10**30, 1e300, "", "x", [], {}, [None], {"a": 1}, "\x1b[31m", "\x9b"]


def cases(count=CASES):
    return [np.random.default_rng([SEED, i]) for i in range(count)]


def ends_well(words, folder, before):
    """Exit code 0, 1 or 2; a mistake is one line, and changes nothing."""
    done = run(*words, folder=folder)
    assert done.code in (0, 1, 2), (words, done.err)
    assert "\x1b" not in done.out + done.err
    assert "\x9b" not in done.out + done.err
    if done.code == 2:
        assert len(done.errors) == 1
        assert snapshot(folder) == before
    return done


def changed_somewhere(value, rng):
    """JSON with one part replaced by something odd."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        name = list(value)[rng.integers(len(value))]
        if rng.random() < 0.15:
            return {key: each for key, each in value.items() if key != name}
        return value | {name: changed_somewhere(value[name], rng)}
    return ODD[rng.integers(len(ODD))]


@pytest.mark.parametrize("name", ["fit", "bench"])
def test_a_file_of_options_is_taken_or_refused(name, folder):
    names = sorted(options_of(name))
    for rng in cases():
        chosen = rng.permutation(names)[: rng.integers(1, 4)].tolist()
        if rng.random() < 0.1:
            chosen.append(['"a b"', "heads.x", "Heads", "config", '""', "fit"][rng.integers(6)])
        lines = [f"{key} = {VALUES[rng.integers(len(VALUES))]}" for key in chosen]
        content = "\n".join(lines).encode()
        content = damaged(content, rng) if rng.random() < 0.2 else content
        (folder / "a.toml").write_bytes(content)
        # There is no table: what is wrong with the options comes first, and nothing runs.
        before = snapshot(folder)
        assert ends_well((name, "absent.csv", "--config", "a.toml"), folder, before).code == 2


@pytest.fixture(scope="module")
def bench(made, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    shutil.copy(made / "table.csv", folder)
    text("bench", "table.csv", *ROLES, "--heads", "erm,by-hand", folder=folder)
    return folder


@pytest.mark.parametrize("name", ["records.jsonl", "run.json"])
def test_a_spoiled_run_is_reported_or_refused_by_name(name, bench, tmp_path):
    content = (bench / "table.bench" / name).read_bytes()
    for i, rng in enumerate(cases(100)):
        folder = tmp_path / str(i)
        shutil.copytree(bench, folder)
        if rng.random() < 0.5:
            spoiled = damaged(content, rng)
        else:
            lines = content.splitlines() if name == "records.jsonl" else [content]
            place = int(rng.integers(len(lines)))
            changed = changed_somewhere(json.loads(lines[place]), rng)
            lines[place] = json.dumps(changed).encode()
            spoiled = b"\n".join(lines) + b"\n"
        (folder / "table.bench" / name).write_bytes(spoiled)
        done = ends_well(("report", "table.bench"), folder, snapshot(folder))
        if done.code:
            assert "table.bench" in done.err
        again = ("bench", "table.csv", *ROLES, "--heads", "erm,by-hand")
        before = snapshot(folder)
        if run(*again, folder=folder).code == 2 and name == "run.json":
            assert snapshot(folder) == before
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("labels.csv", ("diagnose", "table.safetensors", "new.csv", "--labels", "labels.csv")),
        ("labels.csv", ("adapt", "table.safetensors", "new.csv", "--labels", "labels.csv")),
        ("new.stream", ("adapt", "table.safetensors", "new.csv", "--state", "new.stream")),
        ("new.csv", ("predict", "table.safetensors", "new.csv", "--out", "p.csv")),
        ("labelled.csv", ("predict", "table.safetensors", "labelled.csv", "--out", "p.csv")),
        ("table.csv", ("check", "table.csv", *ROLES)),
        ("table.safetensors", ("inspect", "table.safetensors")),
        ("table.safetensors", ("export", "table.safetensors", "--out", "w.weights.csv")),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_damaged_files_are_read_or_refused(name, words, folder):
    text("adapt", "table.safetensors", "new.csv", "--state", "new.stream", folder=folder)
    content = (folder / name).read_bytes()
    for rng in cases(100):
        (folder / name).write_bytes(damaged(content, rng))
        ends_well(words, folder, snapshot(folder))


def test_odd_words_on_the_command_line_are_refused(folder):
    words = ["table.csv", "-", "--", "--target", "--target=", "=", "died", "--domains",
             "\x1b[31m", "--set", "a=b", "l2=", "l2=-1", "l2=[", "--l2", "--head", "erm", "", " ",
             "--out", "x" * 300, "--json", "--quiet", "--help", "🏥", "--metric", "-1"]  # fmt: skip
    for rng in cases(300):
        chosen = [words[i] for i in rng.integers(len(words), size=rng.integers(0, 6))]
        name = ["fit", "check", "bench", "predict", "adapt", "inspect"][rng.integers(6)]
        before = snapshot(folder)
        done = ends_well((name, *chosen), folder, before)
        assert not re.search(r"Traceback", done.err)
        for path in snapshot(folder).keys() - before.keys():
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
