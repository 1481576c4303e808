"""Worlds for topology placement: nodes that say where they stand by their name, and workloads in one line."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from shoal.engine.queues.clusterqueue import AdmittedWorkload
from shoal.engine.queues.facts import (
    PODS,
    Amounts,
    ClusterQueueFacts,
    FlavorFacts,
    PodSet,
    PodSetAdmission,
    QuotaAssignment,
    WorkloadFacts,
)
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Queues
from shoal.engine.queues.tas.flavor_topology import HOSTNAME
from shoal.engine.queues.tas.place import Request, place
from shoal.engine.queues.tas.refusals import TopologyRefusal
from shoal.engine.queues.topology_facts import QueueNode, TopologyAssignment, TopologyLevels, TopologyRequest
from shoal.engine.queues.workloads import Total

BLOCK, RACK, HOST = "block", "rack", HOSTNAME
LEVELS = (BLOCK, RACK, HOST)


def host(name: str, cpu: int, pods: int = 100, **others: int) -> QueueNode:
    """`b1-r2-x3` stands in block b1, rack r2. Cpu in cores."""
    block, rack, own = name.split("-")
    labels = {BLOCK: block, RACK: rack, HOST: own}
    return QueueNode(own, labels, {"cpu": 1000 * cpu, PODS: pods, **others})


def hosts(*sizes: str) -> list[QueueNode]:
    """`b1-r1-x1=4` is a host with four cores."""
    return [host(name, int(cpu)) for name, _, cpu in (size.partition("=") for size in sizes)]


def pods(count: int, name: str = "main", topology: TopologyRequest | None = None, **requests: int) -> PodSet:
    """Of one core each, unless told otherwise."""
    return PodSet(name, count, requests=requests or {"cpu": 1000}, topology=topology)


def required(level: str, **more: object) -> TopologyRequest:
    return msgspec.structs.replace(TopologyRequest(required=level), **more)


def preferred(level: str, **more: object) -> TopologyRequest:
    return msgspec.structs.replace(TopologyRequest(preferred=level), **more)


ANYWHERE = TopologyRequest(unconstrained=True)


class TasWorld:
    """One flavor `f` over one topology."""

    def __init__(self, nodes: Iterable[QueueNode], levels: tuple[str, ...] = LEVELS, *gates: str) -> None:
        settings = Settings()
        off = {gate.removeprefix("-") for gate in gates if gate.startswith("-")}
        self.queues = Queues(msgspec.structs.replace(settings, gates=(settings.gates | set(gates)) - off))
        self.queues.put(TopologyLevels("t", levels))
        self.flavor("f")
        self.queues.put(ClusterQueueFacts("cq"))
        for node in nodes:
            self.queues.put(node)
        self.queues.refresh()

    def flavor(self, name: str, **more: object) -> TasWorld:
        self.queues.put(msgspec.structs.replace(FlavorFacts(name, topology="t"), **more))
        return self

    def place(
        self, *pod_sets: PodSet, flavors: tuple[str, ...] = (), empty: bool = False
    ) -> dict[str, str] | TopologyRefusal:
        """`{"main": "x1=2 x3=1"}`, or what did not fit."""
        requests = [
            Request(Total.of(pod_set, pod_set.count), flavor, pod_set.count, implied=pod_set.topology is None)
            for pod_set, flavor in zip(pod_sets, flavors or ("f",) * len(pod_sets), strict=True)
        ]
        found = place(self.queues, requests, empty=empty)
        return found if isinstance(found, TopologyRefusal) else {name: spelt(where) for name, where in found.items()}

    def places(self, pod_set: PodSet) -> str:
        """Of one pod set that must find a place."""
        found = self.place(pod_set)
        assert not isinstance(found, TopologyRefusal), found.message
        return found[pod_set.name]

    def refuses(self, *pod_sets: PodSet) -> TopologyRefusal:
        found = self.place(*pod_sets)
        assert isinstance(found, TopologyRefusal), found
        return found

    def hold(
        self, key: str, pod_set: PodSet, where: str, failed: tuple[str, ...] = (), flavor: str = "f"
    ) -> AdmittedWorkload:
        """An admitted workload, with `where` as `place` tells it."""
        domains = tuple((tuple(p.split("/")), int(n)) for p, _, n in (part.partition("=") for part in where.split()))
        forest = self.queues.forest(flavor)
        assert forest is not None
        assignment = TopologyAssignment(forest.named_levels, domains)
        admitted = PodSetAdmission(pod_set.name, pod_set.count, {"cpu": flavor}, {}, assignment)
        facts = WorkloadFacts(
            key,
            pod_sets=(pod_set,),
            admission=QuotaAssignment("cq", (admitted,)),
            admitted=True,
            unhealthy_nodes=failed,
        )
        held = self.queues.hold(facts, 0.0)
        assert held is not None
        return held

    def free(self, resource: str, flavor: str = "f") -> list[int]:
        forest = self.queues.forest(flavor)
        assert forest is not None
        column: list[int] = forest.free[resource].tolist()
        return column


def spelt(where: TopologyAssignment) -> str:
    return " ".join(f"{'/'.join(values)}={count}" for values, count in where.domains)


def amounts_of(pod_set: PodSet) -> Amounts:
    return {**pod_set.requests, PODS: 1}
