"""Nodes in one line: `node("n1").cpu(64).gpus(8).model("A100").label("zone", "a")`.

Defaults describe a machine on which nothing is scarce, so that a test names only what it is about. Every step is a
copy; a prototype can be shared.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from msgspec import structs

from shoal.api.taints import Effect, Taint
from shoal.devices.layout import PLAIN, Layout, NumaPolicy, Sharing
from shoal.engine.events import NodeFacts

GIB = 1 << 30


@dataclass(frozen=True)
class NodeBuilder:
    name: str
    allocatable: dict[str, int] = field(default_factory=lambda: {"cpu": 64_000, "memory": 256 * GIB, "pods": 110})
    labels: dict[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    gpu_count: int = 0
    gpu_model: str = ""
    unschedulable: bool = False
    place: int | None = None
    layout: Layout = PLAIN

    def cpu(self, cores: float) -> NodeBuilder:
        return self.resource("cpu", round(cores * 1000))

    def memory_gib(self, gib: float) -> NodeBuilder:
        return self.resource("memory", round(gib * GIB))

    def pods(self, count: int) -> NodeBuilder:
        return self.resource("pods", count)

    def resource(self, name: str, amount: int) -> NodeBuilder:
        return replace(self, allocatable={**self.allocatable, name: amount})

    def without(self, resource: str) -> NodeBuilder:
        return replace(self, allocatable={name: n for name, n in self.allocatable.items() if name != resource})

    def gpus(self, count: int) -> NodeBuilder:
        return replace(self, gpu_count=count)

    def model(self, name: str) -> NodeBuilder:
        return replace(self, gpu_model=name)

    def laid_out(self, layout: Layout) -> NodeBuilder:
        """What its GPUs are beside their number."""
        return replace(self, layout=layout)

    def memory_mib(self, mib: int) -> NodeBuilder:
        """Of each GPU."""
        return replace(self, layout=structs.replace(self.layout, memory_mib=mib))

    def replicated(self, times: int, *, one_per_request: bool = False, renamed: bool = False) -> NodeBuilder:
        sharing: Sharing = "mps" if one_per_request else "time-slicing"
        layout = structs.replace(
            self.layout, replicas=times, sharing=sharing, one_per_request=one_per_request, renamed=renamed
        )
        return replace(self, layout=layout)

    def islands(self, *of_device: int) -> NodeBuilder:
        return replace(self, layout=structs.replace(self.layout, islands=of_device))

    def numa(self, *of_device: int, policy: NumaPolicy = "none", cores_milli: tuple[int, ...] = ()) -> NodeBuilder:
        layout = structs.replace(self.layout, numa=of_device, numa_policy=policy, numa_cores_milli=cores_milli)
        return replace(self, layout=layout)

    def cut_on_demand(self, mig: str, *devices: int) -> NodeBuilder:
        """Some devices in MIG mode, all by default."""
        chosen = devices or tuple(range(self.gpu_count))
        return replace(self, layout=structs.replace(self.layout, mig=mig, mig_devices=chosen))

    def label(self, key: str, value: str = "") -> NodeBuilder:
        return replace(self, labels={**self.labels, key: value})

    def taint(self, key: str, effect: Effect = "NoSchedule", value: str = "") -> NodeBuilder:
        return replace(self, taints=(*self.taints, Taint(key, effect, value)))

    def cordoned(self) -> NodeBuilder:
        return replace(self, unschedulable=True)

    def rank(self, rank: int) -> NodeBuilder:
        return replace(self, place=rank)

    def facts(self) -> NodeFacts:
        return NodeFacts(
            name=self.name,
            allocatable=self.allocatable,
            labels=self.labels,
            taints=self.taints,
            unschedulable=self.unschedulable,
            gpus=self.gpu_count,
            gpu_model=self.gpu_model,
            rank=self.place,
            layout=self.layout,
        )


def node(name: str) -> NodeBuilder:
    return NodeBuilder(name)


def fleet(count: int, prototype: NodeBuilder) -> list[NodeBuilder]:
    """Equal nodes, named after the prototype: n0, n1, ..."""
    return [replace(prototype, name=f"{prototype.name}{index}") for index in range(count)]
