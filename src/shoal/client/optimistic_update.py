"""Changes an object only in the version that was read; after a conflict the object is read again.

It is for statuses that are computed again until they are written: a failed write is retried. A refusal repeats until a
permission is granted or a schema changes, so such an object is retried with increasing delays, without a delay of
others.

Rejected: retrying all objects every second. Because of one refused object all statuses would be computed, and the same
refusal logged, until the process ends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from shoal.client.clock import Clock
from shoal.client.item import Item, Obj
from shoal.client.kind import Kind
from shoal.client.port import Api, Patch
from shoal.client.refusals import NotFoundError
from shoal.units.errors import ConflictError, ShoalError

_log = logging.getLogger("shoal.store")
_SHORTEST_S, _LONGEST_S = 1.0, 300.0
_EARLY_S = 0.01
"""The time by which a timer may fire too early."""
_Door = tuple[str, str]


class OptimisticUpdate:
    """`again` is called when a refused write is due for a retry."""

    def __init__(self, api: Api, clock: Clock, again: Callable[[], None]) -> None:
        self._api = api
        self._clock = clock
        self._again = again
        self._refused: dict[_Door, tuple[float, float]] = {}
        """By uid and subresource: the time of the next try, and its delay."""

    async def merged(self, kind: Kind, item: Item, body: Obj, subresource: str = "") -> bool:
        """Merge `body` into the object if its version is still that of `item`. Returns False if it is not, so that the
        body must be computed again. A refused write waits for its retry.
        """
        key = (item.uid, subresource)
        due_s, waited_s = self._refused.get(key, (0.0, 0.0))
        if self._clock.seconds() < due_s - _EARLY_S:
            return True
        guard = {"resourceVersion": str(item.version), "uid": item.uid}
        patch = Patch("merge", {**body, "metadata": {**guard, **body.get("metadata", {})}})
        try:
            await self._api.patch(kind, item.namespace, item.name, patch, subresource)
        except ConflictError:
            return False
        except NotFoundError:
            self._refused.pop(key, None)
        except ShoalError as error:
            self._wait(key, min(max(2 * waited_s, _SHORTEST_S), _LONGEST_S))
            _log.info("%s %s could not be written: %s", kind.name, item.name, error)
        else:
            self._refused.pop(key, None)
        return True

    def _wait(self, key: _Door, wait_s: float) -> None:
        now_s = self._clock.seconds()
        # An object that was not retried when due was deleted.
        for old in [one for one, (due_s, _) in self._refused.items() if due_s + _LONGEST_S < now_s]:
            del self._refused[old]
        self._refused[key] = now_s + wait_s, wait_s
        self._clock.call_later(wait_s, self._again)
