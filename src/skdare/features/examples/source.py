"""Where examples come from, in terms that can be written down and read again."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skdare._validation import InputError
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
    image, text, label, domain : str, optional
        Columns of a table.
    skip_unreadable : bool
        Leave out images that cannot be read.
    cache : str, optional
        A folder to keep decoded pixels in.
    layout : Layout, optional
        Of a known set; default: as `read_collection` finds images.
    """

    path: str
    image: str | None = None
    text: str | None = None
    label: str | None = None
    domain: str | None = None
    skip_unreadable: bool = False
    cache: str | None = None
    layout: Layout | None = None

    @property
    def is_embedded(self) -> bool:
        """Whether these are the digits; a known set is never called so."""
        return self.path == DIGITS and self.layout is None

    def settings(self) -> dict[str, Any]:
        """The parameters, with absolute paths; the layout only where there is one."""
        path = self.path if self.is_embedded else str(Path(self.path).resolve())
        cache = None if self.cache is None else str(Path(self.cache).resolve())
        settings = {**asdict(self), "path": path, "cache": cache}
        if self.layout is None:
            del settings["layout"]
        return settings

    @cached_property
    def collection(self) -> Collection | None:
        """What is on disk, read once; None for the digits."""
        if self.is_embedded:
            return None
        names = ("image", "text", "label", "domain")
        columns = {name: getattr(self, name) for name in names}
        if self.layout is None:
            return read_collection(self.path, **columns)
        named = [name for name, column in columns.items() if column is not None]
        if named:
            raise InputError(
                f"{named[0]} names a column, but the study says itself what an image is",
                "leave it out",
                argument=named[0],
            )
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

    def check(
        self, *, as_found: bool = False, progress: Callable[[int], None] | None = None
    ) -> None:
        """Refuse a known set that is not as expected, and images whose files are cut off.

        ``progress`` is called with numbers of images as they are checked.
        """
        collection = self.collection
        if collection is None or collection.kind != "image":
            return
        if self.layout is not None:
            self.layout.check(collection, as_found=as_found)
        if not self.skip_unreadable and (damaged := damaged_images(collection, progress)):
            refuse_unreadable(collection, damaged)

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
