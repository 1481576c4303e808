"""Measures the speed of the engine with pods that need more than capacity checks: rules about pods, slices, several
fractions.

The fleet and the load of `enginebench`, but a tenth of the nodes have their GPUs in MIG mode, and of the fifty shapes
five have pod affinity, anti-affinity or hard spread, and ten ask for MIG instances or for parts of devices in one of
the other ways.
"""

from __future__ import annotations

import msgspec

from shoal.api.requirement import Requirement
from shoal.api.selectors import Selector
from shoal.devices.layout import Layout
from shoal.engine.asks import Ask
from shoal.engine.device_demand import Demand, GpuShares, MemoryShares, MigTiles, VirtualGpus
from shoal.engine.events import NodeFacts
from shoal.engine.pod_identity import NO_IDENTITY, PodIdentity, PodLabels
from shoal.engine.pod_rules import PodRules, SelectedPods, Spread, Term
from shoal.sim.enginebench import Bench, fleet_node, shape_ask

MIG_EVERY = 10
_NODES_AT_LOAD = 5_000
_MIG_MODEL = "NVIDIA-A100-SXM4-80GB"
_MIG = Layout(memory_mib=81920, mig="A100-80GB", mig_devices=tuple(range(8)))
_WHOLE = Layout(memory_mib=81920)
_HOST, _ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"

_DEMANDS: tuple[Demand, ...] = (
    MigTiles((("1g.10gb", 1),)),
    MigTiles((("2g.20gb", 1),)),
    MigTiles((("3g.40gb", 1),)),
    MigTiles((("1g.10gb", 2), ("3g.40gb", 1))),
    GpuShares(2, 500),
    GpuShares(4, 250),
    MemoryShares(1, 20480),
    MemoryShares(2, 40960),
    VirtualGpus(1, mib=10240, cores_percent=30),
    VirtualGpus(2, percent=50, cores_percent=50),
)


class MixedBench(Bench):
    """The steady load of `Bench` with the wider choice of asks."""

    def node(self, index: int) -> NodeFacts:
        plain = fleet_node(index)
        if index % MIG_EVERY == MIG_EVERY - 1:
            return msgspec.structs.replace(plain, gpu_model=_MIG_MODEL, layout=_MIG)
        return msgspec.structs.replace(plain, layout=_WHOLE)

    def ask(self, index: int) -> Ask:
        plain = shape_ask(index)
        special = index % 50
        if special in _RULES:
            return msgspec.structs.replace(plain, near=_RULES[special])
        place = _SPECIAL.get(special)
        if place is None:
            return plain
        return msgspec.structs.replace(plain, devices=_DEMANDS[place], gpu_models=frozenset())

    def who(self, index: int) -> PodIdentity:
        return PodIdentity(PodLabels("team", (("app", f"app-{index}"),))) if index in _RULES else NO_IDENTITY


def mixed_placements_per_s(seed: int, count: int = 20_000) -> float:
    """Placements per second at 5,000 nodes."""
    bench = MixedBench(_NODES_AT_LOAD, seed)
    bench.fill()
    return 1 / bench.placements(count)


def _own(index: int, key: str) -> Term:
    return Term(key, SelectedPods(Selector((Requirement("app", "In", (f"app-{index}",)),)), ("team",)))


# Spread over the plain shapes: small and large ones, so that no kind of ask is missing from either side.
_RULES: dict[int, PodRules] = {
    25: PodRules(anti=(_own(25, _HOST),)),
    28: PodRules(anti=(_own(28, _HOST),)),
    30: PodRules(affinity=(_own(30, _ZONE),)),
    33: PodRules(affinity=(_own(33, _ZONE),)),
    48: PodRules(spread=(Spread(_ZONE, _own(48, _ZONE).selected, max_skew=5),)),
}
_SPECIAL: dict[int, int] = {shape: place for place, shape in enumerate((24, 26, 27, 29, 31, 32, 34, 35, 40, 44))}
