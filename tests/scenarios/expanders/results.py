"""One case about Cluster Autoscaler's choices: decided from a copy without its expectation, then judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from shoal.api.priority_expander import KEY, Priorities, priorities_of
from shoal.autoscale.expanders.balancing import GroupSize, NodeProfile, SimilarityRatios, are_similar, balanced
from shoal.autoscale.expanders.expanders import (
    Expander,
    at_random,
    by_price,
    by_priority,
    in_chain,
    least_nodes,
    least_waste,
    most_pods,
)
from shoal.autoscale.expanders.options import GroupTemplate, Prices, ScaleUpOption, ServedPod
from shoal.autoscale.expanders.scale_down import (
    TO_BE_DELETED,
    ScaleDownNode,
    ScaleDownOptions,
    ScaleDownPod,
    removability,
)
from shoal.units.errors import UserError

from ..result import Result

FAMILY = "expanders"
_GPU = "nvidia.com/gpu"
_NAMES = {"cpuMilli": "cpu", "memoryBytes": "memory"}

Raw = dict[str, Any]


def results_of_case(raw: Raw) -> list[Result]:
    expect = raw.get("expect") or {}
    case = {key: value for key, value in raw.items() if key != "expect"}
    judged = {"choose": _choose, "balance": _balance, "similar": _similar, "scaleDown": _scale_down}
    diff = list(judged[raw["kind"]](case, expect)) if expect else ["the case expects nothing"]
    return [Result(str(raw.get("id", "")), FAMILY, "fail" if diff else "pass", 0 if diff else 2, diff)]


def _choose(case: Raw, expect: Raw) -> Iterable[str]:
    kept = sorted(each.group for each in _expander(case["expander"])([_option(each) for each in case["options"]]))
    if "chosen" in expect and kept != sorted(expect["chosen"]):
        yield f"chosen: expected {expect['chosen']}, got {kept}"
    if "chosenOneOf" in expect and (len(kept) != 1 or kept[0] not in expect["chosenOneOf"]):
        yield f"chosen: expected one of {expect['chosenOneOf']}, got {kept}"


def _expander(raw: Raw) -> Expander:
    match raw["name"]:
        case "priority":
            return partial(by_priority, priorities=_priorities(raw.get("configMap")))
        case "price":
            return partial(by_price, prices=_prices(raw))
        case "chain":
            return partial(in_chain, expanders=[_expander(each) for each in raw["of"]])
        case name:
            plain: dict[str, Expander] = {
                "least-waste": least_waste,
                "least-nodes": least_nodes,
                "most-pods": most_pods,
                "random": at_random,
            }
            return plain[name]


def _priorities(config_map: Raw | None) -> Priorities | None:
    try:
        return priorities_of((config_map or {}).get(KEY, ""))
    except UserError:
        return None


def _prices(raw: Raw) -> Prices:
    preferred = (raw.get("preferredNode") or {}).get("cpuMilli", 0)
    return Prices(
        raw.get("nodePrice") or {}, raw.get("podPrice") or {}, raw.get("stabilizationPodPrice") or 0.0, preferred
    )


def _option(raw: Raw) -> ScaleUpOption:
    template = raw.get("template")
    return ScaleUpOption(
        raw["group"],
        raw["nodes"],
        None
        if template is None
        else GroupTemplate(template.get("cpuMilli", 0), template.get("memoryBytes", 0), template.get("gpu", False)),
        tuple(_served(each) for each in raw.get("pods") or ()),
        raw.get("exists", True),
    )


def _served(raw: Raw) -> ServedPod:
    requests = raw.get("requests") or {}
    return ServedPod(raw["name"], requests.get("cpuMilli", 0), requests.get("memoryBytes", 0))


def _balance(case: Raw, expect: Raw) -> Iterable[str]:
    try:
        sizes = balanced(
            [GroupSize(each["group"], each["target"], each["max"]) for each in case["groups"]], case["newNodes"]
        )
    except UserError as error:
        if not expect.get("error"):
            yield str(error)
        return
    wanted: Sequence[Any] = expect.get("sizesAnyOf") or [expect.get("sizes")]
    if expect.get("error") or sizes not in wanted:
        yield f"sizes: expected {expect}, got {sizes}"


def _similar(case: Raw, expect: Raw) -> Iterable[str]:
    ratios = {"capacityMemory": 0.015, "allocatable": 0.05, "free": 0.05} | (case.get("ratios") or {})
    similar = are_similar(
        _profile(case["a"]),
        _profile(case["b"]),
        SimilarityRatios(ratios["capacityMemory"], ratios["allocatable"], ratios["free"]),
        case.get("extraIgnoredLabels") or (),
    )
    if similar != expect["similar"]:
        yield f"similar: expected {expect['similar']}, got {similar}"


def _profile(raw: Raw) -> NodeProfile:
    return NodeProfile(
        _amounts(raw["capacity"]),
        _amounts(raw["allocatable"]),
        raw.get("labels") or {},
        _amounts(raw.get("podRequests") or {}),
    )


def _amounts(raw: Raw) -> Raw:
    return {_NAMES.get(name, name): amount for name, amount in raw.items()}


def _scale_down(case: Raw, expect: Raw) -> Iterable[str]:
    node, options = case["node"], case.get("options") or {}
    marked = [taint.get("ageSeconds", 0) for taint in node.get("taints") or () if taint["key"] == TO_BE_DELETED]
    found = removability(
        ScaleDownNode(
            _amounts(node["allocatable"]),
            node.get("ready", True),
            node.get("annotations") or {},
            marked[0] if marked else None,
            _GPU if node.get("gpuLabel") else "",
        ),
        [_pod(each) for each in case.get("pods") or ()],
        ScaleDownOptions(
            options.get("utilizationThreshold", 0.5),
            options.get("gpuUtilizationThreshold", 0.5),
            options.get("ignoreDaemonSets", False),
            options.get("ignoreMirrorPods", False),
            options.get("unreadyEnabled", True),
        ),
    )
    if found.is_removable != expect["removable"]:
        yield f"removable: expected {expect}, got {found}"
    if "reason" in expect and found.reason != expect["reason"]:
        yield f"reason: expected {expect['reason']}, got {found.reason}"
    if "utilization" in expect:
        distance = abs((found.utilization if found.utilization is not None else -1) - expect["utilization"])
        if distance > expect.get("tolerance", 1e-6):
            yield f"utilization: expected {expect['utilization']}, got {found.utilization}"


def _pod(raw: Raw) -> ScaleDownPod:
    return ScaleDownPod(
        _amounts(raw.get("requests") or {}),
        raw.get("owner") or "",
        raw.get("annotations") or {},
        raw.get("deletedSecondsAgo"),
    )
