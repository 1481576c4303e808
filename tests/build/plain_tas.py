"""Topology placement the plain way: a tree of objects, filled bottom up, walked top down. The oracle of the columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from build.tas import amounts_of
from shoal.engine.queues.facts import PodSet
from shoal.engine.queues.topology_facts import QueueNode, TopologyRequest

Path = tuple[str, ...]


@dataclass(eq=False)
class Domain:
    path: Path
    children: list[Domain] = field(default_factory=list)
    node: QueueNode | None = None
    pods: int = 0
    led: int = 0
    slices: int = 0
    slices_led: int = 0
    leader: int = 0
    gets: int = 0
    gets_leader: int = 0


@dataclass
class Plain:
    levels: tuple[str, ...]
    nodes: list[QueueNode]

    def place(self, workers: PodSet, leader: PodSet | None = None) -> dict[str, dict[Path, int]] | None:
        """Pods by pod set and leaf; None where it does not fit."""
        requirement = workers.topology or TopologyRequest(unconstrained=True)
        depth = self.levels.index(requirement.required or requirement.preferred or self.levels[-1])
        slice_depth = self.levels.index(requirement.slice_level) if requirement.slice_level else len(self.levels) - 1
        size = requirement.slice_size or 1
        by_depth = self._grow()
        for top in by_depth[0]:
            self._fill(top, workers, leader, (0, slice_depth, size))
        need, leaders = workers.count // size, int(leader is not None)
        while True:
            chosen = self._fit(by_depth[depth], need, leaders, requirement)
            if chosen is not None:
                break
            if requirement.required or requirement.unconstrained or depth == 0:
                return None
            depth -= 1
        if not _take(chosen, need, leaders, size, requirement.unconstrained, whole=True):
            return None
        for at in range(depth, len(self.levels) - 1):
            if at < slice_depth:
                chosen = [child for domain in chosen for child in domain.children]
                chosen = _used(
                    _sorted(chosen, leaders, requirement.unconstrained), need, leaders, size, requirement, whole=True
                )
            else:
                chosen = [
                    child
                    for domain in chosen
                    for child in _used(
                        _sorted(domain.children, domain.gets_leader, requirement.unconstrained),
                        domain.gets, domain.gets_leader, 1, requirement, whole=False,
                    )
                ]  # fmt: skip
        found = {workers.name: {leaf.path: leaf.gets for leaf in chosen if leaf.gets}}
        if leader is not None:
            found[leader.name] = {leaf.path: 1 for leaf in chosen if leaf.gets_leader}
        return found

    def _grow(self) -> list[list[Domain]]:
        known: dict[Path, Domain] = {}
        for node in self.nodes:
            path = tuple(node.labels[level] for level in self.levels)
            for depth in range(1, len(path) + 1):
                if path[:depth] not in known:
                    known[path[:depth]] = Domain(path[:depth])
                    if depth > 1:
                        known[path[: depth - 1]].children.append(known[path[:depth]])
            known[path].node = node
        return [[d for d in known.values() if len(d.path) == depth + 1] for depth in range(len(self.levels))]

    def _fill(self, domain: Domain, workers: PodSet, leader: PodSet | None, at: tuple[int, int, int]) -> None:
        depth, slice_depth, size = at
        for child in domain.children:
            self._fill(child, workers, leader, (depth + 1, slice_depth, size))
        if domain.node is not None:
            free = dict(domain.node.allocatable)
            domain.pods = domain.led = _count(free, workers)
            if leader is not None and _count(free, leader):
                domain.leader = 1
                for name, amount in amounts_of(leader).items():
                    free[name] = free.get(name, 0) - amount
                domain.led = _count(free, workers)
        else:
            led = [child for child in domain.children if child.leader or leader is None]
            domain.leader = max(child.leader for child in domain.children)
            domain.pods = sum(child.pods for child in domain.children)
            domain.led = domain.pods - min(c.pods - c.led for c in led) if led else 0
            domain.slices = sum(child.slices for child in domain.children)
            domain.slices_led = domain.slices - min(c.slices - c.slices_led for c in led) if led else 0
        if depth == slice_depth:
            domain.slices, domain.slices_led = domain.pods // size, domain.led // size

    def _fit(self, domains: list[Domain], need: int, leaders: int, requirement: TopologyRequest) -> list[Domain] | None:
        order = _sorted(domains, leaders, requirement.unconstrained)
        held = [d for d in order if d.slices_led >= need and d.leader >= leaders]
        if held:
            return [held[0] if requirement.unconstrained else min(held, key=lambda d: d.slices_led)]
        if requirement.required or (domains[0].path[:-1] and not requirement.unconstrained):
            return None
        chosen = []
        if leaders:
            order = _leader_first(order, need, lambda d: (d.slices, d.slices_led))
            if not order[0].leader:
                return None
            chosen.append(order[0])
            need -= order[0].slices_led
            order = _sorted(order[1:], 0, requirement.unconstrained)
        for at, domain in enumerate(order):
            if need > 0 and domain.slices:
                if domain.slices >= need and not requirement.unconstrained:
                    domain = min((d for d in order[at:] if d.slices >= need), key=lambda d: d.slices)
                chosen.append(domain)
                need -= domain.slices
        return chosen if need <= 0 else None


def _count(free: dict[str, int], pod_set: PodSet) -> int:
    return max(0, min(free.get(name, 0) // amount for name, amount in amounts_of(pod_set).items()))


def _sorted(domains: list[Domain], leaders: int, least: bool) -> list[Domain]:
    def key(d: Domain) -> tuple[int, int, int, Path]:
        slices, pods = (d.slices_led, d.led) if leaders else (d.slices, d.pods)
        return (-d.leader if leaders else 0, slices if least else -slices, pods, d.path)

    return sorted(domains, key=key)


def _leader_first(order: list[Domain], need: int, rooms: Callable[[Domain], tuple[int, int]]) -> list[Domain]:
    """In front comes the first domain where the leader costs no more room than there is to spare."""
    spare = sum(rooms(d)[0] for d in order) - need
    for domain in order:
        room, room_led = rooms(domain)
        if domain.leader and room - room_led <= spare:
            return [domain, *(d for d in order if d is not domain)]
    return order


def _used(
    order: list[Domain], need: int, leaders: int, size: int, requirement: TopologyRequest, *, whole: bool
) -> list[Domain]:
    if not _take(order, need, leaders, size, requirement.unconstrained, whole=whole):
        raise AssertionError("the parents promised room")
    return [domain for domain in order if domain.gets or domain.gets_leader]


def _take(order: list[Domain], need: int, leaders: int, size: int, least: bool, *, whole: bool) -> bool:
    def room(d: Domain, led: int) -> int:
        if whole:
            return d.slices_led if led else d.slices
        return d.led if led else d.pods

    for domain in order:
        domain.gets = domain.gets_leader = 0
    if leaders:
        order = _leader_first(order, need, lambda d: (room(d, 0), room(d, 1)))
    for at, domain in enumerate(order):
        if need <= 0 and not leaders:
            break
        if leaders and not domain.leader:
            return False
        if room(domain, leaders) >= need:
            able = [d for d in order[at:] if room(d, leaders) >= need and d.leader >= leaders]
            last = domain if least else able[min(range(len(able)), key=[room(d, leaders) for d in able].__getitem__)]
            last.gets, last.gets_leader = need * size, leaders
            return True
        domain.gets, domain.gets_leader = room(domain, leaders) * size, leaders
        need -= room(domain, leaders)
        leaders = 0
    return need <= 0 and not leaders
