"""The page of a report is valid, needs nothing else, obeys no name, and its pictures show it."""

from __future__ import annotations

import base64
import io
import random
import re
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from made_records import record, records, run_of, summary
from skdare.bench.record import RecordFile
from skdare.report import Summary, compare
from skdare.report.figures import figures, plot_domains, plot_gains
from skdare.report.summary import frame_of

RNG = np.random.default_rng(0)
BASE = RNG.uniform(0.5, 0.9, size=6)
SCORES = {
    "erm": BASE.tolist(),
    "by-hand": (BASE + RNG.normal(0.0, 0.05, 6)).tolist(),
    "dare-cv": (BASE + RNG.normal(0.0, 0.01, 6)).tolist(),
    "dare-cv-adapted": (BASE + 0.06 + RNG.normal(0.0, 0.02, 6)).tolist(),
}
HOSTILE = [
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a & b", "{{ 7 * 7 }}",
    "κλινική", "$x$",
]  # fmt: skip
VOID = {"meta", "br", "img", "source", "link", "input", "hr"}


class Page(HTMLParser):
    """Every element, checked to be closed in its place; and the text of each."""

    def __init__(self, html):
        super().__init__()
        self.open, self.elements, self.text = [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)

    def named(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@cache
def made():
    return summary(SCORES, domains=HOSTILE)


@cache
def html_of_page():
    return made().page()


def test_the_page_is_closed_element_by_element_and_has_one_heading():
    html = html_of_page()
    page = Page(html)
    assert html.lower().startswith("<!doctype html>")
    assert len(page.named("h1")) == 1
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert len(page.named("title")) == 1
    assert {"name": "generator", "content": "skdare"} in page.named("meta")


def test_the_page_asks_for_nothing_from_elsewhere():
    page = Page(html_of_page())
    assert page.named("script") == page.named("link") == page.named("iframe") == []
    for _, attributes in page.elements:
        for name in ("src", "href", "srcset"):
            assert attributes.get(name, "data:").startswith("data:")
        assert not any(name.startswith("on") for name in attributes)
    assert "@import" not in html_of_page()
    assert "url(" not in html_of_page()


@pytest.mark.parametrize("form", ["page", "notebook"])
def test_names_are_text_in_the_page(form):
    html = html_of_page() if form == "page" else made()._repr_html_()
    page = Page(html)
    text = "".join(page.text).replace("\u00a0", " ")
    for name in HOSTILE:
        assert name in text
    assert page.named("script") == []
    assert len(page.named("img")) == html.count("data:image/svg+xml;base64,") / 2


def test_rows_of_a_table_have_a_cell_for_each_heading():
    html = html_of_page()
    for table in re.findall(r"<table>.*?</table>", html, re.S):
        widths = {
            row.count("<td") + row.count("<th") for row in re.findall(r"<tr>.*?</tr>", table, re.S)
        }
        assert len(widths) == 1


def test_failures_and_warnings_are_on_the_page_escaped():
    many = [*records(SCORES), record("irm", "a", None, reason="<b>lost</b>")]
    many[0].values["warnings"] = ["<i>watch</i> out"]
    page = Page(Summary({"data": "t", "rows": 1}, frame_of(many)).page())
    text = "".join(page.text)
    assert "<b>lost</b>" in text
    assert "<i>watch</i> out" in text


def test_records_in_another_order_give_the_same_page(tmp_path):
    shuffled = records(SCORES)
    random.Random(0).shuffle(shuffled)
    pages = []
    for name, trials in (("one", records(SCORES)), ("two", shuffled)):
        run = RecordFile(run_of(tmp_path / name, trials, rows=6))
        pages.append(Summary.of(run).tidy().sort_values(["statistic", "held_out", "head"]))
    assert np.allclose(pages[0]["value"], pages[1]["value"])
    assert made().page() == html_of_page()


# Figures


def test_figures_are_drawn_for_both_themes_with_their_caption_as_text():
    drawn = figures(made())
    assert len(drawn) == 2
    for figure in drawn:
        assert figure.light != figure.dark
        assert figure.caption.endswith(".")
        for image in (figure.light, figure.dark):
            svg = base64.b64decode(image.partition(",")[2])
            root = ElementTree.fromstring(svg)
            assert root.tag.endswith("svg")
            assert len(list(root.iter())) > 50


def axes():
    import matplotlib.pyplot as plt

    return plt.subplots()[1]


@pytest.fixture(autouse=True)
def _agg():
    import matplotlib

    matplotlib.use("agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def test_dots_are_the_differences_and_bars_their_means():
    result = made()
    ax = plot_gains(result, axes())
    heads = [head for head in result.lines if head != "erm"]
    dots = [np.asarray(collection.get_offsets())[:, 0] for collection in ax.collections]
    for head, found in zip(heads, dots, strict=True):
        expected = 100 * (result.scores[head] - result.scores["erm"])
        assert np.sort(found) == pytest.approx(np.sort(expected))
    bars = [line.get_xdata()[0] for line in ax.lines if len(line.get_xdata()) == 2][: len(heads)]
    assert bars == pytest.approx([100 * result.gain(head).mean for head in heads])


def test_domains_are_drawn_from_the_baselines_score_to_the_heads():
    result = made()
    ax = plot_domains(result, "dare-cv-adapted", axes())
    before, after = (np.asarray(each.get_offsets())[:, 0] for each in ax.collections[1:])
    ordered = result.scores.sort_values("erm")
    assert before == pytest.approx(100 * ordered["erm"].to_numpy())
    assert after == pytest.approx(100 * ordered["dare-cv-adapted"].to_numpy())
    labels = [tick.get_text().replace("\\$", "$") for tick in ax.get_yticklabels()]
    assert [label[:10] for label in labels] == [name[:10] for name in ordered.index]


@pytest.mark.parametrize("metric", ["accuracy", "r2", "neg_root_mean_squared_error"])
def test_a_picture_is_not_empty(metric):
    ax = summary(SCORES, metric=metric).plot()
    file = io.BytesIO()
    ax.figure.savefig(file, format="rgba")
    pixels = np.frombuffer(file.getvalue(), np.uint8).reshape(-1, 4)
    assert len(np.unique(pixels, axis=0)) > 20


@pytest.mark.parametrize(
    "scores",
    [{"erm": [0.5, 0.6]}, {"erm": [0.5], "dare": [0.6]}, {"erm": [0.5, 0.6], "dare": [None, 0.5]}],
    ids=["one head", "one domain", "a failure"],
)
def test_runs_of_any_shape_have_a_page(scores):
    result = summary(scores)
    Page(result.page())
    assert len(str(result)) > 50


# The bench in Python


def test_compare_gives_the_summary_of_a_bench():
    from sklearn.linear_model import LogisticRegression

    from skdare.data import make_latent_domains

    data = make_latent_domains(3, 40, random_state=0)
    result = compare(
        data.X, data.y, domains=data.domains, heads={"mine": LogisticRegression(), }
    )  # fmt: skip
    for e in range(3):
        train = data.domains != e
        head = LogisticRegression().fit(data.X[train], data.y[train])
        expected = head.score(data.X[~train], data.y[~train])
        assert result.scores.loc[str(e), "mine"] == pytest.approx(expected)
