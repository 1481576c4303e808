"""Decodes KAI's queues, PodGroups and priority classes from cached objects.

The result for an object that cannot be decoded is None.
"""

from __future__ import annotations

import msgspec

from shoal.client.item import Item
from shoal.engine.queues.disciplines.kai.objects import KaiPodGroup, Queue


class PriorityClass(msgspec.Struct, frozen=True):
    value: int = 0


_queues = msgspec.json.Decoder(Queue)
_groups = msgspec.json.Decoder(KaiPodGroup)
_classes = msgspec.json.Decoder(PriorityClass)


def queue_of(item: Item) -> Queue | None:
    try:
        return _queues.decode(item.data)
    except msgspec.DecodeError:
        return None


def group_of(item: Item) -> KaiPodGroup | None:
    try:
        return _groups.decode(item.data)
    except msgspec.DecodeError:
        return None


def priority_of(item: Item) -> int | None:
    try:
        return _classes.decode(item.data).value
    except msgspec.DecodeError:
        return None
