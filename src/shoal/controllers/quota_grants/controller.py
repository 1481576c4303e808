"""Ends grants of more quota when their time is over.

Guarantees: a clock that jumps for a moment ends no grant: a grant counts as over only if the clock says so twice, and
advanced between the two looks as much as the process waited. A clock that jumps back delays an end and does nothing
else. What was ended is in an Event and in the ResourceQuota.

Rejected: an end at the moment that a timer was set for. The timer would run by the clock of its start, and a clock that
was corrected since would not count.
"""

from __future__ import annotations

import asyncio
import logging

from shoal.client.context import Context, Controller
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import RESOURCE_QUOTAS, Kind
from shoal.client.loop import Loop
from shoal.client.served import Served
from shoal.controllers.quota_grants.ending import end_grant
from shoal.policy.tenants.grants import ENDED, QuotaGrant, ended_words, grant_of, is_over, seconds_left
from shoal.policy.tenants.labels import MANAGED_BY, MANAGER, QUOTA

_log = logging.getLogger("shoal.controllers")
_NAME = "shoal run"
_HEAD = {"apiVersion": "v1", "kind": "ResourceQuota"}
_CONFIRM_S, _STEADY_S = 30.0, 5.0
_LONGEST_S = 600.0
"""Between two looks, so that a clock that was corrected counts soon."""


def quota_grants_controller(context: Context, served: Served) -> Controller:
    """The caller refreshes `served`."""
    return QuotaGrants(context, served)


class QuotaGrants:
    def __init__(self, context: Context, served: Served) -> None:
        self.name = context.name
        self._context = context
        self._queues: Kind | None = None
        self._quotas = context.informers.of(RESOURCE_QUOTAS)
        self._loop = Loop(context, self._reconcile)
        self._loop.follow(RESOURCE_QUOTAS, _of_team, only_latest=True)
        older = CLUSTER_QUEUES._replace(version="v1beta1")
        served.when_there(CLUSTER_QUEUES, self._found, older)

    def _found(self, queues: Kind) -> None:
        self._queues = queues

    async def run(self) -> None:
        await self._loop.run()

    async def _reconcile(self, key: Key) -> float | None:
        quota, grant = self._granted(key)
        if grant is None:
            return None
        left_s = seconds_left(grant, self._context.clock.seconds())
        if left_s is None:
            return None
        if left_s > 0:
            return min(left_s, _LONGEST_S)
        if not await self._is_steady():
            _log.warning("the clock jumped; the grant in %s/%s is looked at again", *key)
            return 1.0
        quota, grant = self._granted(key)
        clock = self._context.clock
        if quota is None or grant is None or not is_over(grant, clock.seconds()):
            return 1.0
        if not await end_grant(self._context.api, self._queues, quota, grant, (_NAME, clock.text())):
            return 1.0
        self._context.events.record({**quota, **_HEAD}, ENDED, ended_words(grant))
        return None

    def _granted(self, key: Key) -> tuple[Obj | None, QuotaGrant | None]:
        item = self._quotas.get(*key)
        if item is None:
            return None, None
        quota = item.obj()
        return quota, grant_of(quota)

    async def _is_steady(self) -> bool:
        """Whether the clock advances as time passes, for half a minute."""
        clock = self._context.clock
        before = clock.seconds()
        await clock.sleep(_CONFIRM_S)
        await asyncio.sleep(0)
        return abs(clock.seconds() - before - _CONFIRM_S) < _STEADY_S


def _of_team(item: Item) -> list[Key]:
    is_own = item.name == QUOTA and (item.obj()["metadata"].get("labels") or {}).get(MANAGED_BY) == MANAGER
    return [item.key] if is_own else []
