"""Cluster Autoscaler's scale-up written down a second time, in the most literal way: nothing is cached or shared.

It knows the subset that the scenarios use: cpu, memory and GPUs, node selectors, tolerations, pods that must be on
different nodes, sizes and maxima of groups, a maximum of all nodes, balancing of similar groups, chains of expanders.
Where the real program chooses at random among equal options, all results are returned that it may have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

KUBE_PROXY_MILLI = 100
"""The provider of simulated nodes has a pod with this request on the template of a group without nodes."""

Sizes = Mapping[str, int]
Outcome = frozenset[tuple[str, int]]
"""The size of each group."""


@dataclass(frozen=True)
class Group:
    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int = 0
    labels: Mapping[str, str] | None = None
    taint: str = ""
    size: int = 0
    most: int = 20
    reserved_milli: int = 0
    """What the kubelet keeps of the cpu: capacity less allocatable."""

    @property
    def allocatable_milli(self) -> int:
        return self.cpu_milli - self.reserved_milli


@dataclass(frozen=True)
class Pods:
    """Equal pods of one owner."""

    name: str
    count: int
    cpu_milli: int
    memory_mib: int
    gpus: int = 0
    selector: Mapping[str, str] | None = None
    tolerates: str = ""
    apart: bool = False
    """At most one on a node."""


@dataclass(frozen=True)
class Scenario:
    name: str
    groups: tuple[Group, ...]
    pods: tuple[Pods, ...]
    expanders: tuple[str, ...] = ("least-waste",)
    priorities: str | None = None
    """The text of the ConfigMap; None: there is no ConfigMap."""
    balances: bool = False
    most_nodes: int = 0
    """0: any number."""


@dataclass(frozen=True)
class GroupOption:
    group: Group
    nodes: int
    pods: tuple[Pods, ...]
    """One entry for each pod."""


Choose = Callable[[Scenario, Sequence[GroupOption]], list[GroupOption]]
"""The options that a chain of expanders keeps."""


def outcomes(scenario: Scenario, choose: Choose | None = None) -> set[Outcome]:
    """The sizes of the groups when nothing grows any more."""
    return {
        frozenset((name, len(each)) for name, each in nodes.items())
        for nodes in _grown(scenario, _start(scenario), _pods(scenario), choose)
    }


def first_growth(scenario: Scenario, choose: Choose | None = None) -> set[Outcome]:
    """The sizes after the first decision."""
    nodes = _start(scenario)
    waiting = _left(scenario, nodes, _pods(scenario))
    sizes = {group.name: group.size for group in scenario.groups}
    plans = [plan for plan, _ in _plans(scenario, nodes, waiting, choose)]
    return {frozenset({**sizes, **plan}.items()) for plan in plans} or {frozenset(sizes.items())}


_Nodes = dict[str, list[list[Pods]]]
"""The pods on each node of each group."""


def _start(scenario: Scenario) -> _Nodes:
    return {group.name: [[] for _ in range(group.size)] for group in scenario.groups}


def _pods(scenario: Scenario) -> list[Pods]:
    return [kind for kind in scenario.pods for _ in range(kind.count)]


def _grown(scenario: Scenario, nodes: _Nodes, pods: list[Pods], choose: Choose | None) -> Iterator[_Nodes]:
    waiting = _left(scenario, nodes, pods)
    plans = list(_plans(scenario, nodes, waiting, choose))
    if not plans:
        yield nodes
    for plan, option in plans:
        more = {name: [[*on] for on in there] for name, there in nodes.items()}
        for name, size in plan.items():
            more[name] += [[] for _ in range(size - len(more[name]))]
        # The scheduler is expected to place pods as planned.
        left = list(waiting)
        for pod in option.pods:
            if (on := _first(scenario, more, pod, {option.group.name})) is not None:
                on.append(pod)
                left.remove(pod)
        yield from _grown(scenario, more, left, choose)


def _left(scenario: Scenario, nodes: _Nodes, pods: Iterable[Pods]) -> list[Pods]:
    """The pods for which no node has room; the others go to the first that has. The real order of pods is open."""
    left = []
    for pod in pods:
        on = _first(scenario, nodes, pod)
        if on is None:
            left.append(pod)
        else:
            on.append(pod)
    return left


def _first(scenario: Scenario, nodes: _Nodes, pod: Pods, names: Collection[str] = ()) -> list[Pods] | None:
    for group in scenario.groups:
        if not names or group.name in names:
            for on in nodes[group.name]:
                if _fits(group, on, pod, 0):
                    return on
    return None


def _fits(group: Group, on: Sequence[Pods], pod: Pods, overhead_milli: int) -> bool:
    labels = {"group": group.name, **(group.labels or {})}
    if any(labels.get(key) != value for key, value in (pod.selector or {}).items()):
        return False
    if group.taint and pod.tolerates != group.taint:
        return False
    if pod.apart and any(each.name == pod.name for each in on):
        return False
    return (
        sum(each.cpu_milli for each in (*on, pod)) + overhead_milli <= group.allocatable_milli
        and sum(each.memory_mib for each in (*on, pod)) <= group.memory_mib
        and sum(each.gpus for each in (*on, pod)) <= group.gpus
    )


def _plans(
    scenario: Scenario, nodes: _Nodes, waiting: Sequence[Pods], choose: Choose | None
) -> Iterator[tuple[Sizes, GroupOption]]:
    """Each plan that the next round may have: the new sizes, and the option that it follows."""
    total = sum(len(each) for each in nodes.values())
    room = scenario.most_nodes - total if scenario.most_nodes else 1000
    found = [
        option
        for group in scenario.groups
        if len(nodes[group.name]) < group.most
        and (option := _option(group, waiting, bool(nodes[group.name]), min(room, _room(scenario, group, nodes))))
        is not None
    ]
    if not found or room < 1:
        return
    for option in (choose or kept)(scenario, found):
        count = min(option.nodes, room)
        if not scenario.balances:
            name = option.group.name
            yield {name: min(len(nodes[name]) + count, option.group.most)}, option
            continue
        alike = [each.group for each in found if _are_alike(each.group, option.group) and each.pods == option.pods]
        for sizes in _balanced(alike, {name: len(each) for name, each in nodes.items()}, count):
            yield sizes, option


def _room(scenario: Scenario, group: Group, nodes: _Nodes) -> int:
    """How many nodes the group may get, together with those that are balanced with it."""
    groups = [each for each in scenario.groups if each == group or (scenario.balances and _are_alike(each, group))]
    return sum(max(0, each.most - len(nodes[each.name])) for each in groups)


def _option(group: Group, waiting: Sequence[Pods], has_nodes: bool, room: int) -> GroupOption | None:
    """First fit by decreasing size on new nodes of the group."""
    overhead = 0 if has_nodes else KUBE_PROXY_MILLI
    order = sorted(
        {each.name: each for each in waiting}.values(),
        key=lambda each: -(each.cpu_milli / group.allocatable_milli + each.memory_mib / group.memory_mib),
    )
    new: list[list[Pods]] = []
    served: list[Pods] = []
    for kind in order:
        if not _fits(group, (), kind, overhead):
            continue
        for pod in (each for each in waiting if each.name == kind.name):
            there = next((on for on in new if _fits(group, on, pod, overhead)), None)
            if there is None:
                if len(new) >= room:
                    break
                there = []
                new.append(there)
            there.append(pod)
            served.append(pod)
    return GroupOption(group, len(new), tuple(served)) if new else None


def kept(scenario: Scenario, options: Sequence[GroupOption]) -> list[GroupOption]:
    """What the chain of expanders leaves: any one of these may be chosen."""
    left = list(options)
    for name in scenario.expanders:
        if len(left) > 1:
            left = _kept_by(name, scenario, left)
    return left


def _kept_by(name: str, scenario: Scenario, options: list[GroupOption]) -> list[GroupOption]:
    match name:
        case "least-waste":
            return _least(options, _waste)
        case "most-pods":
            return _least(options, lambda option: -len(option.pods))
        case "least-nodes":
            return _least(options, lambda option: option.nodes)
        case "priority":
            return _by_priority(options, _priorities(scenario.priorities or ""))
        case _:
            return options


def _least(options: Iterable[GroupOption], score: Callable[[GroupOption], float]) -> list[GroupOption]:
    found = list(options)
    best = min(score(option) for option in found)
    return [option for option in found if score(option) == best]


def _waste(option: GroupOption) -> float:
    cpu, memory = option.group.cpu_milli * option.nodes, option.group.memory_mib * option.nodes
    used_cpu = sum(pod.cpu_milli for pod in option.pods)
    used_memory = sum(pod.memory_mib for pod in option.pods)
    return (cpu - used_cpu) / cpu + (memory - used_memory) / memory


def _priorities(text: str) -> dict[int, list[str]]:
    """Lines of the forms `10:` and `  - pattern`; nothing if there is another line or a pattern is not one."""
    found: dict[int, list[str]] = {}
    number: int | None = None
    for line in text.splitlines():
        if re.fullmatch(r"-?\d+:", line):
            number = int(line[:-1])
            found[number] = []
        elif line.startswith("  - ") and number is not None:
            found[number].append(line[4:])
        else:
            return {}
    try:
        for patterns in found.values():
            for pattern in patterns:
                re.compile(pattern)
    except re.error:
        return {}
    return found


def _by_priority(options: list[GroupOption], priorities: Mapping[int, Sequence[str]]) -> list[GroupOption]:
    best: list[GroupOption] = []
    highest = -1
    for number in sorted(priorities):
        matching = [each for each in options if any(re.search(text, each.group.name) for text in priorities[number])]
        if matching and number >= highest:
            best, highest = matching, number
    return best or options


def _are_alike(one: Group, other: Group) -> bool:
    def labels(group: Group) -> dict[str, str]:
        return {key: value for key, value in (group.labels or {}).items() if key != "topology.kubernetes.io/zone"}

    largest = max(one.memory_mib, other.memory_mib)
    return (
        one.cpu_milli == other.cpu_milli
        and one.gpus == other.gpus
        and abs(one.memory_mib - other.memory_mib) <= 0.015 * largest
        and abs(one.allocatable_milli - other.allocatable_milli) <= 0.05 * max(one.cpu_milli, other.cpu_milli)
        and labels(one) == labels(other)
    )


def _balanced(groups: Sequence[Group], sizes: Sizes, count: int) -> Iterator[Sizes]:
    """Each node to a smallest group; which of several equal ones is open."""
    seen = []
    for order in permutations(groups):
        grown = {group.name: sizes[group.name] for group in order}
        for _ in range(count):
            growing = [group for group in order if grown[group.name] < group.most]
            if growing:
                grown[min(growing, key=lambda group: grown[group.name]).name] += 1
        if grown not in seen:
            seen.append(grown)
            yield grown
