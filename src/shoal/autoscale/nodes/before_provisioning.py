"""Decides for which waiting pods no node is provisioned yet, because capacity of present nodes is made free first.

Three steps can do that: another MIG layout of idle GPUs (repartition), moves of running pods (consolidate), and pods
that yield (reclaim). A policy says which of them come before provisioning, and in which order. Whether a step would
serve a pod is found with the production code: the placement of plans for MIG layouts, the steps of the scheduling cycle
for the other two.

A pod is held back by a step only until the time of this step is over, counted from the refusal of the pod by the
scheduler. So no pod is held back for ever, whatever becomes of the step, and a restart changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from shoal.api.conditions import find_condition
from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.api.resources import amounts
from shoal.api.run_configuration import FreeingStep, RunConfiguration
from shoal.autoscale.nodes.bookings import on_present_nodes
from shoal.autoscale.nodes.existing_nodes import ExistingNode
from shoal.autoscale.nodes.planning_input import PlanningInput, pod_key
from shoal.devices.names import GPU, MIG_PREFIX
from shoal.engine.asks import counted
from shoal.engine.from_api import ask_of_pod
from shoal.engine.preemption.policy import Order, VictimPolicy

STEPS: Final[tuple[FreeingStep, ...]] = ("repartition", "consolidate", "reclaim")
_MOST_CLASSES: Final = 8
"""Different requests for which other MIG layouts are tried in one planning."""
_MOST_LAYOUTS: Final = 3
_CLOCKS_DIFFER_S: Final = 60.0
_MOST_UNITS: Final = 64
"""Of one request; the others are planned as without a step."""

NOT_PROVISIONING: Final = "not provisioning: "
"""How the reason of a pod begins for which capacity is freed first."""

Layouts = tuple[tuple[str, str], ...]
"""Nodes and their new MIG layouts."""


class FreeingPolicy(msgspec.Struct, frozen=True):
    """Which steps come before provisioning, and what the scheduler may do."""

    order: tuple[FreeingStep, ...] = STEPS
    timeouts_s: Mapping[FreeingStep, float] = msgspec.field(default_factory=lambda: dict.fromkeys(STEPS, 300.0))
    victims: VictimPolicy = VictimPolicy()
    has_moves: bool = False
    schedulers: frozenset[str] = frozenset({"shoal"})
    """The scheduler names whose pods these rules are for: other schedulers neither move pods nor wait for them."""

    @classmethod
    def of(cls, own: RunConfiguration, schedulers: Iterable[str] = ()) -> FreeingPolicy:
        rules, scaling = own.preemption, own.node_scaling
        return cls(
            scaling.before_provisioning,
            {step: scaling.timeout_s(step) for step in STEPS},
            VictimPolicy(Order(rules.victims), rules.min_runtime_s(), rules.break_budgets),
            rules.moves,
            frozenset(schedulers or own.scheduler_names),
        )


class WaitingUnit(msgspec.Struct, frozen=True):
    """A pod or a gang that waits."""

    name: str
    pods: tuple[Pod, ...]
    since_s: float
    """When a scheduler refused the first of its pods."""

    @property
    def keys(self) -> list[str]:
        return [pod_key(pod) for pod in self.pods]

    def is_of(self, schedulers: frozenset[str]) -> bool:
        return all(pod.spec.scheduler_name in schedulers for pod in self.pods)


class RepartitionableNode(msgspec.Struct, frozen=True):
    """A node with idle GPUs whose MIG layout may be changed, or is being changed."""

    existing: ExistingNode
    layouts: Mapping[str, Node]
    """The node under each layout that it may get."""


class Freeing(msgspec.Struct, frozen=True):
    """What would become free for the units, by the name of the unit."""

    layouts: Mapping[str, Layouts] = {}
    moved_s: Mapping[str, float] = {}
    """When the last of the pods that have to move may be moved."""
    yielded_s: Mapping[str, float] = {}


class Hold(msgspec.Struct, frozen=True):
    """Why no node is provisioned for a unit yet."""

    step: FreeingStep
    until_s: float
    words: str
    timeout_s: float

    @property
    def reason(self) -> str:
        """The reason does not contain the present time, so an Event is not recorded again for an equal decision."""
        return (
            f"{NOT_PROVISIONING}{self.words} first; a node is provisioned if the pod still waits "
            f"{self.timeout_s / 60:g} minutes after it was refused"
        )


class UnitOutcome(msgspec.Struct, frozen=True):
    """What the steps would do for one unit."""

    hold: Hold | None
    notes: Mapping[FreeingStep, str]
    """Why each step that was asked does not hold the unit back."""


def waiting_units(given: PlanningInput, now_s: float) -> list[WaitingUnit]:
    """The pods that plans would provision for, gangs as a whole."""
    found: dict[str, list[Pod]] = {}
    for pod in given.pods:
        key = pod_key(pod)
        if key not in given.forbidden:
            found.setdefault(given.gangs.get(key, key), []).append(pod)
    return [WaitingUnit(name, tuple(pods), min(_since_s(pod, now_s) for pod in pods)) for name, pods in found.items()]


def _since_s(pod: Pod, now_s: float) -> float:
    """A time that has yet to come is one of a clock that was wrong: it would hold the pod back until then."""
    condition = find_condition(pod.status.conditions, "PodScheduled")
    refused = condition.last_transition_time if condition is not None else None
    known = [moment.timestamp() for moment in (refused, pod.metadata.creation_timestamp) if moment is not None]
    past = [moment_s for moment_s in known if moment_s <= now_s + _CLOCKS_DIFFER_S]
    if past:
        return min(past[0], now_s)
    return 0.0 if known else now_s


def outcome(unit: WaitingUnit, freeing: Freeing, policy: FreeingPolicy, now_s: float) -> UnitOutcome:
    """The first step of the order that serves the unit in time holds it back."""
    notes: dict[FreeingStep, str] = {}
    for step in policy.order:
        until_s = unit.since_s + policy.timeouts_s[step]
        layouts = freeing.layouts.get(unit.name, ())
        due_s = (freeing.moved_s if step == "consolidate" else freeing.yielded_s).get(unit.name)
        if step == "repartition" and not layouts:
            notes[step] = "no idle GPUs that may get another MIG layout would serve it"
        elif step != "repartition" and due_s is None:
            notes[step] = _unserved(unit, step, policy)
        elif now_s >= until_s:
            notes[step] = f"would serve it, but its time was over at {_at(until_s)}"
        elif step != "repartition" and due_s is not None and due_s >= until_s:
            notes[step] = f"would serve it at {_at(due_s)}, but its time is over at {_at(until_s)}"
        else:
            words = _chosen(step, layouts, due_s or 0.0)
            return UnitOutcome(Hold(step, until_s, words, policy.timeouts_s[step]), notes)
    return UnitOutcome(None, notes)


def _unserved(unit: WaitingUnit, step: FreeingStep, policy: FreeingPolicy) -> str:
    if not unit.is_of(policy.schedulers):
        return "another scheduler places it"
    if step == "consolidate" and not policy.has_moves:
        return "the scheduler moves no pods (preemption.moves is off)"
    what = "moves that" if step == "consolidate" else "pods of lower priority whose eviction"
    return f"the scheduler found no {what} would serve it"


def _chosen(step: FreeingStep, layouts: Layouts, due_s: float) -> str:
    if step == "repartition":
        by_layout: dict[str, list[str]] = {}
        for node, layout in layouts:
            by_layout.setdefault(layout, []).append(node)
        each = (f"of {', '.join(nodes)} are repartitioned to {layout}" for layout, nodes in sorted(by_layout.items()))
        return f"GPUs {', '.join(each)}"
    what = "other pods are moved" if step == "consolidate" else "pods of lower priority yield"
    return f"{what} from {_at(due_s)}"


def _at(moment_s: float) -> str:
    return f"{datetime.fromtimestamp(moment_s, UTC):%H:%M:%S} UTC"


def held_back(outcomes: Iterable[tuple[WaitingUnit, UnitOutcome]], given: PlanningInput) -> PlanningInput:
    """The input with the pods forbidden for which no node is provisioned yet."""
    held = {key: found.hold.reason for unit, found in outcomes if found.hold is not None for key in unit.keys}
    return replace(given, forbidden={**given.forbidden, **held}) if held else given


# -- repartition --------------------------------------------------------------------------------------------------


def layouts_serving(
    given: PlanningInput, units: Sequence[WaitingUnit], nodes: Sequence[RepartitionableNode]
) -> dict[str, Layouts]:
    """The MIG layouts that would serve units, by the name of the unit, with the placement of plans. Units with one
    request are tried together, as they compete for the same GPUs.
    """
    left = {node.existing.name: node for node in nodes}
    changed: dict[str, tuple[str, ExistingNode]] = {}
    placed: list[Pod] = []
    found: dict[str, Layouts] = {}
    for wanted, every in _by_request(units)[:_MOST_CLASSES]:
        alike = every[:_MOST_UNITS]
        best: tuple[dict[str, Layouts], dict[str, tuple[str, ExistingNode]]] = {}, {}
        for layout, names in _layouts_for(wanted, left.values()):
            trial = changed | {name: (layout, _under(left[name], layout)) for name in names}
            served = _served(given, alike, placed, trial)
            if len(served) > len(best[0]):
                best = served, trial
        found |= best[0]
        for name in {node for layouts in best[0].values() for node, _ in layouts} & left.keys():
            changed[name] = best[1][name]
            del left[name]
        placed += [pod for unit in alike if unit.name in best[0] for pod in unit.pods]
    return found


def _by_request(units: Iterable[WaitingUnit]) -> list[tuple[dict[str, int], list[WaitingUnit]]]:
    """Units that need MIG instances or whole GPUs, by what their first pod requests."""
    found: dict[tuple[tuple[str, int], ...], list[WaitingUnit]] = {}
    for unit in units:
        asked = counted(ask_of_pod(unit.pods[0]))
        wanted = [(name, count) for name, count in asked.items() if count and _is_of_gpus(name)]
        if wanted:
            found.setdefault(tuple(sorted(wanted)), []).append(unit)
    return [(dict(wanted), alike) for wanted, alike in found.items()]


def _is_of_gpus(resource: str) -> bool:
    return resource == GPU or resource.startswith(MIG_PREFIX)


def _layouts_for(wanted: Mapping[str, int], nodes: Iterable[RepartitionableNode]) -> list[tuple[str, list[str]]]:
    """Layouts with room for the request, and the nodes that may get them; those of most nodes first."""
    found: dict[str, list[str]] = {}
    for node in nodes:
        for layout, under in node.layouts.items():
            there = amounts(under.allocatable())
            if all(there.get(name, 0) >= count for name, count in wanted.items()):
                found.setdefault(layout, []).append(node.existing.name)
    return sorted(found.items(), key=lambda each: (-len(each[1]), each[0]))[:_MOST_LAYOUTS]


def _under(node: RepartitionableNode, layout: str) -> ExistingNode:
    return replace(node.existing, node=node.layouts[layout])


def _served(
    given: PlanningInput,
    units: Sequence[WaitingUnit],
    placed: Sequence[Pod],
    trial: Mapping[str, tuple[str, ExistingNode]],
) -> dict[str, Layouts]:
    """The units that find their places on the nodes with other layouts alone: other nodes are left out, which keeps
    this cheap in large clusters."""
    nodes = tuple(node for _, node in trial.values())
    pods = (*placed, *(pod for unit in units for pod in unit.pods))
    homes = on_present_nodes(replace(given, pools=(), types={}, nodes=nodes), pods).placed
    if any(pod_key(pod) not in homes for pod in placed):
        return {}
    found: dict[str, Layouts] = {}
    for unit in units:
        used = {homes.get(key, "") for key in unit.keys}
        if "" not in used:
            found[unit.name] = tuple((name, trial[name][0]) for name in sorted(used))
    return found
