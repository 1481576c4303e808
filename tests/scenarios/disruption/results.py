"""One case about node disruption: decided from a copy without its expectation, then judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from shoal.api.decode import convert
from shoal.api.selectors import LabelSelector
from shoal.autoscale.disruption.candidates import DisruptableNode
from shoal.autoscale.disruption.decision import DisruptionDecision
from shoal.autoscale.disruption.protection import DisruptionLimit
from shoal.autoscale.disruption.searches import DisruptionInput, NodeDisruption
from shoal.autoscale.nodes.planning_input import PlanningInput
from shoal.autoscale.nodes.pool_reading import duration_s
from shoal.autoscale.requirements.labels import POOL_LABEL
from shoal.units.errors import Where

from ..nodes.case import Raw, existing_node, planning_input
from ..result import Result

FAMILY = "disruption"


def results_of_case(raw: dict[str, Any]) -> list[Result]:
    expect = raw.get("expect") or {}
    given = _input({key: value for key, value in raw.items() if key != "expect"})
    searches = NodeDisruption(given)
    if raw["method"] == "budget":
        allowed = searches.allowed(given.planning.pools[0].name, raw["reason"])
        wanted = expect.get("allowed")
        diff = [] if allowed == wanted else [f"allowed: expected {wanted}, got {allowed}"]
    else:
        diff = list(_differences(searches.decide(raw["method"]), expect, given))
    return [Result(str(raw.get("id", "")), FAMILY, "fail" if diff else "pass", 0 if diff else 2, diff)]


def _input(case: Raw) -> DisruptionInput:
    planning: PlanningInput = planning_input({**case, "existingNodes": (), "pods": case.get("pendingPods")})
    nodes = tuple(_node(each) for each in case["nodes"])
    others = tuple(replace(existing_node(each), is_managed=False) for each in case.get("unmanagedNodes") or ())
    return DisruptionInput(
        planning=replace(planning, nodes=(*(node.existing for node in nodes), *others)),
        nodes=nodes,
        limits=tuple(_limit(each) for each in case.get("pdbs") or ()),
        now=_time(case["now"]),
        spot_to_spot=(case.get("settings") or {}).get("spotToSpotConsolidation", False),
    )


def _node(raw: Raw) -> DisruptableNode:
    where = Where(obj=raw["name"])
    return DisruptableNode(
        existing=existing_node({"capacity": raw.get("allocatable"), **raw}),
        is_ready=raw.get("ready", True),
        is_consolidatable=raw.get("consolidatable"),
        last_pod_event=_time(raw["lastPodEvent"]) if raw.get("lastPodEvent") else None,
        drifted_since=_time(raw["driftedSince"]) if raw.get("driftedSince") else None,
        termination_grace_s=duration_s(raw.get("terminationGracePeriod"), where),
        created=_time(raw["created"]) if raw.get("created") else None,
        expire_after_s=duration_s(raw.get("expireAfter"), where),
    )


def _limit(raw: Raw) -> DisruptionLimit:
    selector = raw.get("selector")
    return DisruptionLimit(
        raw["metadata"]["name"],
        raw["metadata"].get("namespace", "default"),
        None if selector is None else convert(selector, LabelSelector, Where(obj=raw["metadata"]["name"])),
        raw.get("disruptionsAllowed", 0),
    )


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _differences(got: DisruptionDecision, expect: dict[str, Any], given: DisruptionInput) -> Iterable[str]:
    if got.action != expect.get("action"):
        yield f"action: expected {expect}, got {got.action} {got.nodes} ({dict(got.kept)})"
        return
    if "nodes" in expect and sorted(expect["nodes"]) != sorted(got.nodes):
        yield f"nodes: expected {expect['nodes']}, got {got.nodes}"
    if "nodesCount" in expect and expect["nodesCount"] != len(got.nodes):
        yield f"nodesCount: expected {expect['nodesCount']}, got {got.nodes}"
    if "perPool" in expect:
        pools = {node.name: node.existing.node.metadata.labels.get(POOL_LABEL) for node in given.nodes}
        counts = Counter(pools[name] for name in got.nodes)
        if dict(counts) != {pool: count for pool, count in expect["perPool"].items() if count}:
            yield f"perPool: expected {expect['perPool']}, got {dict(counts)}"
    if "replacements" in expect:
        yield from _replacements(got, expect["replacements"])


def _replacements(got: DisruptionDecision, wanted: list[dict[str, Any]]) -> Iterable[str]:
    left = [({one.name for one in new.types}, set(new.capacity_types)) for new in got.replacements]
    if len(left) != len(wanted):
        yield f"replacements: expected {wanted}, got {left}"
        return
    for entry in wanted:
        match = next((each for each in left if _is_met(each, entry)), None)
        if match is None:
            yield f"replacements: expected {entry}, got {left}"
        else:
            left.remove(match)


def _is_met(got: tuple[set[str], set[str]], entry: dict[str, Any]) -> bool:
    types, capacity_types = got
    if "types" in entry and types != set(entry["types"]):
        return False
    return "capacityTypes" not in entry or capacity_types <= set(entry["capacityTypes"])
