"""The code of every page runs as pasted, and prints what the page shows."""

from __future__ import annotations

import pytest

from pages import ROOT, Block, blocks, check_output, run_page

QUICK = ["docs/install.md", "docs/guide/new-domain.md", "docs/guide/choose.md"]
SLOW = [
    "README.md",
    "docs/tutorial.md",
    "docs/when-to-use.md",
    "docs/mathematics.md",
    *(f"docs/guide/{page.name}" for page in sorted((ROOT / "docs/guide").glob("*.md"))),
]
PAGES = [*QUICK, *(page for page in SLOW if page not in QUICK)]


@pytest.mark.parametrize(
    "page", [pytest.param(p, marks=() if p in QUICK else pytest.mark.slow) for p in PAGES]
)
def test_the_code_of_a_page_runs_and_prints_what_it_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    missing = run_page(ROOT / page)
    if missing:
        pytest.skip(f"all but the blocks that need {', '.join(sorted(set(missing)))} ran")


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_has_a_language(page):
    assert all(block.language for block in blocks(ROOT / page)), "what is not code is `text`"


@pytest.mark.parametrize(
    ("shown", "right"),
    [
        ("a 90.1 %\nb", True),
        ("a 90.3 %\nb", True),
        ("a 50.0 %\nb", False),
        ("a 90.1 %", False),
        ("...\nb", True),
        ("b", False),
        ("a 90.1 %\nb\nc", False),
    ],
)
def test_an_output_is_what_was_printed_but_for_last_digits_and_gaps(shown, right):
    block = Block("text", shown, 1)
    if right:
        check_output(block, "a 90.1 %\nb\n")
    else:
        with pytest.raises(AssertionError):
            check_output(block, "a 90.1 %\nb\n")
