"""HTML: one file that holds its figures and opens anywhere, without a network."""

from __future__ import annotations

import jinja2
from markupsafe import Markup

from skdare.report._document import Document
from skdare.report._figures import draw
from skdare.report._plot import Plot
from skdare.report._table import Table, notes


def render(document: Document) -> str:
    """The report as one page."""
    template = environment().get_template("template.html")
    return template.render(document=document, figure=_figure, notes=_notes)


def environment() -> jinja2.Environment:
    """Templates beside this module, which escape all text."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("skdare.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )


def _figure(plot: Plot) -> Markup:
    return Markup(draw(plot))  # our own SVG, its words escaped


def _notes(table: Table) -> str:
    # The paper's interval is for those who print its table: LaTeX, Markdown and CSV have it.
    return " ".join(notes(table, "Bold", "Underlined", parts=2))
