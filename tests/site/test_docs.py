"""The documentation: every public name is in the reference, and links work in both places."""

from __future__ import annotations

import importlib
import re
import sys
import tomllib
from pathlib import Path

import click
import pytest

from public_surface import MODULES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
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


def test_the_picture_of_the_house_is_what_import_linter_holds():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    picture = re.search(r"```\n(.*?)```", text, re.S)[1].splitlines()
    drawn = [re.split(r"\s{2,}", line)[0] for line in picture]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    [layers] = [c for c in contracts["importlinter"]["contracts"] if c["type"] == "layers"]
    assert drawn == layers["layers"]
    package = ROOT / "src" / "skdare"
    modules = {path.stem for path in package.glob("*.py")} - {"__init__"}
    folders = {path.parent.name for path in package.glob("*/__init__.py")}
    assert {name for line in drawn for name in line.split(" | ")} == modules | folders


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_between_files_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", text)
    files = [target for target in targets if not re.match(r"\w+:", target)]
    assert [target for target in files if not (page.parent / target).exists()] == []


@pytest.fixture
def extension(monkeypatch):
    """An extension of the site by name; skipped where Sphinx is not installed."""
    pytest.importorskip("sphinx", reason="sphinx is not installed")
    monkeypatch.setattr(sys, "path", [str(DOCS / "_ext"), *sys.path])
    return importlib.import_module


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
        ("benchmarks/README.md", "benchmarks.md", "functions[0](rows)", "rows"),
    ],
)
def test_a_link_of_the_repository_becomes_one_of_the_site(extension, file, page, link, expected):
    read = extension("repository_links").site_links(link, (ROOT / file).parent, DOCS / page)
    assert re.search(r'(?:\]\(|href=")([^)"]+)', read)[1] == expected


@pytest.mark.parametrize(
    ("text", "loads"),
    [
        ('<script src="https://example.org/a.js"></script>', True),
        ('<link rel="stylesheet" href="//example.org/a.css">', True),
        ("body { background: url(https://example.org/a.png) }", True),
        ('<a href="https://example.org">a link</a>', False),
        ('<img src="_images/a.png"><link href="_static/site.css">', False),
    ],
)
def test_what_a_page_would_load_from_elsewhere_is_found(extension, text, loads):
    assert bool(extension("offline").loaded_from_elsewhere(text)) is loads


def test_every_command_and_option_is_in_the_reference(extension):
    reference = extension("command_reference")
    contexts = list(reference.contexts(reference.outermost()))
    assert {"skdare bench", "skdare features info"} <= {c.command_path for c in contexts}
    for context in contexts:
        shown = "".join(node.astext() for node in reference.options(context))
        for option in context.command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert option.opts[-1] in shown
