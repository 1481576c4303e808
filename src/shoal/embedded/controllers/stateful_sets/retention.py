"""Computes the owners of a StatefulSet's claims, so that the garbage collector deletes them by the retention policy.

With `whenDeleted: Delete` the set owns the claims, with `whenScaled: Delete` the pod owns them once its ordinal is
removed.
"""

from __future__ import annotations

from shoal.client.item import Obj
from shoal.client.kind import PODS, STATEFUL_SETS
from shoal.client.owned_pods.ownership import controller_reference


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
