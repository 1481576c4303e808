"""Checks whether the volumes of a pod are available on a node, with the rules of `store/volumes`."""

from __future__ import annotations

import numpy as np

from shoal.client.item import Key
from shoal.client.volumes.needs import Mounts, Needed, VolumeNeeds
from shoal.client.volumes.values import SINGLE_POD
from shoal.embedded.scheduler.node_columns import Flags, NodeColumns
from shoal.embedded.scheduler.pod_affinity import FilterVerdicts
from shoal.embedded.scheduler.pod_info import PodInfo
from shoal.embedded.scheduler.reasons import NO_VOLUME, VOLUME_ELSEWHERE, VOLUME_LOST, VOLUME_TAKEN


class VolumeFit:
    def __init__(self, needs: VolumeNeeds) -> None:
        self.needs = needs
        self._users: dict[Key, set[str]] = {}
        """Pods on nodes, by the claims they use."""

    def add(self, pod: PodInfo, sign: int) -> None:
        """Adds a pod to a node, or removes it."""
        for key in pod.request.volume_claims:
            users = self._users.setdefault(key, set())
            if sign > 0:
                users.add(pod.uid)
            else:
                users.discard(pod.uid)
            if not users:
                del self._users[key]

    def needed(self, pod: PodInfo) -> Needed | str:
        """The claims of the pod; or, as text, why no node can be feasible."""
        return self.needs.needed(mounts_of(pod))

    def filter_rows(self, pod: PodInfo, needed: Needed, columns: NodeColumns) -> FilterVerdicts:
        """The filter results of the claims for all rows."""
        reached: Flags = np.ones(columns.size, np.bool_)
        served: Flags = np.ones(columns.size, np.bool_)
        found: FilterVerdicts = []
        if self._is_taken(pod):
            found.append((np.zeros(columns.size, np.bool_), VOLUME_TAKEN))
        if any(volume is None for _, volume in needed.bound):
            found.append((np.zeros(columns.size, np.bool_), VOLUME_LOST))
        volumes = [volume for _, volume in needed.bound if volume is not None and volume.spec.node_affinity]
        for name, row in columns.row_of.items() if volumes or needed.waiting else ():
            labels = columns.labels(row)
            reached[row] = all(volume.is_reached_from(name, labels) for volume in volumes)
            served[row] = self.needs.wanted(needed, name, labels) is not None
        return [*found, (reached, VOLUME_ELSEWHERE), (served, NO_VOLUME)]

    def _is_taken(self, pod: PodInfo) -> bool:
        for key in pod.request.volume_claims:
            claim = self.needs.claims.get(key)
            if claim is not None and SINGLE_POD in claim.spec.access_modes and self._users.get(key, set()) - {pod.uid}:
                return True
        return False


def mounts_of(pod: PodInfo) -> Mounts:
    return Mounts(pod.request.volume_claims, pod.request.own_claims)
