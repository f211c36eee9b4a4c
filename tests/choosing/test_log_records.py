"""Progress and decisions are log records, and verbose prints the same texts, now and then."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from skdare import DAREClassifier, DAREClassifierCV, DARERegressorCV, _logger
from skdare._logger import Progress
from skdare.datasets import make_latent_domains

pytestmark = pytest.mark.filterwarnings("ignore:leaving a training domain out still scores")


@pytest.fixture(scope="module")
def data():
    return make_latent_domains(3, 40, random_state=0)


def test_a_choice_is_a_record_and_no_handler_shows_it(data, caplog, capsys):
    with caplog.at_level(logging.INFO, logger="skdare"):
        head = DAREClassifierCV(strategies=("erm", "center")).fit(
            data.X, data.y, domains=data.domains
        )
    assert head.choice_ in caplog.messages
    assert capsys.readouterr().out == ""
    assert [type(h) for h in logging.getLogger("skdare").handlers] == [logging.NullHandler]


@pytest.mark.parametrize("shown", [False, True])
def test_lines_on_progress_are_few_however_many_pieces_there_are(
    monkeypatch, caplog, capsys, shown
):
    now = [0.0]
    monkeypatch.setattr(_logger.time, "monotonic", lambda: now[0])
    with caplog.at_level(logging.INFO, logger="skdare"):
        progress = Progress("rehearsing", 5000, shown=shown)
        for number in range(5000):
            now[0] += 1.0
            progress.done(f"domain {number}")
    assert 10 <= len(caplog.messages) <= 24
    assert caplog.messages[0] == "rehearsing: 10 of 5,000 done, about 4,990 s left"
    assert capsys.readouterr().out.splitlines() == caplog.messages * shown


@pytest.mark.parametrize("head", [DAREClassifier(), DAREClassifierCV(verbose=2)], ids=str)
def test_a_verbose_rehearsal_prints_a_line_or_two(data, head, capsys):
    head.fit(data.X, data.y, domains=data.domains)
    capsys.readouterr()
    head.rehearse(data.X, data.y, data.domains, verbose=1)
    assert capsys.readouterr().out.startswith("rehearsed on 3 domains in ")


def test_groups_that_fit_had_are_missed_by_a_rehearsal(data):
    groups = np.arange(len(data.y)) // 2
    head = DAREClassifierCV(strategies=("erm",))
    head.fit(data.X, data.y, domains=data.domains, groups=groups)
    with pytest.raises(ValueError, match="pass the same groups to rehearse"):
        head.rehearse(data.X, data.y, data.domains)


def test_a_scorer_that_gives_nan_is_named():
    def not_a_number(estimator, X, y):
        return float("nan")

    for head, task in ((DAREClassifierCV, "classification"), (DARERegressorCV, "regression")):
        data = make_latent_domains(3, 40, task=task, random_state=0)
        with pytest.raises(ValueError, match="scoring=not_a_number gave NaN on a domain of 40 row"):
            head(scoring=not_a_number).fit(data.X, data.y, domains=data.domains)
