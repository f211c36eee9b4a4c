"""The version; a test compares what `CITATION.cff` and `CHANGELOG.md` repeat of it."""

__version__ = "0.2.0"
