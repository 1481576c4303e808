"""Checks a plan before its nodes are provisioned, against what the cluster is by then.

A plan for many pods takes seconds, and meanwhile pods end, get a node or are deleted, pools change, and nodes become
free. What of the plan depends on such a change is taken out of it, gangs as a whole, and is planned again by the next
planning. The rest of the plan stays: in a busy cluster something always changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from shoal.autoscale.nodes.bookings import on_present_nodes
from shoal.autoscale.nodes.plan import NewNode, NodePlan
from shoal.autoscale.nodes.planning_input import PlanningInput, pod_key


def confirmed(plan: NodePlan, given: PlanningInput, now: PlanningInput) -> NodePlan:
    """The plan without the nodes that are not needed any more, or not in this way. `given`: what it was made from."""
    if not plan.new_nodes or given == now:
        return plan
    uid_of = {pod_key(pod): pod.metadata.uid for pod in given.pods}
    waiting = {pod_key(pod): pod for pod in now.pods if pod_key(pod) not in now.forbidden}
    gone = {
        key
        for node in plan.new_nodes
        for key in node.pods
        if key not in waiting or waiting[key].metadata.uid != uid_of.get(key)
    }
    if given.nodes != now.nodes:
        gone |= _placeable(plan, now)
    pools, types = {pool.name: pool for pool in given.pools}, {pool.name: pool for pool in now.pools}
    changed = {name for name in pools if pools[name] != types.get(name) or given.types.get(name) != now.types.get(name)}
    kept = _kept(plan.new_nodes, gone, changed, {**given.gangs, **now.gangs})
    refused = tuple(each for each in plan.pending if each.pod in waiting)
    return replace(plan, new_nodes=kept, pending=refused)


def _placeable(plan: NodePlan, now: PlanningInput) -> set[str]:
    """The pods of new nodes that nodes which exist can take by now."""
    planned = {key for node in plan.new_nodes for key in node.pods}
    wanted = planned | plan.placed.keys()
    pods = tuple(pod for pod in now.pods if pod_key(pod) in wanted)
    return planned & on_present_nodes(now, pods).placed.keys()


def _kept(nodes: Sequence[NewNode], gone: set[str], changed: set[str], gangs: Mapping[str, str]) -> tuple[NewNode, ...]:
    """Nodes all of whose pods still need them; a gang that loses a node loses all of its nodes."""
    left, lost = list(nodes), set(gone)
    broken: set[str] = set()
    while True:
        kept = [
            node
            for node in left
            if node.pool not in changed
            and lost.isdisjoint(node.pods)
            and broken.isdisjoint(gangs.get(key, "") for key in node.pods)
        ]
        if len(kept) == len(left):
            return tuple(kept)
        out = {key for node in left for key in node.pods} - {key for node in kept for key in node.pods}
        left, lost = kept, lost | out
        broken |= {gang for key in lost if (gang := gangs.get(key))}
