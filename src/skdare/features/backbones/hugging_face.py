"""Networks of Hugging Face transformers, from a folder or the hub, for images and for text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import nn

from skdare.checks import check_choice
from skdare.errors import InputError
from skdare.features.backbones.backbone import Backbone
from skdare.features.backbones.image_encoder import load_image_encoder
from skdare.features.backbones.packages import explaining_torchvision
from skdare.features.backbones.text_encoder import load_text_encoder
from skdare.features.json_file import read_json

POOLINGS = ("cls", "mean", "pooler")
_VOCABULARIES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
)


def load_transformers(
    name: str, *, size: int | None = None, pooling: str | None = None
) -> Backbone:
    """Pretrained network of transformers, with the preparation that its own files state.

    It is a network for images where its configuration has image channels or an image side (CLIP),
    else for text. It comes in evaluation mode, in which training leaves it, and in float32.

    Parameters
    ----------
    name : str
        A folder with a ``config.json``, which is then the only thing read; or a name on the hub.
    size : int, optional
        Side of an image in pixels, by default that of the image processor; or tokens of a text, by
        default 64 or the most that the network takes, whichever is less.
    pooling : "cls", "mean" or "pooler", optional
        How positions become one vector: the first token; the mean over patches, pixels or tokens
        that are not padding; or the network's own pooled output. By default: for ViT, DeiT and
        DINO ``cls``, after the final layer norm; for CLIP and similar networks the projected
        features that are compared with text; for other images ``pooler``; for text what
        sentence-transformers wrote into the folder, else ``mean``. Texts are scaled to unit length
        where it says so.

    Returns
    -------
    ImageBackbone or TextBackbone
    """
    check_choice("pooling", pooling, (*POOLINGS, None))
    folder = Path(name).expanduser()
    repository = Repository(str(folder) if folder.is_dir() else name)
    config = repository.config()
    recorded = f"hf:{without_path(name)}"
    if hasattr(config, "vision_config") or hasattr(config, "num_channels"):
        return load_image_encoder(recorded, repository, config, size, pooling)
    if hasattr(config, "vocab_size"):
        return load_text_encoder(recorded, repository, config, size, pooling)
    raise InputError(
        f"{name} is a {config.model_type}, which takes neither images nor text; "
        "pass another network"
    )


def without_path(name: str) -> str:
    """Name on the hub, or of a folder without the path to it.

    A folder may lie elsewhere when a run goes on; its weights are known by their hash.
    """
    folder = Path(name).expanduser()
    return folder.resolve().name if folder.is_dir() or folder.is_absolute() else name


@dataclass(frozen=True)
class Repository:
    """Files of a network, in a folder or under a name on the hub.

    Code that lies beside the weights is never run.
    """

    name: str

    @property
    def options(self) -> dict[str, Any]:
        """Options for every call of transformers: a folder is read without going online."""
        return {"local_files_only": True} if Path(self.name).is_dir() else {}

    def config(self) -> Any:
        """Configuration of the network."""
        if self.options and not (Path(self.name) / "config.json").is_file():
            raise FileNotFoundError(
                f"{self.name} has no config.json; pass a folder that save_pretrained wrote"
            )
        try:
            with quiet_transformers(self.options) as transformers:
                return transformers.AutoConfig.from_pretrained(
                    self.name, trust_remote_code=False, **self.options
                )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            reason = str(error).strip().splitlines() or [type(error).__name__]
            raise InputError(
                f"transformers cannot read the config.json of {self.name} ({reason[0]}); "
                "save the network again, or pass another"
            ) from error
        except OSError as error:
            if self.options:
                raise
            raise OSError(
                f"{self.name!r} is not a folder here, and the hub did not provide it; "
                "pass a folder that save_pretrained wrote"
            ) from error

    def file(self, name: str) -> Path | None:
        """Path of a file, or None without one."""
        with quiet_transformers(self.options) as transformers:
            path = transformers.utils.cached_file(
                self.name, name, _raise_exceptions_for_missing_entries=False, **self.options
            )
        return None if path is None else Path(path)

    def json(self, name: str, shape: Any = dict) -> Any:
        """Content of a JSON file of this shape, or None without one."""
        path = self.file(name)
        remedy = "save the network again, or pass another"
        return None if path is None else read_json(path, shape, remedy=remedy)

    def model(self, config: Any, unused: tuple[str, ...] = ()) -> Any:
        """Network in float32 and evaluation mode, without its unused parts.

        transformers draws weights that the files lack at random; here that is an error, unless
        the part is unused.
        """
        with quiet_transformers(self.options) as transformers, torch.random.fork_rng(devices=[]):
            model, info = transformers.AutoModel.from_pretrained(
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
        missing = sorted(model.state_dict().keys() & info["missing_keys"])
        if missing:
            raise InputError(
                f"{self.name} has no weights for {len(missing)} arrays, such as "
                f"{', '.join(missing[:3])}; pass another pooling, or a folder that has them"
            )
        return model.eval()

    def tokenizer(self) -> Any:
        """Fast tokenizer of the network."""
        # Without a vocabulary transformers makes an empty one, and all words are unknown.
        if not any(self.file(name) for name in _VOCABULARIES):
            raise FileNotFoundError(
                f"{self.name} has no vocabulary ({', '.join(_VOCABULARIES)}); "
                "save the tokenizer into it too"
            )
        with quiet_transformers(self.options) as transformers:
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                self.name, trust_remote_code=False, **self.options
            )
        if not tokenizer.is_fast or tokenizer.pad_token_id is None:
            lacking = "padding token" if tokenizer.is_fast else "fast tokenizer"
            raise InputError(f"{self.name} has no {lacking}; pass another encoder")
        return tokenizer


@contextmanager
def quiet_transformers(local: object) -> Iterator[Any]:
    """Import transformers without its reports; for local files also without progress bars.

    Of what it would report, missing weights are an error in `Repository.model`; weights that are
    left over are mostly a classifier's.
    """
    with explaining_torchvision():
        transformers = import_module("transformers")
        logging = transformers.utils.logging
        verbosity = logging.get_verbosity()
        bars = logging.is_progress_bar_enabled()
        logging.set_verbosity_error()
        if local:
            logging.disable_progress_bar()
        try:
            yield transformers
        finally:
            logging.set_verbosity(verbosity)
            if bars:
                logging.enable_progress_bar()
