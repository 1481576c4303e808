"""Reconciles terminating namespaces: deletes their content, reports what is left, and removes the finalizer when they
are empty.

The checks are repeated with increasing delays, up to half of the estimated time of the slowest object. Only their
number is kept between two checks, so that a restarted controller continues from the existing objects.
"""

from __future__ import annotations

from shoal.client.context import Context, Controller
from shoal.client.item import Item, Key
from shoal.client.kind import NAMESPACES
from shoal.client.loop import Loop
from shoal.client.refusals import NotFoundError
from shoal.embedded.controllers.namespaces.content_deletion import ContentDeletion
from shoal.embedded.controllers.namespaces.remaining_content import conditions

_KEEPER = "kubernetes"
_FIRST_S = 0.25
_MOST_DOUBLINGS = 8


def namespace_controller(context: Context) -> Controller:
    api, namespaces = context.api, context.informers.of(NAMESPACES)
    content_deletion = ContentDeletion(api)
    looks: dict[str, int] = {}

    async def reconcile(key: Key) -> float | None:
        item = namespaces.get(*key)
        if item is None or b'"deletionTimestamp"' not in item.data:
            looks.pop(key[1], None)
            return None
        obj = item.obj()
        if _KEEPER not in (obj.get("spec") or {}).get("finalizers", ()) or "deletionTimestamp" not in obj["metadata"]:
            return None
        remaining = await content_deletion.empty(item.name)
        present = obj.setdefault("status", {}).get("conditions") or []
        wanted = conditions(present, remaining, context.clock.text())
        if wanted != present:
            obj["status"] |= {"conditions": wanted, "phase": "Terminating"}
            item = await api.update(NAMESPACES, obj, "status")
        if remaining.is_empty:
            await _let_go(item)
            looks.pop(key[1], None)
            return None
        tries = looks[key[1]] = looks.get(key[1], -1) + 1
        return min(_FIRST_S * float(1 << min(tries, _MOST_DOUBLINGS)), remaining.estimate_s / 2 + 1)

    async def _let_go(item: Item) -> None:
        obj = item.obj()
        obj["spec"]["finalizers"] = [one for one in obj["spec"]["finalizers"] if one != _KEEPER]
        try:
            await api.update(NAMESPACES, obj, "finalize")
        except NotFoundError:
            return

    loop = Loop(context, reconcile, workers=10)
    loop.follow(NAMESPACES)
    return loop
