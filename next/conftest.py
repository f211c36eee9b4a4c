"""Without torch, the modules that need it have no examples to run."""

from importlib.util import find_spec

collect_ignore_glob = (
    [] if find_spec("torch") else ["src/skdare/features/*", "src/skdare/paper/reproduction.py"]
)
