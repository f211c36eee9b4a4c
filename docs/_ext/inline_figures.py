"""Our own pictures become part of the page, so that they follow its theme.

A picture that is loaded as a file knows what the system prefers, and not what the reader chose.
"""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

FIGURES = Path(__file__).parents[1] / "figures"


def _inline(app: Sphinx, doctree: nodes.document) -> None:
    page = Path(app.env.doc2path(app.env.docname))
    for image in list(doctree.findall(nodes.image)):
        file = (page.parent / image["uri"]).resolve()
        if file.parent == FIGURES:
            app.env.note_dependency(str(file))
            drawn = nodes.raw("", file.read_text(encoding="utf-8"), format="html")
            image.replace_self(drawn)


def setup(app: Sphinx) -> dict[str, bool]:
    """Replace pictures as pages are read, before Sphinx gathers their files."""
    app.connect("doctree-read", _inline, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
