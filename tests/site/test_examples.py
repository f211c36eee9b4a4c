"""The gallery: every example has the shape that the site needs; the build of the site runs them."""

import ast
import re
from pathlib import Path

import pytest

GALLERY = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(GALLERY.glob("plot_*.py"))

every_example = pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)


def modules(path):
    """Names of the modules that an example imports, and of what it takes from them."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name.name}" for name in node.names)


def test_there_are_eight_examples_or_more_and_the_first_is_the_geometry():
    assert len(EXAMPLES) >= 8
    assert EXAMPLES[0].stem == "plot_01_geometry"


@every_example
def test_an_example_has_a_title_and_says_what_it_teaches(path):
    text = ast.get_docstring(ast.parse(path.read_text()))
    title, line, blank, *words = text.splitlines()
    assert set(line) == {"="}
    assert len(line) == len(title)
    assert blank == ""
    assert len(" ".join(words)) > 80


@every_example
def test_an_example_explains_in_steps_and_ends_in_a_figure(path):
    *steps, last = re.split(r"^# %%$", path.read_text(), flags=re.M)
    assert len(steps) >= 3
    for step in steps[1:]:
        assert step.lstrip().startswith("# "), "a step begins with words"
    assert "plt.subplots(" in last
    assert last.rstrip().endswith("plt.show()")


@every_example
def test_an_example_needs_the_core_install_and_matplotlib_alone(path):
    known = {"matplotlib", "numpy", "scipy", "skdare", "sklearn"}
    standard = {"pathlib", "tempfile", "warnings"}
    assert {name.split(".")[0] for name in modules(path)} <= known | standard


@every_example
def test_an_example_uses_public_names_only(path):
    ours = [name for name in modules(path) if name.startswith("skdare.")]
    assert ours
    assert not [name for name in ours if any(part.startswith("_") for part in name.split("."))]


@every_example
def test_an_example_draws_the_same_numbers_every_time(path):
    text = path.read_text()
    assert "np.random.seed" not in text
    assert "default_rng()" not in text


def test_the_style_of_the_gallery_can_be_seen_on_white():
    matplotlib = pytest.importorskip("matplotlib", reason="the gallery draws with matplotlib")
    style = matplotlib.rc_params_from_file(GALLERY / "skdare.mplstyle", use_default_template=False)

    def luminance(color):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color]
        return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    for entry in style["axes.prop_cycle"]:
        rgb = matplotlib.colors.to_rgb(entry["color"])
        assert 1.05 / (luminance(rgb) + 0.05) > 3
