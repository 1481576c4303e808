"""Writes NodeClaims and the Nodes that belong to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from shoal.autoscale.node_claims.claim import DISRUPTED_TAINT, FINALIZER, NodeClaim
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import NODE_CLAIMS
from shoal.client.item import Item, Obj
from shoal.client.kind import NODES
from shoal.client.kubelet.times import written
from shoal.client.port import Deletion, Patch
from shoal.client.refusals import AlreadyExistsError, NotFoundError

_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_TRIES: Final = 5
_READY_NEEDS: Final = ("Launched", "Registered", "Initialized")

SetCondition = tuple[str, Literal["True", "False", "Unknown"], str, str]
"""Type, status, reason and message."""


class ClaimWriter:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._claims = context.informers.of(NODE_CLAIMS)
        self._nodes = context.informers.of(NODES)

    def new_token(self) -> str:
        return f"{self._context.draw.getrandbits(64):016x}"

    def new_name(self, pool: str) -> str:
        return f"{pool}-{''.join(self._context.draw.choices(_LETTERS, k=5))}"

    async def create(self, claim: Obj, pool: str) -> Item:
        """A name that is taken is drawn again."""
        for _ in range(_TRIES):
            try:
                return await self._context.api.create(NODE_CLAIMS, claim)
            except AlreadyExistsError:
                claim["metadata"]["name"] = self.new_name(pool)
        return await self._context.api.create(NODE_CLAIMS, claim)

    async def set_conditions(self, name: str, changed: Sequence[SetCondition], status: Mapping[str, Any] = {}) -> None:
        """Write conditions, and further fields of the status, if anything differs from what is there."""
        item = self._claims.get("", name)
        if item is None:
            return
        raw = item.obj()
        before: Obj = raw.get("status") or {}
        conditions = _merged(before.get("conditions") or (), changed, written(self._context.clock.seconds()))
        body: Obj = {key: value for key, value in status.items() if before.get(key) != value}
        if conditions != (before.get("conditions") or []):
            body["conditions"] = conditions
        if body:
            patch = Patch("merge", {"metadata": {"uid": item.uid}, "status": body})
            await self._context.api.patch(NODE_CLAIMS, "", name, patch, "status")

    async def annotate(self, claim: NodeClaim, annotations: Mapping[str, str | None]) -> None:
        await self._patch_claim(claim, {"annotations": dict(annotations)})

    async def delete(self, claim: NodeClaim) -> None:
        """Request the deletion; the claim stays until its node and instance are gone."""
        try:
            await self._context.api.delete(NODE_CLAIMS, "", claim.name, Deletion(uid=claim.uid))
        except NotFoundError:
            return

    async def release(self, claim: NodeClaim) -> None:
        """Remove the finalizer: nothing is left of the node."""
        item = self._claims.get("", claim.name)
        if item is None or item.uid != claim.uid:
            return
        others = [each for each in item.obj()["metadata"].get("finalizers") or () if each != FINALIZER]
        try:
            await self._patch_claim(claim, {"finalizers": others or None})
        except NotFoundError:
            return

    async def _patch_claim(self, claim: NodeClaim, metadata: Obj) -> None:
        patch = Patch("merge", {"metadata": {"uid": claim.uid, **metadata}})
        await self._context.api.patch(NODE_CLAIMS, "", claim.name, patch)

    # -- nodes --------------------------------------------------------------------------------------------------------

    async def patch_node(self, item: Item, metadata: Obj, spec: Obj | None = None) -> None:
        """A list that is written as a whole is not written over a later one."""
        meta = {"uid": item.uid, "resourceVersion": str(item.version), **metadata}
        await self._context.api.patch(NODES, "", item.name, Patch("merge", {"metadata": meta, "spec": spec or {}}))

    async def taint_disrupted(self, name: str, *, is_disrupted: bool) -> None:
        """No new pods on a node that is going to be removed."""
        item = self._nodes.get("", name)
        if item is None:
            return
        taints: list[Obj] = item.obj()["spec"].get("taints") or []
        others = [each for each in taints if each["key"] != DISRUPTED_TAINT]
        if is_disrupted == (len(others) < len(taints)):
            return
        wanted = [*others, {"key": DISRUPTED_TAINT, "effect": "NoSchedule"}] if is_disrupted else others
        await self.patch_node(item, {}, {"taints": wanted})

    async def remove_node(self, name: str) -> None:
        """Its machine is gone."""
        item = self._nodes.get("", name)
        if item is None:
            return
        finalizers = item.obj()["metadata"].get("finalizers") or ()
        try:
            if FINALIZER in finalizers:
                others = [each for each in finalizers if each != FINALIZER]
                meta = {"uid": item.uid, "finalizers": others or None}
                await self._context.api.patch(NODES, "", name, Patch("merge", {"metadata": meta}))
            await self._context.api.delete(NODES, "", name, Deletion(uid=item.uid))
        except NotFoundError:
            return


def _merged(before: Iterable[Obj], changed: Sequence[SetCondition], now: str) -> list[Obj]:
    """Ready follows from the conditions that it needs."""
    found: dict[str, Obj] = {each["type"]: each for each in before}
    for type_, status, reason, message in changed:
        _set(found, (type_, status, reason, message), now)
    missing = [name for name in _READY_NEEDS if found.get(name, {}).get("status") != "True"]
    if missing:
        _set(found, ("Ready", "False", f"Not{missing[0]}", found.get(missing[0], {}).get("message", "")), now)
    else:
        _set(found, ("Ready", "True", "Ready", ""), now)
    return list(found.values())


def _set(found: dict[str, Obj], wanted: SetCondition, now: str) -> None:
    type_, status, reason, message = wanted
    old = found.get(type_)
    if old is not None and (old["status"], old.get("reason"), old.get("message", "")) == (status, reason, message):
        return
    since = old["lastTransitionTime"] if old is not None and old["status"] == status else now
    found[type_] = {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }
