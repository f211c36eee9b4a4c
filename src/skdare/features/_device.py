"""Where networks are trained, and in which precision."""

from __future__ import annotations

import os

import torch

from skdare._validation import InputError, check_choice

PRECISIONS = ("auto", "float32", "bfloat16")
KINDS = ("cpu", "cuda")


def pick_device(name: str = "auto") -> torch.device:
    """The device of this name; "auto" is a GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and "LOCAL_RANK" in os.environ:  # torchrun: a GPU for each process
        name = f"cuda:{os.environ['LOCAL_RANK']}"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"device {name!r} is not one; use auto, cpu, cuda or cuda:1") from error
    if device.type not in KINDS:
        raise ValueError(f"device {name!r} is not supported; use cpu or cuda")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError(
            f"device is {name!r}, and torch sees no GPU", "use device='cpu'", argument="device"
        )
    if device.type == "cuda":
        count = torch.cuda.device_count()
        if (device.index or 0) >= count:
            raise ValueError(
                f"device {name!r} is asked for, and torch sees {count} GPUs; use cuda:0"
            )
        device = torch.device("cuda", device.index or 0)
        torch.cuda.set_device(device)
    return device


def pick_precision(name: str, device: torch.device) -> torch.dtype:
    """The type of products inside a backbone; "auto" is bfloat16 on a GPU, else float32."""
    check_choice("precision", name, PRECISIONS)
    if name == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    return getattr(torch, name)
