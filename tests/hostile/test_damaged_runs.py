"""Records, plans and settings of runs that are damaged or forged: refused by name, or reported."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from damage import NO_OBJECTS, damaged, forged, spoiled_json
from made_records import pacs
from skdare.bench import Log
from skdare.report import read_records, summarise
from watching import command, harmless, read_or_refuse, size_of

RECORDS, PLANNED = "records.jsonl", "planned.json"
ROOM = 8 << 20


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A run of every study, small, with trials that were planned and are not done."""
    folder = tmp_path_factory.mktemp("whole") / "pacs.bench"
    log, records = Log(folder), pacs(trials=2).whole()
    with log.open() as writer:
        for record in records[:: len(records) // 60]:
            writer.append(record)
    log.announce("pacs", "default", [record.key for record in records])
    return folder


def spoil_lines(content: bytes, rng: np.random.Generator) -> bytes:
    """Lines damaged, forged, doubled, torn, exchanged, or no records at all."""
    lines = content.splitlines()
    for _ in range(rng.integers(1, 4)):
        i = int(rng.integers(len(lines)))
        match rng.integers(8):
            case 0:
                lines[i] = damaged(lines[i], rng)
            case 1:
                lines.insert(i, NO_OBJECTS[rng.integers(len(NO_OBJECTS))])
            case 2:
                lines.insert(i, lines[i])
            case 3:
                lines[i] = lines[i][: rng.integers(len(lines[i]) + 1)]
            case 4:
                lines = [lines[j] for j in rng.permutation(len(lines))]
            case 5:
                return damaged(content, rng)
            case _:
                with suppress(ValueError, RecursionError):  # it was damaged before
                    lines[i] = json.dumps(forged(json.loads(lines[i]), rng)).encode()
        if not lines:
            break
    return b"\n".join(lines) + (b"\n" if rng.random() < 0.8 else b"")


def looked_at(folder: Path) -> None:
    records = read_records(folder)
    assert len({record.key for record in records}) == len(records)
    unfinished = Log(folder).unfinished()
    assert all(count >= 0 for count in unfinished.values())
    summarise(records, unfinished)


@pytest.mark.parametrize("spoiled", [RECORDS, PLANNED])
def test_a_spoiled_run_is_reported_or_refused_by_name(hunt, whole, spoiled):
    for case in hunt(rate=60):
        with case:
            folder = case.folder / "pacs.bench"
            shutil.copytree(whole, folder)
            path = folder / spoiled
            spoil = spoil_lines if spoiled == RECORDS else spoiled_json
            path.write_bytes(spoil(path.read_bytes(), case.rng))
            with harmless(size_of(folder), room=ROOM, allowed=("compile", "exec")):
                read_or_refuse(looked_at, folder)
            formats = ["md", "csv", "tex"][case.rng.integers(3)]
            result = command("report", folder, "--formats", formats, "--out", case.folder / "out")
            assert result.exit_code == 0 or "pacs.bench" in result.stderr, result.stderr
            if result.exit_code:
                assert not (case.folder / "out").exists()


def test_a_spoiled_run_is_drawn_or_refused_by_name(hunt, whole):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    for case in hunt(rate=2):
        with case:
            folder = case.folder / "pacs.bench"
            shutil.copytree(whole, folder)
            lines = [json.loads(line) for line in (folder / RECORDS).read_bytes().splitlines()]
            for i in case.rng.integers(len(lines), size=3):
                lines[i] = forged(lines[i], case.rng)
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (folder / RECORDS).write_text(text, encoding="utf-8")
            out = case.folder / "figure.svg"
            for arguments in (["report", folder], ["figure1", folder, "--out", out]):
                result = command(*arguments)
                assert result.exit_code == 0 or result.stderr.startswith("error: ")


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A run of one small network, trained."""
    pytest.importorskip("torch", reason="networks are trained with torch")
    from skdare.features.training.recipe import Job
    from small_networks import trainer

    folder = tmp_path_factory.mktemp("trained") / "noise.run"
    trainer(folder)([Job("a", 0)])
    return folder


@pytest.mark.parametrize("name", ["run.json", "record.json", "network.pt"])
def test_a_spoiled_training_is_named(hunt, trained, name):
    from skdare.features.training.folder import TrainingFolder, best_draws

    def taken_up(folder: Path) -> None:
        run = TrainingFolder(folder)
        run.check_settings(run.settings())
        for record in best_draws(run.records()):
            run.weights(record.job)

    for case in hunt(rate=60):
        with case:
            folder = case.folder / "noise.run"
            shutil.copytree(trained, folder)
            (path,) = folder.rglob(name)
            spoil = damaged if name == "network.pt" else spoiled_json
            path.write_bytes(spoil(path.read_bytes(), case.rng))
            with harmless(size_of(folder), room=24 << 20, allowed=("compile", "exec")):
                read_or_refuse(taken_up, folder)
            if name != "network.pt":
                result = command("extract", folder)
                assert result.exit_code == 2
                assert "noise.run" in result.stderr, result.stderr
