"""Removes finished pods from the claims that they used; an unused claim is deallocated or deleted.

A pod that is not in the cache is requested from the server before it counts as deleted: the claim may be newer than the
cache.
"""

from __future__ import annotations

from shoal.client.context import Context, Controller
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import PODS, RESOURCE_CLAIMS
from shoal.client.loop import Loop
from shoal.client.port import Deletion
from shoal.client.refusals import NotFoundError
from shoal.embedded.controllers.claim_templates.claim import PROTECTION, ClaimingPod, owner_of, without_consumers

_ASKS = b'"resourceClaims"'
_USES = b'"resourceClaimStatuses"'


def claim_controller(context: Context) -> Controller:
    return _Claims(context).loop


class _Claims:
    def __init__(self, context: Context) -> None:
        self._api = context.api
        self._pods = context.informers.of(PODS)
        self._claims = context.informers.of(RESOURCE_CLAIMS)
        self._by_pod = self._claims.index("claim-users", _users)
        self.loop = Loop(context, self._reconcile)
        self.loop.follow(RESOURCE_CLAIMS)
        self.loop.need(PODS)
        self._pods.on_change(self._pod_changed)

    def _pod_changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is None or (_ASKS not in item.data and _USES not in item.data):
            return
        if after is None or after.read(ClaimingPod).is_done:
            for claim in self._by_pod[item.uid]:
                self.loop.wake(claim.key)

    async def _reconcile(self, key: Key) -> None:
        item = self._claims.get(*key)
        if item is None:
            return
        claim = item.obj()
        users = (claim.get("status") or {}).get("reservedFor") or []
        gone = [one["uid"] for one in users if _is_pod(one) and await self._is_over(item.namespace, one)]
        status = without_consumers(claim, gone)
        if status is not None:
            claim["status"] = status
            claim = (await self._api.update(RESOURCE_CLAIMS, claim, "status")).obj()
        if (claim.get("status") or {}).get("reservedFor"):
            return
        is_free = not (claim.get("status") or {}).get("allocation")
        finalizers = claim["metadata"].get("finalizers") or []
        if is_free and PROTECTION in finalizers and (status is not None or "deletionTimestamp" in claim["metadata"]):
            claim["metadata"]["finalizers"] = [one for one in finalizers if one != PROTECTION]
            claim = (await self._api.update(RESOURCE_CLAIMS, claim)).obj()
        await self._delete_if_done(claim)

    async def _delete_if_done(self, claim: Obj) -> None:
        name, uid = owner_of(claim)
        meta = claim["metadata"]
        pod = self._pods.get(meta["namespace"], name) if name else None
        if pod is None or pod.uid != uid or not pod.read(ClaimingPod).is_done or "deletionTimestamp" in meta:
            # The garbage collector deletes the claim of a deleted pod.
            return
        await self._api.delete(RESOURCE_CLAIMS, meta["namespace"], meta["name"], Deletion(uid=meta["uid"]))

    async def _is_over(self, namespace: str, user: Obj) -> bool:
        item = self._pods.get(namespace, user["name"])
        if item is None or item.uid != user["uid"]:
            try:
                item = await self._api.get(PODS, namespace, user["name"])
            except NotFoundError:
                return True
        return item.uid != user["uid"] or item.read(ClaimingPod).is_done


def _is_pod(user: Obj) -> bool:
    return user["resource"] == "pods" and not user.get("apiGroup")


def _users(item: Item) -> list[str]:
    claim = item.obj()
    users = [one["uid"] for one in (claim.get("status") or {}).get("reservedFor") or ()]
    owner = owner_of(claim)[1]
    return [*users, owner] if owner and owner not in users else users
