"""Files of a pretrained network, in a folder or on Hugging Face's hub, read with transformers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from skdare.features._zoos import imported, torchvision_mismatch_named
from skdare.persist import read_json

_VOCABULARIES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
)


@dataclass(frozen=True)
class Repository:
    """A folder, or a name on the hub, that holds a network's files.

    Code that lies beside the weights is never run.
    """

    name: str

    @property
    def options(self) -> dict[str, Any]:
        """What every call of transformers is given: a folder is read without the network."""
        return {"local_files_only": True} if Path(self.name).is_dir() else {}

    def config(self) -> Any:
        """The configuration."""
        if self.options and not (Path(self.name) / "config.json").is_file():
            raise FileNotFoundError(
                f"{self.name} has no config.json; pass a folder that save_pretrained wrote"
            )
        try:
            with quiet(self.options) as transformers:
                config = transformers.AutoConfig.from_pretrained(
                    self.name, trust_remote_code=False, **self.options
                )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            reason = str(error).strip().splitlines() or [type(error).__name__]
            raise ValueError(
                f"the config.json of {self.name} is none that transformers reads ({reason[0]}); "
                "save the network again, or pass another"
            ) from error
        except OSError as error:
            if self.options:
                raise
            raise OSError(
                f"{self.name!r} is no folder here, and the hub did not give it; "
                "pass a folder that save_pretrained wrote"
            ) from error
        return config

    def file(self, name: str) -> Path | None:
        """Where a file lies, if there is one."""
        with quiet(self.options) as transformers:
            found = transformers.utils.cached_file(
                self.name, name, _raise_exceptions_for_missing_entries=False, **self.options
            )
        return None if found is None else Path(found)

    def json(self, name: str, shape: Any = dict) -> Any:
        """What a JSON file of this shape holds; None without one."""
        path = self.file(name)
        remedy = "save the network again, or pass another"
        return None if path is None else read_json(path, shape, remedy=remedy)

    def model(self, config: Any, unused: tuple[str, ...] = ()) -> Any:
        """The network in float32 and evaluation mode, without its unused parts.

        A part that the files have no weights for would be drawn at random; that is an error,
        unless the part is unused.
        """
        with quiet(self.options) as transformers, torch.random.fork_rng(devices=[]):
            model, found = transformers.AutoModel.from_pretrained(
                self.name,
                config=config,
                dtype=torch.float32,
                output_loading_info=True,
                trust_remote_code=False,
                **self.options,
            )
        for name in unused:
            part = getattr(model, name, None)
            # A pooler without weights, such as a mean over pixels, is called unconditionally.
            if isinstance(part, nn.Module) and next(part.parameters(), None) is not None:
                setattr(model, name, None)
        missing = sorted(model.state_dict().keys() & found["missing_keys"])
        if missing:
            raise ValueError(
                f"{self.name} has no weights for {len(missing)} arrays, such as "
                f"{', '.join(missing[:3])}; pass another pooling, or a folder that has them"
            )
        return model.eval()

    def tokenizer(self) -> Any:
        """The fast tokenizer."""
        # Without a vocabulary transformers makes an empty one, and all words are unknown.
        if not any(self.file(name) for name in _VOCABULARIES):
            raise FileNotFoundError(
                f"{self.name} has no vocabulary ({', '.join(_VOCABULARIES)}); "
                "save the tokenizer into it too"
            )
        with quiet(self.options) as transformers:
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                self.name, trust_remote_code=False, **self.options
            )
        if not tokenizer.is_fast or tokenizer.pad_token_id is None:
            lacking = "padding token" if tokenizer.is_fast else "fast tokenizer"
            raise ValueError(f"{self.name} has no {lacking}; pass another encoder")
        return tokenizer


@contextmanager
def quiet(local: object) -> Iterator[Any]:
    """transformers, without its reports, and without progress bars for what is not downloaded.

    Of what it would report, missing weights are an error in `Repository.model`; weights that are
    left over are mostly a classifier's.
    """
    with torchvision_mismatch_named():
        transformers = imported(
            "transformers",
            "transformers is not installed; pip install 'skdare[text]', or transformers",
        )
        logging = transformers.utils.logging
        verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
        logging.set_verbosity_error()
        if local:
            logging.disable_progress_bar()
        try:
            yield transformers
        finally:
            logging.set_verbosity(verbosity)
            if bars:
                logging.enable_progress_bar()
