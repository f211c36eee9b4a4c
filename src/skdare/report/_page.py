"""A document as one HTML page: the frame that every page of the library has."""

from __future__ import annotations

from skdare.report._document import Document


def page(document: Document) -> str:
    """The document as one HTML file that opens anywhere, without a network.

    At the top the title, the advice in large type and the picture it rests on; then the parts,
    each with its heading, words, plots and tables; parts that are ``folded``, and the method, are
    closed until a reader opens them. Light or dark as the reader's system is.

    A page of one's own is a `Document` of one `Section`::

        Section(
            "hospital_7",
            verdict=("Adapt, then use: 66 % expected (58 to 73).",),
            remarks=("1,000 rows, no labels.",),
            picture=Plot("rehearsed", "Score by domain", "accuracy (%)", dots, caption, alt),
            parts=(
                SectionPart("Rehearsed domains", tables=(table,)),
                SectionPart("Findings", facts=findings, folded=True),
            ),
        )

    with ``dots`` a `Dots`: a category for each rehearsed domain and, last and set apart, the new
    one; a `Series` for the head as it is and one for it adapted, whose ``low`` and ``high`` are
    the ends of intervals, NaN for a score without one.

    Raises
    ------
    ValueError
        Where Jinja or Matplotlib is not installed.
    """
    try:
        from skdare.report._html import render
    except ImportError as error:
        raise ValueError(
            f"a report in HTML needs {error.name}; pip install 'skdare[report]', "
            "or choose other formats"
        ) from error
    return render(document)
