"""Where examples come from, in terms that can be written down and read again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skdare.features.examples.collection import Collection
from skdare.features.examples.decoding import decode
from skdare.features.examples.digit_images import digit_images
from skdare.features.examples.examples import Examples, text_examples
from skdare.features.examples.read_collection import read_collection

if TYPE_CHECKING:
    from skdare.features.backbones.backbone import Backbone

DIGITS = "digits"


@dataclass(frozen=True)
class ExampleSource:
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

    def settings(self) -> dict[str, Any]:
        """The parameters, with absolute paths."""
        path = self.path if self.path == DIGITS else str(Path(self.path).resolve())
        cache = None if self.cache is None else str(Path(self.cache).resolve())
        return {**asdict(self), "path": path, "cache": cache}

    @cached_property
    def collection(self) -> Collection | None:
        """What is on disk, read once; None for the digits."""
        if self.path == DIGITS:
            return None
        columns = {"image": self.image, "text": self.text}
        return read_collection(self.path, **columns, label=self.label, domain=self.domain)

    @property
    def rows(self) -> Collection | Examples:
        """Labels and domains of all rows, before anything is decoded."""
        return digit_images() if self.collection is None else self.collection

    def domains(self) -> list[str]:
        """Names of the domains, in order."""
        return list(dict.fromkeys(self.rows.domains.tolist()))

    def examples(
        self,
        backbone: Backbone,
        say: Callable[[str], None] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Examples:
        """Decode the examples for a backbone.

        ``say`` is called with a summary of what is on disk, and with warnings in place of warning;
        ``progress`` with the number of images that are decoded and of all.
        """
        collection = self.collection
        if collection is None:
            if say is not None and Path(DIGITS).exists():
                say(f"using the embedded digits; for the files here, give ./{DIGITS}")
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
        with _warnings_said(say):
            return decode(
                collection,
                backbone.size,
                cache=self.cache,
                skip_unreadable=self.skip_unreadable,
                progress=progress,
            )


@contextmanager
def _warnings_said(say: Callable[[str], None] | None) -> Iterator[None]:
    """Pass warnings to ``say`` where there is one."""
    if say is None:
        yield
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        say(f"note: {warning.message}")
