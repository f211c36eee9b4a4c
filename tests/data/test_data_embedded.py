"""Data that come with the package, and the model of the paper."""

from __future__ import annotations

import numpy as np
import pytest

from skdare.data import (
    load_diabetes_domains,
    load_digit_domains,
    load_penguin_domains,
    make_latent_domains,
)
from skdare.errors import InputError


def test_penguins_have_the_published_means():
    penguins = load_penguin_domains()
    means = {
        name: penguins.X[penguins.domains == name].mean(axis=0).round(2).tolist()
        for name in ("Adelie", "Chinstrap", "Gentoo")
    }
    assert penguins.X.shape == (333, 4)
    assert means["Adelie"] == [38.82, 18.35, 190.1, 3706.16]
    assert means["Chinstrap"] == [48.83, 18.42, 195.82, 3733.09]
    assert means["Gentoo"] == [47.57, 15.0, 217.24, 5092.44]


def test_penguins_of_an_island_are_those_of_the_species():
    by_island = load_penguin_domains("island")
    assert by_island.domain_names == ["Biscoe", "Dream", "Torgersen"]
    assert np.array_equal(by_island.X, load_penguin_domains().X)
    with pytest.raises(InputError, match="called 'year'; there are 'species', 'island'"):
        load_penguin_domains("year")


def test_a_patient_of_an_age_group_is_of_that_age():
    from sklearn.datasets import load_diabetes

    patients = load_diabetes_domains()
    age = load_diabetes(scaled=False).data[:, 0]
    for name in patients.domain_names:
        low, high = map(int, name.split(" to "))
        ages = age[patients.domains == name]
        assert low <= ages.min()
        assert ages.max() <= high
    assert patients.task == "regression"
    assert "age" not in patients.feature_names


def test_digits_are_scanned_once_each_the_same_way_for_the_same_seed():
    digits = load_digit_domains()
    assert digits.fingerprint() == load_digit_domains().fingerprint()
    assert digits.fingerprint() != load_digit_domains(random_state=1).fingerprint()
    assert digits.domain_names == [f"scanner {i}" for i in range(1, 9)]
    sizes = np.unique(digits.domains, return_counts=True)[1]
    assert np.ptp(sizes) <= 1
    assert sorted(set(load_digit_domains(n_classes=3).y.tolist())) == [0, 1, 2]


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_latent_domains_are_those_of_their_seed_and_task(task):
    data = make_latent_domains(3, 40, 5, task=task, random_state=1)
    assert data.X.shape == (120, 5)
    assert data.task == task
    assert np.bincount(data.domains).tolist() == [40] * 3
    again = make_latent_domains(3, 40, 5, task=task, random_state=1)
    assert data.fingerprint() == again.fingerprint()


def test_whitened_latent_domains_share_one_regression():
    """The paper's model: Σ_e^{-1/2} (x - μ_e) is the latent variable, whatever the domain."""
    data = make_latent_domains(3, 4000, 5, task="regression", shift=0.8, random_state=0)
    raw, whitened = [], []
    for domain in range(3):
        X, y = (values[data.domains == domain] for values in (data.X, data.y))
        X, y = X - X.mean(axis=0), y - y.mean()
        scales, U = np.linalg.eigh(np.cov(X.T))
        raw.append(np.linalg.lstsq(X, y, rcond=None)[0])
        whitened.append(np.linalg.lstsq((X @ U / np.sqrt(scales)) @ U.T, y, rcond=None)[0])
    assert np.ptp(whitened, axis=0).max() < 0.3 < np.ptp(raw, axis=0).max()


def test_domains_without_shift_are_alike():
    data = make_latent_domains(4, 2000, 4, shift=0.0, random_state=0)
    for domain in range(4):
        X = data.X[data.domains == domain]
        np.testing.assert_allclose(np.cov(X.T), np.eye(4), atol=0.15)
        np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=0.1)


def test_means_of_latent_domains_stay_in_their_subspace():
    data = make_latent_domains(9, 3000, 6, mean_rank=2, random_state=0)
    latent = []
    for domain in range(9):
        X = data.X[data.domains == domain]
        scales, U = np.linalg.eigh(np.cov(X.T))
        latent.append((X.mean(axis=0) @ U / np.sqrt(scales)) @ U.T)
    sizes = np.linalg.svd(np.array(latent), compute_uv=False)
    assert sizes[2] < 0.1 * sizes[1]
