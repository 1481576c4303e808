"""All that decisions are made from, in one hand, so that the parts stay in step: what one pod takes is counted in the
fleet, among its company and at its volumes together.

A pod that was given a node counts there from that moment (`assume`), before the server or any watch says so.
"""

from __future__ import annotations

import numpy as np
from msgspec import structs

from shoal.api.node import Node
from shoal.controllers.default_scheduler.asks import PodFacts, PodHead
from shoal.controllers.default_scheduler.choosing import Chooser, Look, Reserved
from shoal.controllers.default_scheduler.company import Company, Verdicts
from shoal.controllers.default_scheduler.device_fit import DeviceFit
from shoal.controllers.default_scheduler.fleet import Fleet
from shoal.controllers.default_scheduler.reasons import Refusal
from shoal.controllers.default_scheduler.volume_fit import VolumeFit
from shoal.store.volumes.needs import Needed


class World:
    def __init__(self, namespaces: dict[str, dict[str, str]], volumes: VolumeFit) -> None:
        self.fleet = Fleet()
        self.company = Company(self.fleet, namespaces)
        self.chooser = Chooser(self.fleet, self.company)
        self.volumes = volumes
        self.devices: DeviceFit | None = None
        self.placed: dict[str, tuple[str, PodFacts]] = {}
        """Pods on nodes by uid."""
        self.nominated: dict[str, tuple[str, PodFacts]] = {}
        """Pods that wait for a node of their own to be free."""

    # -- facts ------------------------------------------------------------------------------------------------------

    def put_node(self, node: Node) -> bool:
        known = node.metadata.name in self.fleet.row_of
        is_news = self.fleet.put(node)
        if not known:
            self.company.node_came(node.metadata.name)
        return is_news

    def drop_node(self, name: str) -> None:
        self.company.node_leaves(name)
        self.fleet.drop(name)

    def namespace_changed(self, name: str) -> None:
        self.company.namespace_changed(name)
        self.fleet.version += 1

    def place(self, node: str, pod: PodFacts) -> None:
        """The pod is on the node: by our decision, or somebody's."""
        self.remove(pod.uid)
        self.placed[pod.uid] = (node, pod)
        self.nominated.pop(pod.uid, None)
        self.fleet.take(node, pod)
        self.company.add(node, pod, 1)
        self.volumes.add(pod, 1)

    def remove(self, uid: str) -> bool:
        """It is not there any more; whether it was."""
        found = self.placed.pop(uid, None)
        if found is None:
            return False
        node, pod = found
        self.fleet.give(node, uid)
        self.company.add(node, pod, -1)
        self.volumes.add(pod, -1)
        return True

    def update(self, uid: str, head: PodHead) -> bool:
        """What may have changed of a pod on a node; whether that may help others."""
        node, pod = self.placed[uid]
        if head.is_ended or (head.node and head.node != node):
            self.remove(uid)
            if not head.is_ended:
                self.place(head.node, structs.replace(pod, node=head.node))
            return True
        if head.labels != pod.labels or head.is_leaving != pod.is_leaving:
            self.place(node, structs.replace(pod, labels=head.labels, is_leaving=head.is_leaving))
            return True
        return False

    def reserved(self, pod: PodFacts) -> Reserved:
        """Room promised to pods that are as important, or more."""
        found: Reserved = {}
        for node, other in self.nominated.values():
            row = self.fleet.row_of.get(node)
            if row is None or other.uid == pod.uid or other.priority < pod.priority:
                continue
            for resource, amount in other.ask.requests:
                column = found.setdefault(resource, np.zeros(self.fleet.size, np.int64))
                column[row] += amount
        return found

    def forget_promises(self) -> None:
        """Whoever was given something and is not there by now gets it no more."""
        self.volumes.needs.withdraw_all()
        if self.devices is not None:
            self.devices.withdraw_all()
        self.nominated = {uid: one for uid, one in self.nominated.items() if one[1].nominated}

    # -- questions --------------------------------------------------------------------------------------------------

    def needs(self, pod: PodFacts) -> tuple[Needed | None, str]:
        """The pod's volumes; and why no node will do, whatever it is like."""
        needed: Needed | None = None
        if pod.ask.volume_claims:
            found = self.volumes.needed(pod)
            if isinstance(found, str):
                return None, found
            needed = found
        if pod.ask.device_claims and self.devices is not None:
            return needed, self.devices.trouble(pod)
        return needed, ""

    def look(self, pod: PodFacts) -> Look:
        needed, trouble = self.needs(pod)
        if trouble:
            none = np.zeros(0, np.int64)
            return Look(none, Refusal(len(self.fleet), {}, trouble), none)
        more: Verdicts = []
        if needed is not None:
            more += self.volumes.verdicts(pod, needed, self.fleet)
        if pod.ask.device_claims and self.devices is not None:
            more += self.devices.verdicts(pod)
        return self.chooser.look(pod, more, self.reserved(pod))

    def fits(self, pod: PodFacts, row: int) -> bool:
        return bool(np.any(self.look(pod).rows == row))
