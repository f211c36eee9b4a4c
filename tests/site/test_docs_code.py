"""The code of the tutorial, of the how-to pages and of the README runs, and prints what they say.

Blocks of a page run in order, in one folder and one namespace. Comments that a reader does not see
say the rest:

``<!-- setup`` … ``-->``
    Python that runs first, such as the making of a file that the reader would have.
``<!-- file: NAME -->``
    The next block is written to that file.
``<!-- needs: PACKAGE … -->``
    The next block runs where these are installed.
``<!-- warns: TEXT -->``
    The next block warns, in these words; any other warning is an error.
``<!-- not run: REASON -->``
    The next block does not run.

``text`` blocks after one that ran are what it printed; a line of dots stands for lines left out.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import runpy
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner

from skdare.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *(ROOT / "docs" / f"{name}.md" for name in ("install", "tutorial", "when-to-use")),
    *sorted((ROOT / "docs/howto").glob("*.md")),
]
WHOLE_STUDIES = ("batch-effects", "reproduce-the-paper")
FENCE = re.compile(
    r"^<!--\s*(?P<word>setup|file|needs|warns|not run)\b:?\s*(?P<rest>.*?)\s*-->$"
    r"|^```(?P<language>\S*)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"[+−-]?\d[\d,]*\.?\d*")


@dataclass
class Block:
    """Code of a page, and what the comments before it ask for."""

    language: str
    code: str
    line: int
    comments: dict[str, str] = field(default_factory=dict)

    @property
    def missing(self) -> list[str]:
        packages = self.comments.get("needs", "").split()
        return [name for name in packages if importlib.util.find_spec(name) is None]


def blocks(page: Path) -> list[Block]:
    """The blocks of a page in order, hidden ones among them."""
    found, comments, text = [], {}, page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["word"] == "setup":
            found.append(Block("python", match["rest"], line))
        elif match["word"]:
            comments[match["word"]] = match["rest"]
        else:
            found.append(Block(match["language"], match["code"], line, comments))
            comments = {}
    return found


def run_python(block: Block, page: Path, namespace: dict) -> str:
    """What a block prints; errors have the line of the page."""
    code = compile("\n" * block.line + block.code, str(page), "exec")
    foretold = block.comments.get("warns")
    warning = pytest.warns(match=foretold) if foretold else contextlib.nullcontext()
    with warning, contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, namespace)
    return out.getvalue()


def run_bash(block: Block) -> str:
    """What the commands of a block print; anything but `skdare` must say why it does not run."""
    printed = []
    for line in block.code.replace("\\\n", " ").splitlines():
        program, *arguments = shlex.split(line, comments=True) or ["#"]
        if program == "#":
            continue
        assert program == "skdare", f"line {block.line}: {program!r} cannot be run here"
        result = CliRunner().invoke(main, arguments, catch_exceptions=False)
        assert result.exit_code == 0, f"{line}\n{result.output}"
        printed.append(result.stdout)
    return "".join(printed)


def words(line: str) -> list[str]:
    """A line without the width of its columns and without its numbers' last digits."""
    return NUMBER.sub("#", line).replace("─", "").split()


def numbers(line: str) -> list[float]:
    found = (match.replace("−", "-").replace(",", "") for match in NUMBER.findall(line))
    return [float(number) for number in found]


def same(shown: str, printed: str) -> bool:
    """Whether words are equal and numbers near: another BLAS decides a row or two otherwise."""
    return words(shown) == words(printed) and numbers(shown) == pytest.approx(
        numbers(printed), rel=0.03, abs=0.011
    )


def check_output(block: Block, printed: str) -> None:
    """Every line shown was printed, in that order; none was left out without dots."""
    lines = [line.rstrip() for line in printed.strip().splitlines()]
    gap = False
    for shown in block.code.strip().splitlines():
        if shown.strip() in {"...", "…"}:
            gap = True
            continue
        while gap and lines and not same(shown, lines[0]):
            lines.pop(0)
        assert lines, f"line {block.line}: not printed: {shown!r}"
        assert same(shown, lines[0]), f"line {block.line}: {shown!r} is {lines[0]!r}"
        lines.pop(0)
        gap = False
    assert gap or not lines, f"line {block.line}: also printed: {lines[0]!r}"


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.slow) if p.stem in WHOLE_STUDIES else p for p in PAGES],
    ids=lambda page: page.stem,
)
def test_the_code_of_a_page_runs_and_prints_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict = {"__name__": "__main__"}
    missing: set[str] = set()
    printed = None
    code = list(blocks(page))
    assert code, "the page has no code"
    for block in code:
        before, printed = printed, None
        if block.missing:
            missing.update(block.missing)
        elif "not run" in block.comments:
            assert block.comments["not run"], f"line {block.line}: say why"
        elif "file" in block.comments:
            Path(block.comments["file"]).write_text(block.code, encoding="utf-8")
        elif block.language == "python":
            printed = run_python(block, page, namespace)
        elif block.language == "bash":
            printed = run_bash(block)
        elif block.language == "text" and before is not None:
            check_output(block, before)
            printed = before  # a further text block shows another part of it
    if missing:
        pytest.skip(f"all but the blocks that need {', '.join(sorted(missing))} ran")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_a_page_has_a_language(page):
    assert all(block.language for block in blocks(page)), "what is not code is `text`"


HELD_OUT = runpy.run_path(str(ROOT / "docs/held_out.py"))


def test_pictures_are_drawn_from_the_scores_that_are_kept():
    drawn = HELD_OUT["pictures"]()
    kept = {path.stem: path.read_text("utf-8") for path in (ROOT / "docs/figures").iterdir()}
    assert kept == drawn


def test_what_to_expect_is_what_the_scores_say():
    lines = (ROOT / "docs/when-to-use.md").read_text(encoding="utf-8").splitlines()
    shown = [line for line in lines if line.startswith("|") and " of " in line.split("|")[-2]]
    assert shown == HELD_OUT["summaries"]()


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/when-to-use.md"])
def test_the_gain_over_sets_is_that_of_the_scores(page):
    by_set = HELD_OUT["by_set"]().values()
    classes = [scores for scores in by_set if not scores[0].is_regression]
    gains = [sum(s.adapted - s.erm for s in scores) / len(scores) for scores in classes]
    worst = [min(s.adapted for s in scores) - min(s.erm for s in scores) for scores in classes]
    assert len(classes) == 12
    assert round(100 * sum(gains) / len(gains)) == 7
    assert [sum(change > 0 for change in worst), sum(change < 0 for change in worst)] == [6, 5]
    text = (ROOT / page).read_text(encoding="utf-8")
    assert "7 points" in text
    assert "twelve" in text
    if page != "docs/index.md":
        assert re.search(r"six of the twelve sets and (gets )?worse on five", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_picture_is_described_by_the_means_that_it_shows(page):
    text = page.read_text(encoding="utf-8")
    figures = re.findall(r"!\[([^\]]*)\]\([^)]*figures/([\w-]+)\.svg\)", text)
    figures += [(a, n) for n, a in re.findall(r'figures/([\w-]+)\.svg"[^>]* alt="([^"]*)"', text)]
    for described, name in figures:
        drawn = HELD_OUT["pictures"]()[name]
        before, after = re.search(r"mean (\S+) → ([\d.]+)", drawn).groups()
        assert before in described
        assert after in described
