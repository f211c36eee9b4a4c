"""A page that would load anything from elsewhere is a warning, and so an error of the build."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

# Links are fine; scripts, styles, fonts, pictures and frames are not.
_LOADED = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\ssrc=[\"']((?:https?:)?//[^\"']+)"
    r"|<link\b[^>]*\shref=[\"']((?:https?:)?//[^\"']+)"
    r"|@import\s+(?:url\()?[\"']?((?:https?:)?//[^\"')]+)"
    r"|url\([\"']?((?:https?:)?//[^\"')]+)",
    re.IGNORECASE,
)


def loaded_from_elsewhere(text: str) -> list[str]:
    """Addresses that a browser would fetch for this page or style sheet by itself."""
    return [next(filter(None, found)) for found in _LOADED.findall(text)]


def _check(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    for path in sorted(Path(app.outdir).rglob("*")):
        if path.suffix in {".html", ".css"}:
            for address in loaded_from_elsewhere(path.read_text(encoding="utf-8")):
                logging.getLogger(__name__).warning("%s loads %s", path, address)


def setup(app: Sphinx) -> dict[str, bool]:
    """Look at all pages when they are built, reports included."""
    app.connect("build-finished", _check, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
