"""Sets that come with the package, and the law of the paper's model."""

import numpy as np
import pytest

from skdare.datasets import load_diabetes_domains, load_penguin_domains, make_latent_domains
from skdare.datasets._synthetic import LatentLaw


def test_penguins_have_the_published_means():
    penguins = load_penguin_domains()
    assert penguins.X.shape == (333, 4)
    means = {
        name: penguins.X[penguins.domains == name].mean(axis=0).round(2).tolist()
        for name in ("Adelie", "Chinstrap", "Gentoo")
    }
    assert means["Adelie"] == [38.82, 18.35, 190.1, 3706.16]
    assert means["Chinstrap"] == [48.83, 18.42, 195.82, 3733.09]
    assert means["Gentoo"] == [47.57, 15.0, 217.24, 5092.44]


def test_penguins_of_an_island_are_those_of_the_species():
    by_island = load_penguin_domains("island")
    assert sorted(set(by_island.domains.tolist())) == ["Biscoe", "Dream", "Torgersen"]
    assert np.array_equal(by_island.X, load_penguin_domains().X)
    with pytest.raises(ValueError, match="species"):
        load_penguin_domains("year")


def test_a_patient_of_an_age_group_is_as_old_as_it_says():
    from sklearn.datasets import load_diabetes

    patients = load_diabetes_domains()
    age = load_diabetes(scaled=False).data[:, 0]
    for name in set(patients.domains.tolist()):
        low, high = map(int, name.split(" to "))
        ages = age[patients.domains == name]
        assert low <= ages.min()
        assert ages.max() <= high


def test_latent_domains_keep_the_assumptions_of_the_paper():
    rng = np.random.default_rng(0)
    law = LatentLaw.draw(6, 2, rng)
    domains = [law.domain(1.5, rng) for _ in range(5)]
    new, _ = law.domain(1.5, rng)
    moving, steady = law.U[:, :2], law.U[:, 2:]
    guess = np.mean([np.linalg.inv(A) for A, _ in domains], axis=0)
    error = new @ guess - np.eye(6)
    for A, b in domains:
        # Assumption 1: one basis of right singular vectors.
        values = law.U.T @ A @ law.U
        assert np.allclose(values, np.diag(np.diag(values)))
        assert np.allclose(steady.T @ b, 0.0)
    # Assumptions 2, with B = 0, and 3.
    assert np.allclose(moving.T @ error @ steady, 0.0)
    assert np.linalg.norm(error @ steady, 2) < 1.0


def test_whitened_domains_share_one_regression():
    data = make_latent_domains(3, 4000, 5, task="regression", shift=0.8, random_state=0)
    found = []
    for domain in range(3):
        X = data.X[data.domains == domain]
        values, U = np.linalg.eigh(np.cov(X.T))
        y = data.y[data.domains == domain]
        whitened = (X - X.mean(axis=0)) @ (U / np.sqrt(values)) @ U.T
        found.append(np.linalg.lstsq(whitened, y - y.mean(), rcond=None)[0])
    assert np.allclose(found[0], found[1], atol=0.3)
    assert np.allclose(found[0], found[2], atol=0.3)
