"""Public sets of features of images."""

from __future__ import annotations

from os import PathLike

import numpy as np

from skdare.datasets._archive import archived_files
from skdare.datasets._domain_data import DomainData
from skdare.datasets._matlab import matlab_variables
from skdare.datasets._public_sources import fetched, origin

_ENDING = "_SURF_L10.mat"


def fetch_office_caltech(
    *, data_home: str | PathLike[str] | None = None, download_if_missing: bool = True
) -> DomainData:
    """Ten kinds of objects in four collections of images: 2,533 histograms of 800 SURF words.

    A domain is a collection: amazon, caltech, dslr, webcam. Targets are the publisher's numbers,
    1 to 10; features are counts of words.

    Parameters
    ----------
    data_home : path, optional
        The folder that holds data sets; see `fetch_gas_drift`.
    download_if_missing : bool

    Returns
    -------
    DomainData

    Notes
    -----
    Address, not tried when this was written:
    http://www-scf.usc.edu/~boqinggo/domain_adaptation/GFK_v1.zip
    Its SHA-256 is not known: that of your first download is recorded.

    Licence: none is named.

    Please cite B. Gong, Y. Shi, F. Sha and K. Grauman (2012), "Geodesic flow kernel for
    unsupervised domain adaptation", CVPR, and for the images K. Saenko, B. Kulis, M. Fritz and
    T. Darrell (2010), "Adapting visual category models to new domains", ECCV, and G. Griffin,
    A. Holub and P. Perona (2007), "Caltech-256 object category dataset", California Institute of
    Technology.

    Examples
    --------
    >>> from skdare.datasets import fetch_office_caltech
    >>> objects = fetch_office_caltech()  # doctest: +SKIP
    """
    with fetched("office_caltech", data_home, download_if_missing) as path:
        files = archived_files(path, f"*{_ENDING}")
        X, y, domains = [], [], []
        for name in sorted(files, key=str.lower):
            histograms, labels = matlab_variables(name, files[name], ("fts", "labels"))
            X.append(histograms.astype(np.float64))
            y.append(labels.ravel().astype(np.int64))
            # Caltech10 is the ten kinds of Caltech-256 that the others have too.
            collection = name.removesuffix(_ENDING).lower().removesuffix("10")
            domains.append(np.full(len(y[-1]), collection))
        return DomainData(
            np.concatenate(X),
            np.concatenate(y),
            np.concatenate(domains),
            name="Office-Caltech",
            made=origin("office_caltech"),
            target_name="object",
            domain_name="collection",
        )
