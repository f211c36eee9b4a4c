"""The softmax of a chunk of scores in one kernel, for torch with Triton on a GPU.

In array operations the scores are read and written several times, which shows beside the two
matrix products of a head with many classes; here once. Imported where it is wanted alone: Triton
comes with torch for CUDA only.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from skdare.arrays.libraries import Array

# A row of scores is held in registers.
_MAX_COLUMNS = 8192


@triton.jit
def _residuals(F, classes, weights, losses, k, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, WIDTH)
    inside = columns < k
    scores = tl.load(F + row * k + columns, mask=inside, other=float("-inf"))
    scores -= tl.max(scores, axis=0)
    exponents = tl.exp(scores)
    total = tl.sum(exponents, axis=0)
    is_target = columns == tl.load(classes + row)
    at_target = tl.sum(tl.where(is_target, scores, 0.0), axis=0)
    weight = tl.load(weights + row)
    tl.store(losses + row, (tl.log(total) - at_target).to(tl.float64) * weight)
    R = (exponents / total - tl.where(is_target, 1.0, 0.0)) * weight.to(tl.float32)
    tl.store(F + row * k + columns, R, mask=inside)


def weighted_softmax_residuals(F: Array, classes: Array, weight: Array) -> Array | None:
    """Overwrite F by ``w (softmax F - indicator)``, and give the weighted loss of each row.

    None where this kernel does not fit; F is then as it was.
    """
    k = F.shape[1]
    fits = F.dtype == torch.float32 and F.is_contiguous() and classes.ndim == 1
    if not fits or k > _MAX_COLUMNS:
        return None
    losses = torch.empty_like(weight)
    width = triton.next_power_of_2(k)
    options = {"WIDTH": width, "num_warps": min(8, max(1, width // 256))}
    with torch.cuda.device(F.device):
        _residuals[(F.shape[0],)](F, classes, weight.contiguous(), losses, k, **options)
    return losses


def try_out() -> None:
    """Run the kernel once: it is compiled where it runs, and raises where that fails."""
    F = torch.zeros((1, 3), device="cuda")
    classes = torch.zeros(1, device="cuda").long()
    weighted_softmax_residuals(F, classes, torch.ones(1, device="cuda").double())
