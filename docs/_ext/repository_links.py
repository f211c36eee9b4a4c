"""Links that work both where the repository is browsed and in the site.

Pages link to files by their path, as a code host wants it. In the site some of these files are
elsewhere: those outside of ``docs`` are included by a page, and reports, which are whole HTML
pages, lie beside the pages of the same name.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
# Files outside of docs, and the pages that show them.
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "benchmarks.md",
}
REPORTS = "reports"
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]\[]*)\]\((?P<path>[^)#\s:]+)(?P<anchor>#[^)\s]*)?\)")


def site_links(text: str, folder: Path, page: Path) -> str:
    """Markdown of a file in ``folder``, with links as the page at ``page`` needs them."""

    def link(found: re.Match[str]) -> str:
        target = (folder / found["path"]).resolve()
        if not target.exists() or not target.is_relative_to(ROOT):
            return found[0]  # no link of ours, or one that Sphinx will complain of
        if target.suffix == ".html" and target.parent == DOCS / "results":
            place = os.path.relpath(DOCS / REPORTS / target.name, page.parent)
            return f'<a href="{place}">{found["text"]}</a>'
        shown = DOCS / PAGES.get(target.relative_to(ROOT).as_posix(), os.path.relpath(target, DOCS))
        if ".." in shown.parts:
            return found["text"]  # a file that the site does not show
        # The page in place of the README has other headings.
        anchor = "" if target == ROOT / "README.md" else found["anchor"] or ""
        return f"[{found['text']}]({os.path.relpath(shown, page.parent)}{anchor})"

    return _LINK.sub(link, text)


def _read(app: Sphinx, docname: str, source: list[str]) -> None:
    page = Path(app.env.doc2path(docname))
    if page.suffix == ".md":
        source[0] = site_links(source[0], page.parent, page)


def _include(app: Sphinx, path: Path, docname: str, source: list[str]) -> None:
    file = (DOCS / path).resolve()
    if file.suffix == ".md":
        source[0] = site_links(source[0], file.parent, Path(app.env.doc2path(docname)))


def _copy_reports(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        folder = Path(app.outdir) / REPORTS
        folder.mkdir(exist_ok=True)
        for report in sorted((DOCS / "results").glob("*.html")):
            shutil.copy(report, folder)


def setup(app: Sphinx) -> dict[str, bool]:
    """Rewrite links as pages are read, and copy reports when all is built."""
    app.connect("source-read", _read)
    app.connect("include-read", _include)
    app.connect("build-finished", _copy_reports)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
