"""Whether the volumes of a pod can be had on a node, and what has to be written before the pod goes there.

A claim of a class that waits for its first consumer gets its volume where the pod goes: a free one that the node
reaches, or one that is made there. Which, is decided with the node and written to the claim (`selected-node`) or to the
volume (`claimRef`); the pod is bound once its claims are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from shoal.controllers.default_scheduler.asks import PodFacts
from shoal.controllers.default_scheduler.company import Verdicts
from shoal.controllers.default_scheduler.fleet import Flags, Fleet
from shoal.controllers.default_scheduler.reasons import NO_VOLUME, VOLUME_ELSEWHERE, VOLUME_LOST, VOLUME_TAKEN
from shoal.controllers.volumes.matching import best_volume, can_provision
from shoal.controllers.volumes.values import SINGLE_POD, Claim, Known, StorageClass, Volume
from shoal.store.live.item import Key

SELECTED_NODE = "volume.kubernetes.io/selected-node"


class Needed(NamedTuple):
    """The claims of one pod, by what is still to be done for them."""

    bound: list[tuple[Claim, Volume | None]]
    waiting: list[Claim]


class Wanted(NamedTuple):
    """One claim that is to be served for a node: by this volume, or by one to be made."""

    claim: Claim
    volume: Volume | None


class VolumeFit:
    def __init__(self, claims: Known[Claim], volumes: Known[Volume], classes: Known[StorageClass]) -> None:
        self._claims = claims
        self._volumes = volumes
        self._classes = classes
        self._promised: dict[str, str] = {}
        """Volumes by name, with the uid of the claim that a decision gave each to."""
        self._users: dict[Key, set[str]] = {}
        """Pods on nodes, by the claims they use."""

    def add(self, pod: PodFacts, sign: int) -> None:
        """A pod came to a node, or left it."""
        for key in pod.ask.volume_claims:
            users = self._users.setdefault(key, set())
            if sign > 0:
                users.add(pod.uid)
            else:
                users.discard(pod.uid)
            if not users:
                del self._users[key]

    def needed(self, pod: PodFacts) -> Needed | str:
        """The pod's claims; or, as text, why there is no use in looking at nodes."""
        needed = Needed([], [])
        for key in pod.ask.volume_claims:
            claim = self._claims.get(key)
            if claim is None and key in pod.ask.own_claims:
                return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{key[1]}"'
            if claim is None:
                return f'persistentvolumeclaim "{key[1]}" not found'
            if claim.status.phase == "Lost":
                lost = claim.spec.volume_name
                return f'persistentvolumeclaim "{key[1]}" bound to non-existent persistentvolume "{lost}"'
            if claim.metadata.is_leaving:
                return f'persistentvolumeclaim "{key[1]}" is being deleted'
            if claim.is_bound:
                needed.bound.append((claim, self._volumes.get(("", claim.spec.volume_name))))
            elif self._waits(claim):
                needed.waiting.append(claim)
            else:
                return "pod has unbound immediate PersistentVolumeClaims"
        return needed

    def verdicts(self, pod: PodFacts, needed: Needed, fleet: Fleet) -> Verdicts:
        """What the claims say of every row."""
        reached: Flags = np.ones(fleet.size, np.bool_)
        served: Flags = np.ones(fleet.size, np.bool_)
        found: Verdicts = []
        if self._is_taken(pod):
            found.append((np.zeros(fleet.size, np.bool_), VOLUME_TAKEN))
        if any(volume is None for _, volume in needed.bound):
            found.append((np.zeros(fleet.size, np.bool_), VOLUME_LOST))
        volumes = [volume for _, volume in needed.bound if volume is not None and volume.spec.node_affinity]
        for name, row in fleet.row_of.items() if volumes or needed.waiting else ():
            labels = fleet.labels(row)
            reached[row] = all(volume.is_reached_from(name, labels) for volume in volumes)
            served[row] = self.wanted(needed, name, labels) is not None
        return [*found, (reached, VOLUME_ELSEWHERE), (served, NO_VOLUME)]

    def wanted(self, needed: Needed, node: str, labels: dict[str, str]) -> list[Wanted] | None:
        """What each waiting claim would get for a node; None when one of them gets nothing."""
        found: list[Wanted] = []
        used: set[str] = set()
        for claim in sorted(needed.waiting, key=lambda one: one.asked.nano):
            selected = claim.metadata.annotations.get(SELECTED_NODE)
            if selected is not None:
                # Somebody may be making it there already.
                if selected != node:
                    return None
                found.append(Wanted(claim, None))
                continue
            volume = best_volume(claim, self._free(claim, used), (node, labels))
            if volume is not None:
                used.add(volume.metadata.name)
            elif not can_provision(self._classes.get(("", claim.class_name)), labels):
                return None
            found.append(Wanted(claim, volume))
        return found

    def promise(self, wanted: Iterable[Wanted]) -> None:
        """The volumes are not given to others until `withdraw`."""
        for one in wanted:
            if one.volume is not None:
                self._promised[one.volume.metadata.name] = one.claim.metadata.uid

    def withdraw(self, wanted: Iterable[Wanted]) -> None:
        for one in wanted:
            if one.volume is not None:
                self._promised.pop(one.volume.metadata.name, None)

    def withdraw_all(self) -> None:
        self._promised.clear()

    def are_bound(self, pod: PodFacts) -> bool:
        needed = self.needed(pod)
        return not isinstance(needed, str) and not needed.waiting

    def is_still_selected(self, wanted: Iterable[Wanted], node: str) -> bool:
        """A provisioner that cannot serve a node takes the choice back by removing it."""
        for one in wanted:
            claim = self._claims.get(one.claim.key)
            if claim is None:
                return False
            if not claim.is_bound and one.volume is None and claim.metadata.annotations.get(SELECTED_NODE) != node:
                return False
        return True

    def _waits(self, claim: Claim) -> bool:
        storage_class = self._classes.get(("", claim.class_name))
        return storage_class is not None and storage_class.waits and not claim.spec.volume_name

    def _is_taken(self, pod: PodFacts) -> bool:
        for key in pod.ask.volume_claims:
            claim = self._claims.get(key)
            if claim is not None and SINGLE_POD in claim.spec.access_modes and self._users.get(key, set()) - {pod.uid}:
                return True
        return False

    def _free(self, claim: Claim, used: set[str]) -> list[Volume]:
        uid = claim.metadata.uid
        return [
            volume
            for volume in self._volumes
            if volume.metadata.name not in used and self._promised.get(volume.metadata.name, uid) == uid
        ]
