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
"""How old an instance without a NodeClaim must be before it is removed."""


async def remove_orphans(context: Context, cloud: Cloud, world: World, observer: NodeScalingObserver) -> float | None:
    """Remove instances that belong to no NodeClaim, and that no launch in progress can still want. Returns the seconds
    until another one is old enough.
    """
    now_s = context.clock.seconds()
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
    if orphans:
        _log.warning("instances without a NodeClaim are removed: %s", ", ".join(each.id for each in orphans))
        await cloud.delete([each.id for each in orphans])
    for each in orphans:
        observer.removed(each.tags.get(POOL_TAG, ""), "orphaned")
    young = [each.created_s + _ORPHAN_S - now_s for each in unowned if each not in orphans]
    return min(young, default=None)
