"""The paper's first figure: its bars are the records' means, and it says what they are of."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from command_line import run, run_ok
from made_records import air, pacs, people, record, run_folder
from skdare.bench import Record
from skdare.report import figure_one, summarise, write_figure, write_report
from skdare.report._figure_one import BARS
from skdare.report._plot import Bars

DOMAINS = ("art_painting", "cartoon", "photo", "sketch")


def networks(trials: int = 3, **values) -> list[Record]:
    """Both kinds of networks, measured in every trial."""
    story, on = pacs(trials=trials), {"tested_on": "reserved", **values}
    saw = {"study": "ceiling", "uses": "labels", "status": "given", "values": on}
    ceilings = story._one("end-to-end", 0.11, **saw)
    return [*ceilings, *story._one("network", -0.01, "network", status="given", values=on)]


def whole(**changes) -> list[Record]:
    """A run with every bar."""
    ceilings = (r for r in pacs().ceilings() if r.head != "end-to-end")
    return [replace(r, **changes) for r in (*pacs().main(), *ceilings, *networks())]


def bars_of(figure) -> Bars:
    """What the figure draws."""
    drawing = figure.plot.drawing
    assert isinstance(drawing, Bars)
    return drawing


def drawn(records) -> tuple[Bars, dict]:
    """The drawing, and its series by line."""
    bars = bars_of(figure_one(summarise(records)))
    return bars, {s.line: s for s in bars.series}


SOURCES = {
    "network": ("network", "given", None),
    "erm": ("erm", "given", "score_reserved"),
    "dare": ("dare", "given", "score_reserved"),
    "ceiling": ("ceiling-exact", "given", None),
    "end-to-end": ("end-to-end", "given", None),
    "pretrained": ("ceiling-exact", "pretrained", None),
}


@pytest.mark.parametrize("bar", SOURCES)
def test_a_bar_is_the_mean_of_its_records_on_the_rows_set_aside(bar):
    head, features, value = SOURCES[bar]
    records = whole()
    drawing, series = drawn(records)
    S = np.array(
        [
            [
                r.values[value] if value else r.score
                for r in records
                if (r.head, r.features, r.held_out) == (head, features, domain)
            ]
            for domain in DOMAINS
        ]
    )
    S = 100 * np.vstack([S, S.mean(axis=0)])
    assert S.shape == (5, 3)
    assert drawing.categories == (*DOMAINS, "average")
    np.testing.assert_allclose(series[bar].values, S.mean(axis=1))
    half = stats.t.ppf(0.95, 2) * stats.sem(S, axis=1)
    ends = [series[bar].low, series[bar].high]
    np.testing.assert_allclose(ends, [S.mean(axis=1) - half, S.mean(axis=1) + half], atol=1e-9)


def test_the_table_has_the_numbers_of_the_bars():
    figure = figure_one(summarise(whole()))
    for k, s in enumerate(bars_of(figure).series, 1):
        assert [cells[k].text for cells in figure.table.rows] == [f"{v:.1f}" for v in s.values]
        halves = [f"± {high - v:.1f}" for high, v in zip(s.high, s.values, strict=True)]
        assert [cells[k].spread for cells in figure.table.rows] == halves
    assert len(figure.table.rows) == len(DOMAINS) + 1


def test_bars_that_have_seen_labels_are_marked():
    _, series = drawn(whole())
    assert list(series) == [bar.line for bar in BARS]
    for line, s in series.items():
        saw_labels = line in ("ceiling", "end-to-end", "pretrained")
        assert s.label.endswith("†") == s.saw_labels == saw_labels


def test_one_trial_has_no_whiskers():
    records = [r for r in whole() if r.trial == 0]
    figure = figure_one(summarise(records))
    ends = [v for s in bars_of(figure).series for v in (*s.low, *s.high)]
    assert len(ends) == 2 * len(BARS) * (len(DOMAINS) + 1)
    assert all(math.isnan(v) for v in ends)
    assert "Whiskers" not in figure.plot.caption


def test_bars_without_records_are_left_out_and_named():
    gone = ("network", "ceiling-exact", "ceiling-sgd")
    records = [r for r in whole() if r.head not in gone or r.features == "pretrained"]
    records = [r for r in records if (r.head, r.held_out) != ("end-to-end", "sketch")]
    figure = figure_one(summarise(records))
    _, series = drawn(records)
    assert list(series) == ["erm", "dare", "end-to-end", "pretrained"]
    assert np.isnan(series["end-to-end"].values[3:]).all()
    missing = "ERM network; Linear ceiling†; End-to-end ceiling† on sketch, average"
    assert f"Not on record: {missing}." in figure.plot.caption
    assert [s.saw_labels for s in series.values()] == [False, False, True, True]


def test_the_caption_says_what_the_bars_are_of():
    caption = figure_one(summarise(whole())).plot.caption
    for words in (
        "rows of the held-out domain that were set aside",
        "† has seen labels of the held-out domain",
        "ERM stands for the paper's approximate SOTA",
        "the ceiling is solved to the optimum",
        "t 90 % interval over 3 trials, splits of the same rows",
    ):
        assert words in caption
    assert "Not on record" not in caption
    fresh = [replace(r, values={**r.values, "features_of": "trial"}) for r in whole()]
    assert "each with its own network and split" in figure_one(summarise(fresh)).plot.caption


def test_the_caption_names_what_was_scored_on_other_rows():
    records = [r for r in whole() if r.head != "network"]
    records += [r for r in networks(tested_on="all") if r.head == "network"]
    caption = figure_one(summarise(records)).plot.caption
    assert "ERM network was scored on all its rows." in caption
    unknown = [
        replace(r, values={k: v for k, v in r.values.items() if k != "tested_on"})
        if r.head == "network"
        else r
        for r in whole()
    ]
    assert "on rows that were not recorded." in figure_one(summarise(unknown)).plot.caption


@pytest.mark.parametrize(
    ("protocol", "head"), [("default", "ceiling-exact"), ("paper", "ceiling-sgd")]
)
def test_each_protocol_has_its_own_linear_ceiling(protocol, head):
    records = [r for r in whole(protocol=protocol) if r.features == "given"]
    _, series = drawn(records)
    expected = [r.score for r in records if (r.head, r.held_out) == (head, "photo")]
    assert series["ceiling"].values[2] == pytest.approx(100 * np.mean(expected))


def test_of_two_protocols_the_papers_is_drawn_unless_another_is_named():
    both = [*whole(), *(replace(r, score=(r.score or 0) / 2) for r in whole(protocol="paper"))]
    summary = summarise(both)
    assert figure_one(summary).title == "pacs, paper protocol"
    assert figure_one(summary, protocol="default").title == "pacs, default protocol"
    assert figure_one(summarise(whole())).title == "pacs, default protocol"


@pytest.mark.parametrize(
    ("records", "asked", "message"),
    [
        (
            lambda: [*whole(), *people().main()],
            {},
            "pacs, wisdm_har; name one of them with data=",
        ),
        (whole, {"data": "vlcs"}, "no data set 'vlcs'; it has pacs"),
        (whole, {"protocol": "paper"}, "no records under protocol paper; it has default"),
        (lambda: list(air().main()), {}, "is a regression, and the figure is of accuracies"),
        (networks, {}, "no records of the heads erm or dare"),
    ],
)
def test_what_cannot_be_drawn_is_refused(records, asked, message):
    with pytest.raises(ValueError, match=message):
        figure_one(summarise(records()), **asked)


# The drawing


def painted(records) -> tuple[list, float]:
    """The bars that matplotlib draws, series after series, and where their axis starts."""
    figures = pytest.importorskip("skdare.report._figures", reason="matplotlib is not installed")
    from matplotlib.figure import Figure

    plot = figure_one(summarise(records)).plot
    axes = Figure(layout="constrained").add_subplot()
    figures.draw_on(axes, plot)
    boxes = [c.patches for c in axes.containers if hasattr(c, "patches")]
    assert len(boxes) == len(BARS)
    return boxes, axes.get_ylim()[0]


def test_bars_are_as_tall_as_their_numbers():
    boxes, floor = painted(whole())
    _, series = drawn(whole())
    for patches, s in zip(boxes, series.values(), strict=True):
        np.testing.assert_allclose([p.get_height() + floor for p in patches], s.values)


def test_bars_of_a_group_do_not_touch_and_look_different():
    boxes, _ = painted(whole())
    first = [patches[0] for patches in boxes]
    ends = [(p.get_x(), p.get_x() + p.get_width()) for p in first]
    assert all(a[1] < b[0] for a, b in pairwise(ends))
    assert len({(p.get_facecolor(), p.get_edgecolor()) for p in first}) == len(BARS)


@pytest.mark.parametrize(("count", "level"), [(1, 0.0), (1, 0.8), (2, 0.8), (20, 0.6)])
def test_any_number_of_domains_can_be_drawn(count, level, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    scores = {f"d{i}": level + 0.02 * i for i in range(count)}
    records = [record(h, d, score=s) for h in ("erm", "dare") for d, s in scores.items()]
    [path] = write_figure(figure_one(summarise(records)), [tmp_path / "f.png"])
    assert path.read_bytes().startswith(b"\x89PNG")


def test_files_are_the_same_bytes_each_time_and_carry_the_caption(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    figure = figure_one(summarise(whole()))
    contents = []
    for name in "ab":
        paths = write_figure(figure, [tmp_path / f"{name}.svg", tmp_path / f"{name}.PNG"])
        contents.append([path.read_bytes() for path in paths])
    assert contents[0] == contents[1]
    svg = contents[0][0].decode()
    assert "pacs, default protocol. Scored on the rows" in svg
    assert "var(--" not in svg
    assert not list(tmp_path.glob("*.part"))


def test_a_file_that_is_no_picture_is_refused_before_any_is_written(tmp_path):
    with pytest.raises(ValueError, match=r"f\.pdf; the name must end in \.svg or \.png"):
        write_figure(figure_one(summarise(whole())), [tmp_path / "f.svg", tmp_path / "f.pdf"])
    assert not list(tmp_path.iterdir())


def test_without_the_extra_a_figure_is_refused(tmp_path, monkeypatch):
    figure = figure_one(summarise(whole()))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in [n for n in sys.modules if n.startswith("skdare.report._")]:
        if name.rpartition("_")[2] in ("figures", "canvas"):
            monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ValueError, match=r"needs matplotlib.*; pip install 'skdare\[report\]'"):
        write_figure(figure, [tmp_path / "f.svg"])


# The page and the command


@pytest.mark.parametrize(
    ("records", "there"),
    [
        (whole, True),
        (lambda: [*pacs().main(), *networks()], False),
        (lambda: list(pacs().main()), False),
        (lambda: [*people().main(), *people().ceilings()], False),
        (lambda: [*air().main(), *air().ceilings()], False),
    ],
)
def test_the_page_has_the_figure_where_its_records_are(records, there, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    [page] = write_report(run_folder(records(), tmp_path), formats=["html"])
    source = page.read_text(encoding="utf-8")
    assert ('class="wide"' in source) == there
    assert ("Accuracy with and without a look" in source) == there
    assert not (there and "Heads and ceilings by held-out domain" in source)


def test_the_command_writes_both_files_and_prints_the_numbers(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    result = run_ok("figure1", run_folder(whole(), tmp_path / "run"))
    assert result.stdout.split()[-2:] == [f"{tmp_path}/run/figure1.{e}" for e in ("svg", "png")]
    assert (tmp_path / "run" / "figure1.png").stat().st_size > 10_000
    _, series = drawn(whole())
    [average] = [line for line in result.stdout.splitlines() if line.startswith("average")]
    for s in series.values():
        assert f"{s.values[-1]:.1f}" in average


def test_the_command_writes_the_file_that_is_named(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    folder = run_folder([*whole(), *people().main()], tmp_path / "run")
    run_ok("figure1", folder, "--data", "pacs", "--out", tmp_path / "mine.svg")
    assert (tmp_path / "mine.svg").read_text(encoding="utf-8").count("<svg") == 1
    assert not list(folder.glob("figure1.*"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent"], "there are no records"),
        (["run"], "name one of them with --data"),
        (["run", "--data", "pacs", "--out", "f.pdf"], "the name must end in .svg or .png"),
        (["run", "--data", "pacs", "--protocol", "paper"], "no records under protocol paper"),
        (["run", "--data", "pacs", "--protocol", "papers"], "papers"),
    ],
)
def test_mistakes_exit_with_two(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_folder([*whole(), *people().main()], tmp_path / "run")
    result = run("figure1", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
