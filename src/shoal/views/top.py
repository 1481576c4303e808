"""Builds the document of GPU usage: per model, per holder, per node, and what is lost to fragmentation.

Read off the facts as they are; nothing is decided. GPUs are counted in whole ones and parts of them. A node whose GPUs
are cut into fixed MIG instances tells of those by profile, since no other request can use them.

Fragmentation is F of the FGD paper (`engine/fragmentation.py`): free GPU compute that a typical pod could not use, as
the mean over the pods that wait for GPUs, or over those that run where none waits. Rejected: the mean over both. Many
small pods that run then hide that the free GPUs are of no use to the large pod that waits. Rejected as well: the share
of nodes that are partly used. It rises with every pod that starts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec
from msgspec import structs

from shoal.api.node import Node
from shoal.devices.claimable_devices import CLAIM_DRIVER
from shoal.engine import facts
from shoal.engine.asks import Ask
from shoal.engine.cluster import GPU_MODEL_LABEL, Cluster
from shoal.engine.device_demand import FULL_MILLI
from shoal.engine.device_notation import names
from shoal.engine.fragmentation import Fragmentation
from shoal.engine.pod_mix import PodMix, class_of

_GIB = 1 << 30
_POPULAR = 0.95
_TYPE, _ZONE = "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone"
_ROUND = 3

Resource = Literal["gpu", "cpu", "memory"]
OwnerOf = Callable[[str], str]
"""Pod -> who it belongs to, as namespace/name."""


class Slices(msgspec.Struct, frozen=True):
    held: int
    total: int


class NodeTop(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    state: str
    """`ready`, `cordoned` or `not ready`."""
    model: str
    """Of its GPUs, or its instance type where it has none."""
    zone: str
    gpus: int
    held: float
    free: float
    devices: list[float]
    """What is free of each."""
    unhealthy: list[int]
    """Which of them do not work: neither held nor free. The last ones where a node reports only their number."""
    slices: dict[str, Slices]
    """Fixed MIG instances by profile."""
    claimed: Slices | None
    """GPUs that are given to resource claims; the total is 0 where MIG instances are created for claims. None where no
    driver publishes GPUs of the node."""
    fragmented: float
    """So many of the free GPUs are of no use to what is asked for here."""
    cores_free: float
    cores: float
    memory_free_gib: float = msgspec.field(name="memoryFreeGiB")
    memory_gib: float = msgspec.field(name="memoryGiB")
    pods: int
    holders: list[str]
    """Those who hold most first."""


class ModelTop(msgspec.Struct, frozen=True, rename="camel"):
    model: str
    nodes: int
    gpus: int
    held: float
    free: float
    empty: int
    """GPUs with nothing on them."""
    most_on_one: int
    """The most empty ones on one node that takes pods: no pod that asks for more can start."""
    fragmented: float
    unhealthy: int


class HolderTop(msgspec.Struct, frozen=True):
    name: str
    gpus: float
    slices: int
    pods: int
    nodes: int


class Top(msgspec.Struct, frozen=True):
    nodes: list[NodeTop]
    models: list[ModelTop]
    holders: list[HolderTop]
    waiting: dict[str, float]
    """`pods` that have no node, and the `gpus` that they ask for; pods that their controllers have yet to create
    (`notCreated`); `workloads` whose quota is not free yet; `gangs` that a queue keeps back before they have pods."""


class HeldBack(NamedTuple):
    """What no scheduler may place yet."""

    pods: int = 0
    gpu_milli: int = 0
    """What these pods ask for."""
    workloads: int = 0
    """In queues of Kueue."""
    gangs: int = 0
    """Without pods."""
    not_created: Collection[str] = ()
    """Pods that their controllers have yet to create, also some that the facts have."""


NOTHING_HELD = HeldBack()


def top_of(
    cluster: Cluster,
    nodes: Iterable[Node],
    owner_of: OwnerOf,
    held: HeldBack = NOTHING_HELD,
    typical: Sequence[Ask] | None = None,
) -> Top:
    """`nodes`: those that are shown, with the holders of their GPUs. `typical`: the requests that fragmentation is
    measured by; by default those of waiting pods, if any wait."""
    values = _lost(cluster, (_waiting(cluster) or _placed(cluster)) if typical is None else typical)
    told = [_node(cluster, node, values, owner_of) for node in nodes if node.metadata.name in cluster.row_of]
    told.sort(key=lambda node: (node.state == "ready", -node.gpus, -node.free, node.name))
    pending = [pod for pod in cluster.pending.in_order() if pod not in held.not_created]
    asked = sum(cluster.pending[pod].charge.gpu_milli for pod in pending)
    waiting = {
        "pods": float(len(pending) + held.pods),
        "gpus": _gpus(asked + held.gpu_milli),
        "notCreated": float(len(held.not_created)),
        "workloads": float(held.workloads),
        "gangs": float(held.gangs),
    }
    rows = {cluster.row_of[node.name] for node in told}
    return Top(told, _models(told), _holders(cluster, owner_of, rows), waiting)


def most_used_first(nodes: Iterable[NodeTop], resource: Resource) -> list[NodeTop]:
    used: Callable[[NodeTop], float]
    match resource:
        case "gpu":
            used = _held
        case "cpu":
            used = _cores_used
        case "memory":
            used = _memory_used
    return sorted(nodes, key=lambda node: (-used(node), node.name))


def _held(node: NodeTop) -> float:
    """GPUs; MIG instances after all whole GPUs."""
    return node.held + sum(each.held for each in node.slices.values()) / 1000


def _cores_used(node: NodeTop) -> float:
    return node.cores - node.cores_free


def _memory_used(node: NodeTop) -> float:
    return node.memory_gib - node.memory_free_gib


def _placed(cluster: Cluster) -> list[Ask]:
    return [holding.ask for holding in cluster.pods.values()]


def _waiting(cluster: Cluster) -> list[Ask]:
    """Only requests for GPUs."""
    asks = [cluster.pending[pod].charge.ask for pod in cluster.pending.in_order()]
    return [ask for ask in asks if ask.devices is not None]


def all_requests(cluster: Cluster) -> list[Ask]:
    """Of placed and of waiting pods: the same for all placements of these pods."""
    return [*_placed(cluster), *_waiting(cluster)]


def _lost(cluster: Cluster, asks: Iterable[Ask]) -> list[float]:
    """F by row, of the pods that want GPUs. The model they ask for is ignored: a GPU of another model is no
    fragment."""
    classes = (structs.replace(class_of(ask), models="") for ask in asks if ask.devices is not None)
    mix = PodMix.of(each for each in classes if each.gpus)
    values: list[float] = [0.0] * cluster.rows
    if mix.total:
        values = Fragmentation(cluster, mix.popular(_POPULAR)).of_rows(cluster.all_rows()).tolist()
    return values


def _node(cluster: Cluster, node: Node, values: list[float], owner_of: OwnerOf) -> NodeTop:
    row = cluster.row_of[node.metadata.name]
    labels = cluster.labels.of(row)
    count = int(cluster.devices.count[row])
    full = cluster.devices.full[row, :count].tolist()
    left = cluster.devices.free(row)[:count]
    slices = _slices(cluster, node, row)
    free = sum(left)
    total, unused = cluster.total[row], cluster.free[row]
    unhealthy = [device for device in cluster.devices.layout(row).broken if device < count]
    withdrawn = 0 if unhealthy else _withdrawn(node, cluster.devices.layout(row).replicas)
    unhealthy += range(count, count + withdrawn)
    gpus = count + withdrawn or _physical(labels, slices)
    return NodeTop(
        name=node.metadata.name,
        state=_state(node),
        model=labels.get(GPU_MODEL_LABEL, "") or labels.get(_TYPE, "") or ("unknown" if gpus else ""),
        zone=labels.get(_ZONE, ""),
        gpus=gpus,
        held=_gpus(sum(full) - free),
        free=_gpus(free),
        devices=[_gpus(each) for each in left] + [0.0] * withdrawn,
        unhealthy=unhealthy,
        slices=slices,
        claimed=_claimed(cluster, row),
        fragmented=_gpus(values[row]) if count else 0.0,
        cores_free=round(int(unused[facts.CPU]) / 1000, _ROUND),
        cores=round(int(total[facts.CPU]) / 1000, _ROUND),
        memory_free_gib=round(int(unused[facts.MEMORY]) / _GIB, 1),
        memory_gib=round(int(total[facts.MEMORY]) / _GIB, 1),
        pods=len(cluster.pods_on(row)),
        holders=[name for name, _ in _holders_on(cluster, row, owner_of).most_common()],
    )


def _state(node: Node) -> str:
    if not node.is_ready():
        return "not ready"
    return "cordoned" if node.spec.unschedulable else "ready"


def _withdrawn(node: Node, replicas: int) -> int:
    """GPUs that the node has and its device plugin does not advertise: it takes unhealthy ones from allocatable."""
    there, usable = (amounts.get(names.GPU) for amounts in (node.status.capacity, node.allocatable()))
    if there is None or usable is None:
        return 0
    return max(0, there.value() - usable.value()) // max(1, replicas)


def _physical(labels: Mapping[str, str], slices: Mapping[str, Slices]) -> int:
    """GPUs that are all cut up are counted by their label."""
    counted = labels.get(names.COUNT, "")
    return int(counted) if slices and counted.isascii() and counted.isdigit() and len(counted) < 5 else 0


def _slices(cluster: Cluster, node: Node, row: int) -> dict[str, Slices]:
    totals = {name: amount.value() for name, amount in node.allocatable().items() if name.startswith(names.MIG_PREFIX)}
    if not any(totals.values()):
        return {}
    held: Counter[str] = Counter()
    for pod in cluster.pods_on(row):
        held.update({name: amount for name, amount in cluster.pods[pod].ask.requests if name in totals})
    return {name.removeprefix(names.MIG_PREFIX): Slices(held[name], total) for name, total in totals.items() if total}


def _claimed(cluster: Cluster, row: int) -> Slices | None:
    devices = [
        each for each in cluster.dra.pools.on(row) if each.pool.startswith(f"{CLAIM_DRIVER}/") and not each.is_wide
    ]
    if not devices:
        return None
    held = sum(bool(cluster.dra.usage.shares(each.id)) for each in devices)
    # Devices that draw on common counters overlap: a GPU and its possible instances.
    return Slices(held, 0 if any(each.facts.consumes for each in devices) else len(devices))


def _holders_on(cluster: Cluster, row: int, owner_of: OwnerOf) -> Counter[str]:
    found: Counter[str] = Counter()
    for pod in cluster.pods_on(row):
        charge = cluster.pods[pod].charge
        amount = charge.gpu_milli + FULL_MILLI * _slices_of(cluster, pod)
        if amount:
            found[owner_of(pod)] += amount
    return found


def _slices_of(cluster: Cluster, pod: str) -> int:
    return sum(amount for name, amount in cluster.pods[pod].ask.requests if name.startswith(names.MIG_PREFIX))


def _models(nodes: Iterable[NodeTop]) -> list[ModelTop]:
    by_model: dict[str, list[NodeTop]] = {}
    for node in nodes:
        if node.gpus:
            by_model.setdefault(node.model, []).append(node)
    found = [
        ModelTop(
            model,
            len(these),
            sum(node.gpus for node in these),
            round(sum(node.held for node in these), _ROUND),
            round(sum(node.free for node in these), _ROUND),
            sum(_empty(node) for node in these),
            max((_empty(node) for node in these if node.state == "ready"), default=0),
            round(sum(node.fragmented for node in these), _ROUND),
            sum(len(node.unhealthy) for node in these),
        )
        for model, these in by_model.items()
    ]
    return sorted(found, key=lambda each: (-each.gpus, each.model))


def _empty(node: NodeTop) -> int:
    return sum(1 for each in node.devices if each == 1)


def _holders(cluster: Cluster, owner_of: OwnerOf, rows: Collection[int]) -> list[HolderTop]:
    by_name: dict[str, list[str]] = {}
    for pod, holding in cluster.pods.items():
        if holding.row not in rows:
            continue
        if holding.charge.gpu_milli or _slices_of(cluster, pod):
            by_name.setdefault(owner_of(pod), []).append(pod)
    found = [
        HolderTop(
            name,
            _gpus(sum(cluster.pods[pod].charge.gpu_milli for pod in pods)),
            sum(_slices_of(cluster, pod) for pod in pods),
            len(pods),
            len({cluster.pods[pod].row for pod in pods}),
        )
        for name, pods in by_name.items()
    ]
    return sorted(found, key=lambda each: (-each.gpus, -each.slices, each.name))


def _gpus(milli: float) -> float:
    # The sum turns -0.0 into 0.0.
    return round(milli / FULL_MILLI, _ROUND) + 0.0
