"""Formulas as MathML, made at build time: browsers draw it themselves, so no script is loaded."""

from __future__ import annotations

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


def inline(page: HTML5Translator, node: nodes.math) -> None:
    """A formula in a line of text."""
    page.body.append(convert(node.astext()))
    raise nodes.SkipNode


def display(page: HTML5Translator, node: nodes.math_block) -> None:
    """A formula on lines of its own; a wide one scrolls, the page does not."""
    page.body.append(f'<div class="formula">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer under the name ``mathml``."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
