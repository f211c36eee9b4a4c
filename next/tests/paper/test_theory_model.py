"""The model of shift: what it refuses, before any work."""

from __future__ import annotations

import numpy as np
import pytest

from skdare.paper.theory import (
    JustInTime,
    LatentDomain,
    LatentModel,
    environment_risk,
    just_in_time_risk,
    logistic_scale,
)

PLAIN = LatentDomain(np.eye(3), np.zeros(3))
ONES = np.ones(3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LatentModel.draw(3, 2, mean_rank=7), "mean_rank is 7 among 3 dimensions; use 3"),
        (lambda: LatentModel.draw(3, 2, mean_rank=-1), "mean_rank is -1; it must be"),
        (lambda: LatentModel.draw(3, 2, shift=-1.0), "shift is -1.0; it must be"),
        (lambda: LatentModel.draw(3, 2, spread=-0.5), "spread is -0.5; it must be"),
        (lambda: LatentModel.draw(3, 2, law="cauchy"), "law is 'cauchy'; use one of"),
        (lambda: LatentModel.invariant_subspace(0, 3, 2), "invariant is 0; it must be"),
        (lambda: LatentModel(np.ones(2), [PLAIN]), "domain 0 has 3 latents; pass one weight"),
        (lambda: LatentModel(ONES, []), "domains is empty; pass one or more"),
        (lambda: LatentDomain(np.eye(2), ONES), r"b has 3 entries; pass an A of shape \(3, 3\)"),
        (lambda: JustInTime(PLAIN, PLAIN, np.ones(2)), "the source has 3 latents; pass one weight"),
        (
            lambda: environment_risk(np.eye(3), ONES, PLAIN, np.eye(3), 2, repeats=0),
            "repeats is 0; it must be",
        ),
        (
            lambda: environment_risk(np.eye(2), ONES, PLAIN, np.eye(3), 2),
            r"S has shape \(2, 2\); pass one of shape \(3, 3\)",
        ),
        (
            lambda: just_in_time_risk(JustInTime(PLAIN, PLAIN, ONES), 50, 50, repeats=0),
            "repeats is 0; it must be",
        ),
        (lambda: logistic_scale(-1.0, 1.0, np.zeros(2)), "kept is -1.0; it must be"),
    ],
)
def test_mistakes_are_told_with_what_to_do(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("rank", [0, 2, 3])
def test_means_span_as_many_directions_as_asked(rank):
    model = LatentModel.draw(3, 5, mean_rank=rank, random_state=0)
    assert np.linalg.matrix_rank(model.means) == rank
