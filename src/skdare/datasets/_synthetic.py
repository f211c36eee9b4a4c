"""Embedded multi-domain data: the paper's latent model, and scikit-learn's digits restyled."""

from __future__ import annotations

import numpy as np

from skdare.datasets._domain_data import DomainData


def make_latent_domains(
    n_domains: int = 4,
    n_rows: int = 300,
    n_features: int = 8,
    *,
    task: str = "classification",
    shift: float = 1.0,
    mean_rank: int = 2,
    noise: float = 0.1,
    random_state: int | None = None,
) -> DomainData:
    """Sample the paper's model: ``x = A_e (ε₀ + b_e)`` and ``y`` a function of ``βᵀ(ε₀ + b_e)``.

    Every domain has a symmetric ``A_e`` of its own; the means ``b_e`` vary in a subspace of
    dimension ``mean_rank``. The latents are standard normal about ``b_e``; β is the same in all
    domains.

    Parameters
    ----------
    n_domains, n_rows, n_features : int
        Domains, rows in each, features.
    task : {"classification", "regression"}
        Two classes with logistic noise, or a number with normal noise.
    shift : float
        How far the domains are apart: 0 makes them alike.
    mean_rank : int
        Dimension of the subspace in which the domain means vary.
    noise : float
        Standard deviation of the regression noise.
    random_state : int, optional

    Returns
    -------
    DomainData

    Examples
    --------
    >>> from skdare.datasets import make_latent_domains
    >>> make_latent_domains(n_domains=3, n_rows=50, random_state=0).X.shape
    (150, 8)
    """
    rng = np.random.default_rng(random_state)
    beta = rng.normal(size=n_features) * 2.0
    span = np.linalg.qr(rng.normal(size=(n_features, mean_rank)))[0]
    X, y, domains = [], [], []
    for domain in range(n_domains):
        U = np.linalg.qr(rng.normal(size=(n_features, n_features)))[0]
        A = (U * np.exp(shift * rng.uniform(-1, 1, n_features))) @ U.T
        b = shift * (span @ rng.normal(size=mean_rank)) * 1.5
        latent = rng.normal(size=(n_rows, n_features)) + b
        score = latent @ beta
        if task == "classification":
            y.append((score + rng.logistic(size=n_rows) > 0).astype(int))
        else:
            y.append(score + noise * rng.normal(size=n_rows))
        X.append(latent @ A)
        domains.append(np.full(n_rows, domain))
    return DomainData(np.concatenate(X), np.concatenate(y), np.concatenate(domains))


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
