"""The documentation: every public name is in the reference, and links work in both places."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MODULES = (
    "skdare",
    "skdare.bench",
    "skdare.datasets",
    "skdare.diagnosis",
    "skdare.engines",
    "skdare.features",
    "skdare.report",
    "skdare.summary",
    "skdare.theory",
)
# Made by the build.
MADE = ("auto_examples", "generated", "backreferences")


def listed() -> dict[str, set[str]]:
    """Names in the reference, by the module that they are documented in."""
    found: dict[str, set[str]] = {}
    for page in sorted((DOCS / "reference").glob("*.rst")):
        module = ""
        for line in page.read_text(encoding="utf-8").splitlines():
            if given := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = given[1]
            elif named := re.match(r"(?:   |\.\. autodata:: )(\w+)$", line):
                found.setdefault(module, set()).add(named[1])
    return found


def pages() -> list[Path]:
    """Every page that is written by hand, the site's and the repository's."""
    outside = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    inside = [p for p in sorted(DOCS.rglob("*.md")) if not set(MADE) & set(p.parts)]
    return [*outside, ROOT / "benchmarks" / "README.md", *inside]


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_in_the_reference(name):
    if name == "skdare.features":
        pytest.importorskip("torch", reason="torch is not installed")
    assert listed()[name] == set(importlib.import_module(name).__all__)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_between_files_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", text)
    files = [target for target in targets if not re.match(r"\w+:", target)]
    assert [target for target in files if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_nothing_is_loaded_from_elsewhere(page):
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"!\[[^\]]*\]\(https?:|<(?:script|img|link)[^>]*https?:", text) == []


@pytest.fixture
def site_links(monkeypatch):
    """How the site reads the links of a page; skipped where Sphinx is not installed."""
    pytest.importorskip("sphinx", reason="sphinx is not installed")
    monkeypatch.setattr(sys, "path", [str(DOCS / "_ext"), *sys.path])
    return importlib.import_module("repository_links").site_links


@pytest.mark.parametrize(
    ("file", "page", "link", "expected"),
    [
        (
            "docs/scale.md",
            "scale.md",
            "[b](../benchmarks/README.md#streams)",
            "benchmarks.md#streams",
        ),
        ("benchmarks/README.md", "benchmarks.md", "[s](../docs/scale.md)", "scale.md"),
        ("docs/results/text.md", "results/text.md", "[r](../../README.md#start)", "../index.md"),
        ("docs/theory.md", "theory.md", "[t](results/theory.html)", "reports/theory.html"),
        ("docs/a.md", "a.md", "[far](https://example.org/x)", "https://example.org/x"),
    ],
)
def test_a_link_of_the_repository_becomes_one_of_the_site(site_links, file, page, link, expected):
    read = site_links(link, (ROOT / file).parent, DOCS / page)
    assert re.search(r'(?:\]\(|href=")([^)"]+)', read)[1] == expected
