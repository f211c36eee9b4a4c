"""How the site is built: offline, with warnings as errors (`make docs`)."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import skdare

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "skdare"
author = copyright = "the skdare developers"
release = version = skdare.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "site_pages",
]
exclude_patterns = ["_ext", "_static", "_templates"]
default_role = "code"
# A block without a language is a terminal.
highlight_language = "none"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

templates_path = ["_templates"]
autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
# Parameters that are documented are in the signature; an adapter hands them on.
numpydoc_validation_checks = {"PR02"}
numpydoc_validation_exclude = {r"\.Adapter$"}
autodoc_mock_imports = [name for name in ("torch",) if find_spec(name) is None]

html_theme = "pydata_sphinx_theme"
html_title = "skdare"
html_logo = html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = html_show_sphinx = html_copy_source = False
# Only the guide and the reference have neighbours to list.
html_sidebars = {"[!gr]*": [], "results/*": []}
html_theme_options = {
    "logo": {"text": "skdare", "alt_text": "skdare"},
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "navbar_end": ["theme-switcher"],
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "github-dark",
}
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
