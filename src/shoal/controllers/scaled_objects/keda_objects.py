"""The loop of the controllers of KEDA's kinds: which changes count, when KEDA runs itself, status and Events.

KEDA's conditions have no times.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from shoal.api.conditions import Condition
from shoal.client.context import Context
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import Kind
from shoal.client.loop import Loop

LOOK_AGAIN_S = 60.0
IsRunning = Callable[[], Awaitable[bool]]
"""Whether KEDA itself runs in the cluster."""
ReconcileObject = Callable[[Key, Obj], Awaitable[float | None]]


class KedaObjects:
    """The objects of one kind."""

    def __init__(self, context: Context, kind: Kind, keda_runs: IsRunning, reconcile: ReconcileObject) -> None:
        self._context = context
        self._kind = kind
        self._keda_runs = keda_runs
        self._reconcile_object = reconcile
        self._forgetting: list[Callable[[Key], None]] = []
        self._items = context.informers.of(kind)
        self._loop = Loop(context, self._reconcile)
        self._loop.need(kind)
        self._items.on_change(self._changed)

    async def run(self) -> None:
        await self._loop.run()

    def need(self, *kinds: Kind) -> None:
        """Kinds that are read besides."""
        self._loop.need(*kinds)

    def on_end(self, forget: Callable[[Key], None]) -> None:
        self._forgetting.append(forget)

    def _changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is not None and (before is None or after is None or _wanted(before) != _wanted(after)):
            self._loop.wake(item.key)

    async def _reconcile(self, key: Key) -> float | None:
        item = self._items.get(*key)
        if item is None:
            for forget in self._forgetting:
                forget(key)
            return None
        if await self._keda_runs():
            return LOOK_AGAIN_S
        return await self._reconcile_object(
            key, {**item.obj(), "kind": self._kind.name, "apiVersion": self._kind.api_version}
        )

    async def write(self, obj: Obj, fields: Obj, conditions: Sequence[Condition]) -> None:
        """The status: `fields` and `conditions` replace those of the same name."""
        before = obj.get("status") or {}
        status = {key: value for key, value in {**before, **fields}.items() if value not in (None, "", {})}
        status["conditions"] = _merged(before.get("conditions") or (), conditions)
        if status != before:
            await self._context.api.update(self._kind, {**obj, "status": status}, "status")

    def event(self, obj: Obj, reason: str, words: str, *, is_warning: bool = False) -> None:
        self._context.events.record(obj, reason, words, type_="Warning" if is_warning else "Normal")


def _wanted(item: Item) -> object:
    """What a controller follows: everything but the status."""
    obj = item.obj()
    meta = obj["metadata"]
    return obj.get("spec"), meta.get("annotations"), meta.get("deletionTimestamp"), meta.get("finalizers")


def _merged(before: Sequence[Obj], changed: Sequence[Condition]) -> list[Obj]:
    found = {str(one.get("type")): one for one in before}
    for one in changed:
        found[one.type] = {"type": one.type, "status": one.status, "reason": one.reason, "message": one.message}
    return list(found.values())
