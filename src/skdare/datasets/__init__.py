"""Multi-domain data: embedded sets, and readers that turn a file into features and labels."""

from __future__ import annotations

from skdare.datasets._read import read
from skdare.datasets._store import write_store
from skdare.datasets._synthetic import load_digit_domains, make_latent_domains
from skdare.datasets._table import DomainData, fingerprint, guess_task

__all__ = [
    "DomainData",
    "fingerprint",
    "guess_task",
    "load_digit_domains",
    "make_latent_domains",
    "read",
    "write_store",
]
