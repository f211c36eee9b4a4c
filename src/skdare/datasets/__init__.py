"""Multi-domain data: embedded and public sets, readers and writers of files, and feature stores."""

from __future__ import annotations

from skdare.datasets._domain_data import DomainData, guess_task
from skdare.datasets._embedded import (
    load_diabetes_domains,
    load_digit_domains,
    load_penguin_domains,
)
from skdare.datasets._fine_tuned import read_fine_tuned
from skdare.datasets._hugging_face import from_hugging_face
from skdare.datasets._lazy_rows import ChunkedRows
from skdare.datasets._public_images import fetch_office_caltech
from skdare.datasets._public_people import (
    fetch_communities_crime,
    fetch_heart_disease,
    fetch_student_performance,
    fetch_support2,
    fetch_vowels,
)
from skdare.datasets._public_sensors import (
    fetch_beijing_air,
    fetch_corn,
    fetch_gas_drift,
    fetch_gas_turbine,
    fetch_har,
    fetch_music_speech,
    fetch_wisdm,
)
from skdare.datasets._read import read, read_unlabelled, stream_table
from skdare.datasets._skada import from_skada, to_skada
from skdare.datasets._split import domainbed_split, reserve
from skdare.datasets._store_check import verify
from skdare.datasets._store_reader import (
    open_table,
    read_chunks,
    read_features,
    read_ids,
    store_info,
)
from skdare.datasets._store_writer import StoreWriter, append_rows, write_store
from skdare.datasets._synthetic import make_latent_domains
from skdare.datasets._write import rows_to, write

__all__ = [
    "ChunkedRows",
    "DomainData",
    "StoreWriter",
    "append_rows",
    "domainbed_split",
    "fetch_beijing_air",
    "fetch_communities_crime",
    "fetch_corn",
    "fetch_gas_drift",
    "fetch_gas_turbine",
    "fetch_har",
    "fetch_heart_disease",
    "fetch_music_speech",
    "fetch_office_caltech",
    "fetch_student_performance",
    "fetch_support2",
    "fetch_vowels",
    "fetch_wisdm",
    "from_hugging_face",
    "from_skada",
    "guess_task",
    "load_diabetes_domains",
    "load_digit_domains",
    "load_penguin_domains",
    "make_latent_domains",
    "open_table",
    "read",
    "read_chunks",
    "read_features",
    "read_fine_tuned",
    "read_ids",
    "read_unlabelled",
    "reserve",
    "rows_to",
    "store_info",
    "stream_table",
    "to_skada",
    "verify",
    "write",
    "write_store",
]
