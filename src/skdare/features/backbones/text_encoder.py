"""Text networks of transformers: tokens in, one vector per text out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from skdare.errors import InputError
from skdare.features.examples.examples import Examples

if TYPE_CHECKING:
    from skdare.features.backbones.hugging_face import Repository

TOKENS = 64
# Texts tokenised at a time: lists of Python integers take 30 times the array's memory.
_CHUNK = 4096
# Share of shortened texts from which there is a warning.
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
    """How the vectors of tokens become one, and whether that is scaled to unit length."""

    by: str
    unit: bool = False


class TextEncoder(nn.Module):
    """A text network of transformers with the pooling of its tokens.

    ``padding`` is the token that fills up short texts; other tokens do not attend to it.
    """

    def __init__(self, model: nn.Module, pooling: Pooling, padding: int) -> None:
        super().__init__()
        self.model = model
        self.pooling = pooling
        self.padding = padding

    def forward(self, tokens: Tensor) -> Tensor:
        """Features of tokens (n, size)."""
        mask = (tokens != self.padding).long()
        pooled = self._pooled(self.model(input_ids=tokens, attention_mask=mask), mask)
        return F.normalize(pooled, dim=-1) if self.pooling.unit else pooled

    def _pooled(self, output: Any, mask: Tensor) -> Tensor:
        if self.pooling.by == "cls":
            return output.last_hidden_state[:, 0]
        if self.pooling.by == "mean":
            weights = mask / mask.sum(dim=1, keepdim=True).clamp(min=1)
            return (weights[:, :, None] * output.last_hidden_state).sum(dim=1)
        pooled = getattr(output, "pooler_output", None)
        if pooled is None:
            raise InputError("the network has no pooler; pass pooling='mean' or 'cls'")
        return pooled


@dataclass(eq=False)
class TextBackbone:
    """A network for texts, each cut or filled up to the same number of tokens."""

    name: str
    size: int
    dim: int
    module: nn.Module
    tokenizer: Any
    pooling: Pooling
    kind: str = field(default="text", init=False)

    @property
    def transform(self) -> str:
        """What happens to a text, in words."""
        scaled = ", scaled to unit length" if self.pooling.unit else ""
        return f"first {self.size} tokens, pooled by {self.pooling.by}{scaled}"

    def encode(self, examples: Examples) -> np.ndarray:
        """Tokens of all texts: int32 of shape (n, size)."""
        if examples.kind != "text":
            raise InputError(
                f"{examples.name} holds {examples.kind}s, and {self.name} reads text; "
                "pass a backbone for images"
            )
        n = len(examples.inputs)
        tokens = np.empty((n, self.size), dtype=np.int32)
        shortened = 0
        for start in range(0, n, _CHUNK):
            encoded = self._tokenized(examples.inputs[start : start + _CHUNK].tolist())
            tokens[start : start + _CHUNK] = encoded["input_ids"]
            shortened += sum(bool(row.overflowing) for row in encoded.encodings)
        if shortened > _MANY * n:
            warnings.warn(
                f"{shortened} of {n} texts have more than {self.size} tokens, and their ends are "
                "not read; pass a larger size",
                stacklevel=2,
            )
        return tokens

    def views(self, inputs: Tensor, rows: Tensor, drawn: Tensor | None = None) -> Tensor:
        """Tokens of chosen rows: int64. Text is not augmented, so ``drawn`` is ignored."""
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


def load_text_encoder(
    name: str, repository: Repository, config: Any, size: int | None, pooling: str | None
) -> TextBackbone:
    """Text encoder of a repository, pooled as asked or as its files say."""
    chosen = _pooling(repository, pooling)
    tokenizer = repository.tokenizer()
    model = repository.model(config, unused=() if chosen.by == "pooler" else ("pooler",))
    if getattr(config, "is_encoder_decoder", False):
        model = model.get_encoder()
    largest = min(tokenizer.model_max_length, _positions(model, config))
    if size is not None and size > largest:
        raise InputError(f"size is {size}, and {name} takes at most {largest} tokens")
    module = TextEncoder(model, chosen, tokenizer.pad_token_id).eval()
    with torch.no_grad():
        dim = module(torch.tensor([tokenizer("one word")["input_ids"]])).shape[1]
    return TextBackbone(name, size or min(TOKENS, largest), dim, module, tokenizer, chosen)


def _positions(model: nn.Module, config: Any) -> int:
    """Number of tokens that a network has positions for."""
    stated = getattr(config, "max_position_embeddings", None) or 512
    for name, part in model.named_modules():
        if name.endswith("position_embeddings") and getattr(part, "padding_idx", None) is not None:
            # RoBERTa and similar networks count positions from the one after padding.
            return stated - part.padding_idx - 1
    return stated


def _pooling(repository: Repository, pooling: str | None) -> Pooling:
    """Pooling asked for, else the one that sentence-transformers wrote into the folder."""
    modules = {
        part["type"].rpartition(".")[2]: part["path"]
        for part in repository.json("modules.json", [{"type": str, "path": str}]) or ()
    }
    unit = "Normalize" in modules
    if pooling is not None or not modules:
        return Pooling(pooling or "mean", unit)
    place = modules.get("Pooling")
    config = (repository.json(f"{place}/config.json") if place is not None else None) or {}
    modes = [key for key, on in config.items() if key.startswith("pooling_mode_") and on]
    mode = modes[0] if len(modes) == 1 else config.get("pooling_mode")
    other = modules.keys() - {"Transformer", "Pooling", "Normalize"}
    if other or mode not in _MODES:
        raise InputError(
            f"{repository.name} pools by {', '.join([*modes, *other]) or mode}, which is not "
            "offered here; pass pooling='mean' or 'cls' for the network's own features"
        )
    return Pooling(_MODES[mode], unit)
