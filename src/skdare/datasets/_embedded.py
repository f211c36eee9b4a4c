"""Sets that come with the package or with scikit-learn: penguins, patients, restyled digits."""

from __future__ import annotations

import csv
from importlib.resources import files

import numpy as np

from skdare._validation import check_choice
from skdare.datasets._domain_data import DomainData

_MEASURES = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")
_PENGUIN_DOMAINS = ("species", "island")
_AGES = (35, 45, 55, 65)
_AGE_GROUPS = ("19 to 34", "35 to 44", "45 to 54", "55 to 64", "65 to 79")


def load_penguin_domains(domains: str = "species") -> DomainData:
    """333 penguins of three species: the target is the sex, the features four measurements.

    Bill length and depth, flipper length and body mass, as measured near Palmer Station,
    Antarctica. Males are larger than females, and species differ by more: that makes a species
    not seen in training hard. The 11 birds of unknown sex are left out.

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
    >>> from skdare.datasets import load_penguin_domains
    >>> penguins = load_penguin_domains()
    >>> penguins.X.shape, sorted(set(penguins.domains.tolist()))
    ((333, 4), ['Adelie', 'Chinstrap', 'Gentoo'])
    """
    check_choice("domains", domains, _PENGUIN_DOMAINS)
    with files("skdare.datasets").joinpath("penguins.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["sex"]]
    return DomainData(
        np.array([[float(row[name]) for name in _MEASURES] for row in rows]),
        np.array([row["sex"] for row in rows]),
        np.array([row[domains] for row in rows]),
        name="penguins",
        feature_names=list(_MEASURES),
    )


def load_diabetes_domains() -> DomainData:
    """scikit-learn's 442 diabetes patients in five age groups, to predict the disease's progress.

    The target is a score of progress after a year; the features are sex, body mass index, blood
    pressure and six blood values, in their own units. A domain is an age group.

    Returns
    -------
    DomainData

    Examples
    --------
    >>> from skdare.datasets import load_diabetes_domains
    >>> patients = load_diabetes_domains()
    >>> patients.X.shape, len(set(patients.domains.tolist()))
    ((442, 9), 5)
    """
    from sklearn.datasets import load_diabetes

    patients = load_diabetes(scaled=False)
    age = patients.feature_names.index("age")
    groups = np.array(_AGE_GROUPS)[np.digitize(patients.data[:, age], _AGES)]
    return DomainData(
        np.delete(patients.data, age, axis=1),
        patients.target,
        groups,
        name="diabetes",
        feature_names=[name for name in patients.feature_names if name != "age"],
    )


def load_digit_domains(n_classes: int = 10) -> DomainData:
    """scikit-learn's 1,797 digits in four styles: each image belongs to one domain only.

    ``plain`` is unchanged; ``tilted`` is turned by 20 degrees; ``faint`` has low contrast on a
    grey ground; ``bold`` is blurred and saturated. 64 features in [0, 1], dealt to domains in turn.

    Parameters
    ----------
    n_classes : int
        Keep the digits below this number.

    Returns
    -------
    DomainData

    Examples
    --------
    >>> from skdare.datasets import load_digit_domains
    >>> sorted(set(load_digit_domains().domains.tolist()))
    ['bold', 'faint', 'plain', 'tilted']
    """
    from scipy import ndimage
    from sklearn.datasets import load_digits

    images, y = load_digits(return_X_y=True)
    images = images.reshape(-1, 8, 8)[y < n_classes] / 16.0
    y = y[y < n_classes]
    styles = {
        "plain": lambda image: image,
        "tilted": lambda image: ndimage.rotate(image, 20, reshape=False, order=1),
        "faint": lambda image: 0.45 + 0.25 * image,
        "bold": lambda image: np.minimum(1.0, 1.8 * ndimage.gaussian_filter(image, 0.6)),
    }
    names = list(styles)
    domains = np.array(names)[np.arange(len(y)) % len(names)]
    X = np.stack([styles[s](image) for s, image in zip(domains, images, strict=True)])
    return DomainData(X.reshape(len(y), -1), y, domains)
