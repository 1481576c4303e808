"""Small random clusters for which plans of nodes are compared: what their pods request, and what may be provisioned.

There are five kinds: plain pods; gangs, each of which has to run in one zone as a whole; fractions of GPUs; MIG
instances on GPUs that are cut on demand; gangs beside fractions. Prices differ between zones, and not each zone offers
each type.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from shoal.api.container import Container, Resources
from shoal.api.meta import ObjectMeta
from shoal.api.pod import Pod, PodSpec
from shoal.autoscale.nodes.catalog import quantities_of
from shoal.autoscale.nodes.instance_types import InstanceType, Offering
from shoal.autoscale.nodes.plan import PlanningSettings
from shoal.autoscale.nodes.planning_input import PlanningInput
from shoal.autoscale.nodes.pools import NodePool
from shoal.autoscale.requirements.labels import ZONE_LABEL

Kind = Literal["plain", "gangs", "fractions", "MIG", "gangs and fractions"]
KINDS: Final[tuple[Kind, ...]] = ("plain", "gangs", "fractions", "MIG", "gangs and fractions")
ZONES: Final = ("a", "b", "c")
GIB_OF_CORE: Final = 4
"""Memory of a machine for each of its cores."""
_GIB: Final = 2**30
_PROFILES: Final = ("1g.10gb", "1g.10gb", "2g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
_PRODUCT: Final = "NVIDIA-H100-80GB-HBM3"


class Item(NamedTuple):
    """What a pod requests."""

    cores: int
    gib: int
    gpus: int = 0
    tenths: int = 0
    """Of one GPU."""
    profile: str = ""
    gang: str = ""


class Machine(NamedTuple):
    """A type with its price in each zone that offers it."""

    name: str
    cores: int
    gpus: int
    prices: tuple[tuple[str, float], ...]


class Cluster(NamedTuple):
    """Pods and machines of one case."""

    kind: Kind
    items: tuple[Item, ...]
    machines: tuple[Machine, ...]

    @property
    def gangs(self) -> tuple[str, ...]:
        return tuple(sorted({item.gang for item in self.items} - {""}))


def random_cluster(seed: int) -> Cluster:
    """The cluster of this seed: the kinds follow one another."""
    kind = KINDS[seed % len(KINDS)]
    chance = random.Random(seed)
    machines = (
        Machine("small", 4, 0, tuple((zone, 0.3) for zone in ZONES)),
        Machine("large", 96, 8, (("a", round(30 * chance.uniform(0.9, 1.2), 3)),)),
        *(_machine(chance, number, kind) for number in range(chance.randint(3, 6))),
    )
    return Cluster(kind, tuple(_items(chance, kind)), machines)


def _machine(chance: random.Random, number: int, kind: Kind) -> Machine:
    least = 0 if kind == "plain" else 1
    cores, gpus = chance.choice([8, 16, 32, 64, 96]), chance.choice([least, 1, 2, 4, 8])
    price = 0.05 * cores + 2.5 * gpus * chance.uniform(0.7, 1.3) + chance.uniform(0, 0.5)
    zones = sorted(chance.sample(ZONES, chance.randint(1, len(ZONES))))
    return Machine(
        f"t{number}", cores, gpus, tuple((zone, round(price * chance.uniform(0.85, 1.15), 3)) for zone in zones)
    )


def _items(chance: random.Random, kind: Kind) -> Iterator[Item]:
    """Each fits on the large machine, so that each cluster has a plan for all pods."""
    if kind in ("gangs", "gangs and fractions"):
        for number in range(chance.randint(1, 2)):
            worker = _item(chance)._replace(gpus=chance.choice([1, 2, 4]), gang=f"g{number}")
            yield from [worker] * chance.randint(2, 3)
            if chance.random() < 0.5:
                yield Item(2, 4, gang=f"g{number}")
    for _ in range(chance.randint(2, 4) if "gangs" in kind else chance.randint(4, 9)):
        item = _item(chance)
        if "fractions" in kind and chance.random() < 0.8:
            item = item._replace(cores=min(item.cores, 6), gib=min(item.gib, 12), tenths=chance.randint(2, 8))
        elif kind == "MIG" and chance.random() < 0.8:
            item = item._replace(cores=min(item.cores, 6), gib=min(item.gib, 12), profile=chance.choice(_PROFILES))
        else:
            item = item._replace(gpus=chance.choice([0, 0, 1, 1, 2, 4]))
        yield item


def _item(chance: random.Random) -> Item:
    cores = chance.choice([1, 2, 3, 6, 12, 24])
    return Item(cores, cores * chance.choice([1, 2, 3]))


def planning_input(cluster: Cluster) -> PlanningInput:
    """The same for Shoal's planner."""
    gangs = {f"default/p{number}": item.gang for number, item in enumerate(cluster.items) if item.gang}
    pools = [NodePool("gpu")]
    if cluster.kind == "MIG":
        pools.append(NodePool("cut", labels={"shoal.dev/mig-layout": "dynamic"}))
    return PlanningInput(
        pools=tuple(pools),
        types={pool.name: tuple(_type(one) for one in cluster.machines) for pool in pools},
        pods=tuple(pod_of(f"p{number}", item) for number, item in enumerate(cluster.items)),
        gangs=gangs,
        together=dict.fromkeys(cluster.gangs, ZONE_LABEL),
        settings=PlanningSettings(packing="LeastCost"),
    )


def _type(one: Machine) -> InstanceType:
    labels = {"node.kubernetes.io/instance-type": (one.name,)}
    capacity = {"cpu": one.cores * 1000, "memory": one.cores * GIB_OF_CORE * _GIB, "pods": 110}
    if one.gpus:
        capacity["nvidia.com/gpu"] = one.gpus
        labels["nvidia.com/gpu.product"] = (_PRODUCT,)
    return InstanceType(
        one.name,
        capacity,
        labels=labels,
        offerings=tuple(Offering(zone, "on-demand", price) for zone, price in one.prices),
    )


def pod_of(name: str, item: Item) -> Pod:
    wanted = {"cpu": item.cores * 1000, "memory": item.gib * _GIB}
    if item.gpus:
        wanted["nvidia.com/gpu"] = item.gpus
    if item.profile:
        wanted[f"nvidia.com/mig-{item.profile}"] = 1
    amounts = quantities_of(wanted)
    notes = {"gpu-fraction": f"0.{item.tenths}"} if item.tenths else {}
    return Pod(
        ObjectMeta(name=name, namespace="default", annotations=notes),
        PodSpec(containers=(Container(name="main", resources=Resources(amounts, amounts)),)),
    )
