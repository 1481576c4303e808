"""The dependencies that all nodes of a fleet share."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from shoal.client.clock import Clock
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kubelet.pod_facts import PartialPod, nodes_of, summary_of
from shoal.client.kubelet.pod_run import PodRun
from shoal.client.recorder import Recorder
from shoal.embedded.kubelets.addresses import Addresses
from shoal.embedded.kubelets.settings import FleetSettings
from shoal.embedded.kubelets.timetable import Timetable


class FleetContext(msgspec.Struct, frozen=True):
    clock: Clock
    pods: Informer
    nodes: Informer
    timetable: Timetable
    addresses: Addresses
    settings: FleetSettings
    events: Recorder
    """The recorder of Events with the kubelet as reporter."""
    pod_changed: Callable[[str, str], None]
    """Called with node and uid of a pod whose status must be written."""
    node_changed: Callable[[str], None]
    software_changed: Callable[[str], None] = lambda _: None
    """Called with a node on which a layer of GPU software was added or lost."""
    claims: Informer | None = None
    """The ResourceClaims; None: no node has a driver for them."""
    summary_of: Callable[[Item], PartialPod] = summary_of
    """Reads the part of a pod that the nodes need first."""

    def pods_on(self, node: str) -> list[Item]:
        """The pods that are bound to the node, as the server has them."""
        return self.pods.index("node", nodes_of)[node]

    def item(self, run: PodRun) -> Item | None:
        """The pod as the server has it; None after its deletion."""
        found = self.pods.get(run.namespace, run.name)
        return found if found is not None and found.uid == run.uid else None
