"""Determines where a pod with volume claims may run, or why it must wait for them; used for live caches and for
manifests.

The messages are those of kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.api.node_affinity import NodeAffinity
from shoal.client.volumes.needs import Needed, VolumeNeeds
from shoal.client.volumes.values import SINGLE_POD, VolumeClaim
from shoal.store.volumes.reach import Places, rule_of

NOWHERE = "node(s) didn't find available persistent volumes to bind"
ELSEWHERE = "node(s) didn't match PersistentVolume's node affinity"
LOST = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
TAKEN = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"


class VolumeRules:
    def __init__(self, needs: VolumeNeeds, places: Places, is_used: Callable[[VolumeClaim, str], bool]) -> None:
        """`is_used`: whether a pod on a node, other than this one (namespace/name), has the claim."""
        self._needs = needs
        self._places = places
        self._is_used = is_used

    def of(self, pod: str, needed: Needed) -> NodeAffinity | str | None:
        """The nodes that can reach its volumes (None: all); a text gives the reason why the pod must wait."""
        if fault := self._fault(needed, pod):
            return fault
        rule = rule_of(self._needs, needed, self._places)
        return NOWHERE if rule is not None and _is_nowhere(rule) else rule

    def refused(self, pod: str, needed: Needed) -> str:
        """The message for nodes that cannot reach them."""
        is_tied = any(volume is not None and volume.spec.node_affinity is not None for _, volume in needed.bound)
        return self._fault(needed, pod) or (ELSEWHERE if is_tied else NOWHERE)

    def _fault(self, needed: Needed, pod: str) -> str:
        """The message for volumes that no node can reach."""
        if any(volume is None for _, volume in needed.bound):
            return LOST
        claims = (*needed.waiting, *(claim for claim, _ in needed.bound))
        return TAKEN if any(SINGLE_POD in one.spec.access_modes and self._is_used(one, pod) for one in claims) else ""


def _is_nowhere(rule: NodeAffinity) -> bool:
    return rule.required is not None and not rule.required.node_selector_terms
