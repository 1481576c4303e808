"""What was decided against what was expected: outcomes (level 1), places (level 2), then shared devices (level 3)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from .case import Case, Job
from .run import Outcome

_ALIKE = {"Running": "Bound", "Bound": "Bound", "Terminating": "Evicting"}


def differences(case: Case, outcome: Outcome, expect: dict[str, Any]) -> tuple[list[str], int]:
    """Everything that differs on level 1; if nothing does, on level 2. And the level that agrees."""
    first = _outcomes(case, outcome, expect)
    if first:
        return first, 0
    second = _places(case, outcome, expect)
    if second:
        return second, 1
    says_devices = any("gpuGroups" in job for job in expect.get("jobs", {}).values())
    return [], 3 if says_devices and not device_notes(case, outcome, expect) else 2


def device_notes(case: Case, outcome: Outcome, expect: dict[str, Any]) -> list[str]:
    """Which pods share a device, where the case says so: the devices have no names in common with ours."""
    found = []
    ours: dict[tuple[str, str], int] = {}
    theirs: dict[tuple[str, int], str] = {}
    for job in case.jobs:
        symbols = expect.get("jobs", {}).get(job.name, {}).get("gpuGroups", [])
        for task in job.tasks if len(job.tasks) == 1 else ():
            devices, node = outcome.devices.get(task.name, ()), outcome.node.get(task.name, "")
            if len(symbols) != len(devices) or outcome.state[task.name] == "Pending":
                continue
            for symbol, device in zip(sorted(symbols), devices, strict=True):
                if (
                    ours.setdefault((node, symbol), device) != device
                    or theirs.setdefault((node, device), symbol) != symbol
                ):
                    found.append(f"{task.name}: shares its device with others than expected ({symbol})")
    return found


def _outcomes(case: Case, outcome: Outcome, expect: dict[str, Any]) -> list[str]:
    found = []
    if "evicted" in expect:
        wanted = _by_job(case, set(expect["evicted"]))
        got = _by_job(case, outcome.evicted)
        if expect.get("evictedComplete", True):
            if wanted != got:
                found.append(f"evicted: expected {sorted(expect['evicted'])}, got {sorted(outcome.evicted)}")
        elif any(got[job] < count for job, count in wanted.items()):
            found.append(f"evicted: expected at least {sorted(expect['evicted'])}, got {sorted(outcome.evicted)}")
    if "movedToOtherPlacement" in expect:
        moved = set(expect["movedToOtherPlacement"])
        if _by_job(case, moved) != _by_job(case, outcome.moved):
            found.append(f"moved: expected {sorted(moved)}, got {sorted(outcome.moved)}")
    for what, most in expect.get("perCycleMax", {}).items():
        got_most = {"binds": outcome.most_binds, "evictions": outcome.most_evictions}[what]
        if got_most > most:
            found.append(f"{what} of one cycle: expected at most {most}, got {got_most}")
    jobs = {job.name: job for job in case.jobs}
    for name, wanted_job in expect.get("jobs", {}).items():
        job = jobs[name]
        bound = sum(outcome.state[task.name] in ("Running", "Bound") for task in job.tasks)
        if "bound_count" in wanted_job and bound != wanted_job["bound_count"]:
            found.append(f"{name}: expected {wanted_job['bound_count']} bound, got {bound}")
        state = _state(job, outcome)
        if "state" in wanted_job and not _same_state(wanted_job["state"], state):
            found.append(f"{name}: expected {wanted_job['state']}, got {state}")
        found += _task_states(case, job, outcome, wanted_job.get("tasks", {}))
    if "newBindsTotal" in expect and expect["newBindsTotal"] != outcome.binds:
        found.append(f"expected {expect['newBindsTotal']} binds, got {outcome.binds}")
    if outcome.restless:
        found.append(f"still changing after the last cycle: {outcome.restless}")
    return found


def _task_states(case: Case, job: Job, outcome: Outcome, tasks: dict[str, Any]) -> list[str]:
    """States of single pods, up to which of several that are alike."""
    kind = _kinds(case)
    left = Counter(
        (kind[task.name], _ALIKE.get(outcome.state[task.name], outcome.state[task.name])) for task in job.tasks
    )
    found = []
    for name, task in tasks.items():
        wanted = task.get("state", "")
        if wanted in ("", "NotBound", "Mixed"):
            continue
        if left[kind[name], _ALIKE.get(wanted, wanted)]:
            left[kind[name], _ALIKE.get(wanted, wanted)] -= 1
        else:
            found.append(f"{name}: expected {wanted}, got {outcome.state[name]}")
    return found


def _state(job: Job, outcome: Outcome) -> str:
    states = {_ALIKE.get(outcome.state[task.name], outcome.state[task.name]) for task in job.tasks}
    return states.pop() if len(states) == 1 else "Mixed"


def _same_state(wanted: str, got: str) -> bool:
    if wanted == "NotBound":
        return got in ("Pending", "Nominated")
    if wanted in ("Pending", "Running", "Bound") and got == "Mixed":
        # Some cases state what most of a job's pods are; the count of bound ones has been compared already.
        return True
    return _ALIKE.get(wanted, wanted) == got


def _by_job(case: Case, pods: set[str]) -> Counter[str]:
    """Pods of one job that ask the same are interchangeable."""
    kind = _kinds(case)
    return Counter(kind[pod] for pod in pods)


def _kinds(case: Case) -> dict[str, str]:
    """Whatever tells pods of a job apart, but their names and where they are."""
    return {
        task.name: repr((job.name, msgspec.structs.replace(task, name="", state="", node="", gpu_groups=[])))
        for job in case.jobs
        for task in job.tasks
    }


def _places(case: Case, outcome: Outcome, expect: dict[str, Any]) -> list[str]:
    found = []
    group_of = {node: min(group) for group in case.symmetric_nodes for node in group}
    wanted_places: dict[str, Counter[str]] = {}
    got_places: dict[str, Counter[str]] = {}
    for job in case.jobs:
        wanted_job = expect.get("jobs", {}).get(job.name, {})
        wanted, got = _of_job(job, outcome, wanted_job)
        wanted_places[job.name], got_places[job.name] = wanted, got
        if _renamed(wanted, group_of) != _renamed(got, group_of):
            found.append(f"{job.name}: expected on {dict(wanted)}, got {dict(got)}")
        if "nominatedNodes" in wanted_job:
            nominated = [outcome.node.get(t.name, "") for t in job.tasks if outcome.state[t.name] == "Nominated"]
            if _renamed(Counter(wanted_job["nominatedNodes"]), group_of) != _renamed(Counter(nominated), group_of):
                found.append(f"{job.name}: expected promises on {wanted_job['nominatedNodes']}, got {nominated}")
    has_domains = bool(case.topologies or case.hyper_nodes)
    # Whole domains that are alike may have changed names.
    return [] if has_domains and _tree(case, wanted_places) == _tree(case, got_places) else found


def _of_job(job: Job, outcome: Outcome, wanted_job: dict[str, Any]) -> tuple[Counter[str], Counter[str]]:
    """How many of the job's pods are on which node, as expected and as decided."""
    if "tasks" in wanted_job:
        placed = {pod: task["node"] for pod, task in wanted_job["tasks"].items() if task.get("node")}
        return Counter(placed.values()), Counter(outcome.node.get(pod, "nowhere") for pod in placed)
    got = Counter(outcome.node[task.name] for task in job.tasks if outcome.node.get(task.name))
    if wanted_job.get("node"):
        return Counter({wanted_job["node"]: got.total()}), got
    return Counter(), Counter()


def _renamed(places: Counter[str], group_of: dict[str, str]) -> Counter[str]:
    renamed: Counter[str] = Counter()
    for node, count in places.items():
        renamed[group_of.get(node, node)] += count
    return renamed


def _tree(case: Case, places: dict[str, Counter[str]]) -> Any:
    """The fleet as a tree of domains without names, nodes told apart by what they are, hold and were given."""
    levels = [level for topology in case.topologies for level in topology.levels]
    tiers = sorted({hyper.tier for hyper in case.hyper_nodes}, reverse=True)
    leaves: list[tuple[tuple[str, ...], Any]] = []
    for node in case.nodes:
        path = [node.labels.get(level, "") for level in levels]
        path += [
            next((h.name for h in case.hyper_nodes if h.tier == tier and node.name in h.nodes), "") for tier in tiers
        ]
        labels = sorted((key, value) for key, value in node.labels.items() if key not in levels)
        held = sorted(job.name for job in case.jobs for task in job.tasks if task.node == node.name)
        given = sorted((name, counts[node.name]) for name, counts in places.items() if counts[node.name])
        leaves.append((tuple(path), repr((node.gpus, node.cpu, node.memory, labels, held, given))))
    return _folded(leaves, 0)


def _folded(leaves: list[tuple[tuple[str, ...], Any]], depth: int) -> Any:
    if not leaves or depth == len(leaves[0][0]):
        return sorted(leaf for _, leaf in leaves)
    by_name: dict[str, list[tuple[tuple[str, ...], Any]]] = {}
    for path, leaf in leaves:
        by_name.setdefault(path[depth], []).append((path, leaf))
    return sorted((_folded(group, depth + 1) for group in by_name.values()), key=repr)
