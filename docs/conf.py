"""How the site is built: offline, with warnings as errors (`make docs`)."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import skdare

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
sys.path.insert(0, str(HERE / "_ext"))

project = "skdare"
author = "the skdare developers"
copyright = author
release = version = skdare.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "command_reference",
    "inline_figures",
    "mathml",
    "offline",
    "repository_links",
]
exclude_patterns = ["_ext", "_static", "_templates", "results/*.html"]
nitpicky = True
default_role = "code"
# In signatures, types of other packages stay plain text (the site is built offline), and so do
# those of ours that nobody needs to make.
nitpick_ignore_regex = [
    (r"py:.*", r"(?!skdare\.).*"),
    (r"py:class", r"skdare\..*\._.*"),
    (r"py:class", r"skdare\.report\.summary\..*"),
    (r"py:class", r"skdare\.features\.(backbones|examples|training)\..*"),
]

toc_object_entries_show_parents = "hide"
# A block without a language is a terminal.
highlight_language = "none"

# Markdown
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "attrs_block"]
myst_heading_anchors = 4
html_math_renderer = "mathml"

# The reference
templates_path = ["_templates"]
autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
numpydoc_show_class_members = False
# Sections that numpydoc knows, in its order, with parameters of the signature in its order.
numpydoc_validation_checks = {"GL06", "GL07", "PR02", "PR03", "PR10"}
# These hand keywords on, and say which.
numpydoc_validation_exclude = {r"\.bench_plan$", r"\.ablation_plan$"}
# Where torch is not installed, the reference of `skdare.features` is made without it.
autodoc_mock_imports = [name for name in ("torch",) if find_spec(name) is None]

# Pages
html_theme = "pydata_sphinx_theme"
html_title = "skdare"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
# These have no pages beside them to go to.
ALONE = ("install", "tutorial", "when-to-use", "faq", "comparison", "contributing", "changelog")
html_sidebars = {page: [] for page in ALONE}
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "skdare", "alt_text": "skdare"},
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "github-dark",
}
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

# The gallery
sphinx_gallery_conf = {
    "examples_dirs": str(EXAMPLES),
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "reset_modules": ("matplotlib", "gallery_style.apply"),
    "reset_modules_order": "before",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    # Its page of times would load scripts from elsewhere.
    "write_computation_times": False,
    "show_signature": False,
    "min_reported_time": 5,
    "backreferences_dir": "reference/backreferences",
    "doc_module": ("skdare",),
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "copyfile_regex": r".*\.mplstyle",
}
