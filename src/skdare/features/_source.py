"""Where examples come from, in words that can be written down and read again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from skdare.features._backbone import Backbone
from skdare.features._collection import Collection
from skdare.features._digit_images import digit_images
from skdare.features._examples import Examples, text_examples
from skdare.features._layouts import read_collection
from skdare.features._pixels import decode

DIGITS = "digits"


@dataclass(frozen=True)
class Source:
    """Images or texts on disk, or the embedded digits.

    Parameters
    ----------
    path : str
        As `read_collection` takes it; or "digits".
    image, text, label, domain : str, optional
        Columns of a table.
    skip_unreadable : bool
        Leave out images that cannot be read.
    cache : str, optional
        A folder to keep decoded pixels in.
    """

    path: str
    image: str | None = None
    text: str | None = None
    label: str | None = None
    domain: str | None = None
    skip_unreadable: bool = False
    cache: str | None = None

    def described(self) -> dict[str, Any]:
        """To be written down; paths are made absolute."""
        path = self.path if self.path == DIGITS else str(Path(self.path).resolve())
        cache = None if self.cache is None else str(Path(self.cache).resolve())
        return {**asdict(self), "path": path, "cache": cache}

    @cached_property
    def collection(self) -> Collection | None:
        """What is on disk, looked at once; None for the digits."""
        if self.path == DIGITS:
            return None
        columns = {"image": self.image, "text": self.text}
        return read_collection(self.path, **columns, label=self.label, domain=self.domain)

    def domains(self) -> list[str]:
        """Names of the domains, in order."""
        collection = self.collection
        if collection is None:
            return list(dict.fromkeys(digit_images().domains.tolist()))
        return list(dict.fromkeys(collection.domains.tolist()))

    def examples(
        self,
        backbone: Backbone,
        say: Callable[[str], None] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Examples:
        """The examples, decoded for this backbone; what is found is said first.

        To `say`, where it is given, go warnings too.
        """
        collection = self.collection
        if collection is None:
            if say is not None and Path(DIGITS).exists():
                say(f"the embedded digits are taken; give ./{DIGITS} for what is here")
            return digit_images(backbone.size)
        if say is not None:
            say(collection.describe())
        if collection.kind != backbone.kind:
            raise ValueError(
                f"{self.path} has {collection.kind}s, and {backbone.name} takes {backbone.kind}s; "
                "choose another backbone"
            )
        if collection.kind == "text":
            return text_examples(collection)
        with _told(say):
            return decode(
                collection,
                backbone.size,
                cache=self.cache,
                skip_unreadable=self.skip_unreadable,
                progress=progress,
            )


@contextmanager
def _told(say: Callable[[str], None] | None) -> Iterator[None]:
    """Say warnings rather than warn, where someone is to be told."""
    if say is None:
        yield
        return
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        yield
    for warning in heard:
        say(f"note: {warning.message}")
