"""The bench: what a trial may see, what a run keeps, and what its protocols compute."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skdare import DAREClassifier, ERMClassifier
from skdare.adjustment import Adjustment
from skdare.bench import (
    ABLATIONS,
    EXTRAS,
    HEADS,
    Log,
    Preparation,
    Questions,
    Settings,
    Source,
    ablation_plan,
    adjustment_error,
    bench_plan,
    run,
)
from skdare.bench._ceilings import fit_ceiling, labelled_rows
from skdare.bench._default import choose_l2, fit_default
from skdare.bench._diagnostics import measure_adjustment, measure_alignment
from skdare.bench._early import FixedStepLBFGS, descend_with_patience
from skdare.bench._fold import Workspace
from skdare.bench._paper import fit_paper
from skdare.bench._record import Record
from skdare.bench._source import Projection
from skdare.datasets import DomainData, make_latent_domains
from skdare.moments import Moments

PAPER = [name for name, entry in HEADS.items() if entry.in_paper]
CLASSIFIERS = [name for name, entry in HEADS.items() if "classification" in entry.tasks]
FAST = Settings(l2=0.01, patience=2, max_epochs=10, sgd_steps=20)


def table(task: str = "classification", *, n: int = 60, seed: int = 0) -> DomainData:
    """Four small domains called a to d; three classes, or numbers."""
    data = make_latent_domains(4, n, 5, task="regression", random_state=seed)
    y = data.y
    if task == "classification":
        y = np.array(["x", "y", "z"])[np.digitize(y, np.quantile(y, [0.3, 0.7]))]
    return DomainData(data.X, y, np.array(list("abcd"))[data.domains])


def ask(data: DomainData | None = None, settings: Settings = FAST, **more) -> Questions:
    return Questions({"given": Source.of(data or table(), name="t")}, settings, **more)


def fold_of(data: DomainData, preparation: Preparation | None = None, projection=None, **more):
    source = Source.of(data, impute="median", **more)
    workspace = Workspace({"given": source}, preparation or Preparation(), 0.2)
    return workspace.fold("given", "b", 0, projection)


def results(records):
    """What must not depend on when, or beside what, a trial was run."""
    return {r.key: (r.head, r.held_out, r.status, r.score) for r in records}


def poisoned(data: DomainData, *, labels: bool = False, features: bool = False) -> DomainData:
    """The same table with domain b's labels turned over, or its features blown up."""
    new = data.domains == "b"
    y, X = data.y.copy(), data.X.copy()
    if labels:
        y[new] = y[new][::-1] if data.y.dtype.kind == "U" else -100.0 * y[new]
        y[new] = np.roll(y[new], 7)
    if features:
        X[new] = 1e3 * np.roll(X[new], 1, axis=1) + 50.0
    return replace(data, X=X, y=y)


# No leakage


@pytest.mark.parametrize(
    ("protocol", "name"),
    [(fit_default, name) for name in CLASSIFIERS] + [(fit_paper, name) for name in PAPER],
)
def test_no_head_sees_the_held_out_labels_and_only_adapted_ones_its_features(protocol, name):
    settings = replace(FAST, l2="matched", l2_grid=(0.01, 0.1))
    preparation = Preparation(impute="median", standardize=True, clip=5.0)

    def weights(data):
        head, _ = protocol(fold_of(data, preparation), name, {}, settings)
        return head.V if hasattr(head, "V") else head.coef_

    clean = weights(table())
    np.testing.assert_array_equal(weights(poisoned(table(), labels=True)), clean)
    other = weights(poisoned(table(), features=True))
    # The choosing head may choose not to adapt.
    if HEADS[name].adapts and name != "dare-cv-adapted":
        assert not np.allclose(other, clean)
    elif not HEADS[name].adapts:
        np.testing.assert_array_equal(other, clean)


@pytest.mark.parametrize("name", ["ceiling-exact", "ceiling-sgd"])
def test_a_ceiling_does_see_the_held_out_labels(name):
    heads = [
        fit_ceiling(fold_of(data), name, FAST)[0]
        for data in (table(), poisoned(table(), labels=True))
    ]
    first, second = (h.V if hasattr(h, "V") else h.coef_ for h in heads)
    assert not np.allclose(first, second)


@pytest.mark.parametrize("projection", [None, Projection("pca", 3), Projection("random", 3)])
def test_prepared_training_rows_do_not_depend_on_the_held_out_domain(projection):
    data = table()
    data.X[::7, 2] = np.nan
    preparation = Preparation("median", True, 3.0)
    clean = fold_of(data, preparation, projection)
    other = fold_of(poisoned(data, features=True), preparation, projection)
    np.testing.assert_array_equal(clean.train.X, other.train.X)
    assert np.isfinite(clean.train.X).all()
    assert np.isfinite(clean.new.X).all()


def test_l2_is_chosen_without_the_held_out_domain_and_by_leaving_training_domains_out():
    settings = replace(FAST, l2_grid=(1e-3, 1e-1, 10.0))
    data = table()
    fold = fold_of(data)
    chosen = choose_l2(fold, HEADS["erm"], {}, settings)
    means = {}
    for l2 in settings.l2_grid:
        scores = []
        for left_out in fold.seen:
            inner, outer = fold.without(left_out), fold.training_rows(left_out)
            head = ERMClassifier(l2=l2).fit(inner.X, inner.y)
            scores.append(head.score(outer.X, outer.y))
        means[l2] = np.mean(scores)
    assert means[chosen] == max(means.values())


# Splits and folds


def test_a_domain_is_split_alike_whatever_the_other_domains_are():
    data = table()
    whole = fold_of(data)
    fewer = fold_of(DomainData(*(v[data.domains != "d"] for v in (data.X, data.y, data.domains))))
    np.testing.assert_array_equal(whole.reserved, fewer.reserved)
    assert whole.reserved.sum() == 12
    assert len(whole.train.y) == 3 * 48


def test_trial_zero_takes_the_split_of_the_file_and_others_draw_their_own():
    data = replace(table(), split=np.arange(240) % 3 == 0)
    workspace = Workspace({"given": Source.of(data)}, Preparation(), 0.2)
    first, second = (workspace.fold("given", "b", trial) for trial in (0, 1))
    np.testing.assert_array_equal(first.reserved, data.split[data.domains == "b"])
    assert first.split == "of the file"
    assert second.reserved.sum() == 12


def test_moments_are_computed_once_for_each_domain_and_split(monkeypatch):
    calls = []
    original = Moments.of.__func__

    def counted(cls, *arguments, **more):
        calls.append(1)
        return original(cls, *arguments, **more)

    monkeypatch.setattr(Moments, "of", classmethod(counted))
    asked = ask(trials=2, heads=["erm", "reweighted", "groupdro", "irm", "dare"])
    records = list(run(bench_plan(asked, ["diagnostics"]), asked.sources))
    assert all(record.status == "ok" for record in records)
    assert len(calls) == 2 * 4


# Runs


@pytest.mark.parametrize("protocol", ["default", "paper"])
def test_trials_side_by_side_give_the_same_records(protocol):
    asked = ask(settings=replace(FAST, protocol=protocol), trials=2)
    plan = bench_plan(asked, EXTRAS, {"a": 0.9})
    alone = results(run(plan, asked.sources))
    assert results(run(plan, asked.sources, jobs=3)) == alone
    assert {status for _, _, status, _ in alone.values()} == {"ok", "given"}


def test_a_run_that_was_stopped_goes_on_and_repeats_nothing(tmp_path):
    asked = ask(trials=2)
    plan = bench_plan(asked, ["ceilings"])
    whole = results(run(plan, asked.sources))
    begun = run(plan, asked.sources, Log(tmp_path))
    first = [next(begun) for _ in range(5)]
    begun.close()
    rest = list(run(plan, asked.sources, Log(tmp_path), jobs=2))
    assert len(first) + len(rest) == len(plan.trials)
    assert results(Log(tmp_path).read()) == whole
    assert list(run(plan, asked.sources, Log(tmp_path))) == []


def test_a_torn_last_line_costs_its_own_trial_only(tmp_path):
    asked = ask(trials=1, heads=["erm", "dare"])
    plan, log = bench_plan(asked, []), Log(tmp_path)
    whole = results(run(plan, asked.sources, log))
    text = log.path.read_bytes()
    log.path.write_bytes(text[:-20])
    assert len(log.read()) == len(plan.trials) - 1
    assert len(list(run(plan, asked.sources, log))) == 1
    assert results(log.read()) == whole


def test_a_killed_process_loses_no_finished_trial(tmp_path):
    data = table(n=400)
    np.savez(tmp_path / "t.npz", X=data.X, y=data.y, domains=data.domains)
    command = [sys.executable, "-m", "skdare.cli", "bench", "t.npz", "--trials", "40"]
    command += ["--heads", "erm,irm,groupdro", "--with", "none", "--jobs", "2"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    path = tmp_path / "t.bench" / "records.jsonl"
    _wait_for(lambda: path.exists() and path.read_bytes().count(b"\n") >= 4, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = Log(tmp_path / "t.bench").read()
    assert len(kept) >= 4
    assert all(record.status == "ok" for record in kept)


def test_ctrl_c_ends_with_what_is_done_on_file(tmp_path):
    data = table(n=400)
    np.savez(tmp_path / "t.npz", X=data.X, y=data.y, domains=data.domains)
    command = [sys.executable, "-m", "skdare.cli", "bench", "t.npz", "--trials", "40"]
    command += ["--heads", "erm,irm,groupdro", "--with", "none", "--jobs", "2"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    path = tmp_path / "t.bench" / "records.jsonl"
    _wait_for(lambda: path.exists() and path.read_bytes().count(b"\n") >= 4, process)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped:" in told
    assert "Traceback" not in told
    done = len(Log(tmp_path / "t.bench").read())
    assert f"{done} of 480" in told


def _wait_for(ready, process, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert process.poll() is None, "the process ended by itself"
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


def test_a_second_process_may_not_write_to_the_same_run(tmp_path):
    asked = ask(trials=1, heads=["erm"])
    with (
        Log(tmp_path).open(),
        pytest.raises(ValueError, match="another process is writing"),
    ):
        list(run(bench_plan(asked, []), asked.sources, Log(tmp_path)))


def test_a_failing_trial_is_a_record_with_its_reason(tmp_path):
    data = table()
    data.y[data.domains != "b"] = "x"  # one class is left to train on
    asked = ask(data, trials=1, heads=["erm", "dare"])
    records = list(run(bench_plan(asked, []), asked.sources, Log(tmp_path)))
    failed = [record for record in records if record.held_out == "b"]
    assert {record.status for record in failed} == {"failed"}
    assert all("needs at least 2 classes" in record.reason for record in failed)
    assert {record.status for record in records if record.held_out != "b"} == {"ok"}
    again = run(bench_plan(asked, []), asked.sources, Log(tmp_path), retry_failed=True)
    assert len(list(again)) == len(failed)


def test_warnings_belong_to_the_trial_that_gave_them():
    asked = ask(trials=1, heads=["erm", "irm"], options={"irm": {"max_iter": 1}})
    for record in run(bench_plan(asked, []), asked.sources, jobs=2):
        assert ("max_iter" in record.values.get("warnings", "")) == (record.head == "irm")


def test_records_are_flat_and_survive_the_file(tmp_path):
    asked = ask(trials=1)
    for record in run(bench_plan(asked, EXTRAS), asked.sources):
        line = record.to_line()
        assert Record.from_line(line) == record
        assert not any(isinstance(v, dict | list) for v in json.loads(line).values())
        assert record.values["version:skdare"]
        if record.study == "main":
            assert {f"score:{domain}" for domain in "abcd"} <= set(record.values)
            assert record.correct().mean() == pytest.approx(record.score)


def test_an_option_that_changes_the_result_changes_the_key():
    asked = ask(trials=1, heads=["dare"])
    keys = set()
    for settings in (FAST, replace(FAST, l2=0.1), replace(FAST, test_on="20")):
        for options in ({}, {"dare": {"shrinkage": 0.5}}):
            other = replace(asked, settings=settings, options=options)
            plan = bench_plan(other, [])
            keys |= {plan.key(trial) for trial in plan.trials}
    assert len(keys) == 6 * 4


def test_a_run_refuses_records_that_were_not_made_alike(tmp_path):
    asked = ask(trials=1, heads=["dare"])
    list(run(bench_plan(asked, []), asked.sources, Log(tmp_path)))
    for other in (
        replace(asked, settings=replace(FAST, l2=0.1)),
        replace(asked, options={"dare": {"shrinkage": 0.5}}),
        ask(table(seed=1), trials=1, heads=["dare"]),
    ):
        with pytest.raises(ValueError, match="with other settings, options or features"):
            list(run(bench_plan(other, []), other.sources, Log(tmp_path)))
    more = replace(asked, trials=2, heads=["erm", "dare"])
    assert len(list(run(bench_plan(more, []), more.sources, Log(tmp_path)))) == 3 * 4


@pytest.mark.parametrize("name", sorted(ABLATIONS))
@pytest.mark.parametrize("protocol", ["default", "paper"])
def test_every_ablation_runs(name, protocol):
    asked = ask(settings=replace(FAST, protocol=protocol), trials=1)
    values = {"lambda": (0.0, 1.0), "shrinkage": (0.1, 1.0), "dimension": (2,)}.get(name)
    plan = ablation_plan(name, asked, values=values)
    records = list(run(plan, asked.sources))
    assert {record.status for record in records} == {"ok"}
    assert {record.study for record in records} == {f"ablation:{name}"}


@pytest.mark.parametrize("head", [n for n, e in HEADS.items() if "regression" in e.tasks])
def test_regression_has_r2_and_rmse(head):
    asked = ask(table("regression"), trials=1, heads=[head])
    for record in run(bench_plan(asked, []), asked.sources):
        assert record.metric == "r2"
        assert record.score <= 1
        assert record.values["rmse"] > 0


# The paper's protocol


def test_fixed_step_lbfgs_follows_torchs():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    A = np.random.default_rng(0).normal(size=(30, 4))

    class Function:
        size = 4

        def value_and_gradient(self, theta):
            z = A @ theta - 1.0
            return float(np.sum(np.logaddexp(0, z) + 0.01 * z**2)), A.T @ (
                1 / (1 + np.exp(-z)) + 0.02 * z
            )

    parameters = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([parameters], lr=0.2, history_size=100)
    matrix = torch.tensor(A)

    def closure():
        optimiser.zero_grad()
        z = matrix @ parameters - 1.0
        loss = (torch.nn.functional.softplus(z) + 0.01 * z**2).sum()
        loss.backward()
        return loss

    ours = FixedStepLBFGS(np.zeros(4), step=0.2, inner=20, memory=100)
    for _ in range(4):
        optimiser.step(closure)
        assert ours.epoch(Function())
        np.testing.assert_allclose(ours.theta, parameters.detach().numpy(), rtol=1e-9, atol=1e-12)


def test_patience_keeps_the_first_best_and_stops_after_it():
    class Flat:
        size = 1

        def value_and_gradient(self, theta):
            return float(theta[0] ** 2), 2 * theta

    scores = iter([0.1, 0.5, 0.4, 0.5, 0.3, 0.9])
    solver = FixedStepLBFGS(np.ones(1), step=0.2, inner=1, memory=3)
    stopped = descend_with_patience(
        solver, lambda theta: Flat(), lambda theta: next(scores), patience=3, max_epochs=50
    )
    assert (stopped.best_epoch, stopped.epochs, stopped.score) == (1, 4, 0.5)


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("erm", ERMClassifier()),
        (
            "dare",
            DAREClassifier(shrinkage=0.1, shrinkage_target="identity", adaptation=None),
        ),
        (
            "no-constraint",
            DAREClassifier(
                shrinkage=0.1, shrinkage_target="identity", adaptation=None, mean_penalty=0.0
            ),
        ),
    ],
)
def test_the_papers_heads_descend_to_the_estimators_minimum(name, head):
    rng = np.random.default_rng(3)
    data = table(n=150)
    data = replace(data, y=np.where(rng.random(600) < 0.3, "x", data.y))  # not separable
    fold = fold_of(data)
    head.set_params(l2=0.0, tol=1e-9).fit(fold.train.X, fold.train.y, domains=fold.train.domains)
    fitted = _descended_to_the_end(fold, name)
    agree = np.mean(fitted.predict(fold.new.X) == head.predict(fold.new.X))
    assert agree > 0.995


def _descended_to_the_end(fold, name):
    from skdare.bench import _paper

    training = _paper._Training.of(fold)
    options = _paper.OPTIONS[name]
    if "mean_penalty" in options:
        descent = training.adjusted(options, adapt=False)
    else:
        descent = training.plain(name, options)
    solver = FixedStepLBFGS(np.zeros(descent.objective.size), step=0.2, inner=20, memory=100)
    for _ in range(100):
        assert solver.epoch(descent.function(solver.theta))
    return _paper.Linear(*descent.weights(solver.theta, None), training.classes)


def test_the_papers_protocol_refuses_regression():
    with pytest.raises(ValueError, match="no regression"):
        ask(table("regression"), replace(FAST, protocol="paper"))


# Ceilings, curve, diagnostics


def test_the_exact_ceiling_is_logistic_regression_on_every_domain():
    fold = fold_of(table())
    head, _ = fit_ceiling(fold, "ceiling-exact", replace(FAST, ceiling_l2=0.1))
    rows = fold.everything()
    unit = rows.X.var(axis=0).mean()
    other = LogisticRegression(C=1 / (len(rows.y) * 0.1 * unit), tol=1e-8, max_iter=1000)
    np.testing.assert_allclose(head.coef_, other.fit(rows.X, rows.y).coef_, atol=1e-4)


def test_the_descended_ceiling_nears_the_exact_one():
    rng = np.random.default_rng(3)
    data = table(n=150)
    data = replace(data, y=np.where(rng.random(600) < 0.3, "x", data.y))
    fold = fold_of(data)
    exact, _ = fit_ceiling(fold, "ceiling-exact", replace(FAST, ceiling_l2=1e-8))
    near, notes = fit_ceiling(fold, "ceiling-sgd", replace(FAST, sgd_steps=3000))
    assert notes["option:steps"] == 3000
    assert np.mean(exact.predict(fold.new.X) == near.predict(fold.new.X)) > 0.99


def test_more_labelled_rows_include_the_fewer():
    y = np.repeat([0, 1, 2], [50, 30, 3])
    few, many = (labelled_rows(y, m, "classification", [0, 1]) for m in (2, 10))
    assert set(few) <= set(many)
    np.testing.assert_array_equal(np.bincount(y[many]), [10, 10, 3])


def test_adjustment_error_is_the_normalised_squared_distance():
    rng = np.random.default_rng(0)
    A, B = (M @ M.T for M in rng.normal(size=(2, 4, 4)))
    expected = np.linalg.norm(A - B) ** 2 / np.linalg.norm(B) ** 2
    found = adjustment_error(Adjustment(4, 0.0, A), Adjustment(4, 0.0, B))
    assert found == pytest.approx(expected)


def test_domains_alike_have_no_adjustment_error_and_full_alignment():
    data = table()
    first = data.domains == "a"
    X, y = np.tile(data.X[first], (3, 1)), np.tile(data.y[first], 3)
    alike = DomainData(X, y, np.repeat(list("abc"), 60), split=np.zeros(180, dtype=bool))
    fold = fold_of(alike)
    assert measure_adjustment(fold, {}, FAST)[0] == pytest.approx(0.0, abs=1e-12)
    for which in ("with adjustment", "without adjustment"):
        assert measure_alignment(fold, which, {}, FAST)[0] == pytest.approx(1.0, abs=1e-6)


# Mistakes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: ask(heads=["dar"]), "did you mean `dare`"),
        (lambda: ask(heads=["anchor"]), "for regression only"),
        (lambda: ask(heads=[]), "no heads"),
        (lambda: ask(options={"dare": {"shrinkag": 1}}), "did you mean 'shrinkage'"),
        (lambda: ask(trials=0), "whole number of 1 or more"),
        (lambda: Settings(protocol="papers"), "protocol"),
        (lambda: Settings(l2="best"), "l2"),
        (lambda: Settings(l2_grid=()), "l2_grid is empty"),
        (lambda: Preparation(clip=3.0), "needs standardize"),
        (lambda: Source.of(table(), held_out=["e"]), "is not in the features; they have `a`"),
        (lambda: ablation_plan("lamda", ask()), "did you mean `lambda`"),
        (lambda: bench_plan(ask(), ["curves"]), "extras"),
        (lambda: bench_plan(ask(), [], {"q": 1.0}), "end_to_end names domain 'q'"),
        (lambda: ask(settings=replace(FAST, protocol="paper"), heads=["dare-cv"]), "not of the"),
        (
            lambda: ask(
                settings=replace(FAST, protocol="paper"), options={"dare": {"guess": "mean"}}
            ),
            "no option 'guess'",
        ),
    ],
)
def test_mistakes_are_told_before_any_work(change, message):
    with pytest.raises(ValueError, match=message):
        change()


def test_missing_values_are_refused_with_a_hint():
    data = table()
    data.X[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"1 of 5 features have missing values.*--impute median"):
        Source.of(data)
    assert Source.of(data, impute="median").held_out == ["a", "b", "c", "d"]


def test_numbered_domains_are_held_out_in_order_of_size():
    data = table()
    numbered = replace(
        data, domains=np.array([2, 10, 1, 3])[np.searchsorted(list("abcd"), data.domains)]
    )
    assert Source.of(numbered).held_out == ["1", "2", "3", "10"]
