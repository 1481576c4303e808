"""A cluster with KAI's queues, for tests that fit on a screen. GPUs are whole unless a share is asked for."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.cycle import cycle
from shoal.engine.device_demand import GpuShare, WholeGpus
from shoal.engine.events import GroupSeen, NodeFacts, NodeSeen, PodArrived, PodBound, PodGone
from shoal.engine.groups import GangSubgroup, GroupFacts
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.plan import Plan
from shoal.engine.pod_identity import PodIdentity
from shoal.engine.profile import NO_PREFERENCES
from shoal.engine.queues.disciplines.kai.fair_cycle import FairshareSettings
from shoal.engine.queues.disciplines.kai.fair_queues import FairQueue
from shoal.engine.queues.disciplines.kai.fairshare import DEFAULT_ACTIONS, Fairshare

GPU = 1000
NOW_S = 10_000.0


def queue(
    name: str,
    parent: str = "",
    quota: float | None = 0,
    limit: float | None = None,
    weight: float = 1,
    priority: int = 100,
    preempt_s: float | None = None,
    reclaim_s: float | None = None,
) -> FairQueue:
    """Bounds are of GPUs; cores and memory are unlimited."""
    bounds = [None if bound is None else round(bound * GPU) for bound in (quota, limit)]
    return FairQueue(
        name, parent, priority, (bounds[0], None, None), (bounds[1], None, None), (weight, 1, 1), preempt_s, reclaim_s
    )


class FairWorld:
    """Nodes are given as their numbers of GPUs: n0, n1, ..."""

    def __init__(self, nodes: Sequence[int], *queues: FairQueue, settings: FairshareSettings | None = None) -> None:
        self.cluster = Cluster()
        self.intake = Intake(self.cluster)
        self.placement = Placement(self.cluster, NO_PREFERENCES)
        self.discipline = Fairshare(queues, settings or FairshareSettings(stale_grace_s=-1))
        self.now_s = NOW_S
        for at, gpus in enumerate(nodes):
            amounts = {"cpu": 64_000, "memory": 1 << 40, "pods": 110}
            self.intake.apply(NodeSeen(NodeFacts(f"n{at}", amounts, gpus=gpus, rank=at)))
        self._jobs = 0

    def job(
        self,
        name: str,
        queue: str,
        gpus: float = 1,
        pods: int = 1,
        *,
        on: Sequence[str] = (),
        minimum: int | None = None,
        priority: int = 50,
        since_s: float = 0.0,
        parts: Sequence[tuple[str, int]] = (),
        succeeded: int = 0,
        stale_since_s: float | None = None,
        created_s: float | None = None,
        saved_s: float | None = None,
    ) -> FairWorld:
        """Its first pods run on these nodes, the others wait; `parts`: (subgroup, minimum), of two pods each. Without
        `created_s` each job is newer than those before it."""
        self._jobs += 1
        is_preemptible = priority < 100
        self.intake.apply(
            GroupSeen(
                GroupFacts(
                    name,
                    0 if parts else minimum or pods,
                    tuple(GangSubgroup(part, "", least) for part, least in parts),
                    priority=priority,
                    is_preemptible=is_preemptible,
                    queue=queue,
                    created_s=float(self._jobs) if created_s is None else created_s,
                    succeeded=succeeded,
                    stale_since_s=stale_since_s,
                )
            )
        )
        demand = WholeGpus(int(gpus)) if gpus >= 1 else GpuShare(round(gpus * GPU)) if gpus else None
        ask = Ask(requests=(("cpu", 100), ("memory", 1000)), devices=demand)
        for at in range(pods):
            part = parts[at // 2][0] if parts else ""
            who = PodIdentity(group=name, part=part, queue=queue, order=at, since_s=since_s, saved_s=saved_s)
            if at < len(on):
                self.intake.apply(PodBound(f"{name}-{at}", ask, on[at], None, priority, who=who))
            else:
                self.intake.apply(PodArrived(f"{name}-{at}", ask, priority, who=who))
        return self

    def run(self, *actions: str) -> Plan:
        """One cycle of some actions, by default of all. What is placed is bound."""
        self.discipline.actions = actions or DEFAULT_ACTIONS
        steps = self.discipline.steps()
        plan = cycle(self.cluster, self.placement, now_s=self.now_s, seed=0, steps=steps)
        self.now_s += 1
        for place in plan.placed:
            pod = self.cluster.pods[place.pod]
            self.intake.apply(PodBound(place.pod, pod.ask, place.node, place.grant, pod.priority, who=pod.who))
        return plan

    def end(self, plan: Plan) -> None:
        """What was told to end has ended and is created again."""
        for key in [evict.pod for evict in plan.evicted] + [move.pod for move in plan.moved]:
            self.gone(key, is_created_again=True)

    def gone(self, key: str, *, is_created_again: bool = False) -> FairWorld:
        """A pod has left its node."""
        pod = self.cluster.pods[key]
        self.intake.apply(PodGone(key))
        if is_created_again:
            self.intake.apply(PodArrived(key, pod.ask, pod.priority, who=pod.who))
        return self


def placed(plan: Plan) -> list[str]:
    return [place.pod for place in plan.placed]


def promised(plan: Plan) -> list[str]:
    return sorted(nominate.pod for nominate in plan.nominated)


def stopped(plan: Plan) -> list[str]:
    return sorted(evict.pod for evict in plan.evicted)
