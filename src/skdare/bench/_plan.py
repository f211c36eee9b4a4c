"""Plans: which trials answer a question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from skdare._validation import check_choice
from skdare.bench._ceilings import CEILINGS, RETRAINED
from skdare.bench._diagnostics import ALIGNMENTS, GUESSES
from skdare.bench._given import Scores, scores_by_trial
from skdare.bench._questions import Questions
from skdare.bench._record import NETWORK
from skdare.bench._source import Data, distinct
from skdare.bench._trial import Plan, Trial

EXTRAS = ("ceilings", "sgd", "curve", "diagnostics")
DEFAULT_EXTRAS = ("ceilings", "diagnostics")
CURVE = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def bench_plan(
    data: Data,
    *,
    extras: Sequence[str] = DEFAULT_EXTRAS,
    end_to_end: Scores | None = None,
    networks: Scores | None = None,
    **asked: Any,
) -> Plan:
    """Every head on every held-out domain, and what is to be shown beside them.

    Parameters
    ----------
    data : DomainData, or mapping from held-out domain to DomainData
        A table for each held-out domain where features were fine-tuned without it; by (held-out
        domain, trial) where they were fine-tuned anew in every trial, on that trial's split.
    extras : sequence of "ceilings", "sgd", "curve", "diagnostics"
        Linear ceilings, solved exactly and by the paper's descent; retraining on labelled rows;
        the diagnostics of the paper's appendix.
    end_to_end : mapping from held-out domain, or (held-out domain, trial), to score, optional
        Of a network trained on all domains, measured elsewhere on the rows set aside; a score is
        a number, or `Given` with other rows. Without trials, they are of the first.
    networks : the same, optional
        Of the network whose features these are, on the domain it has not seen; `Given` says on
        which rows.
    pretrained : like data, optional
        Features before fine-tuning, for ceilings.
    settings : Settings, optional
    trials : int, optional
        Default: those that there are tables for; 3 where a table serves all.
    heads : sequence of str, optional
        Default: those of the paper, and the adapted one.
    options : mapping from head to its options, optional
    name, task : str, optional
        What to call the data, and what y is; guessed where not given.
    held_out : sequence of str, optional
        Domains to hold out; default: every one.
    min_rows : int, default=1
        Leave out domains of fewer rows, in training too.
    """
    for extra in extras:
        check_choice("extras", extra, EXTRAS)
    q = Questions.of(data, **asked)
    trials = [*_main(q), *_ceilings(q, "ceilings" in extras, "sgd" in extras)]
    trials += [*_curve(q)] if "curve" in extras else []
    trials += [*_diagnostics(q)] if "diagnostics" in extras else []
    trials += [*_elsewhere(q, end_to_end, networks)]
    return q.plan(trials)


def _elsewhere(q: Questions, end_to_end: Scores | None, networks: Scores | None) -> Iterator[Trial]:
    """Scores of networks, which were not measured here."""
    folds, low = [*q.folds()], 0.0 if q.source.task == "classification" else -np.inf
    ceilings = scores_by_trial("end_to_end", end_to_end, folds, low, "reserved")
    for (held_out, number), given in ceilings.items():
        yield Trial("ceiling", "end-to-end", held_out, number, given=given)
    for (held_out, number), given in scores_by_trial("networks", networks, folds, low).items():
        yield Trial(NETWORK, NETWORK, held_out, number, given=given)


def _main(q: Questions) -> Iterator[Trial]:
    for held_out, number in q.folds():
        for head in q.heads:
            yield q.trial("main", head, held_out, number)


def _ceilings(q: Questions, exact: bool, sgd: bool) -> Iterator[Trial]:
    names = [name for name, asked in zip(CEILINGS, (exact, sgd), strict=True) if asked]
    for held_out, number in q.folds():
        for features, source in q.sources.items():
            if held_out in source.held_out:
                for name in names:
                    yield Trial("ceiling", name, held_out, number, features=features)


def _curve(q: Questions) -> Iterator[Trial]:
    for held_out, number in q.folds():
        table = q.source.table(held_out, number)
        y = table.y[table.domains == held_out]
        whole = q.source.task == "regression"
        most = len(y) if whole else int(np.unique(y, return_counts=True)[1].max())
        for m in CURVE:
            if m <= (1.0 - q.settings.aside) * most and (m > 2 or not whole):
                for head in RETRAINED:
                    yield Trial("curve", head, held_out, number, x=m)


def _diagnostics(q: Questions) -> Iterator[Trial]:
    whitening = ("shrinkage", "shrinkage_target", "centered")
    given = q.options.get("dare", {})
    options = tuple(sorted((k, v) for k, v in given.items() if k in whitening))
    for held_out, number in q.folds():
        for guess in GUESSES:
            yield Trial("adjustment", guess, held_out, number, options=options)
        if len(distinct(q.source.table(held_out, number).domains)) > 2:
            for which in ALIGNMENTS:
                yield Trial("alignment", which, held_out, number, options=options)
