"""Makes the claim of a pod from its template, and determines which pods still use a claim. The functions are pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from shoal.api.meta import ObjectMeta
from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.client.item import Obj
from shoal.client.kind import PODS
from shoal.client.owner_reference import controlled_by

POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
PROTECTION = "resource.kubernetes.io/delete-protection"
_LONGEST_BASE = 57
"""Leaves space for a hyphen and five letters in a name of 63."""


class PodClaim(msgspec.Struct, rename="camel", gc=False):
    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class _ClaimingPodSpec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""
    resource_claims: tuple[PodClaim, ...] | None = None


class ClaimStatus(msgspec.Struct, rename="camel", gc=False):
    name: str
    resource_claim_name: str | None = None


class _ClaimingPodStatus(msgspec.Struct, rename="camel", gc=False):
    phase: str = ""
    resource_claim_statuses: tuple[ClaimStatus, ...] | None = None


class ClaimingPod(msgspec.Struct, gc=False):
    metadata: ObjectMeta
    spec: _ClaimingPodSpec
    status: _ClaimingPodStatus = msgspec.field(default_factory=_ClaimingPodStatus)

    @property
    def claims(self) -> tuple[PodClaim, ...]:
        return self.spec.resource_claims or ()

    @property
    def is_done(self) -> bool:
        """It has finished, or will never run."""
        never = self.metadata.deletion_timestamp is not None and not self.spec.node_name
        return self.status.phase in TERMINAL_PHASES or never

    @property
    def made(self) -> dict[str, str | None]:
        """Names of claims by the pod's own names for them; None for a claim that was not needed."""
        return {one.name: one.resource_claim_name for one in self.status.resource_claim_statuses or ()}


def new_claim(pod: ClaimingPod, wanted: PodClaim, template: Obj) -> Obj:
    meta = template["spec"].get("metadata") or {}
    return {
        "metadata": {
            "generateName": f"{_base(pod.metadata.name, wanted.name)}-",
            "namespace": pod.metadata.namespace,
            "labels": dict(meta.get("labels") or {}),
            "annotations": {**(meta.get("annotations") or {}), POD_CLAIM: wanted.name},
            "ownerReferences": [controlled_by(PODS, pod.metadata.name, pod.metadata.uid)],
        },
        "spec": template["spec"]["spec"],
    }


def _base(pod: str, claim: str) -> str:
    """Both names, shortened in proportion if they are too long together."""
    whole = f"{pod}-{claim}"
    if len(whole) <= _LONGEST_BASE:
        return whole
    share = [name[: len(name) * _LONGEST_BASE // len(whole)] for name in (pod, claim)]
    return "-".join(share)


def owner_of(claim: Obj) -> tuple[str, str]:
    """Name and uid of the pod that a claim was created for; empty if there is none."""
    for one in claim["metadata"].get("ownerReferences") or ():
        if one.get("controller") and one["kind"] == "Pod" and one["apiVersion"] == "v1":
            return one["name"], one["uid"]
    return "", ""


def is_made_for(claim: Obj, pod: ClaimingPod, wanted: str) -> bool:
    notes = claim["metadata"].get("annotations") or {}
    return owner_of(claim)[1] == pod.metadata.uid and notes.get(POD_CLAIM) == wanted


def consumer(pod: ClaimingPod) -> Obj:
    return {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}


def without_consumers(claim: Obj, gone: Iterable[Any]) -> Obj | None:
    """The claim's status without these uids; None if that changes nothing.

    An unused claim is deallocated if the scheduler allocated it.
    """
    status: Obj = claim.get("status") or {}
    users, left_out = status.get("reservedFor") or [], set(gone)
    kept = [one for one in users if one["uid"] not in left_out]
    is_ours = PROTECTION in (claim["metadata"].get("finalizers") or ())
    is_ending = "deletionTimestamp" in claim["metadata"]
    is_given_back = not kept and is_ours and bool(status.get("allocation")) and (bool(users) or is_ending)
    if len(kept) == len(users) and not is_given_back:
        return None
    dropped = {"reservedFor"} | ({"allocation", "devices"} if is_given_back else set())
    after = {name: value for name, value in status.items() if name not in dropped}
    return after | ({"reservedFor": kept} if kept else {})
