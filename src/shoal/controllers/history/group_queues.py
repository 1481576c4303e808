"""Follows the PodGroups of KAI and Volcano for the recorder: they say in which queue their pods are.

The queue of a group counts before what the labels of its pods say, as it does for the schedulers of both. Where a kind
is not served, its groups name no queue.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from shoal.api.wire import ApiStruct
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import KAI_POD_GROUPS, KAI_QUEUES, VOLCANO_POD_GROUPS, VOLCANO_QUEUES
from shoal.client.item import Item
from shoal.client.kind import Kind
from shoal.client.served import Served

_GROUPS = {KAI_QUEUES: KAI_POD_GROUPS, VOLCANO_QUEUES: VOLCANO_POD_GROUPS}


class _QueuedGroupSpec(ApiStruct, frozen=True):
    queue: str = ""


class _QueuedGroup(ApiStruct, frozen=True):
    spec: _QueuedGroupSpec = _QueuedGroupSpec()


class GroupQueues:
    def __init__(self, context: Context, served: Served, changed: Callable[[], None]) -> None:
        """`changed` is called whenever a group may have another queue."""
        self._context = context
        self._changed = changed
        self._queues: dict[Kind, dict[str, str]] = {kind: {} for kind in _GROUPS}
        for queues, groups in _GROUPS.items():
            served.when_there(groups, partial(self._follow, queues))

    def queue(self, kind: Kind, group: str) -> str:
        """The queue of that kind in which the group is; empty if there is none. `group`: namespace/name."""
        return self._queues[kind].get(group, "")

    def is_known(self, kind: Kind, group: str) -> bool:
        """Whether there is such a group, in a queue or in none."""
        return group in self._queues[kind]

    def _follow(self, queues: Kind, groups: Kind) -> None:
        self._context.informers.of(groups).on_change(partial(self._group_changed, self._queues[queues]))

    def _group_changed(self, queues: dict[str, str], before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is None:
            return
        key = f"{item.namespace}/{item.name}"
        had = queues.pop(key, None)
        try:
            named = "" if after is None else after.read(_QueuedGroup).spec.queue
        except msgspec.DecodeError:
            # A group of another form is in no queue, for the schedulers too.
            named = ""
        if after is not None:
            queues[key] = named
        # Pods that go on when their group is deleted keep its queue.
        if after is not None and named != had:
            self._changed()
