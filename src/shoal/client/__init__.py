"""The Kubernetes client and controller toolkit: requests, watch caches, work queues, leader election and retries.

`port.py` defines the requests as a protocol. `http/` sends them to any API server;
`embedded/apiserver/inside` calls the embedded one in the same process.

`__all__` is the public API; docs/client.md lists the same names. They load on first use: a command that needs one
module of the client does not import the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.client.clock import Clock, WallClock
    from shoal.client.context import Context, Controller
    from shoal.client.controller_process import run_controllers
    from shoal.client.election import LeaderElection
    from shoal.client.http.access import Access
    from shoal.client.http.api import KubeApi
    from shoal.client.http.locate import locate
    from shoal.client.http.settings import KubeSettings
    from shoal.client.index import Index
    from shoal.client.informer import Informer
    from shoal.client.informers import Informers
    from shoal.client.item import Item, Key
    from shoal.client.kind import Kind
    from shoal.client.lease_lock import Lock, Timing
    from shoal.client.loop import Loop
    from shoal.client.port import Api, Deletion, Patch, Select
    from shoal.client.recorder import Recorder
    from shoal.client.refusals import AlreadyExistsError, ForbiddenError, NotFoundError, RefusedError
    from shoal.client.work_queue import WorkQueue
    from shoal.units.errors import ConflictError, TemporaryError

_MODULE_OF = {
    "Access": "http.access",
    "AlreadyExistsError": "refusals",
    "Api": "port",
    "Clock": "clock",
    "ConflictError": "shoal.units.errors",
    "Context": "context",
    "Controller": "context",
    "Deletion": "port",
    "ForbiddenError": "refusals",
    "Index": "index",
    "Informer": "informer",
    "Informers": "informers",
    "Item": "item",
    "Key": "item",
    "Kind": "kind",
    "KubeApi": "http.api",
    "KubeSettings": "http.settings",
    "LeaderElection": "election",
    "Lock": "lease_lock",
    "Loop": "loop",
    "NotFoundError": "refusals",
    "Patch": "port",
    "Recorder": "recorder",
    "RefusedError": "refusals",
    "Select": "port",
    "TemporaryError": "shoal.units.errors",
    "Timing": "lease_lock",
    "WallClock": "clock",
    "WorkQueue": "work_queue",
    "locate": "http.locate",
    "run_controllers": "controller_process",
}
__all__ = [
    "Access",
    "AlreadyExistsError",
    "Api",
    "Clock",
    "ConflictError",
    "Context",
    "Controller",
    "Deletion",
    "ForbiddenError",
    "Index",
    "Informer",
    "Informers",
    "Item",
    "Key",
    "Kind",
    "KubeApi",
    "KubeSettings",
    "LeaderElection",
    "Lock",
    "Loop",
    "NotFoundError",
    "Patch",
    "Recorder",
    "RefusedError",
    "Select",
    "TemporaryError",
    "Timing",
    "WallClock",
    "WorkQueue",
    "locate",
    "run_controllers",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULE_OF[name]
    return getattr(import_module(module if module.startswith("shoal.") else f"{__name__}.{module}"), name)
