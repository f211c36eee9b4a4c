"""Multi-domain data: embedded sets, and readers that turn a file into features and labels."""

from __future__ import annotations

from skdare.datasets._domainbed import domainbed_split
from skdare.datasets._fine_tuned import read_fine_tuned
from skdare.datasets._hugging_face import ArrowRows, from_hugging_face
from skdare.datasets._lazy import ChunkedRows, PreparedRows, StoredRows, open_table
from skdare.datasets._manifest import MANIFEST
from skdare.datasets._natural import natural
from skdare.datasets._read import read, read_unlabelled
from skdare.datasets._row_source import RowChunk, RowSource
from skdare.datasets._row_writer import RowWriter, rows_to
from skdare.datasets._skada import SkadaRows, SourcesAndTargets, from_skada, to_skada
from skdare.datasets._split import reserve
from skdare.datasets._store import read_chunks, read_features, read_ids
from skdare.datasets._store_info import StoreInfo, Verification, store_info, verify
from skdare.datasets._store_table import append_rows, write_store
from skdare.datasets._store_writer import StoreWriter
from skdare.datasets._streamed_table import stream_table
from skdare.datasets._synthetic import load_digit_domains, make_latent_domains
from skdare.datasets._table import DomainData, fingerprint, guess_task
from skdare.datasets._write import write

__all__ = [
    "MANIFEST",
    "ArrowRows",
    "ChunkedRows",
    "DomainData",
    "PreparedRows",
    "RowChunk",
    "RowSource",
    "RowWriter",
    "SkadaRows",
    "SourcesAndTargets",
    "StoreInfo",
    "StoreWriter",
    "StoredRows",
    "Verification",
    "append_rows",
    "domainbed_split",
    "fingerprint",
    "from_hugging_face",
    "from_skada",
    "guess_task",
    "load_digit_domains",
    "make_latent_domains",
    "natural",
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
