"""Who owns the claims of a stateful set's pods, so that the garbage collector ends them when the policy says so.

`whenDeleted: Delete` makes the set their owner, `whenScaled: Delete` the pod, from when its place is given up.
"""

from __future__ import annotations

from shoal.controllers.owned_pods.ownership import controller_reference
from shoal.store.live.item import Obj
from shoal.store.live.kind import PODS, STATEFUL_SETS


def owners_wanted(obj: Obj, owners: list[Obj], pod: Obj | None, *, is_condemned: bool) -> list[Obj]:
    """The claim's owner references as they should be. `pod`: name and uid of the pod there is; strangers stay."""
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
    """It still belongs to an earlier pod of that name and will go: a new pod must not mount it."""
    owners = claim["metadata"].get("ownerReferences") or ()
    was_owned = any(one["kind"] == "Pod" and one["name"] == pod_name for one in owners)
    return was_owned or "deletionTimestamp" in claim["metadata"]
