"""Small worlds for Volcano's discipline: nodes, queues, jobs and a configuration fit on a few lines of a test.

Amounts are whole cores and whole GPUs. `run` runs one cycle of the given actions and says what became of the pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.cycle import cycle
from shoal.engine.device_demand import WholeGpus
from shoal.engine.events import GroupSeen, NodeFacts, NodeSeen, PodArrived, PodBound, PodGone
from shoal.engine.groups import GangSubgroup, GroupFacts, TopologyRequirement
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.plan import Plan
from shoal.engine.pod_identity import PodIdentity, PodLabels
from shoal.engine.profile import NO_PREFERENCES
from shoal.engine.queues.disciplines.volcano.amounts import GPU
from shoal.engine.queues.disciplines.volcano.configuration import PluginOption, VolcanoConfiguration
from shoal.engine.queues.disciplines.volcano.discipline import Volcano
from shoal.engine.queues.disciplines.volcano.jobs import JobFacts
from shoal.engine.queues.disciplines.volcano.queue_forest import QueueForest, VolcanoQueue
from shoal.engine.queues.disciplines.volcano.session import Session, VolcanoFacts

GIB = 1 << 30
PLUGINS = ("priority", "gang", "conformance", "drf", "predicates", "proportion", "nodeorder")


def amounts(said: Mapping[str, float]) -> dict[str, float]:
    """`{"cpu": 2, "gpu": 1}` in the engine's units."""
    units = {"cpu": ("cpu", 1000), "gpu": (GPU, 1000), "memory": ("memory", GIB)}
    return {units.get(name, (name, 1))[0]: amount * units.get(name, (name, 1))[1] for name, amount in said.items()}


def queue(
    name: str, *, deserved: Mapping[str, float] = {}, capability: Mapping[str, float] = {}, **more: Any
) -> VolcanoQueue:
    guarantee = amounts(more.pop("guarantee", {}))
    return VolcanoQueue(name, deserved=amounts(deserved), capability=amounts(capability), guarantee=guarantee, **more)


def plugin(
    name: str, *on: str, off: tuple[str, ...] = (), also: tuple[str, ...] = (), arguments: Mapping[str, Any] = {}
) -> PluginOption:
    """With hooks named, only these are on; otherwise the default ones and some more, but not those that are off."""
    known = PluginOption(name)
    return PluginOption(name, frozenset(on) if on else (known.hooks | set(also)) - set(off), arguments)


@dataclass
class World:
    """One cluster with its queues and jobs."""

    queues: list[VolcanoQueue]
    nodes: dict[str, Mapping[str, float]] = field(default_factory=lambda: {"n1": {"cpu": 4}})
    plugins: tuple[tuple[PluginOption, ...], ...] = (tuple(PluginOption(name) for name in PLUGINS),)
    arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cluster = Cluster()
        self.intake = Intake(self.cluster)
        self.jobs: dict[str, JobFacts] = {}
        self.ungrouped: dict[str, str] = {}
        """Running pods without a group, with their queues."""
        for name, has in self.nodes.items():
            plain = {
                key: int(value) for key, value in amounts({"memory": 64, "pods": 100, **has}).items() if key != GPU
            }
            facts = NodeFacts(name, plain, labels=self.labels.get(name, {}), gpus=int(has.get("gpu", 0)))
            self.intake.apply(NodeSeen(facts))
        self.discipline: Volcano | None = None
        self._configuration: VolcanoConfiguration | None = None

    def job(
        self,
        name: str,
        queue: str,
        *pods: str,
        minimum: int = 1,
        priority: int = 0,
        **more: Any,
    ) -> World:
        """Each pod is its node, or empty if it waits; after `:` the cores it requests, 1 unless said, after `+` its
        priority."""
        gpus, claims = int(more.pop("gpus", 0)), more.pop("claims", ())
        group = GroupFacts(
            f"ns/{name}",
            minimum,
            parts=more.pop("parts", ()),
            roles=tuple(more.pop("roles", {}).items()),
            requirement=more.pop("requirement", TopologyRequirement()),
            priority=priority,
        )
        of_pods = {key: more.pop(key) for key in ("preempts", "is_preemptible", "since_s", "saved_s") if key in more}
        namespace = more.pop("namespace", "ns")
        group_name = f"{namespace}/{name}"
        self.intake.apply(
            GroupSeen(GroupFacts(**{**{f: getattr(group, f) for f in group.__struct_fields__}, "name": group_name}))
        )
        least = more.pop("min_resources", None)
        created_s = float(len(self.jobs))
        self.jobs[group_name] = JobFacts(
            group_name,
            queue,
            priority,
            more.pop("created_s", created_s),
            amounts(least) if least is not None else None,
            **more,
        )
        for number, text in enumerate(pods):
            body, _, rank = text.partition("+")
            place, _, cores = body.partition(":")
            milli = round(float(cores or 1) * 1000)
            requests = (("cpu", milli),) if milli else ()
            ask = Ask(requests=requests, devices=WholeGpus(gpus) if gpus else None, claims=claims)
            who = PodIdentity(traits=PodLabels(namespace), group=group_name, queue=queue, order=number, **of_pods)
            key = f"{name}-{number}"
            value = int(rank or 0)
            if place:
                self.intake.apply(PodBound(key, ask, place, priority=value, who=who))
            else:
                self.intake.apply(PodArrived(key, ask, value, who=who))
        return self

    def run(self, *actions: str, now_s: float = 0.0) -> Outcome:
        if self._configuration is None or self._configuration.actions != actions:
            self._configuration = VolcanoConfiguration(actions, self.plugins, self.arguments)
        configuration = self._configuration
        if self.discipline is None:
            facts = VolcanoFacts(QueueForest(self.queues), self.jobs, ungrouped=self.ungrouped)
            self.discipline = Volcano(lambda: facts, configuration)
        self.discipline.configure(configuration)
        placement = Placement(self.cluster, NO_PREFERENCES)
        plan = cycle(self.cluster, placement, now_s=now_s, seed=0, steps=self.discipline.steps())
        assert self.discipline.session is not None
        return Outcome(plan, self.discipline.session)

    def carry_out(self, plan: Plan) -> None:
        """Bind what was placed, and end what was evicted; its pods wait again."""
        self.place(plan)
        for evict in plan.evicted:
            holding = self.cluster.pods[evict.pod]
            self.intake.apply(PodGone(evict.pod))
            self.intake.apply(PodArrived(evict.pod, holding.ask, holding.priority, who=holding.who))

    def place(self, plan: Plan) -> None:
        """Bind what was placed; what was evicted is still leaving."""
        for place in plan.placed:
            holding = self.cluster.pods[place.pod]
            self.intake.apply(
                PodBound(place.pod, holding.ask, place.node, place.grant, holding.priority, who=holding.who)
            )


@dataclass
class Outcome:
    """What one cycle decided."""

    plan: Plan
    session: Session

    @property
    def bound(self) -> set[str]:
        return {place.pod for place in self.plan.placed}

    @property
    def places(self) -> dict[str, str]:
        return {place.pod: place.node for place in self.plan.placed}

    @property
    def promised(self) -> set[str]:
        return {nominate.pod for nominate in self.plan.nominated}

    @property
    def evicted(self) -> set[str]:
        return {evict.pod for evict in self.plan.evicted}

    def why(self, job: str) -> str:
        return self.session.refusals.get(f"ns/{job}", "")


def part(name: str, minimum: int) -> GangSubgroup:
    return GangSubgroup(name, minimum=minimum)
