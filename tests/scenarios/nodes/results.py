"""One case about node provisioning: planned from a copy without its expectation, then judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from shoal.api.topology import HOSTNAME_LABEL
from shoal.autoscale.nodes.plan import NewNode, NodePlan
from shoal.autoscale.nodes.planner import plan_nodes
from shoal.autoscale.nodes.planning_input import PlanningInput

from ..result import Result
from .case import planning_input

FAMILY = "nodes"


def results_of_case(raw: dict[str, Any]) -> list[Result]:
    expect = raw.get("expect") or {}
    given = planning_input({key: value for key, value in raw.items() if key != "expect"})
    plan = plan_nodes(given)
    diff = list(_differences(given, plan, expect)) if expect else ["the case expects nothing"]
    return [Result(str(raw.get("id", "")), FAMILY, "fail" if diff else "pass", 0 if diff else 2, diff)]


def _differences(given: PlanningInput, plan: NodePlan, expect: dict[str, Any]) -> Iterable[str]:
    pending = sorted(each.pod.removeprefix("default/") for each in plan.pending)
    node_of = {
        pod.removeprefix("default/"): f"new-{number}" for number, node in enumerate(plan.new_nodes) for pod in node.pods
    }
    node_of |= {pod.removeprefix("default/"): node for pod, node in plan.placed.items()}
    if "newNodes" in expect and expect["newNodes"] != len(plan.new_nodes):
        yield f"newNodes: expected {expect['newNodes']}, got {len(plan.new_nodes)}"
    if "pending" in expect and sorted(expect["pending"]) != pending:
        yield f"pending: expected {expect['pending']}, got {[(e.pod, e.reason, dict(e.by_pool)) for e in plan.pending]}"
    if "pendingCount" in expect and expect["pendingCount"] != len(pending):
        yield f"pendingCount: expected {expect['pendingCount']}, got {len(pending)}"
    for pod, node in (expect.get("placed") or {}).items():
        if node_of.get(pod) != node:
            yield f"{pod}: expected on {node}, got {node_of.get(pod)}"
    yield from _groups(plan, node_of, expect)
    for entry in expect.get("nodes") or ():
        yield from _node(plan, node_of, entry)
    for new in plan.new_nodes if "eachNode" in expect else ():
        yield from _described(new, expect["eachNode"])
    if "spread" in expect:
        yield from _spread(given, plan, node_of, expect["spread"])


def _groups(plan: NodePlan, node_of: dict[str, str], expect: dict[str, Any]) -> Iterable[str]:
    for node in expect.get("usedExisting") or ():
        if node not in plan.placed.values():
            yield f"{node}: expected to get a pod"
    for group in expect.get("together") or ():
        if len({node_of.get(pod) for pod in group}) != 1 or None in {node_of.get(pod) for pod in group}:
            yield f"together: {[(pod, node_of.get(pod)) for pod in group]}"
    for group in expect.get("apart") or ():
        used = Counter(node_of.get(pod) for pod in group if pod in node_of)
        if any(count > 1 for count in used.values()):
            yield f"apart: {[(pod, node_of.get(pod)) for pod in group]}"


def _node(plan: NodePlan, node_of: dict[str, str], entry: dict[str, Any]) -> Iterable[str]:
    homes = {node_of.get(pod, "") for pod in entry["pods"]}
    home = next(iter(homes))
    if len(homes) != 1 or not home.startswith("new-"):
        yield f"{entry['pods']}: not together on a new node: {homes}"
        return
    yield from _described(plan.new_nodes[int(home.removeprefix("new-"))], entry)


def _described(node: NewNode, entry: dict[str, Any]) -> Iterable[str]:
    types = {one.name for one in node.types}
    checks: dict[str, Callable[[Any], bool]] = {
        "pool": lambda wanted: node.pool == wanted,
        "zones": lambda wanted: set(node.zones) <= set(wanted),
        "capacityTypes": lambda wanted: set(node.capacity_types) <= set(wanted),
        "types": lambda wanted: types <= set(wanted),
        "typesExclude": lambda wanted: not types & set(wanted),
        "typesInclude": lambda wanted: set(wanted) <= types,
        "launch": lambda wanted: node.launch.name in wanted,
    }
    for key, is_met in checks.items():
        if key in entry and not is_met(entry[key]):
            yield (
                f"{entry.get('pods')}: {key}: expected {entry[key]}, got {node.pool} {node.zones} "
                f"{node.capacity_types} {sorted(types)} {node.launch.name}"
            )


def _spread(given: PlanningInput, plan: NodePlan, node_of: dict[str, str], spread: dict[str, Any]) -> Iterable[str]:
    key, labels = spread["key"], spread["labels"].items()
    counts: Counter[str] = Counter()
    known = {each.name: each.node.metadata.labels for each in given.nodes}
    for node in given.nodes:
        for pod in node.pods:
            is_selected = labels <= pod.metadata.labels.items() and pod.metadata.namespace == "default"
            if is_selected and not pod.is_finished() and key in known[node.name]:
                counts[known[node.name][key]] += 1
    for pod in given.pods:
        home = node_of.get(pod.metadata.name)
        if home is None or not labels <= pod.metadata.labels.items():
            continue
        counts[_domain(plan, known, home, key)] += 1
    if sorted(counts.values()) != sorted(spread["counts"]):
        yield f"spread: expected {spread['counts']}, got {dict(counts)}"


def _domain(plan: NodePlan, known: dict[str, dict[str, str]], home: str, key: str) -> str:
    if home in known:
        return known[home].get(key, "")
    if key == HOSTNAME_LABEL:
        return home
    admitted = plan.new_nodes[int(home.removeprefix("new-"))].requirements.get(key)
    return ",".join(sorted(admitted.values)) if not admitted.is_open else f"open of {home}"
