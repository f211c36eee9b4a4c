"""The demo is one screen, its sentences follow from its numbers, and the next command is named."""

from __future__ import annotations

import re

import pytest

from commands import answer, run, typed
from skdare.bench.record import RecordFile
from skdare.report import Summary


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    return folder, run("demo", folder=folder), answer("demo", folder=folder)


def test_it_is_one_screen_of_80_columns_and_names_the_next_command(shown):
    _, done, _ = shown
    lines = done.out.splitlines()
    assert done.code == 0
    assert len(lines) <= 28
    assert max(map(len, lines)) <= 80
    assert typed(lines[-1].removeprefix("next: "))[0] == "check"


def test_its_numbers_are_those_of_its_benches(shown):
    folder, done, fields = shown
    for name, factor, digits in (("penguins", 100, 1), ("diabetes", 1, 2)):
        scores = Summary.of(RecordFile(folder / "skdare-demo" / name)).scores
        for head, column in fields["scores"][name].items():
            assert column == pytest.approx(scores[head].to_dict())
            for value in [*column.values(), scores[head].mean()]:
                assert f"{factor * value:.{digits}f}" in done.out


def test_its_first_sentence_says_what_adapting_gains_and_its_limit(shown):
    _, done, fields = shown
    text = " ".join(done.out.split())
    means = {head: sum(v.values()) / len(v) for head, v in fields["scores"]["penguins"].items()}
    adapted, erm, by_hand = map(int, re.search(
        r"DARE-CV has (\d+) % right; ERM has (\d+) %, and standardising each species by hand "
        r"(\d+) %", text).groups())  # fmt: skip
    assert adapted == round(100 * means["dare-cv-adapted"]) > erm == round(100 * means["erm"])
    assert by_hand == round(100 * means["by-hand"])
    of_one_sex, unadapted = map(int, re.search(
        r"of one sex, (\d+) % are right, and (\d+) % unadapted", text).groups())  # fmt: skip
    assert of_one_sex < unadapted
    progress = {head: sum(v.values()) / len(v) for head, v in fields["scores"]["diabetes"].items()}
    assert abs(progress["dare-cv-adapted"] - progress["dare-cv"]) < 0.02
    assert "adapting gains nothing" in text


def test_the_second_time_it_reads_its_records(shown):
    folder, done, _ = shown
    assert run("demo", folder=folder).out == done.out
