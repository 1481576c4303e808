"""Determines what the unbound volume claims of a pod need, and which volume each would get on a node.

A claim of a class with `WaitForFirstConsumer` gets its volume where the pod is placed: a free one that the node can
reach, or a new one. The choice is made together with the node and written to the volume (`claimRef`) or to the claim
(`selected-node`); the pod is bound after its claims.

Volumes that decisions use and that are not written yet are reserved for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from shoal.client.item import Item, Key
from shoal.client.volumes.matching import best_volume, can_provision
from shoal.client.volumes.values import StorageClass, Values, Volume, VolumeClaim

SELECTED_NODE = "volume.kubernetes.io/selected-node"


class Needed(NamedTuple):
    """The claims of one pod, by the work that remains for them."""

    bound: list[tuple[VolumeClaim, Volume | None]]
    waiting: list[VolumeClaim]


class WantedClaim(NamedTuple):
    """One claim to be served on a node: by this volume, or by a new one."""

    claim: VolumeClaim
    volume: Volume | None


class Mounts(NamedTuple):
    """The volume claims of a pod."""

    claims: tuple[Key, ...]
    own: frozenset[Key] = frozenset()
    """Claims that were created for the pod."""


class _ByName(msgspec.Struct, rename="camel", gc=False):
    claim_name: str = ""


class _Mounted(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    persistent_volume_claim: _ByName | None = None
    ephemeral: msgspec.Raw | None = None


class _VolumesSpec(msgspec.Struct, gc=False):
    volumes: tuple[_Mounted, ...] | None = None


class _PodVolumes(msgspec.Struct, gc=False):
    spec: _VolumesSpec


def mounts_of(pod: Item) -> Mounts:
    """The claims that the pod mounts."""
    found: dict[Key, bool] = {}
    for volume in pod.read(_PodVolumes).spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            found[pod.namespace, volume.persistent_volume_claim.claim_name] = False
        elif volume.ephemeral is not None:
            found[pod.namespace, f"{pod.name}-{volume.name}"] = True
    return Mounts(tuple(found), frozenset(key for key, is_own in found.items() if is_own))


class VolumeNeeds:
    def __init__(self, claims: Values[VolumeClaim], volumes: Values[Volume], classes: Values[StorageClass]) -> None:
        self.claims = claims
        self.volumes = volumes
        self.classes = classes
        self._nominated: dict[str, str] = {}
        """Volumes by name, with the uid of the claim that a decision assigned each to."""

    def needed(self, mounts: Mounts) -> Needed | str:
        """The pod's claims; or, as text, the reason why no node can be chosen."""
        needed = Needed([], [])
        for key in mounts.claims:
            claim = self.claims.get(key)
            if claim is None and key in mounts.own:
                return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{key[1]}"'
            if claim is None:
                return f'persistentvolumeclaim "{key[1]}" not found'
            if claim.status.phase == "Lost":
                lost = claim.spec.volume_name
                return f'persistentvolumeclaim "{key[1]}" bound to non-existent persistentvolume "{lost}"'
            if claim.metadata.is_terminating:
                return f'persistentvolumeclaim "{key[1]}" is being deleted'
            if claim.is_bound:
                needed.bound.append((claim, self.volumes.get(("", claim.spec.volume_name))))
            elif self._waits(claim):
                needed.waiting.append(claim)
            else:
                return "pod has unbound immediate PersistentVolumeClaims"
        return needed

    def wanted(self, needed: Needed, node: str, labels: dict[str, str]) -> list[WantedClaim] | None:
        """The volume of each unbound claim on a node; None if one of them gets none."""
        found: list[WantedClaim] = []
        used: set[str] = set()
        for claim in sorted(needed.waiting, key=lambda one: one.asked.nano):
            selected = claim.metadata.annotations.get(SELECTED_NODE)
            if selected is not None:
                # Its provisioning there may have started.
                if selected != node:
                    return None
                found.append(WantedClaim(claim, None))
                continue
            volume = best_volume(claim, self.free(claim, used), (node, labels))
            if volume is not None:
                used.add(volume.metadata.name)
            elif not can_provision(self.class_of(claim), labels):
                return None
            found.append(WantedClaim(claim, volume))
        return found

    def class_of(self, claim: VolumeClaim) -> StorageClass | None:
        return self.classes.get(("", claim.class_name))

    def free(self, claim: VolumeClaim, used: Iterable[str] = ()) -> list[Volume]:
        """Volumes that are not assigned to another claim."""
        uid = claim.metadata.uid
        return [
            volume
            for volume in self.volumes
            if volume.metadata.name not in used and self._nominated.get(volume.metadata.name, uid) == uid
        ]

    def reserve(self, wanted: Iterable[WantedClaim]) -> None:
        """Reserve the volumes until `withdraw`."""
        for one in wanted:
            if one.volume is not None:
                self._nominated[one.volume.metadata.name] = one.claim.metadata.uid

    def withdraw(self, wanted: Iterable[WantedClaim]) -> None:
        for one in wanted:
            if one.volume is not None:
                self._nominated.pop(one.volume.metadata.name, None)

    def withdraw_all(self) -> None:
        self._nominated.clear()

    def are_bound(self, mounts: Mounts) -> bool:
        needed = self.needed(mounts)
        return not isinstance(needed, str) and not needed.waiting

    def is_still_selected(self, wanted: Iterable[WantedClaim], node: str) -> bool:
        """Whether the claim still has this node; a provisioner that cannot serve a node removes it from the claim."""
        for one in wanted:
            claim = self.claims.get(one.claim.key)
            if claim is None:
                return False
            if not claim.is_bound and one.volume is None and claim.metadata.annotations.get(SELECTED_NODE) != node:
                return False
        return True

    def _waits(self, claim: VolumeClaim) -> bool:
        storage_class = self.class_of(claim)
        return storage_class is not None and storage_class.waits and not claim.spec.volume_name
