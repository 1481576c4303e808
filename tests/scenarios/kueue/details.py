"""Flavors, counts, usage and places of what was admitted or assigned, pod set by pod set."""

from __future__ import annotations

from typing import Any

from .answers import Answer, expected_domains, expected_usage


def pod_set_differences(wanted: dict[str, Any], got: Answer, *, is_whole: bool) -> list[str]:
    """Of workloads that were admitted on both sides."""
    found = []
    for key in sorted(set(wanted) & set(got)):
        sets, ours = wanted[key].get("podSets", {}), got[key]["podSets"]
        if set(sets) != set(ours):
            found.append(f"{key}: expected pod sets {sorted(sets)}, got {sorted(ours)}")
            continue
        for name, said in sets.items():
            found += [f"{key} {name} {line}" for line in _differences(_expected(said, is_whole), ours[name])]
    return found


def _expected(said: dict[str, Any], is_whole: bool) -> Answer:
    wanted: Answer = {name: said[name] for name in ("count", "flavors") if name in said}
    if "usage" in said:
        wanted["usage"] = expected_usage(said["usage"])
    if is_whole or "topologyAssignment" in said:
        wanted["topologyAssignment"] = expected_domains(said.get("topologyAssignment"))
    if is_whole or "delayedTopologyRequest" in said:
        wanted["delayedTopologyRequest"] = said.get("delayedTopologyRequest", "")
    return wanted


def _differences(wanted: Answer, got: Answer) -> list[str]:
    return [f"{name}: expected {each}, got {got[name]}" for name, each in wanted.items() if got[name] != each]


def assignment_differences(name: str, wanted: dict[str, Any], got: Answer) -> list[str]:
    """What the flavor assigner chose; a mode counts where one is said."""
    if set(wanted) != set(got):
        return [f"{name}: expected pod sets {sorted(wanted)}, got {sorted(got)}"]
    found = []
    for pod_set, said in wanted.items():
        if said.get("count", got[pod_set]["count"]) != got[pod_set]["count"]:
            found.append(f"{name} {pod_set}: expected {said['count']} pods, got {got[pod_set]['count']}")
        flavors = said.get("flavors", {})
        ours = {
            resource: {key: each[key] for key in (flavors.get(resource) or each) if key in each}
            for resource, each in got[pod_set]["flavors"].items()
        }
        if flavors != ours:
            found.append(f"{name} {pod_set}: expected {flavors}, got {ours}")
    return found
