"""Detects which optional kinds are served, and in which version; repeated now and then, because users install things
later.

A kind that is installed later is reported then. A kind that is removed stays followed: its informer waits. An error in
one callback does not affect the others, and the callback is called again at the next look.

Rejected: following definitions of custom resources. Aggregated kinds have none, not every user may read them, and they
are the largest objects of a cluster; what a server serves is one small document, asked for while something is missing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from shoal.client.context import Context
from shoal.client.kind import Kind
from shoal.client.port import Api, ServedKind, SilentGroupError
from shoal.units.errors import ShoalError

_log = logging.getLogger("shoal.store")
_EVERY_S = 4.0
Then = Callable[[Kind], None]
"""Called with the kind in the version that is served."""


class Served:
    def __init__(self, context: Context, every_s: float = _EVERY_S) -> None:
        self._context = context
        self._every_s = every_s
        self._wanted: list[tuple[tuple[Kind, ...], list[Then]]] = []
        self._found: dict[Kind, Kind] = {}
        self._untold: list[tuple[Kind, Then]] = []

    def when_there(self, kind: Kind, then: Then | None = None, *others: Kind) -> None:
        """`others` are older versions that will do. Called before the first `look`, or at any time."""
        candidates = (kind, *others)
        for known, thens in self._wanted:
            if known[0] == kind:
                if then is not None:
                    thens.append(then)
                    if kind in self._found:
                        then(self._found[kind])
                return
        self._wanted.append((candidates, [] if then is None else [then]))

    def find(self, kind: Kind) -> Kind | None:
        """As it is served, as far as is known."""
        return self._found.get(kind)

    def missing(self) -> list[Kind]:
        return [candidates[0] for candidates, _ in self._wanted if candidates[0] not in self._found]

    async def look(self) -> None:
        """Ask once; a failure of the server leaves everything as it is known."""
        if self.missing():
            await self._find()
        # A callback for one kind may ask for another that was installed with it.
        untold, self._untold = self._untold, []
        for found, then in untold:
            try:
                then(found)
            except Exception:  # noqa: BLE001 - those who are still to be told would never hear of what is there
                _log.exception("%s could not be begun with", found.plural)
                self._untold.append((found, then))

    async def _find(self) -> None:
        there = {(one.kind.group, one.kind.plural): one.versions for one in await answering(self._context.api)}
        for candidates, thens in self._wanted:
            first = candidates[0]
            versions = there.get((first.group, first.plural), ())
            found = next((kind for kind in candidates if kind.version in versions), None)
            if found is not None and first not in self._found:
                self._found[first] = found
                self._untold += [(found, then) for then in thens]

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self.look()
            except ShoalError as error:
                _log.info("the server's kinds cannot be read: %s", error)
            await self._context.clock.sleep(self._every_s)


async def answering(api: Api) -> tuple[ServedKind, ...]:
    """What is served by all who answer. One aggregated API that is broken, as that of metrics often is, says nothing
    about the others."""
    try:
        return await api.served()
    except SilentGroupError as error:
        return error.served
