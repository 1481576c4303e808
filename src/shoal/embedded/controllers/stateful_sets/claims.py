"""Creates the volume claims of a StatefulSet's pods, with the owners that the retention policy requires.

The owners of a claim make the garbage collector delete it by the retention policy. With `whenDeleted: Delete` the set
owns the claims, with `whenScaled: Delete` the pod owns them once its ordinal is removed.
"""

from __future__ import annotations

from shoal.client.context import Context
from shoal.client.item import Obj
from shoal.client.kind import PODS, STATEFUL_SETS, VOLUME_CLAIMS
from shoal.client.owned_pods.ownership import controller_reference
from shoal.client.owned_pods.pod_view import PodView
from shoal.client.refusals import AlreadyExistsError
from shoal.embedded.controllers.stateful_sets.identity import claims_for
from shoal.units.errors import ShoalError


class VolumeClaims:
    def __init__(self, context: Context, obj: Obj) -> None:
        self._context = context
        self._obj = obj
        self._known = context.informers.of(VOLUME_CLAIMS)

    def are_stale(self, ordinal: int) -> bool:
        """Whether a claim of this ordinal is being deleted with its earlier pod, if scaling deletes claims."""
        if (self._obj["spec"].get("persistentVolumeClaimRetentionPolicy") or {}).get("whenScaled") != "Delete":
            return False
        pod_name = f"{self._obj['metadata']['name']}-{ordinal}"
        found = (self._find(claim) for claim in claims_for(self._obj, ordinal))
        return any(claim is not None and is_stale(claim, pod_name) for claim in found)

    async def make(self, ordinal: int) -> None:
        """Creates missing claims; existing claims are not changed."""
        meta = self._obj["metadata"]
        pod = f"{meta['name']}-{ordinal}"
        for claim in claims_for(self._obj, ordinal):
            if self._find(claim) is not None:
                continue
            name = claim["metadata"]["name"]
            if deletes_any(self._obj):
                owners = desired_owners(self._obj, [], None, is_condemned=False)
                claim["metadata"] |= {"ownerReferences": owners} if owners else {}
            try:
                await self._context.api.create(VOLUME_CLAIMS, claim)
            except AlreadyExistsError:
                continue
            except ShoalError as error:
                words = f"Create Claim {name} for Pod {pod} in StatefulSet {meta['name']} failed error: {error.what}"
                self._context.events.record(self._obj, "FailedCreate", words, type_="Warning")
                raise
            words = f"Create Claim {name} Pod {pod} in StatefulSet {meta['name']} success"
            self._context.events.record(self._obj, "SuccessfulCreate", words)

    async def own(self, ordinal: int, pod: PodView, *, is_condemned: bool) -> None:
        """Sets the owners that the policy requires on the claims of an existing pod."""
        holder = {"name": pod.name, "uid": pod.metadata.uid}
        for desired in claims_for(self._obj, ordinal):
            claim = self._find(desired)
            if claim is None:
                continue
            owners = claim["metadata"].get("ownerReferences") or []
            if deletes_any(self._obj) and has_other_controller(self._obj, owners, holder):
                words = (
                    f"PersistentVolumeClaim {claim['metadata']['name']} has a conflicting OwnerReference that acts as "
                    "a managing controller, the retention policy is ignored for this claim"
                )
                self._context.events.record(self._obj, "ConflictingController", words, type_="Warning")
                continue
            right = desired_owners(self._obj, owners, holder, is_condemned=is_condemned)
            if right != owners:
                claim["metadata"]["ownerReferences"] = right
                await self._context.api.update(VOLUME_CLAIMS, claim)

    def _find(self, claim: Obj) -> Obj | None:
        item = self._known.get(claim["metadata"]["namespace"], claim["metadata"]["name"])
        return item.obj() if item is not None else None


def desired_owners(obj: Obj, owners: list[Obj], pod: Obj | None, *, is_condemned: bool) -> list[Obj]:
    """The owner references that a claim should have. `pod`: name and uid of the existing pod; other owners are kept."""
    policy = obj["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    meta = obj["metadata"]
    ours = {meta["uid"]} | ({pod["uid"]} if pod is not None else set())
    kept = [one for one in owners if one["uid"] not in ours]
    if policy.get("whenScaled") == "Delete" and is_condemned:
        return [*kept, controller_reference(PODS, pod)] if pod is not None else kept
    if policy.get("whenDeleted") == "Delete":
        return [*kept, controller_reference(STATEFUL_SETS, meta)]
    return kept


def has_other_controller(obj: Obj, owners: list[Obj], pod: Obj | None) -> bool:
    ours = {obj["metadata"]["uid"]} | ({pod["uid"]} if pod is not None else set())
    return any(one.get("controller") and one["uid"] not in ours for one in owners)


def deletes_any(obj: Obj) -> bool:
    return "Delete" in (obj["spec"].get("persistentVolumeClaimRetentionPolicy") or {}).values()


def is_stale(claim: Obj, pod_name: str) -> bool:
    """Whether the claim still belongs to an earlier pod of that name: a new pod must not mount it."""
    owners = claim["metadata"].get("ownerReferences") or ()
    was_owned = any(one["kind"] == "Pod" and one["name"] == pod_name for one in owners)
    return was_owned or "deletionTimestamp" in claim["metadata"]
