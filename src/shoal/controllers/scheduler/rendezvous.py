"""Computes the rendezvous annotations of pods of a distributed job, which are written with the binding. Variables of
the containers refer to them, and are read when the containers start.

The pods of a gang get these values: pods of one Job, for example, that request it start together. A pod with an owner
and without a gang gets none: each pod of the owner would be rank 0 of 1.

Ranks follow the numbers in the pods' names, which their controllers give in order. A pod that was bound keeps its rank;
one that replaces another takes the rank that is free. An address of the first pod is passed on only if it is known
before that pod runs: behind a headless service, on the node's own network, or where it is alone; else the first pod
says so.

Rejected: ranks by nodes, so that neighbours have neighbouring ranks. Indexed Jobs and checkpoints expect a pod's index
to be its rank; the levels of the network are passed on instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from shoal.api.groups.shoal import RENDEZVOUS
from shoal.api.partial import OwnedMeta
from shoal.client.context import Context
from shoal.client.item import Item
from shoal.client.kind import NODES, PODS
from shoal.controllers.scheduler.pod_conditions import about
from shoal.controllers.scheduling_loop.protocols import SchedulerState
from shoal.engine.gang_members import Gang
from shoal.engine.plan import Place
from shoal.store.watched.pod_views import PodView
from shoal.units.numbers import whole_of

ASKS = RENDEZVOUS
RANK, NODE_RANK = "shoal.dev/rank", "shoal.dev/node-rank"
WORLD_SIZE = "shoal.dev/world-size"
MASTER_ADDRESS, MASTER_PORT = "shoal.dev/master-addr", "shoal.dev/master-port"
NODE_LIST = "shoal.dev/nodes"
TOPOLOGY = "shoal.dev/nccl-topology"
"""Per level that the gang was to be close in, else per level that nodes are usually labelled with: domain -> ranks."""
DEFAULT_PORT = "29500"
_ALONE = "localhost"
_NO_ADDRESS = (
    "MASTER_ADDR stays empty: where this pod will listen is not known before it runs. Give the pods a subdomain of a "
    "headless Service (a Job: completionMode Indexed as well), or hostNetwork"
)
_NO_GANG = (
    "no rank and no WORLD_SIZE are given: it is not known who starts with this pod. Annotate {who} shoal.dev/gang: "
    '"true", or with the number of its pods'
)
USUAL_LEVELS = (
    "topology.kubernetes.io/zone",
    "topology.k8s.aws/network-node-layer-1",
    "topology.k8s.aws/network-node-layer-2",
    "topology.k8s.aws/network-node-layer-3",
    "cloud.google.com/gce-topology-block",
    "cloud.google.com/gce-topology-subblock",
    "cloud.provider.com/topology-block",
    "cloud.provider.com/topology-rack",
    "nvidia.com/gpu.clique",
)
"""From the widest to the narrowest."""

Levels = dict[str, dict[str, list[int]]]
_ASKED = ASKS.encode()
_NUMBERS = re.compile(r"(\d+)")


class _HostnameSpec(msgspec.Struct, rename="camel"):
    hostname: str = ""
    subdomain: str = ""
    host_network: bool = False


class _RendezvousPod(msgspec.Struct):
    metadata: OwnedMeta = msgspec.field(default_factory=OwnedMeta)
    spec: _HostnameSpec = msgspec.field(default_factory=_HostnameSpec)


class _NodeAddress(msgspec.Struct):
    type: str = ""
    address: str = ""


class _NodeAddresses(msgspec.Struct):
    addresses: tuple[_NodeAddress, ...] = ()


class _AddressedNode(msgspec.Struct):
    status: _NodeAddresses = msgspec.field(default_factory=_NodeAddresses)


class _GangRanks(msgspec.Struct, frozen=True):
    """What is the same for all pods of a gang."""

    version: int
    """Of the facts."""
    ranks: dict[str, int]
    shared: dict[str, str]


class Rendezvous:
    def __init__(self, context: Context, scheduling: SchedulerState) -> None:
        self._pods = context.informers.of(PODS)
        self._nodes = context.informers.of(NODES)
        self._events = context.events
        self._scheduling = scheduling
        self._given: dict[str, dict[str, int]] = {}
        """Gang -> ranks by uid that were given here: bindings of one gang are under way at the same time."""
        self._ranks_by_gang: dict[str, _GangRanks] = {}

    def facts(self, place: Place, view: PodView) -> dict[str, str]:
        """Annotations for the pod's binding; none unless it asks."""
        item = self._pods.get(view.namespace, view.name)
        if item is None or _ASKED not in item.data:
            return {}
        meta = item.read(_RendezvousPod).metadata
        said = meta.annotations
        if said.get(ASKS) != "true":
            return {}
        gang = self._gang(place.pod)
        if gang is None and (owner := meta.controller()):
            self._events.record(
                about(view), "NoGang", _NO_GANG.format(who=f"{owner.kind} {owner.name}"), type_="Warning"
            )
            return {}
        gang_ranks = self._gang_ranks(place.pod, gang)
        rank = str(gang_ranks.ranks[place.pod])
        found = {RANK: rank, NODE_RANK: rank, **gang_ranks.shared}
        if rank == "0" and MASTER_ADDRESS not in found:
            self._events.record(about(view), "NoMasterAddress", _NO_ADDRESS, type_="Warning")
        return found if MASTER_PORT in said else {**found, MASTER_PORT: DEFAULT_PORT}

    def _gang(self, pod: str) -> Gang | None:
        cluster = self._scheduling.cluster
        allocation = cluster.pods.get(pod)
        return cluster.gangs.find(allocation.who.group) if allocation is not None and allocation.who.group else None

    def _gang_ranks(self, pod: str, gang: Gang | None) -> _GangRanks:
        if gang is None:
            return self._made({pod: 0}, None)
        cluster = self._scheduling.cluster
        known = self._ranks_by_gang.get(gang.name)
        if known is not None and known.version == cluster.version and pod in known.ranks:
            return known
        for name in [name for name in self._given if cluster.gangs.find(name) is None]:
            self._given.pop(name, None)
            self._ranks_by_gang.pop(name, None)
        gang_ranks = self._ranks_by_gang[gang.name] = self._made(self._ranked(gang), gang)
        return gang_ranks

    def _made(self, ranks: dict[str, int], gang: Gang | None) -> _GangRanks:
        order = sorted(ranks, key=lambda pod: (ranks[pod], pod))
        nodes = [self._node_of(pod) for pod in order]
        least = gang.facts.minimum if gang is not None and gang.facts is not None else 0
        shared = {WORLD_SIZE: str(max(len(order), least)), NODE_LIST: ",".join(nodes)}
        if address := self._address(order[0], nodes[0]) or ("" if len(order) > 1 or least > 1 else _ALONE):
            shared[MASTER_ADDRESS] = address
        if gang is not None and (found := self._near(gang, nodes)):
            shared[TOPOLOGY] = msgspec.json.encode(found).decode()
        return _GangRanks(self._scheduling.cluster.version, ranks, shared)

    def _ranked(self, gang: Gang) -> dict[str, int]:
        """All pods of the gang: those that have a rank keep it, the others take the lowest that are free."""
        given = self._given.get(gang.name, {})
        items = {pod: item for pod in (*gang.running, *gang.waiting) if (item := self._item(pod)) is not None}
        ranks = {pod: rank for pod, item in items.items() if (rank := given.get(item.uid, _rank_of(item))) is not None}
        free = iter(sorted(set(range(len(items) + len(ranks))) - set(ranks.values())))
        for pod in sorted(items.keys() - ranks.keys(), key=_natural):
            ranks[pod] = next(free)
        self._given[gang.name] = {items[pod].uid: rank for pod, rank in ranks.items()}
        return ranks

    def _item(self, pod: str) -> Item | None:
        namespace, _, name = pod.partition("/")
        return self._pods.get(namespace, name)

    def _node_of(self, pod: str) -> str:
        cluster = self._scheduling.cluster
        allocation = cluster.pods.get(pod)
        return cluster.names[allocation.row] if allocation is not None else ""

    def _address(self, pod: str, node: str) -> str:
        """Where the first pod will listen."""
        item = self._item(pod)
        if item is None:
            return ""
        spec = item.read(_RendezvousPod).spec
        if spec.subdomain:
            return f"{spec.hostname or item.name}.{spec.subdomain}.{item.namespace}.svc"
        there = self._nodes.get("", node) if spec.host_network else None
        if there is None:
            return ""
        addresses = there.read(_AddressedNode).status.addresses
        return next((one.address for one in addresses if one.type == "InternalIP"), "")

    def _levels(self, gang: Gang) -> Iterable[str]:
        wish = gang.facts.requirement if gang.facts is not None else None
        if wish is None or wish.is_empty:
            return ()
        topology = self._scheduling.cluster.topologies.get(wish.topology)
        if topology is not None:
            return topology.levels
        return dict.fromkeys(level for level in (wish.required, wish.preferred, wish.slice_level) if level)

    def _near(self, gang: Gang, nodes: list[str]) -> Levels:
        """The topology of the gang's pods."""
        if levels := self._levels(gang):
            return self._domains(levels, nodes)
        return {level: domains for level, domains in self._domains(USUAL_LEVELS, nodes).items() if domains}

    def _domains(self, levels: Iterable[str], nodes: list[str]) -> Levels:
        cluster = self._scheduling.cluster
        rows = [cluster.row_of.get(node, -1) for node in nodes]
        labels = {row: cluster.labels.of(row) for row in set(rows) if row >= 0}
        found: Levels = {}
        for level in levels:
            domains = found.setdefault(level, {})
            for rank, row in enumerate(rows):
                if row >= 0 and (domain := labels[row].get(level)):
                    domains.setdefault(domain, []).append(rank)
        return found


def _rank_of(item: Item) -> int | None:
    """As its binding said."""
    if RANK.encode() not in item.data:
        return None
    return whole_of(item.read(_RendezvousPod).metadata.annotations.get(RANK, ""))


def _natural(pod: str) -> list[tuple[int, int, str]]:
    """`worker-2` before `worker-10`."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in _NUMBERS.split(pod) if part]
