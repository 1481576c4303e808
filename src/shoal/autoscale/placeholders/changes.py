"""Decides which placeholder pods to create and to delete.

A placeholder is needed while as many pods of its workloads wait as its node will take; as soon as one of them has a
node or is gone, it is deleted. Its pods count as placed on the node that they wait for, so nothing is requested twice,
and its node counts in the limits of its pool. The pods without a placeholder are planned as for Shoal's own nodes:
gangs as a whole, within limits. A gang for which a part of the nodes cannot be had loses all of its placeholders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from shoal.api.pod import Pod
from shoal.autoscale.nodes.bookings import with_bookings
from shoal.autoscale.nodes.plan import NewNode, PodRefusal
from shoal.autoscale.nodes.planner import NodePlanner
from shoal.autoscale.nodes.planning_input import PlanningInput, pod_key
from shoal.autoscale.placeholders.placeholder import Placeholder, new_placeholder, ordered_node

MOST_PLACEHOLDERS: Final = 100
"""At one time; a gang that needs more waits for those of others to go."""


class NewPlaceholder(NamedTuple):
    placeholder: Placeholder
    node: NewNode
    pods: tuple[Pod, ...]


class PlaceholderChanges(NamedTuple):
    create: tuple[NewPlaceholder, ...] = ()
    delete: tuple[Placeholder, ...] = ()
    given_up: tuple[Placeholder, ...] = ()
    """Of those that are deleted: no node came for them in time."""
    refused: tuple[PodRefusal, ...] = ()


def placeholder_changes(
    given: PlanningInput,
    present: Sequence[Placeholder],
    now_s: float,
    longest_s: float,
    most: int = MOST_PLACEHOLDERS,
) -> PlaceholderChanges:
    """`given`: the pods that wait for nodes, the nodes that exist or start, and the pools. `longest_s`: how long a
    node may take to come."""
    kept, deleted, pods_of_kept = _needed(given, present)
    # Those whose nodes have come or start have places there, which other pods must not be planned on.
    # Of a gang, one node may have come before the others.
    apart = replace(given, gangs={}, together={})
    booked, homeless = with_bookings(apart, [pod for pods in pods_of_kept for pod in pods])
    given_up: list[Placeholder] = []
    ordered: list[tuple[Placeholder, list[Pod]]] = []
    for each, pods in zip(kept, pods_of_kept, strict=True):
        without = [pod for pod in pods if pod_key(pod) in homeless]
        if without and now_s - each.created_s >= longest_s:
            given_up.append(each)
        elif without:
            ordered.append((each, without))
    out = {each.name for each in given_up}
    nodes = [(ordered_node(each, given), pods) for each, pods in ordered]
    starting = tuple(replace(node, pods=tuple(pods)) for node, pods in nodes if node is not None)
    covered = {
        pod_key(pod) for each, pods in zip(kept, pods_of_kept, strict=True) if each.name not in out for pod in pods
    }
    rest = tuple(pod for pod in given.pods if pod_key(pod) not in covered)
    plan = NodePlanner(replace(given, nodes=(*booked.nodes, *starting), pods=rest)).plan()
    gangs_refused = {given.gangs[each.pod] for each in plan.pending if each.pod in given.gangs}
    in_parts = {gang for pod in rest if (gang := given.gangs.get(pod_key(pod), "")) in given.together}
    broken = gangs_refused | {gang for gang in in_parts if any(gang in each.workloads for each in kept)}
    split = [each for each in kept if each.name not in out and not broken.isdisjoint(each.workloads)]
    left = most - (len(kept) - len(given_up) - len(split))
    create = _created(given, [node for node in plan.new_nodes if _is_free_of(node, given, broken)], now_s, left)
    return PlaceholderChanges(create, (*deleted, *given_up, *split), tuple(given_up), _with_causes(plan.pending, given))


def _needed(
    given: PlanningInput, present: Sequence[Placeholder]
) -> tuple[list[Placeholder], list[Placeholder], list[list[Pod]]]:
    """Those that are kept, those that are not needed, and the pods of each of the first."""
    waiting: dict[str, list[Pod]] = {}
    for pod in given.pods:
        key = pod_key(pod)
        if key not in given.forbidden:
            waiting.setdefault(given.gangs.get(key, key), []).append(pod)
    known = {pool.name: {one.name for one in given.types.get(pool.name, ())} for pool in given.pools}
    taken: Counter[str] = Counter()
    kept: list[Placeholder] = []
    deleted: list[Placeholder] = []
    pods_of_kept: list[list[Pod]] = []
    for each in sorted(present, key=lambda one: (one.created_s, one.name)):
        enough = all(taken[name] + count <= len(waiting.get(name, ())) for name, count in each.workloads.items())
        if not enough or each.offer[0] not in known.get(each.pool, ()):
            deleted.append(each)
            continue
        kept.append(each)
        pods_of_kept.append(
            [pod for name, count in each.workloads.items() for pod in waiting[name][taken[name] : taken[name] + count]]
        )
        taken.update(each.workloads)
    return kept, deleted, pods_of_kept


def _with_causes(refused: Sequence[PodRefusal], given: PlanningInput) -> tuple[PodRefusal, ...]:
    """Of a gang, one pod found no place, and the others wait for it."""
    causes = {given.gangs[each.pod]: each for each in refused if each.by_pool and each.pod in given.gangs}
    return tuple(
        PodRefusal(each.pod, causes[gang].by_pool) if (gang := given.gangs.get(each.pod, "")) in causes else each
        for each in refused
    )


def _is_free_of(node: NewNode, given: PlanningInput, broken: set[str]) -> bool:
    return broken.isdisjoint(given.gangs.get(key, "") for key in node.pods)


def _created(given: PlanningInput, nodes: Sequence[NewNode], now_s: float, left: int) -> tuple[NewPlaceholder, ...]:
    """All nodes of a gang, or none of them."""
    pods = {pod_key(pod): pod for pod in given.pods}
    made: list[NewPlaceholder] = []
    for group in _connected(nodes, given):
        if len(made) + len(group) <= left:
            made += [
                NewPlaceholder(new_placeholder(node, given, now_s), node, tuple(pods[key] for key in node.pods))
                for node in group
            ]
    return tuple(made)


def _connected(nodes: Sequence[NewNode], given: PlanningInput) -> list[list[NewNode]]:
    """Nodes that share gangs, in groups."""
    groups: list[tuple[set[str], list[NewNode]]] = []
    for node in nodes:
        gangs = {gang for key in node.pods if (gang := given.gangs.get(key))}
        same = [each for each in groups if not each[0].isdisjoint(gangs)]
        groups = [each for each in groups if each not in same]
        groups.append((gangs.union(*(each[0] for each in same)), [*(one for each in same for one in each[1]), node]))
    return [members for _, members in groups]
