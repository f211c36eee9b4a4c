"""Tables: readers, writers, the feature store, and data to try things on."""

from skdare.data.domain_data import DomainData
from skdare.data.embedded import load_diabetes_domains, load_digit_domains, load_penguin_domains
from skdare.data.read import read, stream, to_store
from skdare.data.store import Store, StoreWriter, write_store
from skdare.data.synthetic import make_latent_domains
from skdare.data.write import RowWriter, write

__all__ = [
    "DomainData",
    "RowWriter",
    "Store",
    "StoreWriter",
    "load_diabetes_domains",
    "load_digit_domains",
    "load_penguin_domains",
    "make_latent_domains",
    "read",
    "stream",
    "to_store",
    "write",
    "write_store",
]
