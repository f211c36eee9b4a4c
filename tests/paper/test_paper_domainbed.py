"""A DomainBed sweep is read as DomainBed chooses: by training domains alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skdare.paper.domainbed import read_domainbed
from skdare.paper.report import Study, frame_of

DOMAINS = ["art", "photo", "sketch"]


def line(step: int, inner, outer, test=(0,), trial: int = 0, **more) -> str:
    args = {"algorithm": "ERM", "dataset": "PACS", "test_envs": list(test), "trial_seed": trial}
    scores = {f"env{e}_in_acc": score for e, score in enumerate(inner)}
    scores |= {f"env{e}_out_acc": score for e, score in enumerate(outer)}
    return json.dumps({"args": {**args, **more}, "step": step, **scores})


def sweep(folder: Path, **runs: list[str]) -> Path:
    for name, lines in runs.items():
        (folder / name).mkdir()
        (folder / name / "results.jsonl").write_text("\n".join(lines))
    return folder


def test_the_step_and_run_with_the_best_training_domains_counts(tmp_path):
    first = [line(0, [0.1] * 3, [0.9, 0.5, 0.5]), line(300, [0.2] * 3, [0.1, 0.7, 0.7])]
    second = [line(0, [0.3] * 3, [0.0, 0.8, 0.8]), line(300, [0.9] * 3, [1.0, 0.7, 0.8])]
    scores = read_domainbed(sweep(tmp_path, a=first, b=second), DOMAINS)
    assert scores.networks == {("art", 0): 0.3}
    assert scores.chosen == {("art", 0): (tmp_path / "b", 0)}


def test_a_run_whose_test_domain_does_not_exist_is_a_ceiling(tmp_path):
    scores = read_domainbed(sweep(tmp_path, a=[line(0, [0.1] * 3, [0.7, 0.8, 0.9], [7])]), DOMAINS)
    assert scores.end_to_end == {("art", 0): 0.7, ("photo", 0): 0.8, ("sketch", 0): 0.9}
    frame = frame_of(scores.records("PACS"))
    assert Study("PACS", frame).scores("ceiling").loc[(0, "photo"), "end-to-end"] == 0.8


def test_diverged_steps_and_runs_with_two_test_domains_do_not_count(tmp_path):
    lines = [
        line(0, [0.4] * 3, [0.0, 0.5, 0.5]),
        line(300, [0.9] * 3, [0.0, float("nan"), 0.9]),
        line(0, [0.8] * 3, [0.0, 0.9, 0.9], test=[0, 1]),
    ]
    assert read_domainbed(sweep(tmp_path, a=lines), DOMAINS).networks == {("art", 0): 0.4}


def test_half_a_last_line_is_left_out_and_any_other_is_named(tmp_path):
    whole = line(0, [0.4] * 3, [0.0, 0.5, 0.5])
    folder = sweep(tmp_path, a=[whole, whole[:30]])
    assert read_domainbed(folder, DOMAINS).networks == {("art", 0): 0.4}
    (folder / "a/results.jsonl").write_text(f"{whole[:30]}\n{whole}\n")
    with pytest.raises(ValueError, match=r"line 1 of .*results\.jsonl"):
        read_domainbed(folder, DOMAINS)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"domains": ["art"]}, "has scores on 3 domains, and 1 are named"),
        ({"algorithm": "IRM"}, "has no run of IRM on one test domain; it has ERM on nothing"),
        ({"dataset": "VLCS"}, "has no run of ERM on VLCS; it has ERM on PACS"),
        ({}, "has runs on PACS, VLCS; name one with dataset="),
    ],
)
def test_a_sweep_that_does_not_fit_is_refused(tmp_path, more, message):
    lines = [line(0, [0.4] * 3, [0.0, 0.5, 0.5])]
    if not more:
        lines.append(line(0, [0.4] * 3, [0.0, 0.5, 0.5], dataset="VLCS"))
    options = {"domains": DOMAINS, **more}
    with pytest.raises(ValueError, match=message):
        read_domainbed(sweep(tmp_path, a=lines), **options)


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"has no results\.jsonl, and no folder in it has one"):
        read_domainbed(tmp_path, DOMAINS)
