"""Where examples come from, in terms that can be written down and read again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skdare.errors import InputError
from skdare.features.examples.collection import Collection
from skdare.features.examples.decoding import decode, refuse_unreadable
from skdare.features.examples.digit_images import digit_images
from skdare.features.examples.examples import Examples, text_examples
from skdare.features.examples.image_ends import damaged_images
from skdare.features.examples.layout import Layout
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
    layout : Layout, optional
        Of a known set; default: as `read_collection` finds images.
    """

    path: str
    layout: Layout | None = None

    @property
    def is_embedded(self) -> bool:
        """Whether these are the digits; a known set is never called so."""
        return self.path == DIGITS and self.layout is None

    def settings(self) -> dict[str, Any]:
        """The parameters, with absolute paths; the layout only where there is one."""
        path = self.path if self.is_embedded else str(Path(self.path).resolve())
        return {"path": path} | ({} if self.layout is None else {"layout": asdict(self.layout)})

    @cached_property
    def collection(self) -> Collection | None:
        """What is on disk, read once; None for the digits."""
        if self.is_embedded:
            return None
        if self.layout is None:
            return read_collection(self.path)
        return self.layout.read(Path(self.path))

    @property
    def rows(self) -> Collection | Examples:
        """Labels and domains of all rows, before anything is decoded."""
        return digit_images() if self.collection is None else self.collection

    def counts(self) -> dict[str, int]:
        """Number of rows of each domain, in order."""
        return dict(Counter(self.rows.domains.tolist()))

    def classes(self) -> list[str]:
        """Names of the classes."""
        return self.rows.classes

    def check(self, progress: Callable[[int], None] | None = None) -> None:
        """Refuse a known set that is not as expected, and images whose files are cut off.

        ``progress`` is called with numbers of images as they are checked.
        """
        collection = self.collection
        if collection is None or collection.kind != "image":
            return
        if self.layout is not None:
            self.layout.check(collection)
        if damaged := damaged_images(collection, progress):
            refuse_unreadable(collection, damaged)

    def examples(
        self, backbone: Backbone, progress: Callable[[int, int], None] | None = None
    ) -> Examples:
        """Decode the examples for a backbone.

        ``progress`` is called with the number of images that are decoded and of all.
        """
        collection = self.collection
        if collection is None:
            return digit_images(backbone.size)
        if collection.kind != backbone.kind:
            raise InputError(
                f"{self.path} has {collection.kind}s, and {backbone.name} takes {backbone.kind}s",
                "choose another backbone",
            )
        if collection.kind == "text":
            return text_examples(collection)
        return decode(collection, backbone.size, progress=progress)
