"""One style for every example, whatever ran before it."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt

STYLE = Path(__file__).parents[2] / "examples" / "skdare.mplstyle"


def apply(gallery_conf: dict, fname: str | None) -> None:
    """Forget what an example set; called by sphinx-gallery before each."""
    plt.rcdefaults()
    plt.style.use(STYLE)
