"""What is read from records is what pandas reads, and text, page and table say the same."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest

from made_records import record, records, run_of, summary
from skdare.bench.record import RecordFile
from skdare.errors import InputError
from skdare.report import Summary
from skdare.report.scales import MINUS, SCALES, scale_of
from skdare.report.statistics import holm
from skdare.report.summary import frame_of
from skdare.report.tables import Table, gain_table, score_table, screen

SCORES = {
    "erm": [0.80, 0.70, 0.95, 0.60],
    "by-hand": [0.85, 0.71, 0.94, 0.72],
    "dare-cv": [0.80, 0.72, 0.95, 0.61],
    "dare-cv-adapted": [0.86, 0.75, 0.95, 0.75],
}


def test_means_and_differences_are_those_of_pandas():
    made = summary(SCORES)
    frame = pd.DataFrame(SCORES, index=list("abcd"))
    pd.testing.assert_frame_equal(
        made.scores, frame[made.scores.columns], check_names=False, check_exact=False
    )
    for head in SCORES:
        expected = frame[head] - frame["erm"]
        assert made.gain(head).mean == pytest.approx(expected.mean())
        assert made.gain(head).standard_error == pytest.approx(expected.sem())


def test_repeats_are_averaged_within_a_domain_first():
    made = [
        *records({"erm": [0.5, 0.9]}, trial=0),
        *records({"erm": [0.7, 0.9]}, trial=1),
    ]
    scores = Summary({}, frame_of(made)).scores["erm"]
    assert scores.tolist() == pytest.approx([0.6, 0.9])


def test_p_values_are_holms_of_the_sign_flip_test():
    made = summary(SCORES)
    assert made.p_values == holm({h: made.gain(h).p for h in SCORES if h != "erm"})


def test_the_baseline_comes_first_and_adapted_heads_last():
    made = summary({name: SCORES[name] for name in reversed(SCORES)})
    assert next(iter(made.lines)) == made.baseline == "erm"
    adapts = [line.adapts for line in made.lines.values()]
    assert adapts == sorted(adapts)


def test_a_failed_fit_is_named_and_averages_are_not_made_without_it():
    made = [*records({"erm": [0.5, 0.6]}), record("dare-cv", "a", 0.7)]
    made.append(record("dare-cv", "b", None, reason="too few rows"))
    result = Summary({"data": "table"}, frame_of(made))
    assert math.isnan(result.scores.loc["b", "dare-cv"])
    assert result.failures["reason"].tolist() == ["too few rows"]
    shown = str(result)
    assert "failed" in shown
    assert "too few rows" in shown
    assert result.gain("dare-cv").differences.index.tolist() == ["a"]


def test_r2_below_its_floor_counts_as_the_floor_and_that_is_said_once_where_it_happens():
    cut = summary({"erm": [0.5, -7.0, 0.4]}, metric="r2", majority=None)
    assert cut.scores["erm"].min() == -1.0
    assert cut.frame["score"].min() == -7.0
    words = f"An R² below {MINUS}1.000 counts as {MINUS}1.000"
    for text in (str(cut), cut.page()):
        assert " ".join(text.split()).count(words) == 1
    whole = summary({"erm": [0.5, 0.1, 0.4]}, metric="r2", majority=None)
    assert "counts as" not in str(whole) + whole.page()


def numbers(text):
    """All numbers with a decimal point, in order."""
    return re.findall(rf"[{MINUS}+]?\d+\.\d+", text)


def test_text_page_and_tidy_table_have_the_same_numbers():
    made = summary(SCORES)
    cells = [cell for _, row in score_table(made).rows for cell in row]
    page, text = made.page(), str(made)
    for cell in cells:
        assert cell in text
        assert f"<td>{cell}</td>" in page
    tidy = made.tidy()
    scores = tidy[tidy["statistic"] == "score"]
    assert sorted(f"{100 * v:.1f}" for v in scores["value"]) == sorted(cells)
    means = tidy[tidy["statistic"] == "mean"].set_index("head")["value"]
    totals = dict(zip(made.lines, score_table(made).totals[0][1], strict=True))
    assert totals == {head: f"{100 * means[head]:.1f}" for head in made.lines}
    p = tidy[tidy["statistic"] == "p"].set_index("head")["value"]
    shown = [row[1][-1] for row in gain_table(made).rows]
    assert shown == [f"{p[head]:.3f}" for head in made.p_values]


def test_the_tidy_table_is_plain_csv(tmp_path):
    tidy = summary(SCORES).tidy()
    tidy.to_csv(tmp_path / "t.csv", index=False)
    again = pd.read_csv(tmp_path / "t.csv", keep_default_na=False)
    assert again["value"].to_numpy(float) == pytest.approx(tidy["value"].to_numpy(float))


def test_domains_that_count_as_better_or_worse_differ_by_more_than_a_step():
    made = summary({"erm": [0.5, 0.5, 0.5, 0.5], "dare-cv": [0.52, 0.509, 0.48, 0.5]})
    above, below = (row[1][1] for row in score_table(made).totals[1:])
    assert (above, below) == ("1", "1")


def test_of_many_domains_a_screen_shows_the_worst_and_the_best_and_says_how_many_are_left_out():
    rng = np.random.default_rng(0)
    made = summary({"erm": rng.uniform(0.3, 0.9, size=20).tolist()})
    shown = [label for label, cells in score_table(made, brief=True).rows if cells]
    order = made.scores["erm"].sort_values().index.tolist()
    assert shown == [*order[:5], *order[-5:]]
    assert "10 domains between these" in screen(made)
    assert len(score_table(made).rows) == 20


@pytest.mark.parametrize("width", [40, 80])
def test_a_table_of_any_width_fits_and_loses_no_cell(width):
    columns = [f"head {j}\nadapted" if j % 2 else f"a long heading {j}" for j in range(9)]
    rows = [(f"domain {i}", [f"{i}.{j}" for j in range(9)]) for i in range(4)]
    table = Table("A title", "held out", columns, rows, [("average", ["9.9"] * 9)])
    text = table.text(width)
    assert max(map(len, text.splitlines())) <= width
    assert sorted(numbers(text)) == sorted(
        [cell for _, cells in [*rows, *table.totals] for cell in cells]
    )


def test_names_that_are_too_long_are_cut_in_a_table_and_whole_in_the_page():
    name = "a very long name of a domain " * 4
    made = summary({"erm": [0.5, 0.6]}, domains=[name, "b"])
    assert max(map(len, str(made).splitlines())) <= 80
    assert name in made.page()


def test_what_was_chosen_and_declined_is_counted_once_each():
    made = [
        *records({"erm": [0.5, 0.6, 0.7]}),
        *records({"dare-cv": [0.5, 0.6, 0.7]}, chosen="erm"),
        record("dare-cv-adapted", "a", 0.5, chosen="center"),
        record("dare-cv-adapted", "b", 0.6, chosen="center", declined="too far"),
        record("dare-cv-adapted", "c", 0.7, chosen="standardize"),
    ]
    text = " ".join(str(Summary({"data": "table"}, frame_of(made))).split())
    assert "DARE-CV took plain ERM on 3 of 3 held-out domains." in text
    assert "centring each domain on 1 of 3 held-out domains" in text
    assert "left unadapted on 1" in text


def test_a_run_is_read_from_its_folder(tmp_path):
    run_of(tmp_path / "run", records(SCORES), rows=400)
    made = Summary.of(RecordFile(tmp_path / "run"))
    pd.testing.assert_frame_equal(made.scores, summary(SCORES).scores)
    assert made.title.startswith("table: 400 rows")


def test_a_folder_without_records_is_refused(tmp_path):
    with pytest.raises(InputError, match="no records"):
        Summary.of(RecordFile(tmp_path))


@pytest.mark.parametrize("metric", [*SCALES, "top_k_accuracy"])
def test_every_metric_is_written_with_its_digits_and_its_name(metric):
    task = {"metric": metric, "majority": 0.4}
    sign = -1.0 if metric.startswith("neg_") else 1.0
    made = summary({"erm": [0.5 * sign, 0.61 * sign], "dare-cv": [0.55 * sign, 0.7 * sign]}, **task)
    scale = made.scale
    text = str(made)
    assert scale.title in text
    for score in made.scores.to_numpy().ravel():
        assert scale.value(score) in text


@pytest.mark.parametrize(
    ("rmse", "written"), [(-1234.5, f"{MINUS}1234"), (-0.012, f"{MINUS}0.0120")]
)
def test_errors_in_units_of_the_target_have_three_digits(rmse, written):
    scale = scale_of("neg_root_mean_squared_error", [rmse, rmse / 2])
    assert scale.value(rmse) == written
    assert scale.matters(abs(rmse) * 0.02)
    assert not scale.matters(abs(rmse) * 0.005)
