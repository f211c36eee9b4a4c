"""Sets that come with the package or with scikit-learn: restyled digits, penguins, patients."""

from __future__ import annotations

from importlib.resources import files

import numpy as np

from skdare.data.domain_data import DomainData
from skdare.errors import unknown

_MEASURES = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")
_AGES = (35, 45, 55, 65)
_AGE_GROUPS = ("19 to 34", "35 to 44", "45 to 54", "55 to 64", "65 to 79")


def load_digit_domains(*, n_classes: int = 10, random_state: int = 0) -> DomainData:
    """scikit-learn's 1,797 digits from eight simulated scanners, each image from one of them.

    Each scanner has its own contrast, brightness, uneven light, blur and rotation. An unseen
    scanner costs a head accuracy, some of them much, and its own rows show most of its effect.

    Parameters
    ----------
    n_classes : int
        Keep the digits below this number.
    random_state : int

    Returns
    -------
    DomainData
        Its domains are "scanner 1" to "scanner 8".

    Examples
    --------
    >>> from skdare.data import load_digit_domains
    >>> digits = load_digit_domains()
    >>> digits.X.shape, len(set(digits.domains.tolist()))
    ((1797, 64), 8)
    """
    from scipy import ndimage
    from sklearn.datasets import load_digits

    rng = np.random.default_rng(random_state)
    images, y = load_digits(return_X_y=True)
    images = images.reshape(-1, 8, 8)[y < n_classes] / 16.0
    y = y[y < n_classes]
    scanners = np.arange(len(y)) % 8
    rng.shuffle(scanners)
    across, down = np.meshgrid(np.linspace(-1, 1, 8), np.linspace(-1, 1, 8))
    X = np.empty_like(images)
    for scanner in range(8):
        rows = scanners == scanner
        contrast, brightness = rng.uniform(0.3, 1.3), rng.uniform(0.0, 0.8)
        uneven = rng.uniform(-0.5, 0.5, size=2)
        gain = contrast * np.exp(uneven[0] * across + uneven[1] * down)
        blur = rng.uniform(0.0, 1.0)
        seen = ndimage.gaussian_filter(images[rows], (0.0, blur, blur))
        angle = rng.uniform(-12.0, 12.0)
        seen = ndimage.rotate(seen, angle, axes=(1, 2), reshape=False, order=1)
        noise = rng.normal(scale=0.05, size=seen.shape)
        X[rows] = gain * (seen + noise) + brightness + rng.uniform(-0.3, 0.3) * across
    domains = np.array([f"scanner {scanner + 1}" for scanner in scanners])
    return DomainData.of(X.reshape(len(y), -1), y, domains=domains, name="digits")


def load_penguin_domains(domains: str = "species") -> DomainData:
    """333 penguins of three species: the target is the sex, the features four measurements.

    Males are larger than females, and species differ by more, so an unseen species is hard. The 11
    birds of unknown sex are left out.

    Parameters
    ----------
    domains : {"species", "island"}
        What a domain is.

    Returns
    -------
    DomainData

    Notes
    -----
    The data are in the public domain (CC0) as part of palmerpenguins (Horst, Hill and Gorman,
    2020), from K. B. Gorman, T. D. Williams and W. R. Fraser (2014), "Ecological sexual dimorphism
    and environmental variability within a community of Antarctic penguins (genus Pygoscelis)",
    PLoS ONE 9(3): e90081.

    Examples
    --------
    >>> from skdare.data import load_penguin_domains
    >>> penguins = load_penguin_domains()
    >>> penguins.X.shape, sorted(set(penguins.domains.tolist()))
    ((333, 4), ['Adelie', 'Chinstrap', 'Gentoo'])
    """
    import pandas as pd

    if domains not in ("species", "island"):
        raise unknown("column of domains", domains, ("species", "island"))
    with files("skdare.data").joinpath("penguins.csv").open(encoding="utf-8") as file:
        birds = pd.read_csv(file).dropna(subset="sex")
    sex, place = (birds[name].to_numpy(dtype=str) for name in ("sex", domains))
    return DomainData.of(birds[list(_MEASURES)], sex, domains=place, name="penguins")


def load_diabetes_domains() -> DomainData:
    """scikit-learn's 442 diabetes patients in five age groups, to predict the disease's progress.

    The target is a score of progress after a year; the features are sex, body mass index, blood
    pressure and six blood values, in their own units. A domain is an age group.

    Examples
    --------
    >>> from skdare.data import load_diabetes_domains
    >>> patients = load_diabetes_domains()
    >>> patients.X.shape, len(set(patients.domains.tolist()))
    ((442, 9), 5)
    """
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(scaled=False, as_frame=True, return_X_y=True)
    groups = np.array(_AGE_GROUPS)[np.digitize(X["age"], _AGES)]
    return DomainData.of(X.drop(columns="age"), y, domains=groups, name="diabetes")
