"""A trace packed pod by pod through the engine: the FGD paper's experiment, with any policy.

Pods arrive one at a time and stay; one that fits nowhere is dropped but counts as arrived. After each arrival the
fragmentation of the fleet is noted with the paper's own typical pods, whatever policy decides, so that policies can
be compared by it. Everything goes the way it goes in production: events in, `cycle`, a plan, the outcome as an event.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.cycle import cycle
from shoal.engine.device_demand import FULL_MILLI, Demand, GpuShare, WholeGpus
from shoal.engine.events import NodeFacts, NodeSeen, PodArrived, PodBound, PodGone
from shoal.engine.fragmentation import Fragmentation, FragmentationColumn
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.plan import Place
from shoal.engine.pod_mix import PodClass, PodMix
from shoal.engine.profile import POLICIES, Builder, Profile
from shoal.engine.scores.gradient import POPULAR_SHARE, FragmentationGradient
from shoal.engine.steps.allocate import allocate
from shoal.sim.traces.openb import TraceNode, TracePod

_PODS_PER_NODE = 1001
_MIB = 1024 * 1024

POLICY_NAMES: tuple[str, ...] = tuple(POLICIES)


class PackRun:
    """One policy over one fleet and one list of pods."""

    def __init__(
        self,
        nodes: Sequence[TraceNode],
        pods: Sequence[TracePod],
        ranks: Sequence[int] | NDArray[np.int64],
        policy: str | Builder,
        seed: int,
    ) -> None:
        self._seed = seed
        self._cluster = Cluster()
        self._intake = Intake(self._cluster)
        by_name = sorted(range(len(nodes)), key=lambda index: nodes[index].name)
        rank_of = {index: int(ranks[place]) for place, index in enumerate(by_name)}
        for index, node in enumerate(nodes):
            self._intake.apply(NodeSeen(node_facts(node, rank_of[index])))
        self._asks = [ask_of(pod) for pod in pods]
        self._requested = [pod.num_gpu * pod.gpu_milli for pod in pods]
        mix = PodMix.of(class_of(pod) for pod in pods)
        build = POLICIES[policy] if isinstance(policy, str) else policy
        profile = build(self._cluster, mix)
        self._placement = Placement(self._cluster, profile)
        self._fragments = _fragments(profile, self._cluster, mix)
        self._arrived = 0
        self._allocated = 0
        self.arrived_milli: list[int] = []
        self.allocated_milli: list[int] = []
        self.frag_milli: list[float] = []
        self.total_gpu_milli = sum(node.gpu for node in nodes) * FULL_MILLI
        self.placed = 0
        self.refused = 0

    @property
    def gpu_free(self) -> NDArray[np.int32]:
        """Free thousandths per device, nodes in the order given."""
        return self._cluster.devices.compute[: self._cluster.rows]

    @property
    def gpu_count(self) -> NDArray[np.int32]:
        """Devices per node, nodes in the order given."""
        return self._cluster.devices.count[: self._cluster.rows]

    def arrive(self, pod_row: int) -> bool:
        """One pod of the list arrives; False when no node fits and it is dropped."""
        key = f"{len(self.arrived_milli)}"
        ask = self._asks[pod_row]
        self._intake.apply(PodArrived(key, ask))
        now_s = float(len(self.arrived_milli))
        # A published curve is that of placements alone, without moves and preemption.
        plan = cycle(self._cluster, self._placement, now_s=now_s, seed=self._seed, steps=(allocate,))
        milli = self._requested[pod_row]
        decision = plan.intentions[0]
        placed = isinstance(decision, Place)
        if isinstance(decision, Place):
            self._intake.apply(PodBound(key, ask, decision.node, decision.grant))
            self._allocated += milli
            self.placed += 1
        else:
            self._intake.apply(PodGone(key))
            self.refused += 1
        self._arrived += milli
        self._fragments.refresh()
        self.arrived_milli.append(self._arrived)
        self.allocated_milli.append(self._allocated)
        # Sums of floating point come out just below zero.
        self.frag_milli.append(max(0.0, self._fragments.total))
        return placed


def _fragments(profile: Profile, cluster: Cluster, mix: PodMix) -> FragmentationColumn:
    """The measure of the paper; FGD decides by it too and need not keep it twice."""
    if isinstance(profile.devices, FragmentationGradient):
        return profile.devices.column
    return FragmentationColumn(cluster, Fragmentation(cluster, mix.popular(POPULAR_SHARE)))


def node_facts(node: TraceNode, rank: int) -> NodeFacts:
    return NodeFacts(
        name=node.name,
        allocatable={"cpu": node.cpu_milli, "memory": node.memory_mib * _MIB, "pods": _PODS_PER_NODE},
        gpus=node.gpu,
        gpu_model=node.model,
        rank=rank,
    )


def ask_of(pod: TracePod) -> Ask:
    return Ask(
        requests=(("cpu", pod.cpu_milli), ("memory", pod.memory_mib * _MIB)),
        devices=_demand(pod),
        gpu_models=pod.models,
    )


def class_of(pod: TracePod) -> PodClass:
    return PodClass(pod.cpu_milli, pod.gpu_milli, pod.num_gpu, pod.gpu_spec)


def _demand(pod: TracePod) -> Demand | None:
    if pod.num_gpu == 0:
        return None
    if pod.num_gpu == 1 and pod.gpu_milli < FULL_MILLI:
        return GpuShare(pod.gpu_milli)
    return WholeGpus(pod.num_gpu)
