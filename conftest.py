"""Without torch, the modules that need it have no examples to run."""

from importlib.util import find_spec

_NEED_TORCH = [
    "src/skdare/export/torch.py",
    "src/skdare/features/*",
    "src/skdare/paper/reproduction.py",
    "tests/small_networks.py",
]
collect_ignore_glob = [] if find_spec("torch") else _NEED_TORCH
