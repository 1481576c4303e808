"""Detects which optional kinds are served, and in which version; repeated now and then, because users install things
later.

A kind that is installed later is reported then. A removed kind stays followed: its informer waits. An error in one
callback does not affect the others, and the callback is called again at the next check.

Rejected: following definitions of custom resources. Aggregated kinds have none, not every user may read them, and they
are the largest objects of a cluster; the served resources are one small document, which is requested while a kind is
missing.
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
        """`others`: older versions that are acceptable. May be called before the first `look` or later."""
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
        """The served version of the kind, as far as it is known."""
        return self._found.get(kind)

    def missing(self) -> list[Kind]:
        return [candidates[0] for candidates, _ in self._wanted if candidates[0] not in self._found]

    async def look(self) -> None:
        """Check once; a failure of the server changes nothing."""
        if self.missing():
            await self._find()
        # A callback for one kind may ask for another that was installed with it.
        untold, self._untold = self._untold, []
        for found, then in untold:
            try:
                then(found)
            except Exception:  # noqa: BLE001 - the remaining callbacks must still be called
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
        """Runs until cancelled."""
        while True:
            try:
                await self.look()
            except ShoalError as error:
                _log.info("the server's kinds cannot be read: %s", error)
            await self._context.clock.sleep(self._every_s)


async def answering(api: Api) -> tuple[ServedKind, ...]:
    """The kinds of all APIs that answer. A broken aggregated API, often that of metrics, does not affect the others."""
    try:
        return await api.served()
    except SilentGroupError as error:
        return error.served
