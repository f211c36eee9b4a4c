"""The tables of a study: means by hand, published figures in brackets, records of any kind."""

from __future__ import annotations

import tomllib
from dataclasses import asdict
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

from skdare.bench.record import Record, RecordFile
from skdare.paper.figure_one import figure_one
from skdare.paper.published import Published
from skdare.paper.report import Study, frame_of
from skdare.paper.statistics import half_width, paired_t
from skdare.paper.study_file import StudyFile, embedded_studies

DOMAINS = ("art", "photo")
FIGURES = {
    "source": "a paper",
    "main": {"erm": {"art": 80.3, "photo": 87.4}, "dare": {"art": 81.0, "photo": 90.0}},
    "alignment": {"with adjustment": {"art": 0.9, "photo": 0.5}},
}


def record(study, head, held_out, score, trial=0, **values) -> Record:
    values = {"protocol": "paper", "features": "given", "x": None, **values}
    key = f"{study}{head}{held_out}{trial}{values}"
    return Record(
        key, study, "pictures", head, held_out, trial, "nothing", "accuracy", score, 0.1, "", values
    )


def records(trials: int = 1) -> list[Record]:
    scores = {"erm": (0.8, 0.7), "dare": (0.75, 0.9), "dare-adapted": (0.5, 0.6)}
    return [
        record("main", head, domain, score + 0.01 * trial * (head == "dare"), trial)
        for trial in range(trials)
        for head, both in scores.items()
        for domain, score in zip(DOMAINS, both, strict=True)
    ]


def study(of: list[Record], published: dict | None = None) -> Study:
    return Study("pictures", frame_of(of), None if published is None else Published.of(published))


def cells(table, row: str) -> list[str]:
    return list(dict(table.rows)[row])


def test_a_cell_is_our_mean_with_the_published_one_in_brackets():
    table = next(study(records(), FIGURES).tables())
    assert table.columns == ["ERM", "DARE", "DARE adapted†", "DARE − ERM"]
    assert cells(table, "art") == ["80.0 (80.3)", "75.0 (81.0)", "50.0", "−5.0 (+0.7)"]
    # 83.85 is 83.9 by hand, and 83.8 in binary.
    assert cells(table, "average") == ["75.0 (83.9)", "82.5 (85.5)", "55.0", "+7.5 (+1.7)"]
    assert "In brackets: a paper." in table.notes


def test_without_published_figures_there_are_no_brackets():
    table = next(study(records()).tables())
    assert cells(table, "photo") == ["70.0", "90.0", "60.0", "+20.0"]


def test_several_trials_have_the_papers_interval():
    table = next(study(records(3)).tables())
    half = 1.645 * 1.0 / np.sqrt(3)
    assert cells(table, "art")[:2] == ["80.0 ± 0.0", f"76.0 ± {half:.1f}"]
    assert any("covers 76 times in 100" in note for note in table.notes)


def test_a_failed_trial_is_named_and_does_not_count():
    failed = [*records()[:-1], record("main", "dare-adapted", "photo", None)]
    found = study(failed)
    assert cells(next(found.tables()), "photo")[2] == "–"
    assert found.failures[0].startswith("dare-adapted on 'photo'")
    assert "1 fits failed" in found.text()


def test_records_of_another_protocol_are_left_out_and_former_names_are_known(tmp_path):
    file = RecordFile(tmp_path)
    with file.open({"data": "pictures"}):
        file.append(record("main", "erm", "art", 0.2, protocol="default"))
        for one in records():
            file.append(one)
        file.append(record("main", "adapted", "cartoon", 0.4))
    Published.of(FIGURES).keep(tmp_path)
    found = Study.read(tmp_path)
    assert asdict(found.published) == asdict(Published.of(FIGURES))
    main = found.scores("main")
    assert main.loc[(0, "art"), "erm"] == 0.8
    assert main.loc[(0, "cartoon"), "dare-adapted"] == 0.4


def test_a_folder_without_records_of_the_paper_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no records of the paper's protocol"):
        Study.read(tmp_path)


def test_a_sweep_has_a_row_for_each_value():
    swept = [
        record("ablation:lambda", head, domain, 0.5 + 0.1 * (x > 1), x=x)
        for head in ("dare", "irm")
        for domain in DOMAINS
        for x in (1e-3, 1.0, 100.0)
    ]
    *_, table = study([*records(), *swept]).tables()
    assert [label for label, _ in table.rows] == ["0.001", "1", "100"]
    assert cells(table, "100") == ["60.0", "60.0"]


def test_the_page_has_every_table_and_the_first_figure():
    ceilings = [record("ceiling", "ceiling-sgd", domain, 0.95) for domain in DOMAINS]
    found = study([*records(), *ceilings], FIGURES)
    page = found.page()
    for table in found.tables():
        assert f"<h2>{table.title}</h2>" in page
    assert page.count("data:image/svg+xml;base64,") == 2
    bars = found.bars()
    assert list(bars) == ["ERM", "DARE", "Linear ceiling*"]
    assert bars.loc["average", "ERM"] == pytest.approx(0.75)


def test_there_is_no_figure_without_heads():
    assert figure_one(pd.DataFrame({"Linear ceiling*": [0.5]}, index=["average"])) is None


def test_the_papers_interval_is_narrower_than_students():
    values = np.array([0.1, 0.2, 0.4])
    assert half_width(values, normal=True) == pytest.approx(1.645 * values.std(ddof=1) / 3**0.5)
    assert half_width(values) > half_width(values, normal=True)
    assert np.isnan(half_width(values[:1]))


@pytest.mark.parametrize(
    ("a", "b", "p"),
    [([2.0, 3.0], [1.0, 2.0], 0.25), ([1.0, 2.0], [1.0, 2.0], 1.0), ([1.0], [0.0], np.nan)],
)
def test_differences_without_variance_are_weighed_by_their_signs(a, b, p):
    np.testing.assert_equal(paired_t(np.array(a), np.array(b)), p)


# -- Files of studies -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", embedded_studies())
def test_a_study_has_the_settings_of_the_paper(name):
    settings = StudyFile.read(name).settings
    if name == "digits":
        assert (settings["steps"], settings["check-every"], settings["lr"]) == (400, 50, 3e-3)
        return
    large = name == "domainnet"
    assert settings.get("shrinkage", 0.1) == (0.01 if large else 0.1)
    assert settings.get("batch-exponents", [3, 5.5]) == ([3, 5] if large else [3, 5.5])
    assert settings.get("check-every", 300) == (1000 if large else 300)
    assert (settings["draws"], settings.get("steps", 5001)) == (5, 5001)
    assert "resnet50" in settings["backbone"]


@pytest.mark.parametrize(
    ("name", "gain"), [("office-home", 3.2), ("pacs", 1.0), ("vlcs", -0.2), ("domainnet", 2.3)]
)
def test_a_study_has_the_figures_of_the_paper(name, gain):
    study = StudyFile.read(name)
    published = study.published
    assert list(published.main) == ["erm", "reweighted", "groupdro", "irm", "dare"]
    for lines in (published.main, published.adjustment, published.alignment):
        assert all(list(line) == study.layout.domains for line in lines.values())
    means = {head: published.mean("main", head, study.layout.domains) for head in ("erm", "dare")}
    assert float(means["dare"] - means["erm"]) == pytest.approx(gain, abs=0.05)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"main2": {}}, "has an unknown key `main2`"),
        ({"source": " "}, "has an empty source"),
        ({"main": {"dore": {"art": 3.0}}}, "has an unknown key `main.dore`"),
        ({"main": {"erm": {"art": "61"}}}, "has main.erm.art '61', and a number is needed"),
        ({"main": {"erm": {"art": float("nan")}}}, "has main.erm.art nan; leave out"),
        ({"main": {"erm": {"art": 101.0}}}, "has main.erm.art 101; it must be from 0 to 100"),
        ({"main": {"erm": {"art": 0.8}}}, "has shares in main"),
        ({"alignment": {"with adjustment": {"art": 2.0}}}, "it must be from -1 to 1"),
    ],
)
def test_published_figures_that_cannot_be_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Published.of({**FIGURES, **change})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("draws = 5", "draw = 5", "no option of a study is called 'draw'; did you mean 'draws'"),
        ("draws = 5", 'draws = "5"', "has draws '5', and a whole number is needed"),
        ("classes = 7", "class = 7", "`data` in .* has an unknown key `class`"),
        ("classes = 7", "classes = ", "is not TOML"),
        ("sketch = 74.9", "foto = 74.9", "`published` in .* has figures of `foto`, which is no"),
    ],
)
def test_a_mistake_in_the_file_of_a_study_is_named(tmp_path, old, new, message):
    text = files("skdare.paper").joinpath("studies/pacs.toml").read_text("utf-8")
    assert old in text
    assert tomllib.loads(text)
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(old, new))
    with pytest.raises(ValueError, match=message):
        StudyFile.read(str(path))


def test_an_unknown_study_is_refused_with_the_nearest_one():
    with pytest.raises(ValueError, match="no study is called 'pac'; did you mean 'pacs'"):
        StudyFile.read("pac")
