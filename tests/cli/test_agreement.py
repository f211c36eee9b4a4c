"""How predictions agree with labels: the sums behind `skdare predict --score`."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import r2_score

from skdare.cli._agreement import Agreement


def test_r2_far_from_zero_is_that_of_scikit_learn_in_chunks_of_any_size():
    rng = np.random.default_rng(0)
    y = 1e9 + rng.normal(size=1000)
    predicted, sites = y + 0.5 * rng.normal(size=1000), np.arange(1000) // 300
    agreement = Agreement(None)
    for rows in np.array_split(np.arange(1000), 7):
        agreement.add(predicted[rows], y[rows], sites[rows])
    found = {one["domain"]: one["score"] for one in agreement.to_dict()["scores"]}
    assert found["(all rows)"] == pytest.approx(r2_score(y, predicted), rel=1e-6)
    for site in range(4):
        want = r2_score(y[sites == site], predicted[sites == site])
        assert found[site] == pytest.approx(want, rel=1e-6)


def test_labels_that_are_all_the_same_have_no_r2():
    agreement = Agreement(None)
    for _ in range(3):
        agreement.add(np.zeros(7), np.full(7, 0.1), np.zeros(7))
    assert agreement.to_dict()["scores"][0]["score"] is None


def test_text_labels_are_compared_with_classes_that_are_numbers():
    agreement = Agreement(np.array([0, 1]))
    agreement.add(np.array([0, 1, 1]), np.array(["0", "1", "unclear"]), np.zeros(3))
    agreement.check()
    assert agreement.to_dict()["scores"][-1]["score"] == pytest.approx(2 / 3)
