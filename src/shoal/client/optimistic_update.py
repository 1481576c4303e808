"""Changes an object only in the version that was read; after a conflict it is read again.

It is for statuses that are computed again until they are right: a failed write is retried. A refusal repeats until a
permission is granted or a schema changes, so such an object is retried with increasing delays, without delaying others.

Rejected: trying everything again every second. One object that is refused would have all statuses worked out, and the
same refusal logged, for as long as the process lives.
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
"""By which a timer may ring too soon."""
_Door = tuple[str, str]


class OptimisticUpdate:
    """`again` is called when it is time to try once more what was refused."""

    def __init__(self, api: Api, clock: Clock, again: Callable[[], None]) -> None:
        self._api = api
        self._clock = clock
        self._again = again
        self._refused: dict[_Door, tuple[float, float]] = {}
        """By uid and subresource: when to try again, and how long the wait for that is."""

    async def merged(self, kind: Kind, item: Item, body: Obj, subresource: str = "") -> bool:
        """`body` is merged into the object, should it still be what `item` is. False where it is not, so that it has to
        be worked out anew; what was refused waits for its time."""
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
        # An object that was not tried when it was due is gone.
        for old in [one for one, (due_s, _) in self._refused.items() if due_s + _LONGEST_S < now_s]:
            del self._refused[old]
        self._refused[key] = now_s + wait_s, wait_s
        self._clock.call_later(wait_s, self._again)
