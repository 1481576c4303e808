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
    """Of the controller, as Kubernetes calls it: `job-controller`. Its user is made of it."""
    api: Api
    """Learning: what is written through it stands in `informers` at once."""
    informers: Informers
    clock: Clock
    draw: random.Random
    events: Recorder
    lines: list[Sized] = msgspec.field(default_factory=list)
    """What waits to be looked at, of each loop of the controller."""


class Controller(Protocol):
    """`run` goes on until it is cancelled and comes back to work after any failure of the server."""

    @property
    def name(self) -> str: ...

    async def run(self) -> None: ...
