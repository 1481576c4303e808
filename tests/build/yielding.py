"""A world in which pods yield: running and waiting pods in one line each, and what the world does after each round.

Victims end between rounds and their successors wait under the same name; moved pods come back nominated. `linger` keeps
the leaving ones on their nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

from build.nodes import NodeBuilder
from build.pods import ask
from build.scenario import AnyAsk, Scenario
from shoal.engine.cycle import cycle
from shoal.engine.cycle_state import Step
from shoal.engine.events import BudgetSeen, PodArrived, PodBound, PodGone
from shoal.engine.groups import BudgetFacts, GroupFacts, TopologyRequirement
from shoal.engine.plan import Evict, Move, Plan
from shoal.engine.pod_identity import PodIdentity
from shoal.engine.preemption.policy import VictimPolicy
from shoal.engine.steps.allocate import allocate
from shoal.engine.steps.preempt import preempt

ANYWHERE = TopologyRequirement()


def gpus(count: int) -> AnyAsk:
    return ask().gpus(count)


class Yielding(Scenario):
    """A scenario whose rounds preempt."""

    def __init__(
        self,
        *nodes: NodeBuilder,
        policy: VictimPolicy | None = None,
        steps: Sequence[Step] | None = None,
        now_s: float = 1000.0,
    ) -> None:
        super().__init__(*nodes, policy="BestFit")
        self.steps = (allocate, preempt(policy or VictimPolicy())) if steps is None else tuple(steps)
        self.now_s = now_s

    def gang(
        self,
        name: str,
        least: int,
        priority: int | None = None,
        requirement: TopologyRequirement = ANYWHERE,
        *,
        is_evicted_whole: bool = False,
    ) -> Yielding:
        self.group(
            GroupFacts(name, least, requirement=requirement, priority=priority, is_evicted_whole=is_evicted_whole)
        )
        return self

    def runs(
        self,
        key: str,
        node: str,
        wanted: AnyAsk,
        priority: int = 0,
        group: str = "",
        since_s: float = 0.0,
        *,
        is_preemptible: bool = True,
        saved_s: float | None = None,
        terminating: bool = False,
        part: str = "",
        role: str = "",
        queue: str = "",
    ) -> Yielding:
        who = PodIdentity(
            group=group,
            part=part,
            role=role,
            queue=queue,
            is_preemptible=is_preemptible,
            since_s=since_s,
            saved_s=saved_s,
        )
        self.bind(key, wanted, node, priority=priority, who=who, terminating=terminating)
        return self

    def waits(
        self,
        key: str,
        wanted: AnyAsk,
        priority: int = 0,
        group: str = "",
        *,
        preempts: bool = True,
        part: str = "",
        queue: str = "",
    ) -> Yielding:
        self.arrive(key, wanted, priority, who=PodIdentity(group=group, part=part, queue=queue, preempts=preempts))
        return self

    def budget(self, name: str, allowed: int, *pods: str) -> Yielding:
        self.apply(BudgetSeen(BudgetFacts(name, "default", allowed, frozenset(pods))))
        return self

    def see(self, *nodes: NodeBuilder) -> Yielding:
        super().see(*nodes)
        return self

    def round(self) -> Plan:
        self.rounds += 1
        return cycle(self.cluster, self.placement, now_s=self.now_s, seed=self.seed, steps=self.steps)

    def carry_out(self, plan: Plan, *, linger: bool = False) -> None:
        """What a world does with a plan before the next round."""
        cluster = self.cluster
        for place in plan.placed:
            holding = cluster.pods[place.pod]
            self.apply(PodBound(place.pod, holding.ask, place.node, place.grant, holding.priority, who=holding.who))
        targets = {move.pod: move.target for move in plan.moved}
        goings: list[Evict | Move] = [*plan.evicted, *plan.moved]
        for going in goings:
            holding = cluster.pods[going.pod]
            if linger:
                continue
            self.apply(PodGone(going.pod))
            self.apply(
                PodArrived(
                    going.pod, holding.ask, holding.priority, who=holding.who, nominated=targets.get(going.pod, "")
                )
            )

    def play(self, rounds: int) -> list[Plan]:
        plans = []
        for _ in range(rounds):
            plan = self.round()
            self.carry_out(plan)
            plans.append(plan)
        return plans

    def victims(self) -> list[str]:
        """Whom one round makes yield, by name."""
        return sorted(evict.pod for evict in self.round().evicted)


def is_quiet(plan: Plan) -> bool:
    return not (plan.placed or plan.evicted or plan.moved)
