"""Where examples come from, in words that can be written down and read again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
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
        """To be written down; a path is made absolute."""
        path = self.path if self.path == DIGITS else str(Path(self.path).resolve())
        return {**asdict(self), "path": path}

    def collection(self) -> Collection | None:
        """What is on disk; None for the digits."""
        if self.path == DIGITS:
            return None
        columns = {"image": self.image, "text": self.text}
        return read_collection(self.path, **columns, label=self.label, domain=self.domain)

    def domains(self) -> list[str]:
        """Names of the domains, in order."""
        collection = self.collection()
        if collection is None:
            return list(dict.fromkeys(digit_images().domains.tolist()))
        return list(dict.fromkeys(collection.domains.tolist()))

    def examples(
        self,
        backbone: Backbone,
        say: Callable[[str], None] = lambda text: None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Examples:
        """The examples, decoded for this backbone; what is found is said first."""
        collection = self.collection()
        if collection is None:
            return digit_images(backbone.size)
        say(collection.describe())
        if collection.kind != backbone.kind:
            raise ValueError(
                f"{self.path} has {collection.kind}s, and {backbone.name} takes {backbone.kind}s; "
                "choose another backbone"
            )
        if collection.kind == "text":
            return text_examples(collection)
        return decode(
            collection,
            backbone.size,
            cache=self.cache,
            skip_unreadable=self.skip_unreadable,
            progress=progress,
        )
