"""A ResNet-50 and its Adam as passes written out: no autograd, no compiling for each batch size.

Batch norms keep their statistics, and each is folded into the convolution before it, whose kernel
and gain and shift are trained. Products are torch's; what lies between them is Triton's. Arrays
are laid out as (image, row, column, channel), kernels as (output, row, column, input).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional as F

from skdare.features.network import Network

MOST_STEPS = 6000
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
Weights = tuple[Tensor, ...]


@triton.jit
def _adam(x, d, first, second, at, live, lr, scale1, scale2):
    """Values x after a step along d; both moments are updated where they lie."""
    a = 0.9 * tl.load(first + at, mask=live, other=0.0) + 0.1 * d
    s = 0.999 * tl.load(second + at, mask=live, other=0.0) + 0.001 * d * d
    tl.store(first + at, a, mask=live)
    tl.store(second + at, s, mask=live)
    return x - lr / scale1 * a / (tl.sqrt(s) / scale2 + 1e-8)


@triton.jit
def _fold(w, gain, shift, mean, var, folded, bias, K, eps, BLOCK: tl.constexpr):
    """Kernel and bias of a convolution that has its batch norm in it; a program for each output."""
    r = tl.program_id(0)
    k = tl.arange(0, BLOCK)
    live = k < K
    factor = tl.load(gain + r) * tl.rsqrt(tl.load(var + r) + eps)
    x = tl.load(w + r * K + k, mask=live, other=0.0) * factor
    tl.store(folded + r * K + k, x.to(folded.dtype.element_ty), mask=live)
    tl.store(bias + r, tl.load(shift + r) - factor * tl.load(mean + r))


@triton.jit
def _update(dw, db, w, w1, w2, g, g1, g2, h, h1, h2, mean, var, folded, bias, scales, step, lr, wd,
            eps, K, BLOCK: tl.constexpr):  # fmt: skip
    """Adam for kernel w, gain g and shift h, from gradients of what is folded; then fold anew."""
    r = tl.program_id(0)
    k = tl.arange(0, BLOCK)
    live = k < K
    at = r * K + k
    t = tl.load(step)
    scale1 = tl.load(scales + 2 * t)
    scale2 = tl.load(scales + 2 * t + 1)
    inverse = tl.rsqrt(tl.load(var + r) + eps)
    mu = tl.load(mean + r)
    gain = tl.load(g + r)
    shift = tl.load(h + r)
    d_bias = tl.load(db + r)
    d = tl.load(dw + at, mask=live, other=0.0).to(tl.float32)
    x = tl.load(w + at, mask=live, other=0.0)
    d_gain = inverse * (tl.sum(d * x, 0) - mu * d_bias) + wd * gain
    d_shift = d_bias + wd * shift
    x = _adam(x, d * (gain * inverse) + wd * x, w1, w2, at, live, lr, scale1, scale2)
    gain = _adam(gain, d_gain, g1, g2, r, r >= 0, lr, scale1, scale2)
    shift = _adam(shift, d_shift, h1, h2, r, r >= 0, lr, scale1, scale2)
    tl.store(w + at, x, mask=live)
    tl.store(g + r, gain)
    tl.store(h + r, shift)
    factor = gain * inverse
    tl.store(folded + at, (x * factor).to(folded.dtype.element_ty), mask=live)
    tl.store(bias + r, shift - factor * mu)


@triton.jit
def _update_plain(p, d, first, second, scales, step, lr, wd, n, BLOCK: tl.constexpr):
    """Adam for n values in a row."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < n
    t = tl.load(step)
    scale1 = tl.load(scales + 2 * t)
    scale2 = tl.load(scales + 2 * t + 1)
    x = tl.load(p + at, mask=live, other=0.0)
    g = tl.load(d + at, mask=live, other=0.0) + wd * x
    tl.store(p + at, _adam(x, g, first, second, at, live, lr, scale1, scale2), mask=live)


@triton.jit
def _relu(z, b, b2, r, n, C, ADDS: tl.constexpr, TWO: tl.constexpr, BLOCK: tl.constexpr):
    """z becomes the positive part of z + b, and r and a second bias where they are given."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < n
    c = at % C
    v = tl.load(z + at, mask=live, other=0.0).to(tl.float32) + tl.load(b + c, mask=live, other=0.0)
    if TWO:
        v += tl.load(b2 + c, mask=live, other=0.0)
    if ADDS:
        v += tl.load(r + at, mask=live, other=0.0).to(tl.float32)
    tl.store(z + at, tl.maximum(v, 0.0).to(z.dtype.element_ty), mask=live)


@triton.jit
def _relu_back(a, a2, y, db, M, C, R, TWO: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr):
    """Gradients a (+ a2) where y is positive, in place of a; their sums by channel go to db."""
    cols = tl.program_id(1) * BC + tl.arange(0, BC)
    first = tl.program_id(0) * R
    sums = tl.zeros((BM, BC), tl.float32)
    for i in range(0, R, BM):
        rows = first + i + tl.arange(0, BM)
        live = (rows < M)[:, None] & (cols < C)[None, :]
        at = rows[:, None] * C + cols[None, :]
        g = tl.load(a + at, mask=live, other=0.0).to(tl.float32)
        if TWO:
            g += tl.load(a2 + at, mask=live, other=0.0).to(tl.float32)
        g = tl.where(tl.load(y + at, mask=live, other=0.0).to(tl.float32) > 0, g, 0.0)
        tl.store(a + at, g.to(a.dtype.element_ty), mask=live)
        sums += g
    tl.atomic_add(db + cols, tl.sum(sums, 0), mask=cols < C)


@triton.jit
def _pool(z, b, p, where, n, H, W, OH, OW, C: tl.constexpr, BP: tl.constexpr):
    """Positive part of the largest of 3 × 3, every second row and column, and which it was."""
    q = tl.program_id(0) * BP + tl.arange(0, BP)
    c = tl.arange(0, C)
    live = q < n
    x = q % OW
    y = (q // OW) % OH
    i = q // (OW * OH)
    best = tl.full((BP, C), float("-inf"), tl.float32)
    at = tl.zeros((BP, C), tl.int32)
    for dy in tl.static_range(3):
        for dx in tl.static_range(3):
            iy = y * 2 - 1 + dy
            ix = x * 2 - 1 + dx
            inside = live & (iy >= 0) & (iy < H) & (ix >= 0) & (ix < W)
            o = ((i * H + iy) * W + ix)[:, None] * C + c[None, :]
            v = tl.load(z + o, mask=inside[:, None], other=float("-inf")).to(tl.float32)
            larger = v > best
            best = tl.where(larger, v, best)
            at = tl.where(larger, dy * 3 + dx, at)
    out = tl.maximum(best + tl.load(b + c)[None, :], 0.0)
    o = q[:, None] * C + c[None, :]
    tl.store(p + o, out.to(p.dtype.element_ty), mask=live[:, None])
    tl.store(where + o, at.to(tl.uint8), mask=live[:, None])


@triton.jit
def _pool_back(dp, where, dz, n, H, W, OH, OW, C: tl.constexpr, BP: tl.constexpr):
    """Gradients of what was pooled."""
    q = tl.program_id(0) * BP + tl.arange(0, BP)
    c = tl.arange(0, C)
    live = q < n
    x = q % W
    y = (q // W) % H
    i = q // (W * H)
    g = tl.zeros((BP, C), tl.float32)
    for jy in tl.static_range(2):
        for jx in tl.static_range(2):
            oy = (y + 1) // 2 - jy
            ox = (x + 1) // 2 - jx
            dy = y - 2 * oy + 1
            dx = x - 2 * ox + 1
            inside = live & (dy < 3) & (dx < 3) & (oy >= 0) & (ox >= 0) & (oy < OH) & (ox < OW)
            o = ((i * OH + oy) * OW + ox)[:, None] * C + c[None, :]
            v = tl.load(dp + o, mask=inside[:, None], other=0.0).to(tl.float32)
            at = tl.load(where + o, mask=inside[:, None], other=255).to(tl.int32)
            g += tl.where(at == (dy * 3 + dx)[:, None], v, 0.0)
    tl.store(dz + q[:, None] * C + c[None, :], g.to(dz.dtype.element_ty), mask=live[:, None])


@triton.jit
def _between(a, b, w):
    return a + w * (b - a)


@triton.jit
def _clipped(x):
    return tl.minimum(tl.maximum(x, 0.0), 1.0)


@triton.jit
def _grey(r, g, b):
    return 0.2989 * r + 0.587 * g + 0.114 * b


@triton.jit
def _sampled(base, o00, o01, o10, o11, wx, wy, live):
    """One channel between four pixels."""
    a = tl.load(base + o00, mask=live, other=0).to(tl.float32)
    b = tl.load(base + o01, mask=live, other=0).to(tl.float32)
    c = tl.load(base + o10, mask=live, other=0).to(tl.float32)
    d = tl.load(base + o11, mask=live, other=0).to(tl.float32)
    return _between(_between(a, b, wx), _between(c, d, wx), wy) / 255


@triton.jit
def _neighbours(share, S):
    """Pixels on both sides of a place, and its distance from the first."""
    place = tl.minimum(tl.maximum(share * S - 0.5, 0.0), S - 1.0)
    low = tl.floor(place)
    first = low.to(tl.int32)
    return first, tl.minimum(first + 1, S - 1), place - low


@triton.jit
def _bright(images, rows, views, i, q, live, S, P):
    """Red, green and blue of view i at pixels q: cropped, flipped and brightened."""
    d = views + i * 10
    row = q // P
    along = ((q - row * P).to(tl.float32) + 0.5) / P
    across = tl.where(tl.load(d + 4) > 0, 1 - along, along)
    y = tl.load(d + 1) + tl.load(d + 3) * ((row.to(tl.float32) + 0.5) / P)
    y0, y1, wy = _neighbours(y, S)
    x0, x1, wx = _neighbours(tl.load(d) + tl.load(d + 2) * across, S)
    base = images + tl.load(rows + i) * (S * S * 3)
    o00 = (y0 * S + x0) * 3
    o01 = (y0 * S + x1) * 3
    o10 = (y1 * S + x0) * 3
    o11 = (y1 * S + x1) * 3
    k = tl.load(d + 5)
    r = _clipped(_sampled(base, o00, o01, o10, o11, wx, wy, live) * k)
    g = _clipped(_sampled(base + 1, o00, o01, o10, o11, wx, wy, live) * k)
    b = _clipped(_sampled(base + 2, o00, o01, o10, o11, wx, wy, live) * k)
    return r, g, b


@triton.jit
def _mean_grey(images, rows, views, means, S, P, BLOCK: tl.constexpr):
    """Mean grey of brightened views, which contrast is about."""
    i = tl.program_id(0)
    q = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    live = q < P * P
    r, g, b = _bright(images, rows, views, i, q, live, S, P)
    tl.atomic_add(means + i, tl.sum(tl.where(live, _grey(r, g, b), 0.0), 0) / (P * P))


@triton.jit
def _channel(value, chroma, hue, offset):
    k = offset + hue
    k = k - 6 * tl.floor(k / 6)
    return value - chroma * _clipped(tl.minimum(k, 4 - k))


@triton.jit
def _put(out, at, r, g, b, live):
    """Store centred and scaled channels."""
    o = out + at * 3
    tl.store(o, ((r - 0.485) / 0.229).to(out.dtype.element_ty), mask=live)
    tl.store(o + 1, ((g - 0.456) / 0.224).to(out.dtype.element_ty), mask=live)
    tl.store(o + 2, ((b - 0.406) / 0.225).to(out.dtype.element_ty), mask=live)


@triton.jit
def _view(images, rows, views, means, out, S, P, BLOCK: tl.constexpr):
    """Augmented views, as `skdare.features.augmentation.random_views` defines them."""
    i = tl.program_id(0)
    q = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    live = q < P * P
    r, g, b = _bright(images, rows, views, i, q, live, S, P)
    d = views + i * 10
    mean = tl.load(means + i)
    k = tl.load(d + 6)
    r = _clipped(_between(mean, r, k))
    g = _clipped(_between(mean, g, k))
    b = _clipped(_between(mean, b, k))
    grey = _grey(r, g, b)
    k = tl.load(d + 7)
    r = _clipped(_between(grey, r, k))
    g = _clipped(_between(grey, g, k))
    b = _clipped(_between(grey, b, k))
    value = tl.maximum(tl.maximum(r, g), b)
    chroma = value - tl.minimum(tl.minimum(r, g), b)
    scale = tl.where(chroma > 0, chroma, 1.0)
    other = tl.where(value == g, (b - r) / scale + 2, (r - g) / scale + 4)
    hue = tl.where(value == r, (g - b) / scale, other) + 6 * tl.load(d + 8)
    r = _channel(value, chroma, hue, 5.0)
    g = _channel(value, chroma, hue, 3.0)
    b = _channel(value, chroma, hue, 1.0)
    grey = _grey(r, g, b)
    greyed = tl.load(d + 9) > 0
    r = tl.where(greyed, grey, r)
    g = tl.where(greyed, grey, g)
    b = tl.where(greyed, grey, b)
    _put(out, i * (P * P) + q, r, g, b, live)


@triton.jit
def _plain_view(images, rows, out, P, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    q = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    live = q < P * P
    base = images + tl.load(rows + i) * (P * P * 3) + q * 3
    r = tl.load(base, mask=live, other=0).to(tl.float32) / 255
    g = tl.load(base + 1, mask=live, other=0).to(tl.float32) / 255
    b = tl.load(base + 2, mask=live, other=0).to(tl.float32) / 255
    _put(out, i * (P * P) + q, r, g, b, live)


def augmented(images: Tensor, rows: Tensor, drawn: Tensor, means: Tensor, out: Tensor) -> Tensor:
    """Views of rows by the drawn numbers, written to out; means is room for a number a view."""
    n, P = out.shape[:2]
    S = images.shape[1]
    means.zero_()
    grid = (n, triton.cdiv(P * P, 1024))
    _mean_grey[grid](images, rows, drawn, means, S, P, BLOCK=1024)
    _view[grid](images, rows, drawn, means, out, S, P, BLOCK=1024)
    return out


def plain(images: Tensor, rows: Tensor, out: Tensor) -> Tensor:
    """Views of rows without random numbers, written to out; images have their size already."""
    n, P = out.shape[:2]
    _plain_view[(n, triton.cdiv(P * P, 1024))](images, rows, out, P, BLOCK=1024)
    return out


def nchw(t: Tensor) -> Tensor:
    return t.permute(0, 3, 1, 2)


def nhwc(t: Tensor) -> Tensor:
    return t.permute(0, 2, 3, 1).contiguous()


class Layer:
    """A convolution and its batch norm. Its arrays are parts of those of the network."""

    def __init__(self, modules: Mapping[str, Any], name: str) -> None:
        self.names = f"module.{name}.convolution", f"module.{name}.normalization"
        conv = modules[f"{name}.convolution"]
        self.outputs, self.inputs, self.side, _ = conv.weight.shape
        self.stride, self.pad = conv.stride[0], conv.padding[0]
        self.eps = modules[f"{name}.normalization"].eps
        self.size = self.inputs * self.side**2
        self.block = max(16, triton.next_power_of_2(self.size))
        self.warps = 8 if self.block >= 2048 else 4 if self.block >= 512 else 1

    def take(self, arrays: list[Tensor], rows: Tensor, at: int, row: int) -> None:
        """Parts of kernels from ``at`` on, and of what there is for each output from ``row`` on."""
        own = [a[at : at + self.outputs * self.size] for a in arrays]
        self.w, self.w1, self.w2, folded = own
        (self.g, self.g1, self.g2, self.h, self.h1, self.h2, self.mean, self.var, self.bias,
         self.db) = rows[:, row : row + self.outputs]  # fmt: skip
        self.folded = folded
        self.matrix = folded.view(self.outputs, self.size)
        self.kernel = nchw(folded.view(self.outputs, self.side, self.side, self.inputs))

    def forward(self, x: Tensor) -> Tensor:
        """The product with the folded kernel, without bias."""
        if self.side == 1:
            product = torch.mm(x.reshape(-1, self.inputs), self.matrix.t())
            return product.view(*x.shape[:3], self.outputs)
        return nhwc(F.conv2d(nchw(x), self.kernel, None, self.stride, self.pad))

    def backward(
        self, dz: Tensor, x: Tensor, add_to: Tensor | None = None, *, first: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Gradients of x, added to what there is, and of the kernel; ``first`` needs none of x."""
        if self.side > 1:
            dx, dw, _ = torch.ops.aten.convolution_backward(
                nchw(dz), nchw(x), self.kernel, None, [self.stride] * 2, [self.pad] * 2, [1, 1],
                False, [0, 0], 1, [not first, True, False])  # fmt: skip
            return dx if first else nhwc(dx), nhwc(dw)
        dz, rows = dz.reshape(-1, self.outputs), x.reshape(-1, self.inputs)
        dw = torch.mm(dz.t(), rows)
        if add_to is None:
            return torch.mm(dz, self.matrix).view(x.shape), dw
        flat = add_to.view(-1, self.inputs)
        torch.addmm(flat, dz, self.matrix, out=flat)
        return add_to, dw


class FastNetwork:
    """Weights of a `Network` with a ResNet of transformers, and those of Adam, on a device.

    The network is not folded yet. ``dtype`` is that of products and of what passes between layers;
    weights, sums and Adam are float32.
    """

    def __init__(self, network: Network, device: torch.device, dtype: torch.dtype) -> None:
        if network.backbone.mean != MEAN or network.backbone.std != STD:  # type: ignore[attr-defined]
            raise ValueError("pixels are centred and scaled as for ImageNet here")
        self.device, self.dtype, self.dropout = device, dtype, network.dropout
        modules = dict(network.module.named_modules())
        names = [n.removesuffix(".convolution") for n in modules if n.endswith(".convolution")]
        self.layers = {name: Layer(modules, name) for name in names}
        self.stem = self.layers["model.embedder.embedder"]
        self.blocks = []
        for s, stage in enumerate(modules["model.encoder.stages"]):
            for j in range(len(stage.layers)):
                at = f"model.encoder.stages.{s}.layers.{j}"
                three = [self.layers[f"{at}.layer.{i}"] for i in range(3)]
                if three[1].stride != 1:
                    raise ValueError("a block's stride is in its first convolution here")
                self.blocks.append((three, self.layers.get(f"{at}.shortcut")))
        n = sum(layer.outputs * layer.size for layer in self.layers.values())
        outputs = sum(layer.outputs for layer in self.layers.values())
        self.classes, self.dim = network.head.weight.shape
        # Kernels and their two moments, and the same of the last layer; ten numbers an output.
        self.kernels = torch.zeros(3, n, device=device)
        self.folded = torch.zeros(n, device=device, dtype=dtype)
        self.rows = torch.zeros(10, outputs, device=device)
        self.head = torch.zeros(3, self.classes * (self.dim + 1), device=device)
        self.last = self.head[0, : self.classes * self.dim].view(self.classes, self.dim)
        self.intercept = self.head[0, self.classes * self.dim :]
        self.step = torch.zeros(1, device=device, dtype=torch.int32)
        steps = torch.arange(MOST_STEPS, dtype=torch.float64)
        scales = torch.stack([1 - 0.9**steps, (1 - 0.999**steps).sqrt()], 1)
        self.scales = scales.float().flatten().to(device)
        at = row = 0
        for layer in self.layers.values():
            layer.take([*self.kernels, self.folded], self.rows, at, row)
            at += layer.outputs * layer.size
            row += layer.outputs
        self.load(network.state_dict())

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take the weights of a `Network`, and begin anew with Adam."""
        self.kernels.zero_()
        self.rows.zero_()
        self.head.zero_()
        self.step.zero_()
        for layer in self.layers.values():
            conv, norm = layer.names
            layer.w.copy_(state[f"{conv}.weight"].permute(0, 2, 3, 1).reshape(-1))
            layer.g.copy_(state[f"{norm}.weight"])
            layer.h.copy_(state[f"{norm}.bias"])
            layer.mean.copy_(state[f"{norm}.running_mean"])
            layer.var.copy_(state[f"{norm}.running_var"])
        self.last.copy_(state["head.weight"])
        self.intercept.copy_(state["head.bias"])
        self.fold()

    def fold(self) -> None:
        for one in self.layers.values():
            _fold[(one.outputs,)](
                one.w, one.g, one.h, one.mean, one.var, one.folded, one.bias, one.size, one.eps,
                BLOCK=one.block, num_warps=one.warps)  # fmt: skip

    @property
    def _trained(self) -> Weights:
        return self.kernels[0], self.rows[0], self.rows[3], self.head[0]

    def snapshot(self) -> Weights:
        """Copies of what is trained: kernels, gains, shifts, and the last layer."""
        return tuple(x.clone() for x in self._trained)

    def restore(self, snapshot: Weights) -> None:
        for place, value in zip(self._trained, snapshot, strict=True):
            place.copy_(value)
        self.fold()

    def state_dict(self, snapshot: Weights, like: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A snapshot as `Network` has it, on the host; statistics are those of ``like``."""
        kernels, gains, shifts, head = (x.cpu() for x in snapshot)
        state = {name: value.cpu().clone() for name, value in like.items()}
        at = row = 0
        for layer in self.layers.values():
            conv, norm = layer.names
            size, outputs = layer.outputs * layer.size, layer.outputs
            kernel = kernels[at : at + size].view(outputs, layer.side, layer.side, layer.inputs)
            state[f"{conv}.weight"] = nchw(kernel).clone(memory_format=torch.contiguous_format)
            state[f"{norm}.weight"] = gains[row : row + outputs].clone()
            state[f"{norm}.bias"] = shifts[row : row + outputs].clone()
            at += size
            row += outputs
        cut = self.classes * self.dim
        state["head.weight"] = head[:cut].view(self.classes, self.dim).clone()
        state["head.bias"] = head[cut:].clone()
        return state

    def views(self, n: int, pixels: int) -> Tensor:
        """Room for the views of n images."""
        return torch.zeros(n, pixels, pixels, 3, device=self.device, dtype=self.dtype)

    def scores(self, features: Tensor) -> Tensor:
        """Scores of classes."""
        return torch.addmm(self.intercept, features, self.last.t())

    def features(self, x: Tensor, saved: list[Any] | None = None) -> Tensor:
        """Features (n, dim) of views; what the way back needs is added to ``saved``."""
        z = self.stem.forward(x)
        n, H, W, C = z.shape
        y = torch.empty(n, (H + 1) // 2, (W + 1) // 2, C, device=self.device, dtype=self.dtype)
        where = torch.empty(y.shape, device=self.device, dtype=torch.uint8)
        places = y.numel() // C
        _pool[(triton.cdiv(places, 32),)](
            z, self.stem.bias, y, where, places, H, W, *y.shape[1:3], C=C, BP=32)  # fmt: skip
        if saved is not None:
            saved.append((x, z.shape, where, y))
        del z
        for (one, two, three), short in self.blocks:
            given = y
            x = given[:, ::2, ::2].contiguous() if one.stride == 2 else given
            y1 = self._relu(one.forward(x), one.bias)
            y2 = self._relu(two.forward(y1), two.bias)
            z = three.forward(y2)
            if short is None:
                y = self._relu(z, three.bias, given)
            else:
                y = self._relu(z, three.bias, short.forward(x), short.bias)
            if saved is not None:
                saved.append((given.shape, x, y1, y2, y))
        return y.flatten(1, 2).mean(1, dtype=torch.float32)

    def train_step(
        self, x: Tensor, labels: Tensor, mask: Tensor | None, lr: float, weight_decay: float
    ) -> Tensor:
        """One step of Adam on the mean cross-entropy; returns that mean."""
        self.step += 1
        self.rows[9].zero_()
        saved: list[Any] = []
        kept = 1.0 if mask is None else mask / (1 - self.dropout)
        f = self.features(x, saved) * kept
        log = torch.log_softmax(self.scores(f), 1)
        n = len(labels)
        loss = -log.gather(1, labels[:, None]).sum() / n
        ds = log.exp()
        ds.scatter_add_(1, labels[:, None], torch.full_like(ds[:, :1], -1.0))
        ds /= n
        df = torch.mm(ds, self.last) * kept
        grad = torch.cat([torch.mm(ds.t(), f).flatten(), ds.sum(0)])
        size = grad.numel()
        _update_plain[(triton.cdiv(size, 1024),)](
            self.head[0], grad, self.head[1], self.head[2], self.scales, self.step, lr,
            weight_decay, size, BLOCK=1024)  # fmt: skip
        self._backward(df, saved, lr, weight_decay)
        return loss

    def _backward(self, df: Tensor, saved: list[Any], lr: float, wd: float) -> None:
        """From gradients of features down to the stem, with Adam's step of every layer."""
        n, H, W, C = saved[-1][-1].shape
        dy = (df / (H * W)).to(self.dtype)[:, None, None].expand(n, H, W, C).contiguous()
        dy2 = None
        for (one, two, three), short in reversed(self.blocks):
            shape, x, y1, y2, y = saved.pop()
            dz = self._relu_back(dy, y, three.db, dy2)
            del y, dy2
            d, dw = three.backward(dz, y2)
            self._update(three, dw, lr, wd)
            d, dw = two.backward(self._relu_back(d, y2, two.db), y1)
            self._update(two, dw, lr, wd)
            d, dw = one.backward(self._relu_back(d, y1, one.db), x)
            self._update(one, dw, lr, wd)
            if short is not None:
                d, dw = short.backward(dz, x, d)
                self._update(short, dw, lr, wd, three.db)
            dy, dy2 = d, dz if short is None else None
            if one.stride == 2:
                dy = torch.zeros(shape, device=self.device, dtype=self.dtype)
                dy[:, ::2, ::2] = d
            del d, dw, dz, x, y1, y2
        x, shape, where, y = saved.pop()
        dy = self._relu_back(dy, y, self.stem.db, dy2)
        dz = torch.empty(shape, device=self.device, dtype=self.dtype)
        n, H, W, C = shape
        _pool_back[(triton.cdiv(n * H * W, 32),)](
            dy, where, dz, n * H * W, H, W, *y.shape[1:3], C=C, BP=32)  # fmt: skip
        self._update(self.stem, self.stem.backward(dz, x, first=True)[1], lr, wd)

    def _relu(
        self, z: Tensor, b: Tensor, r: Tensor | None = None, b2: Tensor | None = None
    ) -> Tensor:
        n = z.numel()
        _relu[(triton.cdiv(n, 2048),)](
            z, b, b if b2 is None else b2, z if r is None else r, n, z.shape[-1],
            ADDS=r is not None, TWO=b2 is not None, BLOCK=2048)  # fmt: skip
        return z

    def _relu_back(self, a: Tensor, y: Tensor, db: Tensor, a2: Tensor | None = None) -> Tensor:
        C = y.shape[-1]
        M = y.numel() // C
        R = 32 * max(1, triton.cdiv(triton.cdiv(M * (C // 64), 2048), 32))
        _relu_back[(triton.cdiv(M, R), C // 64)](
            a, a if a2 is None else a2, y, db, M, C, R, TWO=a2 is not None, BM=32, BC=64
        )
        return a

    def _update(
        self, one: Layer, dw: Tensor, lr: float, wd: float, db: Tensor | None = None
    ) -> None:
        _update[(one.outputs,)](
            dw, one.db if db is None else db, one.w, one.w1, one.w2, one.g, one.g1, one.g2, one.h,
            one.h1, one.h2, one.mean, one.var, one.folded, one.bias, self.scales, self.step, lr, wd,
            one.eps, one.size, BLOCK=one.block, num_warps=one.warps)  # fmt: skip
