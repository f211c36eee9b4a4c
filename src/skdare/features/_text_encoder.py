"""Encoders of text: tokens in, one vector a text out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from skdare.features._examples import Examples
from skdare.features._hub import Repository

TOKENS = 64
# Texts that are tokenised at a time: lists of Python integers take 30 times the array's memory.
_CHUNK = 4096
# The share of shortened texts that is worth a word.
_MANY = 0.1
# How sentence-transformers writes the poolings that are offered here.
_MODES = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "mean": "mean",
    "cls": "cls",
}


@dataclass(frozen=True)
class Pooling:
    """How the vectors of tokens become one: by what, and whether it is scaled to unit length."""

    by: str
    unit: bool = False


class TextEncoder(nn.Module):
    """A network of tokens and what pools them.

    Parameters
    ----------
    model : torch.nn.Module
        Of transformers.
    pooling : Pooling
    padding : int
        The token that fills up short texts; it is seen by no other and not averaged.
    """

    def __init__(self, model: nn.Module, pooling: Pooling, padding: int) -> None:
        super().__init__()
        self.model, self.pooling, self.padding = model, pooling, padding

    def forward(self, tokens: Tensor) -> Tensor:
        """Features of tokens (n, size)."""
        shown = (tokens != self.padding).long()
        found = self._pooled(self.model(input_ids=tokens, attention_mask=shown), shown)
        return F.normalize(found, dim=-1) if self.pooling.unit else found

    def _pooled(self, output: Any, shown: Tensor) -> Tensor:
        if self.pooling.by == "cls":
            return output.last_hidden_state[:, 0]
        if self.pooling.by == "mean":
            weights = shown / shown.sum(dim=1, keepdim=True).clamp(min=1)
            return (weights[:, :, None] * output.last_hidden_state).sum(dim=1)
        pooled = getattr(output, "pooler_output", None)
        if pooled is None:
            raise ValueError("the network has no pooler; pass pooling='mean' or 'cls'")
        return pooled


@dataclass(eq=False)
class TextBackbone:
    """A network of texts, each cut or filled up to as many tokens.

    Parameters
    ----------
    name, size, dim, module
        As in `Backbone`.
    tokenizer : transformers.PreTrainedTokenizerFast
    pooling : Pooling
        Of the module, for the record.
    """

    name: str
    size: int
    dim: int
    module: nn.Module
    tokenizer: Any
    pooling: Pooling
    kind: str = field(default="text", init=False)

    @property
    def transform(self) -> str:
        """What becomes of a text, in words."""
        scaled = ", scaled to unit length" if self.pooling.unit else ""
        return f"first {self.size} tokens, pooled by {self.pooling.by}{scaled}"

    def encode(self, examples: Examples) -> np.ndarray:
        """The tokens of all texts: int32 of shape (n, size)."""
        if examples.kind != "text":
            raise ValueError(
                f"{examples.name} holds {examples.kind}s, and {self.name} reads text; "
                "pass a backbone of images"
            )
        n = len(examples.inputs)
        tokens = np.empty((n, self.size), dtype=np.int32)
        cut = 0
        for start in range(0, n, _CHUNK):
            found = self._tokenized(examples.inputs[start : start + _CHUNK].tolist())
            tokens[start : start + _CHUNK] = found["input_ids"]
            cut += sum(bool(row.overflowing) for row in found.encodings)
        if cut > _MANY * n:
            warnings.warn(
                f"{cut} of {n} texts have more than {self.size} tokens, and their ends are not "
                "read; pass a larger size",
                stacklevel=2,
            )
        return tokens

    def views(self, inputs: Tensor, rows: Tensor, drawn: Tensor | None = None) -> Tensor:
        """The tokens of chosen rows: int64. Text is not augmented: ``drawn`` is not looked at."""
        return inputs[rows].long()

    def features(self, batch: Tensor) -> Tensor:
        """Features of a batch of tokens."""
        return self.module(batch).float()

    def _tokenized(self, texts: list[str]) -> Any:
        return self.tokenizer(
            texts,
            truncation=True,
            max_length=self.size,
            padding="max_length",
            padding_side="right",
            return_attention_mask=False,
            return_token_type_ids=False,
        )


def load_text(
    name: str, repository: Repository, config: Any, size: int | None, pooling: str | None
) -> TextBackbone:
    """The text encoder of a repository, pooled as asked or as its files say."""
    chosen = _pooling(repository, pooling)
    tokenizer = repository.tokenizer()
    model = repository.model(config, unused=() if chosen.by == "pooler" else ("pooler",))
    if getattr(config, "is_encoder_decoder", False):
        model = model.get_encoder()
    most = min(tokenizer.model_max_length, _places(model, config))
    if size is not None and size > most:
        raise ValueError(f"size is {size}, and {name} takes at most {most} tokens")
    module = TextEncoder(model, chosen, tokenizer.pad_token_id).eval()
    with torch.no_grad():
        dim = module(torch.tensor([tokenizer("one word")["input_ids"]])).shape[1]
    return TextBackbone(name, size or min(TOKENS, most), dim, module, tokenizer, chosen)


def _places(model: nn.Module, config: Any) -> int:
    """How many tokens a network has places for."""
    stated = getattr(config, "max_position_embeddings", None) or 512
    for name, part in model.named_modules():
        if name.endswith("position_embeddings") and getattr(part, "padding_idx", None) is not None:
            # RoBERTa and its like count places from after that of padding.
            return stated - part.padding_idx - 1
    return stated


def _pooling(repository: Repository, asked: str | None) -> Pooling:
    """What sentence-transformers wrote into the folder, if it did; what was asked comes first."""
    modules = {
        part["type"].rpartition(".")[2]: part["path"]
        for part in repository.json("modules.json", [{"type": str, "path": str}]) or ()
    }
    unit = "Normalize" in modules
    if asked is not None or not modules:
        return Pooling(asked or "mean", unit)
    place = modules.get("Pooling")
    written = (repository.json(f"{place}/config.json") if place is not None else None) or {}
    modes = [key for key, on in written.items() if key.startswith("pooling_mode_") and on]
    mode = modes[0] if len(modes) == 1 else written.get("pooling_mode")
    other = modules.keys() - {"Transformer", "Pooling", "Normalize"}
    if other or mode not in _MODES:
        raise ValueError(
            f"{repository.name} pools by {', '.join([*modes, *other]) or mode}, which is not "
            "offered here; pass pooling='mean' or 'cls' for the network's own features"
        )
    return Pooling(_MODES[mode], unit)
