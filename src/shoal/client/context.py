"""The dependencies of a controller: a client, caches, a clock, a random generator and an event recorder."""

from __future__ import annotations

import random
from collections.abc import Sized
from typing import Protocol

import msgspec

from shoal.client.clock import Clock
from shoal.client.informers import Informers
from shoal.client.port import Api
from shoal.client.recorder import Recorder


class Context(msgspec.Struct, frozen=True):
    name: str
    """The name of the controller as in Kubernetes: `job-controller`. The name of its user is derived from it."""
    api: Api
    """A write-through client: the results of its writes are in `informers` at once."""
    informers: Informers
    clock: Clock
    draw: random.Random
    events: Recorder
    lines: list[Sized] = msgspec.field(default_factory=list)
    """The work queues of the controller's loops."""


class Controller(Protocol):
    """`run` continues until it is cancelled, and resumes work after any failure of the server."""

    @property
    def name(self) -> str: ...

    async def run(self) -> None: ...
