"""Words of errors and notes: one sentence, harmless on a terminal, right in number."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path

import pytest

from skdare.errors import (
    DataNote,
    InputError,
    counted,
    filled,
    listed,
    note,
    printable,
    quoted,
    there_are,
    unknown,
)

CONTROLS = [chr(code) for code in (*range(32), *range(0x7F, 0xA0)) if chr(code) != "\n"]
CONTROLS += ["\u202e", "\u2066", "\ufeff", "\u2028", "\u00ad", "\udcff"]


@pytest.mark.parametrize("character", CONTROLS, ids=ascii)
def test_no_character_reaches_a_terminal_that_it_acts_on(character):
    name = f"a{character}b"
    error = InputError(f"no column is called '{name}'", f"use '{name}'")
    for text in (printable(name), str(error), error.what, error.hint):
        assert character not in text
        assert text.isprintable()
    with pytest.warns(DataNote) as caught:
        note(name)
    assert character not in str(caught[0].message)


@pytest.mark.parametrize("text", ["élan", "नी\u200dति", "👩\u200d🔬", "a\nb", "日本", "a\u200cb"])
def test_text_that_people_write_stays_as_it_is(text):
    assert printable(text) == text


def test_what_is_written_out_can_be_told_apart():
    assert printable("a\x9bb\x1b[31m") == "a\\x9bb\\x1b[31m"


def test_an_error_survives_the_way_to_another_process():
    error = pickle.loads(pickle.dumps(InputError("a\x9b", "b")))
    assert (error.what, error.hint, str(error)) == ("a\\x9b", "b", "a\\x9b; b")
    assert isinstance(error, ValueError)
    assert str(InputError("a")) == "a"


def test_a_note_points_at_the_line_outside_the_package():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        note("mine")
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("n", "words"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (6497, "6,497 rows")]
)
def test_numbers_and_their_nouns_agree(n, words):
    assert counted(n, "row") == words
    assert counted(n, "class", "classes") == words.replace("rows", "classes").replace(
        "row", "class"
    )


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], "there is none"),
        (["art"], "there is 'art'"),
        (["art", "photo"], "there are 'art', 'photo'"),
        (range(9), "there are '0', '1', '2', '3', '4', '5' and 3 more"),
    ],
)
def test_what_there_is_agrees_in_number(names, words):
    assert there_are(names) == words
    assert unknown("domain", "zzzz", names).hint == words


@pytest.mark.parametrize(
    ("name", "known", "near"),
    [("hospitl", ["age", "hospital"], "hospital"), ("HOSPITAL", ["age", "hospital"], "hospital"),
     ("age ", ["Age", "wage"], "Age")],
)  # fmt: skip
def test_the_nearest_name_is_suggested_whatever_its_capital_letters(name, known, near):
    assert unknown("column", name, known).hint == f"did you mean '{near}'?"


def test_long_names_are_cut_and_paths_are_not():
    assert quoted("a" * 60) == f"'{'a' * 60}'"
    assert quoted("a" * 20_000) == f"'{'a' * 59}…'"
    assert listed(["a" * 99]) == quoted("a" * 99)
    path = Path("/", *["long"] * 30, "t.csv")
    assert quoted(path) == f"'{path}'"
    assert len(str(unknown("column", "a" * 20_000, ["b" * 20_000] * 20))) < 1000


def test_lines_are_filled_and_a_number_stays_with_its_percent_sign():
    text = "one two 30 % four-five"
    for width in range(6, 30):
        lines = filled(text, width, "  ").splitlines()
        assert " ".join(line.strip() for line in lines) == text
        assert any("30 %" in line for line in lines)
    assert filled(text) == text
