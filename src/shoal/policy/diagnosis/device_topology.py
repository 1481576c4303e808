"""Whether the GPUs of a pod with several are close to each other: the NUMA nodes of the machine."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.policy.advice import Obj
from shoal.policy.diagnosis.cluster_facts import DiagnosedCluster, device_requests, named
from shoal.policy.diagnosis.verdicts import FoundCause, NotRun, RuledOut, Verdict
from shoal.policy.fields import dig, maps, strings
from shoal.policy.kinds import NODE_TOPOLOGY
from shoal.units.numbers import whole_of

_ALIGNED = ("single-numa-node", "SingleNUMANodePodLevel", "SingleNUMANodeContainerLevel")


def across_sockets(facts: DiagnosedCluster, pod: Obj) -> Iterator[Verdict]:
    """Of a pod that runs and has more than one GPU."""
    subject, node = named(pod), str(dig(pod, "spec", "nodeName") or "")
    amount = max(device_requests(pod).values(), default=0)
    if not node or amount < 2:
        return
    topology = facts.find(NODE_TOPOLOGY, "", node)
    if topology is None:
        yield NotRun(
            subject,
            "whether its GPUs are on one socket",
            "no NodeResourceTopology of its node is given; run nvidia-smi topo -m in the pod",
        )
        return
    resource = max(device_requests(pod), key=lambda name: device_requests(pod)[name])
    zones = {str(zone.get("name")): _of_zone(zone, resource) for zone in maps(topology.get("zones"))}
    largest = max(zones.values(), default=0)
    policies = {
        *strings(topology.get("topologyPolicies")),
        *(str(one.get("value")) for one in maps(topology.get("attributes"))),
    }
    if amount > largest:
        what = (
            f"no NUMA node of {node} has more than {largest} {resource}: the {amount} of the pod are on several sockets"
        )
        fix = (
            "that is inevitable for this number; bind processes to the CPUs of their GPU, or ask for fewer GPUs per pod"
        )
        evidence = tuple(f"{name}: {count} {resource}" for name, count in zones.items() if count)
        yield FoundCause("GpusAcrossSockets", subject, what, fix, evidence, ("kubectl exec POD -- nvidia-smi topo -m",))
    elif policies.isdisjoint(_ALIGNED):
        what = f"the node {node} does not align devices: the {amount} GPUs of the pod may be on several sockets"
        fix = "set topologyManagerPolicy single-numa-node and cpuManagerPolicy static in the kubelet of the GPU nodes"
        yield FoundCause(
            "DevicesNotAligned",
            subject,
            what,
            fix,
            (f"policies: {', '.join(sorted(policies)) or 'none'}",),
            ("kubectl exec POD -- nvidia-smi topo -m",),
        )
    else:
        yield RuledOut(subject, "the Topology Manager of its node keeps its GPUs on one NUMA node")


def _of_zone(zone: Obj, resource: str) -> int:
    for one in maps(zone.get("resources")):
        if one.get("name") == resource:
            return whole_of(str(one.get("capacity") or one.get("allocatable") or 0)) or 0
    return 0
