"""Pages of the documentation as code: their blocks run in order, and print what they show.

Blocks of a page share one folder and one namespace. Comments that a reader does not see say the
rest, before the block that they are about:

``<!-- setup`` … ``-->``
    Python that runs first, such as the making of a file that the reader would have.
``<!-- needs: PACKAGE … -->``
    Runs where these are installed.
``<!-- warns: TEXT -->``
    Warns in these words; any other warning is an error.
``<!-- not run: REASON -->``
    Does not run.

A ``text`` block after one that ran is what it printed; a line of dots stands for lines left out.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import shlex
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import pytest

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(
    r"^<!--\s*(?P<word>setup|needs|warns|not run)\b:?\s*(?P<rest>.*?)\s*-->$"
    r"|^```(?P<language>\S*)[^\n]*\n(?P<code>.*?)^```$",
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
    found: list[Block] = []
    comments: dict[str, str] = {}
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["word"] == "setup":
            found.append(Block("python", match["rest"], line))
        elif match["word"]:
            comments[match["word"]] = match["rest"]
        elif not match["language"].startswith("{"):
            found.append(Block(match["language"], match["code"], line, comments))
            comments = {}
    return found


def run_page(page: Path) -> list[str]:
    """Run a page in the current folder; return packages that some of its blocks lack."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    missing: list[str] = []
    printed = None
    for block in blocks(page):
        before, printed = printed, None
        if block.missing:
            missing += block.missing
        elif "not run" in block.comments:
            assert block.comments["not run"], f"line {block.line}: say why"
        elif block.language == "python":
            printed = run_python(block, str(page), namespace)
        elif block.language == "bash":
            printed = run_commands(block.code, block.line)
        elif block.language == "text" and before is not None:
            check_output(block, before)
            printed = before  # a further text block shows another part of it
    return missing


def run_python(block: Block, name: str, namespace: dict[str, object]) -> str:
    """What a block prints; errors have the line of the page."""
    code = compile("\n" * block.line + block.code, name, "exec")
    words = block.comments.get("warns")
    warning = pytest.warns(match=words) if words else contextlib.nullcontext()
    with warning, contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, namespace)
    return out.getvalue()


def run_commands(code: str, line: int = 0) -> str:
    """What the commands of a block print; anything but `skdare` must say why it does not run."""
    printed = []
    for command in code.replace("\\\n", " ").splitlines():
        program, *arguments = shlex.split(command, comments=True) or ["#"]
        if program != "#":
            assert program == "skdare", f"line {line}: {program!r} cannot be run here"
            printed.append(run_command(*arguments))
    return "\n".join(printed)


def run_command(*arguments: str) -> str:
    """What a command prints as an answer; an exit code other than 0 fails."""
    from skdare.cli import main

    out, notes = io.StringIO(), io.StringIO()
    code: object = 0
    with (
        patch.object(sys, "argv", ["skdare", *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(notes),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")  # as in a terminal
        warnings.filterwarnings("ignore", "Cyclopts application invoked without tokens")
        try:
            main()
        except SystemExit as end:
            code = end.code
    assert not code, f"skdare {shlex.join(arguments)} ends with {code}\n{notes.getvalue()}"
    return out.getvalue()


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


def same(shown: str, printed: str) -> bool:
    """Whether words are equal and numbers near: another BLAS decides a row or two otherwise."""
    return words(shown) == words(printed) and numbers(shown) == pytest.approx(
        numbers(printed), rel=0.03, abs=0.011
    )


def words(line: str) -> list[str]:
    """A line without the width of its columns and without its numbers."""
    return NUMBER.sub("#", line).replace("─", "").split()


def numbers(line: str) -> list[float]:
    found = (match.replace("−", "-").replace(",", "") for match in NUMBER.findall(line))
    return [float(number) for number in found]


def shown_of(code: str, lines: list[str]) -> str:
    """What to show of an output: all of it, or, with dots, the lines in which numbers changed."""
    if "..." not in code.splitlines():
        return "\n".join(lines) + "\n"
    shown = []
    for line in code.splitlines():
        alike = [place for place, other in enumerate(lines) if words(other) == words(line)]
        if not alike and line.strip() != "...":
            print(f"not printed any more: {line}", file=sys.stderr)
        shown.append(lines[alike[0]] if alike else line)
        lines = lines[alike[0] + 1 :] if alike else lines
    return "\n".join(shown) + "\n"


def rewritten(page: Path) -> str:
    """The page with what its blocks print now."""
    text = page.read_text(encoding="utf-8")
    found = blocks(page)
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed = None
    for block in found:
        before, printed = printed, None
        if block.missing or "not run" in block.comments:
            continue
        if block.language == "python":
            printed = run_python(block, str(page), namespace)
        elif block.language == "bash":
            printed = run_commands(block.code, block.line)
        elif block.language == "text" and before is not None:
            shown = shown_of(block.code, [line.rstrip() for line in before.strip().splitlines()])
            text = text.replace(f"```text\n{block.code}```", f"```text\n{shown}```", 1)
            printed = before
    return text


if __name__ == "__main__":
    import os
    import tempfile

    for name in sys.argv[1:]:
        page = Path(name).resolve()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            os.environ.setdefault("MPLBACKEND", "agg")
            text = rewritten(page)
        page.write_text(text, encoding="utf-8")
