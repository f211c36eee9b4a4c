"""Tables: what they hold, how they are read, kept and written, and sets to try things on."""

from skdare.data.domain_data import DomainData
from skdare.data.embedded import load_diabetes_domains, load_digit_domains, load_penguin_domains
from skdare.data.public import PUBLIC_SETS, PublicSet, fetch
from skdare.data.read import read, stream, to_store
from skdare.data.store import Store, StoreWriter, write_store
from skdare.data.synthetic import make_latent_domains
from skdare.data.write import RowWriter, write

__all__ = [
    "PUBLIC_SETS",
    "DomainData",
    "PublicSet",
    "RowWriter",
    "Store",
    "StoreWriter",
    "fetch",
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
