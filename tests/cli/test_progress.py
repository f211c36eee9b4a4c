"""Progress: records for programs, lines without a terminal, and nothing if nobody asked."""

from __future__ import annotations

import logging

import pytest

from skdare.cli import bars as drawing
from skdare.cli.bars import shown
from skdare.errors import printable
from skdare.progress import LOGGER, reached, tracked


def test_every_piece_has_a_record(caplog):
    with caplog.at_level(logging.INFO, "skdare"):
        assert list(tracked(["a", "b"], "fitting")) == ["a", "b"]
    assert [record.work for record in caplog.records] == [
        ("fitting", done, 2) for done in (0, 1, 2)
    ]


def test_the_library_shows_nothing_by_itself(capsys):
    list(tracked(range(3), "fitting"))
    assert capsys.readouterr() == ("", "")


def test_lines_are_of_the_outer_work_and_become_rarer(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(drawing.time, "monotonic", lambda: clock[0])
    lines = []
    with shown(lines.append):
        for _ in tracked(range(1000), "outer"):
            for _ in tracked(range(2), "inner"):
                clock[0] += 0.5
    assert 5 <= len(lines) <= 15
    assert all(line.startswith("outer: ") for line in lines)
    assert lines[0] == "outer: 11 of 1,000 done, about 989 s left"


def test_quick_work_has_no_line():
    lines = []
    with shown(lines.append):
        list(tracked(range(50), "fitting"))
    assert lines == []


def test_warnings_are_lines_and_decisions_are_not():
    lines = []
    with shown(lines.append):
        LOGGER.info("chose something")
        LOGGER.warning("look here")
    assert lines == ["look here"]


def test_the_logger_is_as_it_was():
    before = LOGGER.level, list(LOGGER.handlers)
    with pytest.raises(RuntimeError), shown(print):
        raise RuntimeError
    assert (LOGGER.level, LOGGER.handlers) == before


@pytest.mark.parametrize("name", ["\x1b[31mred", "[bold]x", "κλινική"])
def test_bars_are_drawn_on_a_terminal_after_a_while_with_names_as_they_are(name, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(drawing.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with shown(print):
        (bars,) = [each for each in LOGGER.handlers if hasattr(each, "bars")]
        reached(name, 0, 2)
        assert bars.bars is None
        clock[0] += 2.0
        reached(name, 1, 2)
        drawn = bars.bars.columns[0].render(bars.bars.tasks[0])
        assert drawn.plain == printable(name)
        assert drawn.spans == []
