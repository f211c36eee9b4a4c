"""What the site adds to Sphinx: formulas without scripts, help of the commands, and links.

Pages link to files by their path, as a code host wants it. A page of the site that includes such a
file (README, CONTRIBUTING, ...) needs other paths.
"""

from __future__ import annotations

import io
import os
import re
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
# Files outside of docs, and the pages that show them.
SHOWN = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
}
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]\[]*)\]\((?P<path>[^)#\s:]+)(?P<anchor>#[^)\s]*)?\)")
# What a browser would fetch by itself; links are fine.
LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\ssrc=[\"']((?:https?:)?//[^\"']+)"
    r"|<link\b[^>]*\shref=[\"']((?:https?:)?//[^\"']+)"
    r"|(?:@import\s+|url\()[\"']?((?:https?:)?//[^\"')]+)",
    re.IGNORECASE,
)


def help_page(*words: str) -> str:
    """What `skdare WORDS --help` prints."""
    from skdare.cli import main

    with patch("sys.argv", ["skdare", *words, "--help"]), redirect_stdout(io.StringIO()) as out:
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"{words} --help ends with {end.code}") from end
    return re.sub(r"\x1b\[[\d;]*m", "", out.getvalue()).rstrip() + "\n"


class CommandHelp(SphinxDirective):
    """A section for each command, with what its --help prints."""

    def run(self) -> list[nodes.Node]:
        from skdare.cli import COMMANDS

        lines = []
        for heading, commands in COMMANDS.items():
            lines += [f"## {heading}", ""]
            for name in commands:
                lines += [f"### skdare {name}", "", "```text", help_page(name), "```", ""]
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def site_links(text: str, folder: Path, page: Path) -> str:
    """Markdown of a file in ``folder``, with links as the page at ``page`` needs them."""

    def link(found: re.Match[str]) -> str:
        target = (folder / found["path"]).resolve()
        if not target.exists():
            return found[0]  # Sphinx will complain of it
        shown = SHOWN.get(os.path.relpath(target, ROOT), os.path.relpath(target, DOCS))
        if shown.startswith(".."):
            return found["text"]  # a file that the site does not show
        path = os.path.relpath(DOCS / shown, page.parent)
        return f"[{found['text']}]({path}{found['anchor'] or ''})"

    return LINK.sub(link, text)


def rewrite_page(app: Sphinx, name: str, source: list[str]) -> None:
    page = Path(app.env.doc2path(name))
    if page.suffix == ".md":
        source[0] = site_links(source[0], page.parent, page)
        if not list((DOCS / "results").glob("*.md")):  # they come with the runs that print them
            source[0] = source[0].replace("results/*\n", "")


def rewrite_included(app: Sphinx, path: Path, name: str, source: list[str]) -> None:
    file = (DOCS / path).resolve()
    if file.suffix == ".md":
        source[0] = site_links(source[0], file.parent, Path(app.env.doc2path(name)))


def formula(page: HTML5Translator, node: nodes.math) -> None:
    """MathML, which browsers draw by themselves."""
    page.body.append(convert(node.astext()))
    raise nodes.SkipNode


def formulas(page: HTML5Translator, node: nodes.math_block) -> None:
    """A formula on lines of its own; a wide one scrolls, the page does not."""
    page.body.append(f'<div class="formula">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def loaded_from_elsewhere(text: str) -> list[str]:
    return [next(filter(None, found)) for found in LOADED.findall(text)]


def check_offline(app: Sphinx, error: Exception | None) -> None:
    """A page that would load anything from elsewhere is a warning, and so an error of the build."""
    if error is None and app.builder.format == "html":
        for path in sorted(Path(app.outdir).rglob("*")):
            if path.suffix in {".html", ".css"}:
                for address in loaded_from_elsewhere(path.read_text(encoding="utf-8")):
                    logging.getLogger(__name__).warning("%s loads %s", path, address)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("command-help", CommandHelp)
    app.add_html_math_renderer("mathml", (formula, None), (formulas, None))
    app.connect("source-read", rewrite_page)
    app.connect("include-read", rewrite_included)
    app.connect("build-finished", check_offline, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
