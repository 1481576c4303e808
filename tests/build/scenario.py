"""A small world around the engine: events in, rounds, and questions a test asks about the outcome.

Everything goes the way it goes in production, through `Intake` and `cycle`; nothing here decides.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from build.nodes import NodeBuilder
from build.pods import AskBuilder
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.cycle import cycle
from shoal.engine.device_demand import DeviceGrant, compute_grant
from shoal.engine.events import (
    DaemonSetGone,
    DaemonSetSeen,
    Event,
    GroupSeen,
    NamespaceSeen,
    NodeGone,
    NodeSeen,
    PodArrived,
    PodBound,
    PodGone,
    PodRejected,
)
from shoal.engine.groups import GroupFacts
from shoal.engine.intake import Intake
from shoal.engine.labels import LEAST_VALUES
from shoal.engine.placement import Placement
from shoal.engine.plan import Plan
from shoal.engine.pod_identity import NO_IDENTITY, PodIdentity
from shoal.engine.pod_mix import PodMix
from shoal.engine.profile import Profile, profile_named
from shoal.engine.request_classes import RequestClass
from shoal.engine.scores.rule import NodeScore, RecordScore, StaticScore
from shoal.engine.steps.allocate import allocate
from shoal.engine.window import Window

AnyAsk = Ask | AskBuilder
ProfileOf = Callable[[Cluster], Profile]


def made(wanted: AnyAsk) -> Ask:
    return wanted.made() if isinstance(wanted, AskBuilder) else wanted


class Scenario:
    """A cluster, its intake, and one policy over it."""

    def __init__(
        self,
        *nodes: NodeBuilder,
        policy: str | ProfileOf = "Shoal",
        mix: PodMix | None = None,
        most_keys: int = 1_000_000,
        least_values: int = LEAST_VALUES,
        seed: int = 0,
    ) -> None:
        self.cluster = Cluster(least_values=least_values)
        self.intake = Intake(self.cluster)
        profile = (
            profile_named(policy, self.cluster, mix or PodMix()) if isinstance(policy, str) else policy(self.cluster)
        )
        self.placement = Placement(self.cluster, profile, most_keys=most_keys)
        self.seed = seed
        self.rounds = 0
        self.see(*nodes)

    # -- what happens ------------------------------------------------------------------------------------------

    def apply(self, event: Event) -> Scenario:
        self.intake.apply(event)
        return self

    def see(self, *nodes: NodeBuilder) -> Scenario:
        for builder in nodes:
            self.apply(NodeSeen(builder.facts()))
        return self

    def lose(self, name: str) -> Scenario:
        return self.apply(NodeGone(name))

    def arrive(
        self,
        key: str,
        wanted: AnyAsk,
        priority: int = 0,
        daemon_set: str = "",
        who: PodIdentity = NO_IDENTITY,
        nominated: str = "",
    ) -> Scenario:
        return self.apply(PodArrived(key, made(wanted), priority, daemon_set, who, nominated))

    def bind(
        self,
        key: str,
        wanted: AnyAsk,
        node: str,
        devices: tuple[int, ...] | None = None,
        daemon_set: str = "",
        priority: int = 0,
        who: PodIdentity = NO_IDENTITY,
        *,
        terminating: bool = False,
    ) -> Scenario:
        ask = made(wanted)
        grant = None if devices is None else compute_grant(devices, ask.gpu_milli // max(len(devices), 1))
        return self.apply(PodBound(key, ask, node, grant, priority, daemon_set, who, terminating))

    def group(self, facts: GroupFacts) -> Scenario:
        return self.apply(GroupSeen(facts))

    def space(self, name: str, **labels: str) -> Scenario:
        return self.apply(NamespaceSeen(name, labels))

    def held(
        self, key: str, wanted: AnyAsk, node: str, devices: tuple[int, ...], starts: tuple[int, ...] = ()
    ) -> Scenario:
        """A pod that runs already and is said to hold these devices, or places on them."""
        positions = tuple(zip(devices, starts or (0,) * len(devices), strict=True))
        return self.apply(PodBound(key, made(wanted), node, positions=positions))

    def go(self, key: str) -> Scenario:
        return self.apply(PodGone(key))

    def reject(self, key: str) -> Scenario:
        return self.apply(PodRejected(key))

    def daemon_set(self, name: str, wanted: AnyAsk) -> Scenario:
        return self.apply(DaemonSetSeen(name, made(wanted)))

    def drop_daemon_set(self, name: str) -> Scenario:
        return self.apply(DaemonSetGone(name))

    def round(self) -> Plan:
        """Nobody moves and nobody yields: for that there is `build.yielding`."""
        self.rounds += 1
        return cycle(self.cluster, self.placement, now_s=float(self.rounds), seed=self.seed, steps=(allocate,))

    def confirm(self, plan: Plan) -> Scenario:
        """The world carries the plan out."""
        for place in plan.placed:
            holding = self.cluster.pods[place.pod]
            self.apply(PodBound(place.pod, holding.ask, place.node, place.grant, holding.priority, who=holding.who))
        return self

    # -- what came of it ---------------------------------------------------------------------------------------

    def placed(self) -> dict[str, str]:
        """Pod -> node, of all pods that are on one."""
        return {key: self.cluster.names[holding.row] for key, holding in self.cluster.pods.items()}

    def devices_of(self, key: str) -> tuple[int, ...]:
        grant: DeviceGrant | None = self.cluster.pods[key].grant
        return () if grant is None else grant.devices

    def waiting(self) -> list[str]:
        return self.cluster.pending.in_order()

    def free(self, node: str, resource: str = "cpu") -> int:
        cluster = self.cluster
        column = cluster.column(resource)
        return int(cluster.free[cluster.row_of[node], column])

    def pieces(self, node: str) -> list[int]:
        """Thousandths left of each device of a node, below zero where more is asked of it than it has."""
        row = self.cluster.row_of[node]
        left: list[int] = self.cluster.devices.compute[row, : int(self.cluster.devices.count[row])].tolist()
        return left

    # -- what the engine thinks --------------------------------------------------------------------------------

    def shape(self, wanted: AnyAsk) -> RequestClass:
        self.placement.renew()
        return self.placement.shape(self.cluster.charge(made(wanted)))

    def fresh_shape(self, wanted: AnyAsk) -> RequestClass:
        """A shape that never saw an older state."""
        self.placement.renew()
        return RequestClass(self.cluster, self.placement.profile, self.cluster.charge(made(wanted)))

    def fitting(self, wanted: AnyAsk) -> set[str]:
        return {self.cluster.names[row] for row in self.shape(wanted).feasible().tolist()}

    def possible(self, wanted: AnyAsk, who: PodIdentity = NO_IDENTITY) -> set[str]:
        """Nodes that fit, rules about other pods included; found by asking for each node alone."""
        charge, cluster = self.cluster.charge(made(wanted)), self.cluster
        self.placement.renew()
        return {name for name, row in cluster.row_of.items() if self.placement.choose(charge, 0, who, np.array([row]))}

    def choice(self, wanted: AnyAsk, draw: int = 0) -> tuple[str, tuple[int, ...]] | None:
        """Node and devices the engine would take now; the facts stay as they are."""
        self.placement.renew()
        spot = self.placement.choose(self.cluster.charge(made(wanted)), draw)
        if spot is None:
            return None
        row, grant = spot
        return self.cluster.names[row], () if grant is None else grant.devices

    def points(self, score: NodeScore, wanted: AnyAsk) -> dict[str, int]:
        """Node -> points of one score, over all live nodes."""
        self.placement.renew()
        cluster = self.cluster
        rows = cluster.alive.nonzero()[0]
        rule = score.compiled(cluster, made(wanted))
        assert rule is not None
        values = rule(Window(cluster, rows)).tolist()
        if isinstance(score, RecordScore) and (of_record := score.of_record(cluster, made(wanted))) is not None:
            records = zip(cluster.free[rows].tolist(), cluster.total[rows].tolist(), strict=True)
            assert [of_record(free, total) for free, total in records] == values
        return {cluster.names[row]: value for row, value in zip(rows.tolist(), values, strict=True)}

    def static_points(self, score: StaticScore, wanted: AnyAsk) -> dict[str, int]:
        cluster = self.cluster
        rows = cluster.alive.nonzero()[0]
        points = score.points(cluster, made(wanted), rows)
        assert points is not None
        return {cluster.names[row]: value for row, value in zip(rows.tolist(), points.tolist(), strict=True)}
