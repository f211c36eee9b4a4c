"""The choice of a search as HTML: what was chosen, and how every strategy fared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

import numpy as np

from skdare.choosing.rule import gain_and_error, scored

# Colours are the page's own, so that it is as legible on dark as on light.
_STYLE = """\
<style>
.skdare-choice { font-family: sans-serif; font-size: 0.9em; margin-top: 0.8em; max-width: 48em; }
.skdare-choice table { border-collapse: collapse; font-size: inherit; }
.skdare-choice td { font-variant-numeric: tabular-nums; }
.skdare-choice th, .skdare-choice td { padding: 0.2em 0.8em; text-align: right; }
.skdare-choice th { border-bottom: 1px solid currentColor; font-weight: normal; }
.skdare-choice th:first-child, .skdare-choice td:first-child { text-align: left; }
.skdare-choice tr.chosen td { font-weight: bold; }
</style>"""


def choice_html(choice: str, cv_results: Mapping[str, Any], best_index: int) -> str:
    """A passage and a table, without anything that is loaded from elsewhere."""
    rows = "".join(_rows(cv_results, best_index))
    table = ""
    if rows:
        heads = ("strategy", "mean score", "worst domain", "gain over the simplest")
        header = "".join(f"<th>{escape(head)}</th>" for head in heads)
        table = f"<table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>"
    return f'{_STYLE}<div class="skdare-choice"><p>{escape(choice)}</p>{table}</div>'


def _rows(cv_results: Mapping[str, Any], best_index: int) -> Iterator[str]:
    """One row a strategy, at its best."""
    splits = [cv_results[name] for name in cv_results if name.startswith("split")]
    scores = scored(np.stack(splits, axis=1).astype(np.float64))
    if not scores.size:
        return
    means = scores.mean(axis=1)
    strategies = np.asarray(cv_results["param_strategy"])
    base = None
    for name in dict.fromkeys(strategies.tolist()):
        numbers = np.flatnonzero(strategies == name)
        best = int(numbers[means[numbers].argmax()])
        gain = ""
        if base is None:
            base = best
        else:
            gained, error = gain_and_error(scores[best], scores[base])
            gain = f"{gained:+.3f} ± {error:.3f}".replace("-", "\u2212")
        chosen = strategies[best_index] == name
        cells = (
            f"{name} (chosen)" if chosen else str(name),
            f"{means[best]:.3f}",
            f"{scores[best].min():.3f}",
            gain,
        )
        row = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        yield f'<tr class="chosen">{row}</tr>' if chosen else f"<tr>{row}</tr>"
