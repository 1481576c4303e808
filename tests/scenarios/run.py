"""A case decided: its actions as steps, its cycles as rounds, and where every pod is in the end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from shoal.engine.cluster import Cluster
from shoal.engine.cycle import cycle
from shoal.engine.cycle_state import Step
from shoal.engine.events import PodArrived, PodBound, PodGone
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.plan import Plan
from shoal.engine.profile import NO_PREFERENCES

from . import kai, volcano
from .case import Case
from .facts import events_of


@dataclass
class Outcome:
    """What became of the pods."""

    state: dict[str, str] = field(default_factory=dict)
    node: dict[str, str] = field(default_factory=dict)
    devices: dict[str, tuple[int, ...]] = field(default_factory=dict)
    evicted: set[str] = field(default_factory=set)
    binds: int = 0
    most_binds: int = 0
    """Of one cycle, as the next."""
    most_evictions: int = 0
    restless: list[str] = field(default_factory=list)
    """Pods that changed in the cycles after the last, in which nothing should happen any more."""

    @property
    def moved(self) -> set[str]:
        """Who lost a place and has another one, or the promise of one."""
        return {pod for pod in self.evicted if self.state[pod] in ("Running", "Bound", "Nominated")}


def steps_of(case: Case) -> list[Step]:
    discipline = kai.discipline_of(case) if case.is_kai else volcano.discipline_of(case)
    return list(discipline.steps())


def decide(case: Case) -> Outcome:
    """Run the case to its end. Nothing here knows what is expected."""
    cluster = Cluster()
    intake = Intake(cluster)
    for event in events_of(case):
        intake.apply(event)
    placement = Placement(cluster, NO_PREFERENCES)
    steps = steps_of(case)
    tasks = {task.name: task for job in case.jobs for task in job.tasks}
    outcome = Outcome(state={name: task.state for name, task in tasks.items()})
    cycles = max(case.config.cycles, 1)
    for number in range(cycles):
        plan = cycle(cluster, placement, now_s=float(number), seed=0, steps=steps)
        last = number == cycles - 1
        _carry_out(cluster, intake, plan, outcome)
        if not last:
            _end(cluster, intake, plan, outcome)
    outcome.node.update((move.pod, move.target) for move in plan.moved)
    outcome.node.update((name, task.node) for name, task in tasks.items() if task.state == "Failed")
    for name, holding in cluster.pods.items():
        # A pod that is on its way elsewhere is judged by where it goes.
        outcome.node.setdefault(name, cluster.names[holding.row])
        outcome.devices[name] = holding.grant.devices if holding.grant is not None else ()
    for move in plan.moved:
        outcome.devices[move.pod] = move.grant.devices if move.grant is not None else ()
    later = replace(outcome, state=dict(outcome.state), evicted=set(), binds=0)
    for number in range(cycles, cycles + case.config.stable_for_cycles):
        _end(cluster, intake, plan, later)
        plan = cycle(cluster, placement, now_s=float(number), seed=0, steps=steps)
        _carry_out(cluster, intake, plan, later)
    outcome.restless = sorted(name for name, state in later.state.items() if state != outcome.state[name])
    return outcome


def _carry_out(cluster: Cluster, intake: Intake, plan: Plan, outcome: Outcome) -> None:
    for place in plan.placed:
        holding = cluster.pods[place.pod]
        intake.apply(PodBound(place.pod, holding.ask, place.node, place.grant, holding.priority, who=holding.who))
        outcome.state[place.pod] = "Bound"
        outcome.binds += 1
    for nominate in plan.nominated:
        outcome.state[nominate.pod] = "Nominated"
    outcome.state.update((move.pod, "Nominated") for move in plan.moved)
    outcome.state.update((evict.pod, "Evicting") for evict in plan.evicted)
    ended = _ended(plan)
    outcome.evicted.update(ended)
    outcome.most_binds = max(outcome.most_binds, len(plan.placed))
    outcome.most_evictions = max(outcome.most_evictions, len(ended))


def _end(cluster: Cluster, intake: Intake, plan: Plan, outcome: Outcome) -> None:
    """Between rounds what was told to end has ended, and whoever made it makes it again."""
    targets = {move.pod: move.target for move in plan.moved}
    for pod in _ended(plan):
        holding = cluster.pods[pod]
        intake.apply(PodGone(pod))
        intake.apply(PodArrived(pod, holding.ask, holding.priority, who=holding.who, nominated=targets.get(pod, "")))
        outcome.state[pod] = "Pending"


def _ended(plan: Plan) -> list[str]:
    return [evict.pod for evict in plan.evicted] + [move.pod for move in plan.moved]
