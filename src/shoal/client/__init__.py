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
    from shoal.client.work_queue import WorkQueue

_MODULE_OF = {
    "Access": "http.access",
    "Api": "port",
    "Clock": "clock",
    "Context": "context",
    "Controller": "context",
    "Deletion": "port",
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
    "Patch": "port",
    "Recorder": "recorder",
    "Select": "port",
    "Timing": "lease_lock",
    "WallClock": "clock",
    "WorkQueue": "work_queue",
    "locate": "http.locate",
    "run_controllers": "controller_process",
}
__all__ = [
    "Access",
    "Api",
    "Clock",
    "Context",
    "Controller",
    "Deletion",
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
    "Patch",
    "Recorder",
    "Select",
    "Timing",
    "WallClock",
    "WorkQueue",
    "locate",
    "run_controllers",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
