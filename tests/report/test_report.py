"""Laws of reports: every format says the same, and the page needs nothing but itself."""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interrupts import PATIENCE
from made_records import air, failed, main_study, pacs, people, record, run_folder
from skdare._scale import SCALES, scale_of
from skdare.bench import Log, Record
from skdare.report import FORMATS, Published, summarise, text, tidy, write_report
from skdare.report._latex import escape
from skdare.report._main_study import gains_plot
from skdare.report._names import Naming
from skdare.report._numbers import duration, number, p_value
from skdare.report._plot import Gains, spaced
from skdare.report._sections import document
from skdare.report._strip import strips
from skdare.report._studies import CAPTIONS
from skdare.report._verdict import evidence, remarks, verdict
from skdare.report.summary.published import keep

# In one process where tests run side by side: each would write the long report anew.
pytestmark = pytest.mark.xdist_group("report")

DOMAINS = ("art", "cartoon", "photo", "sketch")


def mixed() -> list[Record]:
    """Three data sets, two tasks, a failure, and names that every format must escape."""
    odd = [
        record(h, d, t, data="a_b & <c> $5 #1")
        for h in ("erm", "x_y^~")
        for d in "ab|"
        for t in (0, 1)
    ]
    lost = failed("dare", "sketch", 2, "ValueError: l2 < 0 & 100 % of {rows}", data="pacs")
    first = [r for r in pacs().whole() if r.key != lost.key]
    return [*first, lost, *air().main(), *air().ceilings(), *air().curve(), *people().main(), *odd]


RUNS = {
    "whole": lambda: pacs().whole(),
    "mixed": mixed,
    "one trial": lambda: list(pacs(trials=1).main()),
    "two heads": lambda: list(pacs().main(("erm", "dare"))),
    "one head": lambda: list(pacs().main(("erm",))),
    "one domain": lambda: [record(h, score=0.5) for h in ("erm", "dare")],
    "ablations only": lambda: list(pacs().ablations()),
    "ceilings only": lambda: list(pacs().ceilings()),
    "all failed": lambda: [failed(h, "art", 0, "no") for h in ("erm", "dare")],
    "one value of a sweep": lambda: [record("dare", study="ablation:lambda", x=1.0)],
}


@pytest.fixture(params=RUNS)
def records(request) -> list[Record]:
    return RUNS[request.param]()


@pytest.fixture(scope="module")
def mixed_report(tmp_path_factory) -> Path:
    """The folder with every format of the mixed run."""
    folder = run_folder(mixed(), tmp_path_factory.mktemp("mixed"))
    write_report(folder)
    return folder


def test_every_run_can_be_reported_in_every_format(records, tmp_path):
    folder = run_folder(records, tmp_path / "run")
    paths = write_report(folder)
    names = ["report.html", "report.md", "report.tex", "report.csv", "records.csv"]
    assert [path.name for path in paths] == names
    assert all(path.stat().st_size > 0 for path in paths)
    assert text(summarise(records))
    assert not list(folder.glob("*.part"))


def test_the_same_records_give_the_same_bytes(mixed_report, tmp_path):
    again = write_report(mixed_report, tmp_path / "again")
    assert len(again) == 5
    for path in again:
        assert path.read_bytes() == (mixed_report / path.name).read_bytes()


def test_trials_that_finish_in_another_order_give_the_same_bytes(records, tmp_path):
    records = [
        replace(
            r, values={**r.values, "option:l2": (0.1, 1e-05, 10.0)[i % 3], "split": f"s{i % 4}"}
        )
        for i, r in enumerate(records)
    ]
    sets = list(dict.fromkeys((r.data, r.protocol) for r in records))
    folds = dict.fromkeys((r.data, r.protocol, r.held_out, r.trial) for r in records)
    backwards = [
        r
        for one in sets
        for fold in reversed(list(folds))
        for r in records
        if fold == (r.data, r.protocol, r.held_out, r.trial) and fold[:2] == one
    ]
    assert len(backwards) == len(records)
    contents = []
    for name, ordered in (("a", records), ("b", backwards)):
        paths = write_report(run_folder(ordered, tmp_path / name), formats=["md", "tex", "csv"])
        contents.append({path.name: path.read_text() for path in paths})
    assert contents[0] == contents[1]
    assert ("1e-05, 0.1, 10.0" in contents[0]["report.md"]) == (len(records) >= 3)


@pytest.mark.parametrize("exists", [True, False])
def test_a_run_without_records_is_refused_by_its_path(exists, tmp_path):
    folder = tmp_path / "none"
    if exists:
        folder.mkdir()
    with pytest.raises(ValueError, match=re.escape(str(folder / "records.jsonl"))):
        write_report(folder)
    assert folder.exists() == exists


def test_an_unknown_format_is_refused_before_anything_is_written(tmp_path):
    folder = run_folder([record()], tmp_path / "run")
    with pytest.raises(ValueError, match="format is 'pdf'; use one of 'html', 'md', 'tex', 'csv'"):
        write_report(folder, tmp_path / "out", ["md", "pdf"])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("absent", ["matplotlib", "jinja2"])
def test_without_the_extra_only_html_is_refused(absent, tmp_path, monkeypatch):
    folder = run_folder(list(pacs().main()), tmp_path / "run")
    monkeypatch.setitem(sys.modules, absent, None)
    for name in [n for n in sys.modules if n.startswith("skdare.report._")]:
        if name.rpartition("_")[2] in ("html", "figures", "canvas"):
            monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ValueError, match=rf"needs {absent}.*; pip install 'skdare\[report\]'"):
        write_report(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    rest = [name for name in FORMATS if name != "html"]
    assert len(write_report(folder, tmp_path / "out", rest)) == 4


# Words


def scores(gain: Sequence[float]) -> list[Record]:
    """DARE above ERM by this gain on each domain, with a little noise over three trials."""
    n = len(gain)
    base = np.resize([0.6, 0.7, 0.8, 0.75], n)[:, None] + np.array([0.0, 0.01, -0.01])
    ours = base + np.array(gain)[:, None] + np.array([0.002, -0.001, 0.001])
    names = (*DOMAINS, *(f"domain {i}" for i in range(n)))[:n]
    return main_study({"erm": base.tolist(), "dare": ours.tolist()}, names)


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        ((0.02, 0.021, 0.019, 0.02), "DARE is 2.1 points above ERM on average over 4 domains"),
        ((0.02, 0.021), "too few domains to tell"),
        ((0.02, 0.021, 0.019, 0.02), "too few domains to tell"),
        ((-0.02, -0.021, -0.019, -0.02), "too few domains to tell"),
        ((0.02, 0.021, 0.019, 0.02, 0.02), "sign-flip p 0.031): evidence that it is higher"),
        ((0.03, -0.02, 0.02, -0.02, 0.01), "not enough evidence of a difference"),
        ((0.1, 0.02, -0.01, 0.05, 0.01), "sign-flip p 0.062): weak evidence that it is higher"),
        ((-0.02, -0.021, -0.019, -0.02, -0.02), "evidence that it is lower"),
    ],
)
def test_the_evidence_is_what_the_tests_bear_out(gain, words):
    [group] = summarise(scores(gain)).groups
    assert group.main is not None
    assert words in " ".join(evidence(group.main, Naming()))


@pytest.mark.parametrize("n", [2, 3, 4])
def test_of_a_few_domains_no_difference_is_proven_however_steady(n):
    [group] = summarise(scores([0.02 + 1e-5 * i for i in range(n)])).groups
    assert group.main is not None
    assert group.main.comparison.across_domains["dare"].difference.p < 0.01
    sentences = verdict(group, Naming())
    assert sentences[0].startswith("Use DARE: expect ")
    assert sentences[-1].startswith(f"Only {n} domains were held out: too few to tell a difference")
    assert " evidence that" not in " ".join(evidence(group.main, Naming()))
    plot = gains_plot(group.main, Naming(), "gains")
    assert plot is not None
    assert "an interval clear of zero is no proof" in plot.caption


def test_the_caution_counts_every_head_that_was_tried():
    gain = (0.04, 0.03, 0.05, 0.01, 0.03, -0.01)
    rivals = {"irm": (0.03, -0.02, 0.04, -0.01, -0.03, 0.02), "groupdro": (-0.01, 0.02) * 3}
    base = [[0.6 + 0.05 * i] for i in range(6)]
    names = [f"domain {i}" for i in range(6)]

    def sentence(heads: dict[str, Sequence[float]]) -> str:
        rows = {h: [[x + d] for [x], d in zip(base, ds, strict=True)] for h, ds in heads.items()}
        [group] = summarise(main_study({"erm": base} | rows, names)).groups
        return verdict(group, Naming())[-1]

    assert "chance" not in sentence({"dare": gain})
    assert sentence({"dare": gain} | rivals) == (
        "The difference may be chance (p 0.094, corrected for 3 heads)."
    )


@pytest.mark.parametrize(
    ("gain", "advice"),
    [
        (
            (0.02, 0.021, 0.019, 0.02),
            "Use DARE: expect 73.3 % on a new domain (58 to 89), 2.1 points above ERM and better "
            "on 4 of 4 domains.",
        ),
        (
            (-0.02, -0.021, -0.019, -0.02),
            "Use ERM: expect 71.2 % on a new domain (56 to 87); nothing tested here beats it.",
        ),
        # Better on half of the domains is not better on most of them, however much.
        (
            (0.2, 0.2, -0.01, -0.01),
            "Use ERM: expect 71.2 % on a new domain (56 to 87); nothing tested here is better on "
            "most domains.",
        ),
    ],
)
def test_the_advice_is_the_best_head_that_is_better_on_most_domains(gain, advice):
    [group] = summarise(scores(gain)).groups
    assert verdict(group, Naming())[0] == advice


def test_the_advice_says_what_to_do_with_rows_of_the_new_domain_and_without():
    base = [[0.6], [0.7], [0.8], [0.75], [0.7]]
    better = [[score + 0.1 + 0.01 * k] for k, [score] in enumerate(base)]
    worse = [[score - 0.1] for [score] in base]
    domains = (*DOMAINS, "clipart")
    [group] = summarise(main_study({"erm": base, "dare": worse, "adapted": better}, domains)).groups
    sentences = verdict(group, Naming())
    assert sentences[0].startswith("Use DARE and adapt it to unlabelled rows of the new domain: ")
    assert sentences[0].endswith("12.0 points above ERM and better on 5 of 5 domains.")
    assert sentences[1].startswith("Without such rows use ERM, 71.0 %")
    assert sentences[1].endswith("nothing tested here beats it.")
    swapped = {"erm": base, "dare": better, "adapted": worse}
    [group] = summarise(main_study(swapped, domains)).groups
    sentences = verdict(group, Naming())
    assert sentences[0].startswith("Use DARE: ")
    assert sentences[1].startswith("Adapting did not pay here: DARE adapted is 10.0 points below")


def test_a_head_that_guessing_equals_is_not_recommended():
    records = [
        record(h, d, task="regression", metric="r2", score=s)
        for h in ("erm", "dare")
        for d, s in (("a", -0.5), ("b", 0.2), ("c", 0.1))
    ]
    [group] = summarise(records).groups
    sentence, caution = verdict(group, Naming())
    assert caution.startswith("Only 3 domains were held out")
    assert sentence.startswith("Do not use these heads on a new domain: the best, ERM")
    assert "an R² of −0.07 (−0.89 to 0.76), no better than predicting its mean" in sentence


@pytest.mark.parametrize("run", ["whole", "mixed", "one trial", "one domain", "all failed"])
def test_the_advice_has_at_most_three_sentences(run):
    for group in summarise(RUNS[run]()).groups:
        assert 1 <= len(verdict(group, Naming())) <= 3


def test_the_advice_comes_first_and_tests_only_with_details():
    summary = summarise(pacs().whole())
    lines = text(summary).splitlines()
    assert lines[2].startswith("Use DARE and adapt it to unlabelled rows")
    order = [i for i, line in enumerate(lines) if line.startswith(("Use", "Differ", "Accuracy"))]
    assert order[:3] == sorted(order[:3])
    assert "sign-flip" not in text(summary)
    assert "sign-flip" in text(summary, details=True)


@pytest.mark.parametrize("width", [60, 100])
def test_the_strips_put_means_and_zero_in_their_columns(width):
    [group] = summarise(scores((0.04, 0.02, 0.04, -0.02))).groups
    assert group.main is not None
    plot = gains_plot(group.main, Naming(), "gains")
    assert plot is not None
    title, strip, axis, _ = strips(plot, width)
    assert title == "Difference from ERM in accuracy (points)"
    assert strip.index("│") == axis.index("0")
    assert strip.index("●") > strip.index("│") > strip.index("○")
    assert all(len(line) <= width for line in (title, strip, axis))


def test_of_one_trial_rows_are_compared_and_not_splits():
    [group] = summarise(list(pacs(trials=1).main())).groups
    assert group.main is not None
    assert "one trial" in " ".join(remarks(group, Naming()))
    assert "McNemar" in " ".join(evidence(group.main, Naming()))


def test_rows_of_groups_are_not_compared_and_the_report_says_so():
    records = [
        replace(r, values=r.values | {"n_groups": 40}) for r in pacs(trials=1).main(("erm", "dare"))
    ]
    [group] = summarise(records).groups
    assert group.main is not None
    words = " ".join(evidence(group.main, Naming()))
    assert "Rows of one group are not independent" in words
    assert "McNemar" not in words
    assert "p: for the average, a sign-flip test over domains" in text(summarise(records))


def test_the_remarks_tell_of_trials_that_failed_or_are_missing():
    records = [*scores((0.02, 0.02, 0.01, 0.02))[:-1], failed("erm", "art", 0, "no")]
    words = " ".join(remarks(summarise(records).groups[0], Naming()))
    assert "1 trial failed and is left out" in words
    assert "1 trial is not on record yet" in words


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (SCALES["accuracy"].value(0.8432), "84.3"),
        (SCALES["accuracy"].value(float("nan")), "–"),
        (SCALES["accuracy"].gain(-0.0141), "−1.4"),
        (SCALES["accuracy"].gain(-0.0001), "0.0"),
        (SCALES["r2"].value(-1.5), "−1.50"),
        (SCALES["r2"].prose(-0.001), "an R² of 0.00"),
        (SCALES["roc_auc"].prose(0.814), "a ROC AUC of 0.81"),
        (SCALES["balanced_accuracy"].prose(0.814), "81.4 %"),
        (SCALES["accuracy"].span(0.612, 1.2), "61 to 100"),
        (SCALES["neg_log_loss"].prose(-0.5), "a negative log loss of −0.500"),
        (SCALES["neg_log_loss"].span(-0.5, 0.2), "−0.500 to 0.000"),
        (scale_of("neg_mean_absolute_error", [-12345.6]).figure(-12345.6), "−12346"),
        (scale_of("neg_root_mean_squared_error", [-0.0123]).figure(-0.0123), "−0.01230"),
        (p_value(0.0004), "<0.001"),
        (p_value(0.125), "0.125"),
        (number(0.0), "0"),
        (number(1e5), "10⁵"),
        (number(1e-4), "10⁻⁴"),
        (number(0.001), "0.001"),
        (number(2048.0), "2048"),
        (duration(192.4), "3 min 12 s"),
    ],
)
def test_numbers_are_written_for_people(written, expected):
    assert written == expected


# Text


def test_two_heads_stand_beside_their_gain_and_its_p():
    lines = text(summarise(list(pacs().main(("erm", "dare"))))).splitlines()
    [head] = [line for line in lines if line.startswith("held out")]
    assert head.split() == ["held", "out", "ERM", "DARE", "gain", "p"]


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_tables_of_six_heads_fit_the_terminal(width):
    lines = text(summarise(pacs().whole()), width).splitlines()
    assert max(map(len, lines)) <= max(width, 72)


def test_plain_marks_are_explained_where_they_are_used():
    shown = text(summarise(scores((0.02, 0.021, 0.019, 0.02))))
    assert re.search(r"\*\d\d\.\d ±", shown)
    assert "*: highest mean" in shown
    assert "_: above ERM" in shown


# LaTeX


@pytest.mark.parametrize("character", list("&%$#_{}"))
def test_latex_escapes_what_it_would_obey(character):
    assert escape(f"a{character}b") == f"a\\{character}b"


def test_latex_is_ascii_but_for_the_names_that_were_given(mixed_report):
    assert (mixed_report / "report.tex").read_text(encoding="utf-8").isascii()


def test_rows_of_a_latex_table_have_a_cell_for_each_column(mixed_report):
    source = (mixed_report / "report.tex").read_text(encoding="utf-8")
    tables = re.findall(r"\\begin\{tabular\}\{(lr*)\}(.*?)\\end\{tabular\}", source, re.S)
    assert len(tables) > 15
    for columns, body in tables:
        rows = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {len(columns)}
    plain = re.sub(r"\\[{}]", "", source)
    assert plain.count("{") == plain.count("}")


def test_latex_marks_as_the_paper_does(mixed_report):
    source = (mixed_report / "report.tex").read_text(encoding="utf-8")
    assert re.search(r"\\textbf\{[\d.]+ \$\\pm\$ [\d.]+ \([\d.]+\)\}", source)
    assert re.search(r"\\underline\{[\d.]+ \$\\pm\$ [\d.]+ \([\d.]+\)\}", source)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles(mixed_report, tmp_path):
    packages = r"\usepackage{booktabs,graphicx}\usepackage[T1]{fontenc}"
    body = (mixed_report / "report.tex").read_text(encoding="utf-8")
    page = rf"\documentclass{{article}}{packages}\begin{{document}}{body}\end{{document}}"
    (tmp_path / "page.tex").write_text(page, encoding="utf-8")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "-draftmode", "page.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


# Markdown and CSV


def test_rows_of_a_markdown_table_have_a_cell_for_each_column(mixed_report):
    source = (mixed_report / "report.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(?:^\|.*\n)+", source, re.M)
    assert len(blocks) > 30
    for block in blocks:
        sizes = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(sizes) == 1


def test_tidy_statistics_are_those_of_the_summary():
    summary = summarise(pacs().whole())
    [group] = summary.groups
    values = {
        (r["head"], r["held_out"], r["statistic"]): r["value"]
        for r in tidy(summary)
        if r["study"] == "main" and r["metric"] == "accuracy"
    }
    assert group.main is not None
    across = group.main.comparison.across_domains["dare"]
    assert values["dare", "(across domains)", "paired t p"] == across.difference.p
    assert values["dare", "(across domains)", "paired t p Holm"] == across.holm
    mean = group.main.grid.at("dare", "photo").mean()
    assert values["dare", "photo", "mean"] == pytest.approx(mean)


def test_the_tidy_file_has_the_rows_that_json_has(mixed_report):
    with (mixed_report / "report.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    expected = tidy(summarise(Log(mixed_report).read()))
    assert len(rows) == len(expected) > 1000
    for row, values in zip(rows, expected, strict=True):
        assert list(row) == list(values)
        for name, value in values.items():
            if isinstance(value, float):
                assert float(row[name]) == value
            else:
                assert row[name] == ("" if value is None else value)


def test_the_wide_table_has_a_row_for_each_record(mixed_report):
    with (mixed_report / "records.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    records = Log(mixed_report).read()
    assert [row["key"] for row in rows] == [r.key for r in records]
    assert float(rows[0]["score"]) == records[0].score
    assert "correct" not in rows[0]


# The page


class Page(HTMLParser):
    """What a page asks for, and how it is built."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.ids: list[str] = []
        self.headings: list[int] = []
        self.figures = 0
        self.titles = 0
        self.captions = 0
        self.tags: set[str] = set()
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.add(tag)
        names = ("src", "href", "xlink:href", "srcset", "data", "action", "poster")
        self.asked += [attributes[name] or "" for name in names if name in attributes]
        self.ids += [attributes["id"] or ""] if "id" in attributes else []
        self.headings += [int(tag[1])] if re.fullmatch(r"h[1-6]", tag) else []
        self.figures += tag == "figure"
        self.captions += tag == "figcaption"
        self.titles += tag == "title" and "id" in attributes


def test_the_page_asks_for_nothing_from_elsewhere(mixed_report):
    source = (mixed_report / "report.html").read_text(encoding="utf-8")
    page = Page(source)
    assert page.asked
    assert all(address.startswith("#") for address in page.asked)
    assert all(address.startswith("#") for address in re.findall(r"url\(([^)]*)\)", source))
    assert "@import" not in source
    assert "http" not in source
    assert not page.tags & {"script", "link", "iframe", "object", "embed", "img", "base"}


def test_every_figure_has_a_title_a_caption_and_names_of_its_own(mixed_report):
    source = (mixed_report / "report.html").read_text(encoding="utf-8")
    page = Page(source)
    assert page.figures > 15
    assert page.figures == page.captions == page.titles == source.count('role="img"')
    assert len(page.ids) == len(set(page.ids))
    figures = re.findall(r"<svg.*?</svg>", source, re.S)
    for svg in figures:
        used = re.findall(r'(?:href="|url\()#([^")]+)', svg)
        assert all(f'id="{name}"' in svg for name in used)
        assert len(svg) < 60_000


@pytest.mark.parametrize("run", ["whole", "mixed"])
def test_headings_never_skip_a_level(run, mixed_report, tmp_path):
    if run == "whole":
        write_report(run_folder(RUNS[run](), tmp_path), formats=["html"])
    path = (tmp_path if run == "whole" else mixed_report) / "report.html"
    levels = Page(path.read_text(encoding="utf-8")).headings
    assert levels[0] == 1
    assert len(levels) > 10
    assert all(b <= a + 1 for a, b in pairwise(levels))


def test_names_are_text_in_the_page(mixed_report):
    source = (mixed_report / "report.html").read_text(encoding="utf-8")
    assert "<c>" not in source
    assert "a_b &amp; &lt;c&gt; $5 #1" in source


def test_a_zero_stands_apart_on_a_logarithmic_axis():
    axis = spaced([0.0, 0.1, 1.0, 10.0])
    assert axis.gap is not None
    assert axis.places[0] < axis.gap < axis.places[1]
    assert axis.pieces == [slice(0, 1), slice(1, 4)]
    assert axis.ticks[1] == ["0", "0.1", "1", "10"]


@pytest.mark.parametrize("outlier", [0.02, 0.6])
def test_no_mean_and_no_interval_leaves_the_axis(outlier):
    [group] = summarise(scores((0.001, -0.002, 0.003, outlier))).groups
    assert group.main is not None
    plot = gains_plot(group.main, Naming(), "gains")
    assert plot is not None
    assert isinstance(plot.drawing, Gains)
    [gain] = plot.drawing.gains
    assert max(map(abs, (gain.mean, gain.low, gain.high))) <= plot.drawing.limit


def test_even_steps_stay_even():
    assert spaced([1, 2, 3]).places == [1.0, 2.0, 3.0]


# The browser

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Any]:
    """Chromium without a window, its log of requests on; skipped where it is not installed."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("chromium and chromedriver are not both installed")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(executable_path=driver))
    yield chrome
    chrome.quit()


def show(browser: Any, path: Path, width: int, scheme: str) -> None:
    """Open a file at this width and in this colour scheme."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wanted = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [wanted]})
    browser.get(path.as_uri())
    state = f"{path.as_uri()} complete"
    ready = "return location.href + ' ' + document.readyState"
    end = time.monotonic() + PATIENCE
    while browser.execute_script(ready) != state:
        assert time.monotonic() < end, f"the browser does not show {path}"
        time.sleep(0.05)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_opens_in_a_browser(browser, mixed_report, width, scheme):
    browser.get_log("performance")
    show(browser, mixed_report / "report.html", width, scheme)
    boxes = browser.execute_script(
        "return [...document.querySelectorAll('figure svg.plot')].map("
        "e => [e.getBoundingClientRect().width, e.getBoundingClientRect().height])"
    )
    figures = browser.execute_script("return document.querySelectorAll('figure').length")
    assert len(boxes) == figures > 15
    assert all(w > 200 and h > 50 for w, h in boxes)
    assert [e for e in browser.get_log("browser") if e["level"] == "SEVERE"] == []
    events = [json.loads(e["message"])["message"] for e in browser.get_log("performance")]
    sent = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
    # Chromium's own first tab may still be loading; it is another document.
    asked = [e["request"]["url"] for e in sent if e["documentURL"].startswith("file:")]
    assert asked
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 800)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_screen_holds_the_advice_and_its_picture(
    browser, tmp_path, width, height, scheme
):
    [path] = write_report(run_folder(list(pacs().main()), tmp_path), formats=["html"])
    show(browser, path, width, scheme)
    ends = browser.execute_script(
        "return ['.verdict', '.picture svg'].map("
        "name => document.querySelector(name).getBoundingClientRect().bottom)"
    )
    assert 0 < ends[0] < ends[1] <= height


def test_a_table_that_is_cut_off_shows_that_there_is_more(browser, mixed_report):
    show(browser, mixed_report / "report.html", 390, "light")
    wide = browser.execute_script(
        "return [...document.querySelectorAll('.scroll')]"
        ".filter(e => e.scrollWidth > e.clientWidth + 1)"
        ".map(e => getComputedStyle(e).backgroundImage)"
    )
    assert wide
    assert all("gradient" in image for image in wide)


@pytest.mark.parametrize("width", [320, 390, 800, 1280])
def test_the_page_never_scrolls_sideways(browser, mixed_report, width):
    show(browser, mixed_report / "report.html", width, "light")
    browser.execute_script("document.querySelectorAll('details').forEach(e => e.open = true)")
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    assert wide <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_in_figures_stands_out_from_the_page(browser, mixed_report, scheme):
    show(browser, mixed_report / "report.html", 1280, scheme)
    colours = browser.execute_script(
        "const shade = c => c.match(/[\\d.]+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0);"
        "const label = document.querySelector('figure svg.plot text');"
        "return [shade(getComputedStyle(document.body).backgroundColor),"
        " shade(getComputedStyle(label).fill)]"
    )
    page, ink = colours
    assert (page > 600 > 200 > ink) if scheme == "light" else (page < 200 < 500 < ink)


# Beside published figures

FIGURES = {
    "source": "an earlier study",
    "main": {"dare": {"art": 85.0, "photo": 95.0}, "irm": {"art": 1.0}, "erm": {"art": 80.0}},
    "alignment": {"with adjustment": {"art": 0.9, "photo": 0.8}},
}


def beside(published=FIGURES, protocol="paper", scores=None) -> dict[str, list[list[str]]]:
    """Rows of the tables that have published figures, by caption."""
    scores = scores or {"erm": [[0.812], [0.95]], "dare": [[0.834], [0.94]]}
    records = [
        *main_study(scores, ("art", "photo")),
        record("with adjustment", "art", study="alignment", metric="cosine", score=0.712),
    ]
    records = [replace(r, protocol=protocol) for r in records]
    shown = document(summarise(records, published=Published.of(published)))
    parts = [p for s in shown.sections for p in s.parts if p.heading == "Beside published figures"]
    return {
        table.caption: [list(table.columns), *([cell.text for cell in row] for row in table.rows)]
        for part in parts
        for table in part.tables
    }


def test_published_figures_stand_in_brackets_with_the_gain_and_averages():
    assert beside() == {
        "Accuracy (%) on the held-out domain; in brackets an earlier study": [
            ["held out", "ERM", "DARE", "DARE − ERM"],
            ["art", "81.2 (80.0)", "83.4 (85.0)", "+2.2 (+5.0)"],
            ["photo", "95.0 (–)", "94.0 (95.0)", "−1.0 (–)"],
            ["average", "88.1 (–)", "88.7 (90.0)", "+0.6 (–)"],
        ],
        f"{CAPTIONS['alignment']}; in brackets an earlier study": [
            ["held out", "With adjustment"],
            ["art", "0.712 (0.900)"],
            ["average", "0.712 (0.900)"],
        ],
    }


def test_a_run_without_records_of_its_own_names_the_folder_that_has_them(tmp_path):
    run_folder([record("erm")], tmp_path / "bench")
    with pytest.raises(ValueError, match=r"no records at .*; name .*bench, which has some"):
        write_report(tmp_path)


def test_published_averages_are_rounded_as_by_hand():
    four = {"art": 84.3, "cartoon": 79.5, "photo": 96.7, "sketch": 74.9}
    records = [record("erm", domain, protocol="paper") for domain in four]
    published = Published.of({"source": "a paper", "main": {"erm": four}})
    assert "(83.9)" in text(summarise(records, published=published))


def test_the_gain_beside_a_published_one_is_over_trials_that_have_both_heads():
    figures = {"erm": {"art": 80.0}, "dare": {"art": 81.0}}
    records = [
        record(head, "art", trial, protocol="paper", score=score)
        for trial, scores in enumerate([(0.5, 0.51), (0.9, 0.91)])
        for head, score in zip(figures, scores, strict=True)
    ]
    published = Published.of({"source": "a paper", "main": figures})
    whole = text(summarise(records, published=published))
    cut = text(summarise(records[1:], published=published))
    assert "+1.0 (+1.0)" in whole
    assert "+1.0 (+1.0)" in cut


def test_published_figures_of_other_domains_are_no_table_of_dashes():
    assert beside({"source": "a paper", "main": {"erm": {"sketch": 74.9}}}) == {}


def test_without_both_heads_no_gain_stands_beside_published_figures():
    [rows] = [
        rows for name, rows in beside(scores={"erm": [[0.8], [0.9]]}).items() if "Acc" in name
    ]
    assert rows[0] == ["held out", "ERM"]


def test_published_figures_are_not_shown_beside_another_protocol_or_other_heads():
    assert beside(protocol="default") == {}
    assert beside({"source": "another study", "main": {"irm": {"art": 80.0}}}) == {}


def test_published_figures_are_kept_with_a_run_and_read_for_its_report(tmp_path):
    records = [record(head, protocol="paper") for head in ("erm", "dare")]
    folder = run_folder(records, tmp_path)
    assert Published.read(folder) is None
    before = write_report(folder, formats=("md",))[0].read_text()
    assert "an earlier study" not in before
    published = Published.of(FIGURES)
    keep(published, folder)
    assert Published.read(folder) == published
    assert "80.0 (85.0)" in write_report(folder, formats=("md",))[0].read_text()
    file = folder / "published.json"
    file.write_text(file.read_text().replace("85.0", '"high"'))
    with pytest.raises(ValueError, match=r"published.json .*; remove it, or run the study again"):
        write_report(folder, formats=("md",))
    keep(None, folder)
    assert write_report(folder, formats=("md",))[0].read_text() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mean": {}}, "has an unknown key `mean`; keys are source, main, adjustment, alignment"),
        ({"main": {"erm": {"art": "80"}}}, "has main.erm.art '80', and a number is needed"),
        ({"main": {"erm": 80.0}}, "has main.erm 80.0, and an object is needed"),
        ({"main": {"erm": {"art": math.nan}}}, "has main.erm.art nan; leave out what is not"),
        ({"main": {"irn": {"art": 80.0}}}, "has an unknown key `main.irn`; keys are erm,"),
        ({"adjustment": {"average": {}}}, "unknown key `adjustment.average`; keys are averaged"),
        ({"source": 3}, "has source 3"),
        ({"source": " "}, "has an empty source; say who published"),
        ({"main": {"erm": {"art": 810.0}}}, "has main.erm.art 810; it must be from 0 to 100"),
        ({"main": {"erm": {"art": 0.81}}}, "has shares in main; give accuracies in percent"),
        ({"adjustment": {"averaged scalar": {"art": -1.0}}}, "-1; it must be at least 0"),
        ({"alignment": {"with adjustment": {"art": 91.2}}}, "91.2; it must be from -1 to 1"),
        ({"main": {"erm": {}}, "alignment": {}}, "has no figures; give some in main, adj"),
    ],
)
def test_what_is_no_published_figure_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Published.of({**FIGURES, **change})
    with pytest.raises(ValueError, match="lacks source"):
        Published.of({name: FIGURES[name] for name in ("main", "alignment")})
