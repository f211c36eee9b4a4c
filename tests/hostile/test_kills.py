"""Work killed at random moments: the old or the new is there whole, and going on loses nothing.

The moments are drawn as shares of the time that the work takes undisturbed. Where a busy machine
makes them fall elsewhere, the laws are the same: they hold at every moment.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import skdare
from killing import CALLS, CAN_KILL, ROWS, Mortal
from skdare.bench import Log
from skdare.datasets import make_latent_domains, read, store_info, verify, write
from skdare.datasets._domain_data import fingerprint
from small_bench import results, table

pytestmark = pytest.mark.skipif(not CAN_KILL, reason="there is no fork")


@pytest.fixture
def mortal(request, tmp_path):
    """What does the work of a test."""
    if request.param in ("train", "extract"):
        pytest.importorskip("torch", reason="networks are trained and read with torch")
    with Mortal(request.param, tmp_path / "log") as process:
        yield process


def every(work: str):
    return pytest.mark.parametrize("mortal", [work], indirect=True, ids=[work])


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def undisturbed(mortal: Mortal, folder: Path) -> float:
    """Do the work in ``whole``, and again, which adds nothing; how long the first took."""
    (folder / "whole").mkdir()
    seconds = mortal.finish(folder / "whole")
    before = contents(folder / "whole")
    mortal.finish(folder / "whole")
    assert contents(folder / "whole").keys() == before.keys()
    return seconds


@every("bench")
def test_a_killed_bench_keeps_what_was_finished_and_ends_with_the_same_records(
    mortal, hunt, tmp_path
):
    write(tmp_path / "t.npz", table())
    seconds = undisturbed(mortal, tmp_path)
    whole = results(Log(tmp_path / "whole" / "run").read())
    for case in hunt(rate=1):
        with case:
            mortal.survive(case.folder, seconds, case.rng)
            log = Log(case.folder / "run")
            left = results(log.read())
            assert left.items() <= whole.items()
            mortal.finish(case.folder)
            assert results(log.read()) == whole
            lines = [json.loads(line) for line in log.path.read_bytes().splitlines()]
            assert len(lines) == len(whole)
            assert not any(log.unfinished().values())


@every("save")
def test_a_killed_save_leaves_the_old_file_or_the_new(mortal, hunt, tmp_path):
    data = make_latent_domains(random_state=0)
    for name, l2 in (("old", 0.1), ("new", 0.2)):
        head = skdare.DAREClassifier(l2=l2).fit(data.X, data.y, domains=data.domains)
        head.save(tmp_path / name)
    seconds = undisturbed(mortal, tmp_path)
    possible = {(tmp_path / name).read_bytes() for name in ("old", "new")}
    for case in hunt(rate=4):
        with case:
            path = case.folder / "head"
            path.write_bytes((tmp_path / "old").read_bytes())
            mortal.survive(case.folder, seconds, case.rng)
            assert path.read_bytes() in possible
            skdare.load(path)


@every("store")
def test_a_killed_store_is_sound_and_goes_on_to_the_same_bytes(mortal, hunt, tmp_path):
    seconds = undisturbed(mortal, tmp_path)
    whole = contents(tmp_path / "whole")
    for case in hunt(rate=4):
        with case:
            mortal.survive(case.folder, seconds, case.rng)
            if (case.folder / "table").exists():
                assert verify(case.folder / "table").ok
                assert store_info(case.folder / "table").rows in (0, 9, 18, 23)
            mortal.finish(case.folder)
            assert {k: v for k, v in contents(case.folder).items() if "table/" in k} == whole


@every("convert")
def test_a_killed_conversion_leaves_whole_files_or_none(mortal, hunt, tmp_path):
    write(tmp_path / "t.npz", table())
    seconds = undisturbed(mortal, tmp_path)
    for case in hunt(rate=1.5):
        with case:
            mortal.survive(case.folder, seconds, case.rng)
            for name in ("a.npz", "a.csv.gz", "a"):
                if (case.folder / name).exists():
                    assert fingerprint(read(case.folder / name)) == fingerprint(table())
            mortal.finish(case.folder)
            for name in ("a.npz", "a.csv.gz", "a"):
                assert fingerprint(read(case.folder / name)) == fingerprint(table())


@every("adapt")
def test_a_killed_adaptation_has_seen_all_rows_of_a_call_or_none(mortal, hunt, tmp_path):
    data = make_latent_domains(random_state=0)
    head = skdare.DAREClassifier().fit(data.X, data.y, domains=data.domains)
    head.save(tmp_path / "head")
    for call in range(CALLS):
        rows = np.random.default_rng(call).normal(size=(ROWS, data.X.shape[1]))
        np.save(tmp_path / f"rows-{call}.npy", rows)
    seconds = undisturbed(mortal, tmp_path)
    whole = contents(tmp_path / "whole")
    for case in hunt(rate=1.5):
        with case:
            mortal.survive(case.folder, seconds, case.rng)
            if (case.folder / "stream").exists():
                assert head.resume(case.folder / "stream").n_seen_ % ROWS == 0
            if (case.folder / "adapted").exists():
                assert skdare.load(case.folder / "adapted").adapted_rows_ % ROWS == 0
            mortal.finish(case.folder)
            left = contents(case.folder)
            assert {name: left[name] for name in whole} == whole


@every("train")
def test_a_killed_training_goes_on_to_the_same_weights(mortal, hunt, tmp_path):
    from skdare.features.training.folder import TrainingFolder
    from skdare.features.training.recipe import Job
    from small_networks import same_weights, weights

    seconds = undisturbed(mortal, tmp_path)
    whole = weights(tmp_path / "whole" / "run")
    for case in hunt(rate=0.7):
        with case:
            mortal.survive(case.folder, seconds, case.rng)
            TrainingFolder(case.folder / "run").record(Job("a", 0))
            TrainingFolder(case.folder / "run").state(Job("a", 0))
            mortal.finish(case.folder)
            assert same_weights(weights(case.folder / "run"), whole)


@every("extract")
def test_a_killed_extraction_goes_on_to_the_same_bytes(mortal, hunt, tmp_path):
    seconds = undisturbed(mortal, tmp_path)
    whole = contents(tmp_path / "whole")
    for case in hunt(rate=1.5):
        with case:
            mortal.survive(case.folder, seconds, case.rng)
            if (case.folder / "store").exists():
                assert verify(case.folder / "store").ok
            mortal.finish(case.folder)
            assert {k: v for k, v in contents(case.folder).items() if "store/" in k} == whole
