"""Removes instances that belong to no NodeClaim."""

from __future__ import annotations

import logging
from typing import Final

from shoal.client.context import Context
from shoal.cloud.port import GROUP_TAG, POOL_TAG, Cloud
from shoal.controllers.node_scaling.figures import NodeScalingObserver
from shoal.controllers.node_scaling.world import World

_log = logging.getLogger("shoal.nodes")
_ORPHAN_S: Final = 60.0
"""How old an instance without a NodeClaim must be before it is removed, and when a removal is tried again."""


class Orphans:
    def __init__(self, context: Context, cloud: Cloud, observer: NodeScalingObserver) -> None:
        self._context = context
        self._cloud = cloud
        self._observer = observer
        self._leaving: dict[str, str] = {}
        """The pools of the instances whose removal was requested, by id. Some clouds take until the machine exists."""

    async def are_there(self) -> bool:
        """Whether the cloud has instances of Shoal, whatever they belong to."""
        return any(GROUP_TAG in each.tags for each in await self._cloud.instances())

    async def remove(self, world: World) -> float | None:
        """Remove instances that belong to no NodeClaim, and that no launch in progress can still want. Returns the
        seconds after which it has to be called again.
        """
        now_s = self._context.clock.seconds()
        self._count_gone({each.id for each in world.instances.values()})
        owned = {claim.provider_id for claim in world.claims if claim.provider_id}
        launching = {claim.group for claim in world.claims if not claim.provider_id}
        unowned = [
            instance
            for instance in world.instances.values()
            if GROUP_TAG in instance.tags
            and instance.provider_id not in owned
            and instance.tags[GROUP_TAG] not in launching
        ]
        orphans = [instance for instance in unowned if now_s - instance.created_s >= _ORPHAN_S]
        if new := [each for each in orphans if each.id not in self._leaving]:
            _log.warning("instances without a NodeClaim are removed: %s", ", ".join(each.id for each in new))
        if orphans:
            self._leaving |= {each.id: each.tags.get(POOL_TAG, "") for each in orphans}
            await self._cloud.delete([each.id for each in orphans])
        young = [each.created_s + _ORPHAN_S - now_s for each in unowned if each not in orphans]
        return min([*young, *([_ORPHAN_S] if orphans else [])], default=None)

    def _count_gone(self, there: set[str]) -> None:
        for each in self._leaving.keys() - there:
            self._observer.removed(self._leaving.pop(each), "orphaned")
