"""Holds all facts for decisions: a pod counts in the node columns, for pod affinity and for its volumes together.

A pod that was given a node counts there from that moment (`assume`), before the API server or a watch confirms it.
"""

from __future__ import annotations

import numpy as np
from msgspec import structs

from shoal.api.node import Node
from shoal.client.volumes.needs import Needed
from shoal.embedded.scheduler.device_fit import DeviceFit
from shoal.embedded.scheduler.node_choice import Chooser, FilterResult, Reserved
from shoal.embedded.scheduler.node_columns import NodeColumns
from shoal.embedded.scheduler.pod_affinity import FilterVerdicts, PodAffinity
from shoal.embedded.scheduler.pod_info import PodHead, PodInfo
from shoal.embedded.scheduler.reasons import NoFeasibleNode
from shoal.embedded.scheduler.volume_fit import VolumeFit


class SchedulerCache:
    def __init__(self, namespaces: dict[str, dict[str, str]], volumes: VolumeFit) -> None:
        self.columns = NodeColumns()
        self.pod_affinity = PodAffinity(self.columns, namespaces)
        self.chooser = Chooser(self.columns, self.pod_affinity)
        self.volumes = volumes
        self.devices: DeviceFit | None = None
        self.placed: dict[str, tuple[str, PodInfo]] = {}
        """Pods on nodes by uid."""
        self.nominated: dict[str, tuple[str, PodInfo]] = {}
        """Nominated pods by uid."""

    # -- facts ------------------------------------------------------------------------------------------------------

    def put_node(self, node: Node) -> bool:
        known = node.metadata.name in self.columns.row_of
        is_relevant_change = self.columns.put(node)
        if not known:
            self.pod_affinity.node_added(node.metadata.name)
        return is_relevant_change

    def drop_node(self, name: str) -> None:
        self.pod_affinity.node_removed(name)
        self.columns.drop(name)

    def namespace_changed(self, name: str) -> None:
        self.pod_affinity.namespace_changed(name)
        self.columns.version += 1

    def place(self, node: str, pod: PodInfo) -> None:
        """Adds the pod to the node, by a decision of this scheduler or another one."""
        self.remove(pod.uid)
        self.placed[pod.uid] = (node, pod)
        self.nominated.pop(pod.uid, None)
        self.columns.take(node, pod)
        self.pod_affinity.add(node, pod, 1)
        self.volumes.add(pod, 1)

    def remove(self, uid: str) -> bool:
        """Removes the pod; returns whether it was on a node."""
        found = self.placed.pop(uid, None)
        if found is None:
            return False
        node, pod = found
        self.columns.give(node, uid)
        self.pod_affinity.add(node, pod, -1)
        self.volumes.add(pod, -1)
        return True

    def update(self, uid: str, head: PodHead) -> bool:
        """Updates a pod on a node; returns whether the change may help other pods."""
        node, pod = self.placed[uid]
        if head.is_ended or (head.node and head.node != node):
            self.remove(uid)
            if not head.is_ended:
                self.place(head.node, structs.replace(pod, node=head.node))
            return True
        if head.labels != pod.labels or head.is_terminating != pod.is_terminating:
            self.place(node, structs.replace(pod, labels=head.labels, is_terminating=head.is_terminating))
            return True
        return False

    def reserved(self, pod: PodInfo) -> Reserved:
        """The capacity reserved for nominated pods of the same or higher priority."""
        found: Reserved = {}
        for node, other in self.nominated.values():
            row = self.columns.row_of.get(node)
            if row is None or other.uid == pod.uid or other.priority < pod.priority:
                continue
            for resource, amount in other.request.requests:
                column = found.setdefault(resource, np.zeros(self.columns.size, np.int64))
                column[row] += amount
        return found

    def forget_reservations(self) -> None:
        """Drops the reservations of pods that were not placed."""
        self.volumes.needs.withdraw_all()
        if self.devices is not None:
            self.devices.unreserve_all()
        self.nominated = {uid: one for uid, one in self.nominated.items() if one[1].nominated}

    # -- queries --------------------------------------------------------------------------------------------------

    def needs(self, pod: PodInfo) -> tuple[Needed | None, str]:
        """The volumes of the pod; and why no node can be feasible."""
        needed: Needed | None = None
        if pod.request.volume_claims:
            found = self.volumes.needed(pod)
            if isinstance(found, str):
                return None, found
            needed = found
        if pod.request.device_claims and self.devices is not None:
            return needed, self.devices.prefilter_error(pod)
        return needed, ""

    def filter(self, pod: PodInfo) -> FilterResult:
        needed, prefilter_error = self.needs(pod)
        if prefilter_error:
            none = np.zeros(0, np.int64)
            return FilterResult(none, NoFeasibleNode(len(self.columns), {}, prefilter_error), none)
        more: FilterVerdicts = []
        if needed is not None:
            more += self.volumes.filter_rows(pod, needed, self.columns)
        if pod.request.device_claims and self.devices is not None:
            more += self.devices.filter_rows(pod)
        return self.chooser.filter(pod, more, self.reserved(pod))

    def fits(self, pod: PodInfo, row: int) -> bool:
        return bool(np.any(self.filter(pod).rows == row))
