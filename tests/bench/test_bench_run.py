"""Runs: what is on file, what is run again, and what is refused."""

from __future__ import annotations

import json
import signal
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest

from interrupts import PATIENCE, stopped_command
from skdare.bench import Log, Record, bench_plan, run
from skdare.bench._plan import EXTRAS
from skdare.bench._record import TASKS
from skdare.bench._run import Schedule, TrialRunner
from skdare.datasets import read
from small_bench import FAST, results, small_plan, table


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["default", "paper"])
def test_trials_side_by_side_give_the_same_records(protocol):
    settings = replace(FAST, protocol=protocol)
    plan = small_plan(settings=settings, trials=2, extras=EXTRAS, end_to_end={"a": 0.9})
    alone = results(run(plan))
    assert results(run(plan, jobs=3)) == alone
    assert {status for _, _, status, _ in alone.values()} == {"ok", "given"}


def test_a_fold_can_end_while_another_is_between_two_of_its_trials():
    plan = small_plan(trials=1, heads=["erm", "dare"])
    trials = [trial for trial in plan.trials if trial.held_out in "ab"]
    (first, _), (last, _) = ([t for t in trials if t.held_out == name] for name in "ab")
    schedule = Schedule([*(t for t in trials if t.held_out == "a"), last], TrialRunner(plan).folds)
    assert [schedule.next(None), schedule.next(None)] == [first, last]
    schedule.finished(first)  # its worker has not asked for the second trial of that fold yet
    schedule.finished(last)
    assert schedule.next(None).held_out == "a"


def test_a_run_that_was_stopped_goes_on_and_repeats_nothing(tmp_path):
    plan, log = small_plan(trials=2, extras=["ceilings"]), Log(tmp_path)
    whole = results(run(plan))
    begun = run(plan, log, jobs=2)
    for _ in range(5):
        next(begun)
    begun.close()
    kept = len(log.read())
    assert kept >= 5
    assert len(list(run(plan, log, jobs=2))) == len(plan.trials) - kept
    assert results(log.read()) == whole
    assert list(run(plan, log)) == []


def test_what_is_finished_is_on_file_whether_or_not_anyone_asks_for_it(tmp_path):
    plan, log = small_plan(trials=1, heads=["erm"]), Log(tmp_path)
    begun = run(plan, log)
    next(begun)
    end = time.monotonic() + PATIENCE
    while len(log.read()) < len(plan.trials):
        assert time.monotonic() < end, "not all of it came to be on file"
        time.sleep(0.02)
    begun.close()


def test_a_torn_last_line_costs_its_own_trial_only(tmp_path):
    plan, log = small_plan(trials=1, heads=["erm", "dare"]), Log(tmp_path)
    whole = results(run(plan, log))
    text = log.path.read_bytes()
    log.path.write_bytes(text[:-20])
    assert len(log.read()) == len(plan.trials) - 1
    assert len(list(run(plan, log))) == 1
    assert results(log.read()) == whole


def stopped_bench(folder, by: signal.Signals):
    """A bench of 24 trials in a process of its own that stopped itself at the fourth."""
    data = table(n=400)
    np.savez(folder / "t.npz", X=data.X, y=data.y, domains=data.domains)
    asked = ["bench", "t.npz", "--trials", "2", "--heads", "erm,irm,groupdro"]
    asked += ["--with", "none", "--jobs", "2"]
    return stopped_command(by, "skdare.bench._log:Writer.append", 4, *asked, cwd=folder)


def test_a_killed_process_loses_no_finished_trial_and_can_be_taken_up(tmp_path):
    process = stopped_bench(tmp_path, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL, process.stderr
    log = Log(tmp_path / "t.bench")
    kept = results(log.read())
    plan = bench_plan(
        read(tmp_path / "t.npz"), heads=["erm", "irm", "groupdro"], extras=[], trials=1
    )
    list(run(plan, log, jobs=2))
    whole = results(run(plan))
    now = results(log.read())
    assert kept.items() <= now.items()
    assert whole.items() <= now.items()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_termination_end_with_what_is_done_on_file(tmp_path, number, code):
    process = stopped_bench(tmp_path, number)
    assert process.returncode == code, process.stderr
    assert "stopped:" in process.stderr
    assert "Traceback" not in process.stderr
    assert f"{len(Log(tmp_path / 't.bench').read())} of 24" in process.stderr


def test_a_second_process_may_not_write_to_the_same_run(tmp_path):
    with (
        Log(tmp_path).open(),
        pytest.raises(ValueError, match="another process is writing"),
    ):
        list(run(small_plan(trials=1, heads=["erm"]), Log(tmp_path)))


def test_a_failing_trial_is_a_record_with_its_reason(tmp_path):
    data = table()
    data.y[data.domains != "b"] = "x"  # one class is left to train on
    plan = small_plan(data, trials=1, heads=["erm", "dare"], options={"dare": {"shrinkage": 0.5}})
    records = list(run(plan, Log(tmp_path)))
    failed = [record for record in records if record.held_out == "b"]
    assert {record.status for record in failed} == {"failed"}
    assert all("needs at least 2 classes" in record.reason for record in failed)
    assert [r.values["option:shrinkage"] for r in failed if r.head == "dare"] == [0.5]
    assert {record.status for record in records if record.held_out != "b"} == {"ok"}
    assert len(list(run(plan, Log(tmp_path), retry_failed=True))) == len(failed)


def test_warnings_belong_to_the_trial_that_gave_them():
    plan = small_plan(trials=1, heads=["erm", "irm"], options={"irm": {"max_iter": 1}})
    warned = {r.head for r in run(plan, jobs=2) if "max_iter" in r.values.get("warnings", "")}
    assert warned == {"irm"}


def test_warnings_of_the_caller_are_still_shown():
    begun = run(small_plan(trials=1, heads=["erm"]))
    next(begun)
    with pytest.warns(UserWarning, match="mine"):
        warnings.warn("mine", stacklevel=1)
    begun.close()


def test_records_are_read_in_the_order_of_the_plan_and_not_as_they_finished(tmp_path):
    heads = ["dare", "erm", "irm", "reweighted", "groupdro"]
    log = Log(tmp_path)
    finished = list(run(small_plan(trials=1, heads=heads, held_out=["b"]), log))
    log.path.write_text("".join(record.to_line() + "\n" for record in reversed(finished)))
    assert [record.head for record in log.read()] == heads


def test_records_are_flat_and_survive_the_file():
    records = list(run(small_plan(trials=1, extras=EXTRAS)))
    assert {"main", "ceiling", "curve", "adjustment", "alignment"} == {r.study for r in records}
    for record in records:
        line = record.to_line()
        assert Record.from_line(line) == record
        assert not any(isinstance(v, dict | list) for v in json.loads(line).values())
        assert record.values["version:skdare"]
        if record.study == "main":
            assert {f"score:{domain}" for domain in "abcd"} <= set(record.values)
            assert record.correct().mean() == pytest.approx(record.score)


def first_key(data=None, settings=FAST, **more) -> str:
    """Key of the first trial of DARE."""
    plan = small_plan(data, settings, trials=1, **{"heads": ["dare"], **more})
    return plan.key(plan.trials[0])


def test_whatever_changes_the_result_changes_the_key():
    keys = {
        first_key(table(task), settings, options=options)
        for settings in (FAST, replace(FAST, l2=0.1), replace(FAST, test_on="reserved"))
        for options in ({}, {"dare": {"shrinkage": 0.5}})
        for task in TASKS
    }
    assert len(keys) == 3 * 2 * 2
    plan = small_plan(heads=["erm", "dare"], trials=2)
    assert len({plan.key(trial) for trial in plan.trials}) == len(plan.trials)


def test_the_task_changes_the_key_of_the_same_table():
    numbers = table("regression")
    coded = replace(numbers, y=np.round(numbers.y) % 3)
    assert len({first_key(coded, task=task) for task in TASKS}) == 2


def test_settings_of_the_other_protocol_do_not_change_a_key():
    assert first_key(settings=replace(FAST, patience=3)) == first_key()


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory):
    """Folder of a run of DARE beside one score of a network."""
    folder = tmp_path_factory.mktemp("run")
    list(run(small_plan(trials=1, heads=["dare"], end_to_end={"a": 0.9}), Log(folder)))
    return folder


OTHER_TABLE = "other features, labels, domains, groups or split"


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        (
            {"settings": replace(FAST, l2=0.1, standardize=True)},
            r"other settings \(l2 was 0.01 and is 0.1 now, standardize was False and is True now\)",
        ),
        ({"settings": replace(FAST, metrics=("roc_auc",))}, "metrics was None and is roc_auc now"),
        (
            {"options": {"dare": {"shrinkage": 0.5}}},
            r"other options of dare \(shrinkage was 0.9 and is 0.5 now\)",
        ),
        ({"data": table(seed=1)}, OTHER_TABLE),
        ({"data": replace(table(), groups=np.arange(240))}, OTHER_TABLE),
        ({"end_to_end": {"a": 0.8}}, r"another score of end-to-end \(0.9\)"),
        ({"data": replace(table(), domains=np.char.add("other ", table().domains))}, OTHER_TABLE),
    ],
    ids=["settings", "metric", "options", "features", "groups", "score of a network", "domains"],
)
def test_a_run_refuses_records_that_were_not_made_alike(finished_run, changes, difference):
    plan = small_plan(**{"trials": 1, "heads": ["dare"], **changes})
    with pytest.raises(ValueError, match=f"the run has records of 't' with .*{difference}"):
        list(run(plan, Log(finished_run)))


def test_a_run_takes_further_heads_trials_and_domains(tmp_path):
    list(run(small_plan(trials=1, heads=["dare"], end_to_end={"a": 0.9}), Log(tmp_path)))
    more = small_plan(trials=2, heads=["erm", "dare"])
    assert len(list(run(more, Log(tmp_path)))) == 3 * 4
    part = small_plan(trials=1, heads=["irm"], held_out=["c"])
    assert len(list(run(part, Log(tmp_path)))) == 1
