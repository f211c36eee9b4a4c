"""Records are a contract: what is finished is neither lost nor repeated, other runs are refused."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import replace

import numpy as np
import pytest

from held_out_problems import made
from interrupts import start
from skdare.bench import Record, RecordFile, Settings, run_bench
from skdare.bench.record import RECORDS
from skdare.data import DomainData, load_digit_domains
from skdare.errors import DataNote, InputError
from skdare.report import Summary

pytestmark = pytest.mark.filterwarnings("ignore::skdare.errors.DataNote")

FAST = Settings(heads=("by-hand",))


def table(task="binary", **options) -> DomainData:
    made_of = made(task, E=options.pop("E", 4), n=options.pop("n", 30), **options)
    names = np.array(list("abcdef"))[made_of.domains]
    return DomainData.of(made_of.X, made_of.y, domains=names, name="t")


def results(records):
    """What must not depend on when, or with which others, a trial was run."""
    return {r.key: (r.head, r.held_out, r.trial, r.status, r.score) for r in records}


def ran(data, folder, settings, **options):
    """The records, and the trials that were run for them."""
    steps = []
    file = run_bench(
        data, folder, settings, progress=lambda text, done, total: steps.append(text), **options
    )
    return file.records(), steps[:-1]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The records of a run that was never stopped."""
    return run_bench(table(), tmp_path_factory.mktemp("whole"), FAST).records()


def test_every_head_is_scored_on_every_domain_once(whole):
    assert [(r.held_out, r.head) for r in whole] == [
        (domain, head) for domain in "abcd" for head in ("erm", "by-hand")
    ]
    assert {r.uses for r in whole if r.head == "erm"} == {"nothing"}
    assert {r.uses for r in whole if r.head == "by-hand"} == {"unlabelled rows"}
    assert all(r.status == "ok" and r.metric == "accuracy" for r in whole)
    assert all((r.values["n_train"], r.values["n_test"]) == (90, 30) for r in whole)


def test_a_run_that_was_stopped_goes_on_and_repeats_nothing(tmp_path, whole):
    class Stopped(Exception):
        pass

    def stop(text, done, total):
        if done == 3:
            raise Stopped

    with pytest.raises(Stopped):
        run_bench(table(), tmp_path, FAST, progress=stop)
    assert len(RecordFile(tmp_path).records()) == 3
    records, steps = ran(table(), tmp_path, FAST)
    assert len(steps) == 5
    assert results(records) == results(whole)
    assert ran(table(), tmp_path, FAST)[1] == []


def test_a_torn_last_line_costs_its_own_trial_only(tmp_path, whole):
    run_bench(table(), tmp_path, FAST)
    path = tmp_path / RECORDS
    content = path.read_bytes()
    path.write_bytes(content[:-20])
    assert len(RecordFile(tmp_path).records()) == 7
    records, steps = ran(table(), tmp_path, FAST)
    assert steps == ["d: by-hand"]
    assert results(records) == results(whole)
    assert path.read_bytes().startswith(content[: content[:-1].rfind(b"\n") + 1])


CHILD = """
import sys, warnings
warnings.simplefilter("ignore")
from skdare.bench import Settings, run_bench
from skdare.data import load_digit_domains
run_bench(load_digit_domains(n_classes=3), sys.argv[1], Settings(heads=("by-hand",)))
"""


@pytest.mark.slow
def test_a_killed_bench_keeps_what_was_finished_and_equals_a_whole_one(tmp_path):
    data = load_digit_domains(n_classes=3)
    path = tmp_path / "killed" / RECORDS
    child = start("-c", CHILD, path.parent)
    while not path.exists() or path.read_bytes().count(b"\n") < 3:
        assert child.poll() is None
        time.sleep(0.01)
    with pytest.raises(InputError, match="another process is writing"):
        run_bench(data, path.parent, FAST)
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    before = path.read_bytes()
    with path.open("ab") as file:
        file.write(b'{"schema": 1, "torn')
    records, _ = ran(data, path.parent, FAST)
    assert path.read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    keys = [record.key for record in records]
    assert len(keys) == len(set(keys)) == path.read_bytes().count(b"\n") == 16
    assert results(records) == results(run_bench(data, tmp_path / "whole", FAST).records())


def test_further_heads_and_domains_are_added_to_a_run(tmp_path):
    data = table()
    first, _ = ran(data, tmp_path, replace(FAST, held_out=("a",)))
    records, steps = ran(data, tmp_path, Settings(heads=("by-hand", "dare"), held_out=("a", "c")))
    assert steps == ["a: dare", "c: erm", "c: by-hand", "c: dare"]
    assert results(first).items() <= results(records).items()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "f1_macro"}, "holds a run with metric accuracy, and this one has metric f1_m"),
        ({"repeats": 2}, "holds a run with training rows all"),
        ({"task": "regression"}, "holds a run with task classification"),
    ],
)
def test_other_settings_are_refused_before_any_work(tmp_path, change, message):
    run_bench(table(), tmp_path, replace(FAST, held_out=("a",)))
    before = (tmp_path / RECORDS).read_bytes()
    with pytest.raises(InputError, match=message):
        run_bench(table(), tmp_path, replace(FAST, **change))
    assert (tmp_path / RECORDS).read_bytes() == before


def test_other_rows_of_the_same_name_are_refused(tmp_path):
    data = table()
    run_bench(data, tmp_path, replace(FAST, held_out=("a",)))
    with pytest.raises(InputError, match="holds a run on other rows called 't'"):
        run_bench(replace(data, X=data.X + 1.0), tmp_path, FAST)


def test_whatever_changes_a_result_changes_the_key(tmp_path):
    data = table()
    settings = replace(FAST, held_out=("b",))
    keys = set()
    runs = [
        (data, settings),
        (replace(data, X=2.0 * data.X), settings),
        (data, replace(settings, metric="f1_macro")),
        (data, replace(settings, repeats=2)),
    ]
    for number, (rows, how) in enumerate(runs):
        keys |= {r.key for r in run_bench(rows, tmp_path / str(number), how).records()}
    assert len(keys) == 2 + 2 + 2 + 4


def test_repeats_train_on_other_rows_and_score_on_the_same(tmp_path):
    settings = replace(FAST, repeats=3, held_out=("a",), metric="neg_log_loss")
    records = run_bench(table(), tmp_path, settings).records()
    assert {r.trial for r in records} == {0, 1, 2}
    assert {r.values["n_train"] for r in records} == {72}
    assert {r.values["n_test"] for r in records} == {30}
    assert len({r.score for r in records if r.head == "erm"}) == 3


def test_the_last_record_of_a_trial_holds(tmp_path):
    file = RecordFile(tmp_path)
    record = Record("k", "main", "t", "erm", "a", 0, "nothing", "accuracy", None, 1.0, "failed")
    for key, score in (("k", None), ("k", 0.5), ("other options", 0.7)):
        file.append(replace(record, key=key, score=score))
    assert [r.score for r in file.records()] == [0.7]
    file.append(replace(record, key="further", trial=1, score=0.2))
    file.append(replace(record, key="ablation", values={"x": 0.5}, score=0.1))
    assert [r.score for r in file.records()] == [0.7, 0.2, 0.1]


def test_a_failed_trial_is_a_record_with_its_reason_and_is_run_again(tmp_path, monkeypatch):
    from skdare.bench import heads

    def fails(self, head, X):
        raise RuntimeError("out of luck")

    with monkeypatch.context() as patch:
        patch.setattr(heads.Training, "fit", fails)
        records, _ = ran(table(), tmp_path, FAST)
    assert {r.reason for r in records} == {"out of luck"}
    assert {r.status for r in records} == {"failed"}
    records, steps = ran(table(), tmp_path, FAST)
    assert len(steps) == 8
    assert {r.status for r in records} == {"ok"}


def test_a_score_that_is_not_defined_is_a_failure(tmp_path):
    data = table()
    data.y[data.domains == "c"] = 0
    records = run_bench(data, tmp_path, replace(FAST, metric="roc_auc")).records()
    undefined = [r for r in records if r.score is None]
    assert {r.held_out for r in undefined} == {"c"}
    assert {r.reason for r in undefined} == {"roc_auc is not defined on these rows"}


# -- Records --------------------------------------------------------------------------------------


def test_records_survive_the_file(whole):
    for record in whole:
        line = record.to_line()
        assert line.endswith("\n")
        assert "\n" not in line[:-1]
        again = Record.from_line(line)
        assert (again.key, again.score, again.status) == (record.key, record.score, record.status)
        assert again.values.items() >= record.values.items()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 2}, "not a record of schema 1"),
        ({"key": 7}, "key is missing or no"),
        ({"score": "0.5"}, "score is missing or no"),
        ({"score": True}, "score is missing or no"),
        ({"seconds": None}, "seconds is missing or no"),
        ({"label": ["a"]}, "label is missing or no"),
        ({"n_train": 0.5}, "n_train is missing or no"),
        ({"warnings": "none"}, "warnings is missing or no"),
        ({"warnings": [1]}, "warnings has an entry that is no text"),
    ],
    ids=str,
)
def test_a_forged_record_is_refused(whole, change, message):
    line = json.dumps(json.loads(whole[0].to_line()) | change)
    with pytest.raises(ValueError, match=message):
        Record.from_line(line)


@pytest.mark.parametrize(
    "number", ["1" + 400 * "0", "NaN", "-Infinity", "1e999"], ids=lambda n: n[:4]
)
def test_a_score_that_is_no_finite_number_is_refused(whole, number):
    line = json.dumps(json.loads(whole[0].to_line()) | {"score": "?"}).replace('"?"', number)
    with pytest.raises(ValueError, match="score is no finite number"):
        Record.from_line(line)


@pytest.mark.parametrize("spoiled", [b"{", b"[]", b"\xff\xfe", b"null", b"[" * 100_000, b"NaN"])
def test_a_damaged_line_is_refused_by_its_number(tmp_path, whole, spoiled):
    lines = [record.to_line().encode() for record in whole]
    (tmp_path / RECORDS).write_bytes(b"".join([*lines[:2], spoiled + b"\n", *lines[2:]]))
    with pytest.raises(InputError, match=r"line 3 of .*records\.jsonl' cannot be read"):
        RecordFile(tmp_path).records()
    with pytest.raises(InputError, match="line 3 of"):
        run_bench(table(), tmp_path, FAST)


@pytest.mark.parametrize("spoiled", ["{", "[]", "[" * 100_000, "7"])
def test_damaged_settings_of_a_run_are_refused(tmp_path, spoiled):
    (tmp_path / "run.json").write_text(spoiled)
    with pytest.raises(InputError, match=r"run\.json' is damaged"):
        run_bench(table(), tmp_path, FAST)


def test_a_run_without_records_is_refused_by_a_report(tmp_path):
    with pytest.raises(InputError):
        Summary.of(RecordFile(tmp_path))


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot make the folder"):
        run_bench(table(), tmp_path / "file" / "run", FAST)


# -- Settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Settings(heads=("ermm",)), "no head is called 'ermm'; did you mean 'erm'"),
        (Settings(heads=("anchor",)), "head anchor is not for classification"),
        (Settings(held_out=("e",)), "no domain is called 'e'"),
        (Settings(metric="r2"), "no metric of classification is called 'r2'"),
        (Settings(repeats=0), "repeats is 0"),
        (Settings(task="ranking"), "no task is called 'ranking'"),
    ],
    ids=str,
)
def test_settings_that_do_not_fit_the_table_are_refused_before_any_work(
    tmp_path, settings, message
):
    with pytest.raises(InputError, match=message):
        run_bench(table(), tmp_path / "run", settings)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"domains": None}, "no column of domains"),
        ({"domains": np.repeat(["a", "b"], 60)}, "there are 2 domains: 'a', 'b'"),
        ({"domains": np.repeat(["a"], 120)}, "there is 1 domain: 'a'"),
        ({"y": np.zeros(120, dtype=int)}, "every row has the target 0"),
    ],
    ids=["none", "two", "one", "one class"],
)
def test_tables_that_cannot_be_compared_on_are_refused(tmp_path, change, message):
    with pytest.raises(InputError, match=message):
        run_bench(replace(table(), **change), tmp_path / "run", FAST)


def test_three_domains_are_enough(tmp_path):
    records = run_bench(table(E=3), tmp_path).records()
    assert {r.status for r in records} == {"ok"}
    assert len(records) == 3 * 5


def test_a_domain_of_one_row_is_left_out_and_named(tmp_path):
    data = table()
    domains = data.domains.copy()
    domains[0] = "z"
    with pytest.warns(DataNote, match="left out 1 domain with a single row: 'z'"):
        records = run_bench(replace(data, domains=domains), tmp_path, FAST).records()
    assert {r.held_out for r in records} == set("abcd")


def test_a_domain_of_one_class_is_scored(tmp_path):
    data = table()
    data.y[data.domains == "b"] = 1
    records = run_bench(data, tmp_path).records()
    assert all(r.score is not None for r in records)


def test_groups_that_leave_nothing_to_train_on_are_refused_before_any_fit(tmp_path):
    data = replace(table(), groups=np.tile(np.arange(30), 4))
    with pytest.raises(InputError, match="none is left to train on"):
        run_bench(data, tmp_path / "run", Settings(heads=("erm",)))
    assert not (tmp_path / "run").exists()


def test_a_domain_for_every_row_is_refused_before_any_fit(tmp_path):
    data = replace(table(), domains=np.arange(120).astype(str))
    with pytest.raises(InputError, match="every domain of t has a single row"):
        run_bench(data, tmp_path / "run", FAST)
    assert not (tmp_path / "run").exists()
