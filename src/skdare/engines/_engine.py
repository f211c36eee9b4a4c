"""The choice of an engine, and the client that stands behind it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from skdare._validation import check_choice

_NAMES = ("auto", "local", "dask")
_START = "start one with client = distributed.Client('tcp://scheduler:8786'), or Client() for here"


@dataclass(frozen=True, eq=False)
class DaskEngine:
    """Passes over the rows run with the workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client, optional
        Default: the one in scope when a head is fitted.
    device : str, optional
        Workers keep their rows as torch tensors on this device and compute there: ``"cuda"`` with
        one worker for each GPU is how several GPUs share a fit. Default: NumPy.

    Examples
    --------
    >>> from skdare import ERMClassifier
    >>> from skdare.engines import DaskEngine
    >>> ERMClassifier(engine=DaskEngine(device="cuda")).engine.device
    'cuda'
    """

    client: Any = None
    device: str | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> DaskEngine:
        return self  # copies of a head share the connection

    def __getstate__(self) -> dict[str, Any]:
        return {"client": None, "device": self.device}  # a connection stays with its process

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def check_engine(value: Any) -> None:
    """``engine`` is one of the names or a `DaskEngine`."""
    if isinstance(value, DaskEngine):
        return
    if not isinstance(value, str):
        raise ValueError(
            f"engine is {value!r}; use one of 'auto', 'local', 'dask', or "
            "skdare.engines.DaskEngine(client)"
        )
    check_choice("engine", value, _NAMES)


def needed_client(engine: DaskEngine) -> Any:
    """The client of an engine that was asked for."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError("engine='dask' needs Dask; pip install 'skdare[dask]'") from error
    if engine.client is None and _in_a_task():
        raise RuntimeError(
            "engine='dask' inside a task would wait for workers that wait for it; set "
            "engine='local' there"
        )
    client = engine.client
    if client is None:
        try:
            client = distributed.default_client()
        except ValueError as error:
            raise RuntimeError(f"engine='dask' needs a client in scope; {_START}") from error
    if not isinstance(client, distributed.Client):
        raise TypeError(f"client is a {type(client).__name__}; pass a distributed.Client")
    if client.asynchronous:
        raise RuntimeError(f"the client is asynchronous, and a fit waits for its passes; {_START}")
    if client.status != "running":
        raise RuntimeError(f"the client is {client.status}; {_START}")
    return client


def client_in_scope() -> Any | None:
    """The client that a program has made, if it has; Dask is not imported to look for one."""
    if "distributed" not in sys.modules:
        return None
    import distributed

    try:
        client = distributed.default_client()
    except ValueError:
        return None
    usable = client.status == "running" and not client.asynchronous and not _in_a_task()
    return client if usable else None


def _in_a_task() -> bool:
    import distributed

    try:
        distributed.get_worker()
    except ValueError:
        return False
    return True
