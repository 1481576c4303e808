"""Holds the caches of one process: one informer for each kind, shared by all users of that kind."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable

from shoal.client.clock import Clock
from shoal.client.informer import Informer
from shoal.client.kind import Kind
from shoal.client.outage import Outage
from shoal.client.port import Api


class Informers:
    """`of` requests a kind; `run` follows the requested kinds, including kinds that are requested later."""

    def __init__(self, api: Api, clock: Clock, draw: random.Random, outage: Outage | None = None) -> None:
        self._api = api
        self._clock = clock
        self._draw = draw
        self._informers: dict[Kind, Informer] = {}
        self.outage = outage or Outage()
        """The outage reporter of the common server."""
        self._group: asyncio.TaskGroup | None = None

    def of(self, kind: Kind) -> Informer:
        found = self._informers.get(kind)
        if found is None:
            found = self._informers[kind] = Informer(self._api, kind, self._clock, self._draw, outage=self.outage)
            if self._group is not None:
                self._group.create_task(found.run())
        return found

    def known(self, kind: Kind) -> Informer | None:
        return self._informers.get(kind)

    async def synced(self, kinds: Iterable[Kind] = ()) -> None:
        """Waits for all informers, or those of these kinds."""
        for informer in [self.of(kind) for kind in kinds] or list(self._informers.values()):
            await informer.synced()

    async def run(self) -> None:
        """Runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for informer in list(self._informers.values()):
                    group.create_task(informer.run())
                await asyncio.Event().wait()
            finally:
                self._group = None
