"""The bench: what a trial may see, what a run keeps, and what its protocols compute."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import warnings
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
    LABELS,
    TASKS,
    Log,
    Plan,
    Record,
    Settings,
    Trial,
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
from skdare.bench._source import Projection, Source
from skdare.datasets import DomainData, make_latent_domains, read
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


def ask(data: DomainData | None = None, settings: Settings = FAST, **more) -> Plan:
    """The plan of a bench on a small table, with nothing beside the heads."""
    return bench_plan(data or table(), settings=settings, **{"name": "t", "extras": [], **more})


def fold_of(data: DomainData, settings: Settings = FAST, number: int = 0, **more):
    """Domain b held out."""
    workspace = Workspace({"given": Source.of(data)}, settings)
    return workspace.fold(Trial("main", "erm", "b", number, **more))


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
    prepared = {"impute": "median", "standardize": True, "clip": 5.0}
    settings = replace(FAST, l2="matched", l2_grid=(0.01, 0.1), **prepared)

    def weights(data):
        head = protocol(fold_of(data, settings), name, {}, settings).predictor
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
        fit_ceiling(fold_of(data), name, FAST).predictor
        for data in (table(), poisoned(table(), labels=True))
    ]
    first, second = (h.V if hasattr(h, "V") else h.coef_ for h in heads)
    assert not np.allclose(first, second)


@pytest.mark.parametrize("projection", [None, Projection("pca", 3), Projection("random", 3)])
def test_prepared_training_rows_do_not_depend_on_the_held_out_domain(projection):
    data = table()
    data.X[::7, 2] = np.nan
    settings = replace(FAST, impute="median", standardize=True, clip=3.0)
    clean = fold_of(data, settings, projection=projection)
    other = fold_of(poisoned(data, features=True), settings, projection=projection)
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
    first, second = (fold_of(data, number=number) for number in (0, 1))
    np.testing.assert_array_equal(first.reserved, data.split[data.domains == "b"])
    assert first.split == "of the file"
    assert second.reserved.sum() == 12


def test_a_drawn_split_validates_only_on_rows_that_the_file_sets_aside_too():
    data = replace(table(), split=np.arange(240) % 3 == 0)
    kept = {tuple(row) for row in data.X[data.split]}
    fold = fold_of(data, number=1)
    assert 0 < len(fold.valid.y) < 36
    assert all(tuple(row) in kept for row in fold.valid.X)


def test_fewer_training_domains_are_prepared_by_their_own_rows_alone():
    settings = replace(FAST, standardize=True)
    fold = fold_of(table(), settings, seen=("a", "d"))
    assert set(fold.train.domains) == {"a", "d"}
    np.testing.assert_allclose(fold.train.X.mean(axis=0), 0.0, atol=1e-9)


@pytest.mark.parametrize("jobs", [1, 3])
def test_moments_are_computed_once_for_each_domain_and_split(monkeypatch, jobs):
    calls = []
    original = Moments.of.__func__

    def counted(cls, *arguments, **more):
        calls.append(1)
        return original(cls, *arguments, **more)

    monkeypatch.setattr(Moments, "of", classmethod(counted))
    heads = ["erm", "reweighted", "groupdro", "irm", "dare"]
    records = list(run(ask(trials=2, heads=heads, extras=["diagnostics"]), jobs=jobs))
    assert all(record.status == "ok" for record in records)
    assert len(calls) == 2 * 4


# Runs


@pytest.mark.parametrize("protocol", ["default", "paper"])
def test_trials_side_by_side_give_the_same_records(protocol):
    settings = replace(FAST, protocol=protocol)
    plan = ask(settings=settings, trials=2, extras=EXTRAS, end_to_end={"a": 0.9})
    alone = results(run(plan))
    assert results(run(plan, jobs=3)) == alone
    assert {status for _, _, status, _ in alone.values()} == {"ok", "given"}


def test_a_run_that_was_stopped_goes_on_and_repeats_nothing(tmp_path):
    plan, log = ask(trials=2, extras=["ceilings"]), Log(tmp_path)
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
    plan, log = ask(trials=1, heads=["erm"]), Log(tmp_path)
    begun = run(plan, log)
    next(begun)
    _wait_for(lambda: len(log.read()) == len(plan.trials))
    begun.close()


def test_a_torn_last_line_costs_its_own_trial_only(tmp_path):
    plan, log = ask(trials=1, heads=["erm", "dare"]), Log(tmp_path)
    whole = results(run(plan, log))
    text = log.path.read_bytes()
    log.path.write_bytes(text[:-20])
    assert len(log.read()) == len(plan.trials) - 1
    assert len(list(run(plan, log))) == 1
    assert results(log.read()) == whole


@pytest.fixture
def begun(tmp_path):
    """A bench of 480 trials in a process of its own, four of them finished."""
    data = table(n=400)
    np.savez(tmp_path / "t.npz", X=data.X, y=data.y, domains=data.domains)
    command = [sys.executable, "-m", "skdare.cli", "bench", "t.npz", "--trials", "40"]
    command += ["--heads", "erm,irm,groupdro", "--with", "none", "--jobs", "2"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        path = tmp_path / "t.bench" / "records.jsonl"
        _wait_for(lambda: path.exists() and path.read_bytes().count(b"\n") >= 4, process)
        yield process
        process.kill()


def _wait_for(ready, process=None, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert process is None or process.poll() is None, "the process ended by itself"
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


def test_a_killed_process_loses_no_finished_trial_and_can_be_taken_up(begun, tmp_path):
    begun.send_signal(signal.SIGKILL)
    begun.wait()
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


def test_ctrl_c_ends_with_what_is_done_on_file(begun, tmp_path):
    begun.send_signal(signal.SIGINT)
    _, told = begun.communicate(timeout=60)
    assert begun.returncode == 130
    assert "stopped:" in told
    assert "Traceback" not in told
    assert f"{len(Log(tmp_path / 't.bench').read())} of 480" in told


def test_a_second_process_may_not_write_to_the_same_run(tmp_path):
    with (
        Log(tmp_path).open(),
        pytest.raises(ValueError, match="another process is writing"),
    ):
        list(run(ask(trials=1, heads=["erm"]), Log(tmp_path)))


def test_a_failing_trial_is_a_record_with_its_reason(tmp_path):
    data = table()
    data.y[data.domains != "b"] = "x"  # one class is left to train on
    plan = ask(data, trials=1, heads=["erm", "dare"], options={"dare": {"shrinkage": 0.5}})
    records = list(run(plan, Log(tmp_path)))
    failed = [record for record in records if record.held_out == "b"]
    assert {record.status for record in failed} == {"failed"}
    assert all("needs at least 2 classes" in record.reason for record in failed)
    assert [r.values["option:shrinkage"] for r in failed if r.head == "dare"] == [0.5]
    assert {record.status for record in records if record.held_out != "b"} == {"ok"}
    assert len(list(run(plan, Log(tmp_path), retry_failed=True))) == len(failed)


def test_warnings_belong_to_the_trial_that_gave_them():
    plan = ask(trials=1, heads=["erm", "irm"], options={"irm": {"max_iter": 1}})
    for record in run(plan, jobs=2):
        assert ("max_iter" in record.values.get("warnings", "")) == (record.head == "irm")


def test_warnings_of_the_caller_are_still_shown():
    for _ in run(ask(trials=1, heads=["erm"])):
        with pytest.warns(UserWarning, match="mine"):
            warnings.warn("mine", stacklevel=1)


def test_records_are_flat_and_survive_the_file():
    for record in run(ask(trials=1, extras=EXTRAS)):
        line = record.to_line()
        assert Record.from_line(line) == record
        assert not any(isinstance(v, dict | list) for v in json.loads(line).values())
        assert record.values["version:skdare"]
        if record.study == "main":
            assert {f"score:{domain}" for domain in "abcd"} <= set(record.values)
            assert record.correct().mean() == pytest.approx(record.score)


def test_whatever_changes_the_result_changes_the_key():
    keys = set()
    for settings in (FAST, replace(FAST, l2=0.1), replace(FAST, test_on="reserved")):
        for options in ({}, {"dare": {"shrinkage": 0.5}}):
            for more in ({}, {"task": "regression"}):
                data = table("regression") if more else table()
                plan = ask(data, settings, heads=["dare"], trials=1, options=options, **more)
                keys |= {plan.key(trial) for trial in plan.trials}
    assert len(keys) == 12 * 4
    numbers = table("regression")
    coded = replace(numbers, y=np.round(numbers.y) % 3)
    by_task = [ask(coded, trials=1, heads=["erm"], task=task) for task in TASKS]
    assert by_task[0].key(by_task[0].trials[0]) != by_task[1].key(by_task[1].trials[0])


def test_what_a_protocol_does_not_look_at_does_not_change_its_keys():
    plans = [ask(settings=replace(FAST, patience=p), trials=1) for p in (2, 3)]
    assert plans[0].key(plans[0].trials[0]) == plans[1].key(plans[1].trials[0])


def test_a_run_refuses_records_that_were_not_made_alike(tmp_path):
    asked = {"trials": 1, "heads": ["dare"], "end_to_end": {"a": 0.9}}
    list(run(ask(**asked), Log(tmp_path)))
    for other in (
        ask(settings=replace(FAST, l2=0.1), **asked),
        ask(**asked, options={"dare": {"shrinkage": 0.5}}),
        ask(table(seed=1), **asked),
        ask(**{**asked, "end_to_end": {"a": 0.8}}),
        ask(replace(table(), domains=np.char.add("other ", table().domains)), trials=1),
    ):
        with pytest.raises(ValueError, match="with other settings, options or features"):
            list(run(other, Log(tmp_path)))
    more = ask(trials=2, heads=["erm", "dare"])
    assert len(list(run(more, Log(tmp_path)))) == 3 * 4
    part = ask(trials=1, heads=["irm"], held_out=["c"])
    assert len(list(run(part, Log(tmp_path)))) == 1


def test_poisoned_labels_change_no_record_of_a_head_without_labels():
    clean, other = (
        {
            record.values["cell"]: [record.values.get(f"score:{d}") for d in "acd"]
            for record in run(
                ask(data, trials=1, extras=["ceilings"], held_out=["b"], heads=CLASSIFIERS)
            )
            if record.uses != LABELS
        }
        for data in (table(), poisoned(table(), labels=True))
    )
    assert clean == other
    assert len(clean) == len(CLASSIFIERS)


@pytest.mark.parametrize("name", sorted(ABLATIONS))
@pytest.mark.parametrize("protocol", ["default", "paper"])
def test_every_ablation_runs(name, protocol):
    settings = replace(FAST, protocol=protocol)
    values = {"lambda": (0.0, 1.0), "shrinkage": (0.1, 1.0), "dimension": (2,)}.get(name)
    records = list(run(ablation_plan(name, table(), settings=settings, trials=1, values=values)))
    assert {record.status for record in records} == {"ok"}
    assert {record.study for record in records} == {f"ablation:{name}"}


@pytest.mark.parametrize("protocol", ["default", "paper"])
@pytest.mark.parametrize("name", ["whitening", "constraint", "mean"])
def test_an_ablation_differs_from_dare_in_its_own_option_whatever_dare_is_given(name, protocol):
    given = {"mean_penalty": 10.0, "shrinkage": 0.5}
    settings = replace(FAST, protocol=protocol)
    plan = ablation_plan(name, table(), settings=settings, trials=1, options={"dare": given})
    records = [r for r in run(plan) if r.held_out == "a" and r.head != "erm"]
    options = {
        r.head: {k: v for k, v in r.values.items() if k.startswith("option:")} for r in records
    }
    assert options["dare"]["option:mean_penalty"] == 10.0
    for head, own in options.items():
        different = {k for k in own if own[k] != options["dare"].get(k)}
        assert head == "dare" or len(different) == 1 or own.get("option:estimate_mean")
        assert own.get("option:shrinkage", 0.5) == 0.5


@pytest.mark.parametrize("head", [n for n, e in HEADS.items() if "regression" in e.tasks])
def test_regression_has_r2_and_rmse(head):
    for record in run(ask(table("regression"), trials=1, heads=[head])):
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


# Ceilings, curve, diagnostics


def test_the_exact_ceiling_is_logistic_regression_on_every_domain():
    fold = fold_of(table())
    head = fit_ceiling(fold, "ceiling-exact", replace(FAST, l2=0.1)).predictor
    rows = fold.everything()
    unit = rows.X.var(axis=0).mean()
    other = LogisticRegression(C=1 / (len(rows.y) * 0.1 * unit), tol=1e-8, max_iter=1000)
    np.testing.assert_allclose(head.coef_, other.fit(rows.X, rows.y).coef_, atol=1e-4)


def test_the_descended_ceiling_nears_the_exact_one():
    rng = np.random.default_rng(3)
    data = table(n=150)
    data = replace(data, y=np.where(rng.random(600) < 0.3, "x", data.y))
    fold = fold_of(data)
    exact = fit_ceiling(fold, "ceiling-exact", replace(FAST, l2=1e-8)).predictor
    near = fit_ceiling(fold, "ceiling-sgd", replace(FAST, sgd_steps=3000))
    assert near.notes["option:steps"] == 3000
    assert np.mean(exact.predict(fold.new.X) == near.predictor.predict(fold.new.X)) > 0.99


@pytest.mark.parametrize(("classes", "bend"), [(2, 0.25), (3, 0.5)])
def test_the_descent_steps_by_one_over_a_bound_on_the_curvature(classes, bend):
    data = table()
    data = replace(data, y=np.minimum(np.searchsorted(list("xyz"), data.y), classes - 1))
    fold = fold_of(data)
    rows = fold.everything()
    step = fit_ceiling(fold, "ceiling-sgd", FAST).notes["option:step"]
    largest = np.linalg.eigvalsh(rows.X.T @ rows.X / len(rows.y))[-1]
    assert step == pytest.approx(1.0 / (bend * (largest + 1.0)))


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
    found = measure_adjustment(fold, "averaged adjustment", {}, FAST)
    assert found.score == pytest.approx(0.0, abs=1e-12)
    assert measure_adjustment(fold, "averaged scalar", {}, FAST).score > 1e-4
    for which in ("with adjustment", "without adjustment"):
        assert measure_alignment(fold, which, {}, FAST).score == pytest.approx(1.0, abs=1e-6)


def test_a_pooled_target_is_measured_as_such():
    fold = fold_of(table())
    errors = {
        target: measure_adjustment(
            fold, "averaged adjustment", {"shrinkage_target": target}, FAST
        ).score
        for target in ("scaled", "pooled")
    }
    assert errors["scaled"] != pytest.approx(errors["pooled"])


# Mistakes


PAPER_SETTINGS = replace(FAST, protocol="paper")


def tiny() -> DomainData:
    """The same table with a fifth domain of two rows."""
    data = table()
    domains = data.domains.copy()
    domains[:2] = "e"
    return replace(data, domains=domains)


def test_small_domains_can_be_left_out():
    assert {trial.held_out for trial in ask(tiny(), min_rows=3).trials} == set("abcd")


def test_options_of_dare_reach_the_adapted_head_unless_it_has_its_own():
    given = {"dare": {"shrinkage": 0.5, "mean_penalty": 7.0}}
    [options] = {t.options for t in ask(heads=["adapted"], options=given).trials}
    assert dict(options) == {"shrinkage": 0.5}
    [options] = {
        t.options
        for t in ask(heads=["adapted"], options=given | {"adapted": {"shrinkage": 0.1}}).trials
    }
    assert dict(options) == {"shrinkage": 0.1}


def test_a_run_knows_what_is_still_to_be_done(tmp_path):
    plan, log = ask(trials=1, heads=["erm", "dare"]), Log(tmp_path)
    begun = run(plan, log)
    next(begun)
    begun.close()
    assert sum(log.unfinished().values()) == len(plan.trials) - len(log.read())
    list(run(plan, log))
    assert log.unfinished() == {("t", "default"): 0}


def with_split(data: DomainData) -> DomainData:
    return replace(data, split=data.domains == "c")


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
        (lambda: Settings(clip=3.0), "needs standardize"),
        (lambda: Settings(protocol="paper", aside=0.0), "rows set aside"),
        (lambda: ask(held_out=["e"]), "is not in the features; they have `a`"),
        (lambda: ask(extras=["curves"]), "extras"),
        (lambda: ask(held_out=[]), "no domain is named"),
        (lambda: ask(options={"dare": {"shrinkage": 5}}), "shrinkage is 5"),
        (lambda: ask(replace(table(), y=np.full(240, "x"))), "y has one class"),
        (lambda: ask(tiny()), "domain `e` has 2 rows, too few to whiten"),
        (lambda: ask(min_rows=99), "no domain has 99 rows"),
        (lambda: ablation_plan("lambda", table(), values=[np.inf]), "mean_penalty is inf"),
        (lambda: ablation_plan("lambda", table(), values=[]), "values is empty"),
        (lambda: ask(end_to_end={"q": 1.0}), "end_to_end names domain 'q'"),
        (lambda: ask(settings=replace(FAST, aside=0.0), extras=["ceilings"]), "60 rows has none"),
        (lambda: ask(with_split(table())), "every row of domain `c` aside"),
        (lambda: ask(pretrained=DomainData(table().X, table().y, np.arange(240) % 3)), "none of"),
        (lambda: ask(replace(table(), y=np.full(240, np.nan))), "NaN"),
        (lambda: ask(replace(table(), X=np.full((240, 5), np.inf))), "infinite"),
        (lambda: ask(settings=PAPER_SETTINGS, heads=["dare-cv"]), "not of the"),
        (lambda: ask(settings=PAPER_SETTINGS, options={"dare": {"guess": 1}}), "no option 'guess'"),
        (
            lambda: ask(settings=PAPER_SETTINGS, options={"dare": {"mean_penalty": "exact"}}),
            "dare.mean_penalty is 'exact'",
        ),
        (lambda: ask(table("regression"), PAPER_SETTINGS), "no regression"),
        (lambda: ablation_plan("lamda", table()), "did you mean `lambda`"),
        (lambda: ablation_plan("domains", table(), values=[9]), "whole numbers from 1 to 3"),
        (lambda: ablation_plan("dimension", table(), values=[-1]), "whole numbers of 1 or more"),
        (lambda: ablation_plan("whitening", table(), values=[1]), "sweeps nothing"),
    ],
)
def test_mistakes_are_told_before_any_work(change, message):
    with pytest.raises(ValueError, match=message):
        change()


def test_missing_values_are_refused_with_a_hint():
    data = table()
    data.X[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"1 of 5 features have missing values.*--impute median"):
        ask(data)
    assert ask(data, replace(FAST, impute="median")).trials


def test_numbered_domains_are_held_out_in_order_of_size():
    data = table()
    numbers = np.array([2, 10, 1, 3])[np.searchsorted(list("abcd"), data.domains)]
    assert Source.of(replace(data, domains=numbers)).held_out == ["1", "2", "3", "10"]
