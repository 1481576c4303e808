"""Reads how far each NodePool is managed, and writes what is wrong with a pool and what it has into its status."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from shoal.api.node import Node
from shoal.api.resources import amounts
from shoal.autoscale.node_claims.pool_refusals import PoolRefusals
from shoal.autoscale.nodes.catalog import quantities_of
from shoal.autoscale.nodes.pool_modes import PoolMode, pool_mode
from shoal.autoscale.requirements.labels import POOL_LABEL
from shoal.client.context import Context
from shoal.client.item import Item, Obj
from shoal.client.kind import Kind
from shoal.client.kubelet.times import written
from shoal.client.port import Patch
from shoal.controllers.node_scaling.claim_events import pool_reference
from shoal.units.errors import UserError

_COUNTED: Final = ("cpu", "memory", "nvidia.com/gpu", "amd.com/gpu")


class _PoolMeta(msgspec.Struct):
    annotations: dict[str, str] = {}


class _Pool(msgspec.Struct):
    metadata: _PoolMeta = msgspec.field(default_factory=_PoolMeta)


def mode_of(item: Item) -> PoolMode:
    return pool_mode(item.read(_Pool).metadata.annotations)


def node_class_of(item: Item) -> str:
    """The name of the node class of a pool; empty if it has none."""
    found = ((item.obj()["spec"].get("template") or {}).get("spec") or {}).get("nodeClassRef") or {}
    return str(found.get("name") or "")


class PoolStatuses:
    def __init__(self, context: Context, pools: Kind, refusals: PoolRefusals) -> None:
        self._context = context
        self._refusals = refusals
        self._kind = pools

    async def write(self, pools: Iterable[Item], nodes: Sequence[Node], errors: Sequence[UserError]) -> None:
        """Of all pools, where it differs from what is there."""
        faults = {error.where.obj.rpartition(" ")[2]: str(error) for error in errors}
        by_pool: dict[str, list[Node]] = {}
        for node in nodes:
            by_pool.setdefault(node.metadata.labels.get(POOL_LABEL, ""), []).append(node)
        for item in tuple(pools):
            await self._write(item, _resources(by_pool.get(item.name, ())), faults.get(item.name, ""))

    async def _write(self, item: Item, resources: Mapping[str, str], fault: str) -> None:
        before: Obj = item.obj().get("status") or {}
        now = written(self._context.clock.seconds())
        conditions: dict[str, Obj] = {each["type"]: each for each in before.get("conditions") or ()}
        state = ("False", "Invalid", fault) if fault else ("True", "Valid", "")
        _set(conditions, "ValidationSucceeded", state, now)
        refused = self._refusals.words(item.name, node_class_of(item))
        _set(conditions, "Ready", ("False", "LaunchRefused", refused) if refused and not fault else state, now)
        status: Obj = {"conditions": list(conditions.values()), "resources": dict(resources)}
        if status == {key: before.get(key) for key in status}:
            return
        # A merge patch leaves a resource that is gone; a null removes it.
        gone = (before.get("resources") or {}).keys() - resources.keys()
        body = {**status, "resources": {**resources, **dict.fromkeys(gone)}}
        patch = Patch("merge", {"metadata": {"uid": item.uid}, "status": body})
        await self._context.api.patch(self._kind, "", item.name, patch, "status")
        if fault:
            self._context.events.record(pool_reference(item), "Invalid", fault, type_="Warning")


def _set(conditions: dict[str, Obj], type_: str, state: tuple[str, str, str], now: str) -> None:
    status, reason, message = state
    old = conditions.get(type_)
    if old is not None and (old["status"], old.get("reason"), old.get("message", "")) == state:
        return
    since = old["lastTransitionTime"] if old is not None and old["status"] == status else now
    conditions[type_] = {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }


def _resources(nodes: Sequence[Node]) -> dict[str, str]:
    total: dict[str, int] = {}
    for node in nodes:
        there = amounts(node.status.capacity)
        for name in _COUNTED:
            if there.get(name):
                total[name] = total.get(name, 0) + there[name]
    return {"nodes": str(len(nodes)), **{name: str(each) for name, each in quantities_of(total).items()}}
