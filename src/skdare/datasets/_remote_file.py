"""Files that others publish: downloaded once, kept in a folder, checked whenever they are used."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from skdare._input_error import InputError
from skdare._logger import tell
from skdare.datasets._archive import is_archive, is_called_archive
from skdare.persist import whole_file

VARIABLE = "SKDARE_DATA_HOME"
_DEFAULT_HOME = "~/skdare_data"
# Seconds without a single byte.
_TIMEOUT = 60.0
# How a web page begins, in small letters.
_PAGE = (b"<!doctype html", b"<html")


def data_folder(data_home: str | PathLike[str] | None) -> Path:
    """The folder that holds data sets: as given, else from SKDARE_DATA_HOME, else ~/skdare_data."""
    return Path(data_home or os.environ.get(VARIABLE) or _DEFAULT_HOME).expanduser()


@dataclass(frozen=True)
class RemoteFile:
    """A file at an address.

    Its checksum is the one recorded beside it in the cache folder, else the one given here. Where
    there is neither, that of the first file that could be read is recorded, and later ones must
    agree.

    Parameters
    ----------
    address : str
    sha256 : str, optional
        As those state it who downloaded the file.
    """

    address: str
    sha256: str | None = None

    @property
    def name(self) -> str:
        """The file's own name."""
        return unquote(urlsplit(self.address).path).rpartition("/")[2]

    @contextmanager
    def local(self, folder: Path, *, download_if_missing: bool) -> Iterator[Path]:
        """The path of the file in a folder, downloaded to it if need be, with its checksum right.

        The file is read within the context: whatever fails there is an InputError about the file,
        and a checksum is recorded only if nothing did.

        Parameters
        ----------
        folder : Path
            Made if it does not exist.
        download_if_missing : bool
        """
        path = folder / self.name
        if path.exists():
            with path.open("rb") as file:
                digest = self._checked(file, path)
        elif download_if_missing:
            digest = self._downloaded(path)
        else:
            raise FileNotFoundError(
                f"{path} does not exist and download_if_missing is False; {self._by_hand(folder)}"
            )
        try:
            yield path
        except MemoryError:
            raise
        # A file that is damaged, or another one, can raise almost anything.
        except Exception as error:
            kind = type(error).__name__
            problem = error.what if isinstance(error, InputError) else f"{kind}: {error}"
            raise InputError(
                f"{path} is damaged or not the published file ({problem})",
                f"{_start_afresh(path)}; if that is no better, it was replaced where it is "
                "published",
            ) from error
        if self._expected(path) is None:
            # A folder that may not be written can hold a file that was put there by hand.
            with suppress(OSError), whole_file(_record(path)) as written:
                written.write(f"{digest}  {path.name}\n".encode())

    def _downloaded(self, path: Path) -> str:
        """Download the file to a path whole, and give its checksum."""
        folder = path.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(
                f"cannot make the folder {folder} ({error.strerror}); pass data_home, a folder "
                f"that can be written, or set {VARIABLE}"
            ) from error
        tell(f"downloading {self.address} to {path}")
        with whole_file(path) as file:
            self._download(file, folder)
            return self._checked(file, path)

    def _download(self, file: BinaryIO, folder: Path) -> None:
        try:
            with urlopen(self._request(), timeout=_TIMEOUT) as answer:
                shutil.copyfileobj(answer, file)
                promised = answer.headers.get("Content-Length")
        except (URLError, HTTPException, ConnectionError, TimeoutError) as error:
            if isinstance(error, HTTPError):  # it holds the connection
                error.close()
            reason = str(error).removeprefix("<urlopen error ").removesuffix(">")
            raise ConnectionError(
                f"cannot download {self.address} ({reason}); {self._by_hand(folder)}"
            ) from error
        # A connection that ends early is no error to urllib.
        if promised is not None and file.tell() != int(promised):
            raise ConnectionError(
                f"the download of {self.address} ended after {file.tell()} of {promised} bytes; "
                f"try again, or {self._by_hand(folder)}"
            )
        file.seek(0)
        # A network that wants a sign-in answers everything with its page.
        if file.read(1024).lstrip().lower().startswith(_PAGE):
            raise ConnectionError(
                f"{self.address} answered with a web page and not with the file; "
                f"sign in to the network if it asks for that, or {self._by_hand(folder)}"
            )
        file.seek(0)
        if is_called_archive(self.name) and not is_archive(file):
            raise ConnectionError(
                f"{self.address} did not answer with an archive; {self._by_hand(folder)}"
            )

    def _request(self) -> Request:
        # Some servers refuse Python's own name.
        return Request(self.address, headers={"User-Agent": "skdare"})

    def _by_hand(self, folder: Path) -> str:
        return f"download {self.address} by hand and put it into {folder} as {self.name}"

    def _checked(self, file: BinaryIO, path: Path) -> str:
        """The checksum of the file at a path, or to come there, which must be the one expected."""
        file.seek(0)
        found = hashlib.file_digest(cast("Any", file), "sha256").hexdigest()
        expected = self._expected(path)
        if expected not in (None, found):
            raise InputError(
                f"{path.name} from {self.address} has SHA-256 {found}, and {expected} was expected",
                f"{_start_afresh(path)}; if the file was replaced where it is published and you "
                f"trust it, put it there by hand, and its SHA-256 into {_record(path)}",
            )
        return found

    def _expected(self, path: Path) -> str | None:
        record = _record(path)
        recorded = record.read_text(encoding="utf-8").split() if record.exists() else []
        return recorded[0].lower() if recorded else self.sha256


def _record(path: Path) -> Path:
    """The file that holds the checksum of another."""
    return path.with_name(f"{path.name}.sha256")


def _start_afresh(path: Path) -> str:
    """What to do to have the file again, and its checksum."""
    there = [str(file) for file in (path, _record(path)) if file.exists()]
    return f"delete {' and '.join(there)}, and try again" if there else "try again"
