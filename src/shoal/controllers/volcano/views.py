"""Decodes the views of queues, pod groups and pods that these controllers read, once per version of an object.

The view of an object that cannot be decoded is None: the controller reports the object where it matters, and the
object blocks no other.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from shoal.api.wire import dec_hook
from shoal.client.item import Item
from shoal.engine.queues.disciplines.volcano.objects import GroupPod, Queue, QueuedPodGroup

T = TypeVar("T")


class ViewReader(Generic[T]):
    """Decodes each version of an object once. The caller must not change the result."""

    def __init__(self, what: type[T]) -> None:
        self._decoder = msgspec.json.Decoder(what, dec_hook=dec_hook)
        self._known: WeakKeyDictionary[Item, T | None] = WeakKeyDictionary()

    def __call__(self, item: Item) -> T | None:
        if item in self._known:
            return self._known[item]
        found = self._known[item] = self._read(item)
        return found

    def fault(self, item: Item) -> str:
        """Why the object cannot be decoded."""
        try:
            self._decoder.decode(item.data)
        except (msgspec.DecodeError, ValueError) as error:
            return str(error)
        return ""

    def _read(self, item: Item) -> T | None:
        try:
            return self._decoder.decode(item.data)
        except (msgspec.DecodeError, ValueError):
            # Objects written by hand often have `null` for absent fields.
            return self._without_nulls(item)

    def _without_nulls(self, item: Item) -> T | None:
        try:
            plain: Any = _without_nulls(msgspec.json.decode(item.data))
            return self._decoder.decode(msgspec.json.encode(plain))
        except (msgspec.DecodeError, ValueError):
            return None


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


pod_of = ViewReader(GroupPod)
group_of = ViewReader(QueuedPodGroup)
queue_of = ViewReader(Queue)
