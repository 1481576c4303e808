"""Measures the placement of a large gang: a thousand one-GPU pods on five thousand nodes.

Blocks have 128 nodes of eight GPUs, racks 16. In the first case nodes are taken in part at random and one block in five
has the capacity; in the second one block alone has it, on exactly 125 nodes that are free, and the gang takes all of
them. The whole round is measured, events are not.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from time import perf_counter

import msgspec

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.cycle import cycle
from shoal.engine.device_demand import WholeGpus
from shoal.engine.events import GroupSeen, NodeFacts, NodeSeen, PodArrived, PodBound, TopologySeen
from shoal.engine.groups import GroupFacts, TopologyFacts, TopologyRequirement
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.pod_identity import PodIdentity
from shoal.engine.pod_mix import PodMix, class_of
from shoal.engine.profile import DEFAULT_POLICY, profile_named
from shoal.units.errors import BugError

NODES = 5_000
BLOCK = 128
RACK = 16
GPUS = 8
PODS = 1_000
EXACTLY = PODS // GPUS
"""Nodes that the gang fills to the last GPU."""

_GIB = 1024**3
_TOPOLOGY = TopologyFacts("fleet", ("example.com/block", "example.com/rack", "kubernetes.io/hostname"))


class GangFigures(msgspec.Struct, frozen=True):
    """Seconds for one round that places the gang."""

    block_s: float
    exact_s: float


def gang_1000_s(seed: int) -> float:
    """The slower of both cases."""
    both = figures(seed)
    return max(both.block_s, both.exact_s)


def figures(seed: int) -> GangFigures:
    """Both cases, each on a fleet of its own."""
    return GangFigures(GangBench(seed, exact=False).round_s(), GangBench(seed, exact=True).round_s())


class GangBench:
    """One fleet with one gang that waits for a block."""

    def __init__(self, seed: int, *, exact: bool) -> None:
        self.random = random.Random(seed)
        self.cluster = Cluster()
        self.seed = seed
        self._intake = Intake(self.cluster)
        ask = Ask(requests=(("cpu", 8_000), ("memory", 64 * _GIB)), devices=WholeGpus(1))
        self.placement = Placement(
            self.cluster, profile_named(DEFAULT_POLICY, self.cluster, PodMix.of([class_of(ask)]))
        )
        self._intake.apply(TopologySeen(_TOPOLOGY))
        for index in range(NODES):
            self._intake.apply(NodeSeen(_node(index)))
        for index, taken in enumerate(self._exact() if exact else self._loose()):
            if taken:
                held = Ask(requests=(("cpu", taken * 8_000),), devices=WholeGpus(taken))
                self._intake.apply(PodBound(f"others/{index}", held, _name(index)))
        wish = TopologyRequirement(_TOPOLOGY.name, required=_TOPOLOGY.levels[0])
        self._intake.apply(GroupSeen(GroupFacts("team/train", PODS, requirement=wish)))
        who = PodIdentity(group="team/train")
        for index in range(PODS):
            self._intake.apply(PodArrived(f"team/train-{index}", ask, who=who))

    def round_s(self) -> float:
        """Seconds of the round in which the gang is placed, all of it in one block."""
        start = perf_counter()
        plan = cycle(self.cluster, self.placement, now_s=0.0, seed=self.seed)
        took = perf_counter() - start
        blocks = {self.cluster.row_of[place.node] // BLOCK for place in plan.placed}
        if len(plan.placed) != PODS or len(blocks) != 1:
            raise BugError(f"the gang went to {len(plan.placed)} places in {len(blocks)} blocks")
        return took

    def _loose(self) -> Iterator[int]:
        """GPUs taken per node: much of every block, but nearly nothing of one in five."""
        for index in range(NODES):
            if index // BLOCK % 5 == 0:
                yield self.random.choice((0, 0, 0, 0, 0, 0, 0, 1))
            else:
                yield self.random.randint(1, GPUS)

    def _exact(self) -> Iterator[int]:
        """One block has as many nodes free as the gang fills, at random places; every other block one fewer."""
        chosen = self.random.randrange(NODES // BLOCK)
        for block in range(-(-NODES // BLOCK)):
            free = EXACTLY if block == chosen else EXACTLY - 1
            at = set(self.random.sample(range(BLOCK), free))
            for number in range(min(BLOCK, NODES - block * BLOCK)):
                yield 0 if number in at else GPUS


def _node(index: int) -> NodeFacts:
    labels = zip(_TOPOLOGY.levels, (f"block-{index // BLOCK}", f"rack-{index // RACK}", _name(index)), strict=True)
    return NodeFacts(
        name=_name(index),
        allocatable={"cpu": 128_000, "memory": 2048 * _GIB, "pods": 110},
        labels=dict(labels),
        gpus=GPUS,
        gpu_model="NVIDIA-H100-80GB-HBM3",
    )


def _name(index: int) -> str:
    return f"node-{index:05}"
