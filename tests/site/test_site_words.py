"""Pages: links lead somewhere, words are those of the glossary, and nothing is too long."""

from __future__ import annotations

import re

import pytest

from pages import ROOT

# Words in the text of a page, without its code and tables.
BUDGET = {
    "README.md": 450,
    "CONTRIBUTING.md": 1200,
    "CHANGELOG.md": 400,
    "RELEASING.md": 300,
    "benchmarks/README.md": 700,
    "docs/install.md": 400,
    "docs/tutorial.md": 1000,
    "docs/when-to-use.md": 900,
    "docs/mathematics.md": 2500,
    "docs/decisions.md": 5000,
    "docs/glossary.md": 500,
    "docs/capabilities.md": 900,
    "docs/results/pacs.md": 2500,
}
# A page of the guide is one screen or two.
USUAL = 900
LONGEST_SENTENCE = 45
FORBIDDEN = re.compile(
    r"\b(anew|fore(tell|told|tells|see|seen|sees)|mends?|mended|dearer|besides?|nobody|somebody"
    r"|rungs?|ladder|goes by|worth its while|says so|left-out|as (it is|they are)|ceilings?"
    r"|fleets?|on the one hand|a (second|minute|domain|class|row) each)\b",
    re.IGNORECASE,
)
PAGES = [
    page.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "benchmarks/*.md")
    for page in sorted(ROOT.glob(pattern))
    if "generated" not in page.parts
]


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def prose_of(page: str) -> str:
    """Without blocks, comments, formulas, tables and code in a line of text."""
    text = re.sub(r"```.*?```|<!--.*?-->|\$\$.*?\$\$", "", text_of(page), flags=re.S)
    text = "\n".join(line for line in text.splitlines() if not line.startswith("|"))
    return re.sub(r"`[^`\n]*`|\$[^$\n]*\$|\]\([^)]*\)", " x ", text)


@pytest.mark.parametrize("page", PAGES)
def test_links_between_files_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", text_of(page), flags=re.S)
    targets = [t for t in re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", text) if ":" not in t]
    folder = (ROOT / page).parent
    assert [target for target in targets if not (folder / target).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_anchors_lead_to_a_heading(page):
    here = (ROOT / page).parent
    text = re.sub(r"```.*?```", "", text_of(page), flags=re.S)
    for target, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)\s]*)\)", text):
        file = (here / target) if target else ROOT / page
        headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.M)
        slugs = [re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings]
        assert anchor in slugs, f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_keeps_to_its_number_of_words(page):
    assert len(prose_of(page).split()) <= BUDGET.get(page, USUAL)


@pytest.mark.parametrize("page", PAGES)
def test_no_word_of_a_page_is_one_that_the_glossary_replaces(page):
    assert sorted({found[0] for found in FORBIDDEN.finditer(prose_of(page))}) == []


@pytest.mark.parametrize("page", PAGES)
def test_no_sentence_is_longer_than_can_be_read_aloud(page):
    sentences = re.split(r"(?<=[.:;!?])\s+|\n\s*\n|\n(?=[-#*\d])", prose_of(page))
    assert [s for s in sentences if len(s.split()) > LONGEST_SENTENCE] == []


@pytest.mark.parametrize("page", PAGES)
def test_no_page_has_the_path_of_a_machine(page):
    assert re.findall(r"(?<![\w.])/(?:home|work|root|Users|mnt|tmp)/\S*", text_of(page)) == []


def test_a_decision_has_at_most_eighty_words():
    paragraphs = text_of("docs/decisions.md").split("\n\n")
    entries = [p for p in paragraphs if not p.startswith(("#", "|", "-"))]
    assert [e[:60] for e in entries if len(e.split()) > 80] == []
