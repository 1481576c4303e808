"""Nodes are not provisioned and removed in alternation: random loads in virtual time, over the production code that
plans, places and removes. A removal is carried out at once, without the confirmation that the controller waits for."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from build.depth import seeds
from build.pool_worlds import machine, pod, pool, standing, world
from shoal.api.pod import Pod
from shoal.autoscale.disruption.candidates import DisruptableNode
from shoal.autoscale.disruption.decision import DisruptionDecision
from shoal.autoscale.disruption.searches import DisruptionInput
from shoal.autoscale.nodes.bookings import on_present_nodes
from shoal.autoscale.nodes.existing_nodes import ExistingNode
from shoal.autoscale.nodes.plan import NewNode, PlanningSettings
from shoal.autoscale.nodes.planner import NodePlanner
from shoal.autoscale.nodes.planning_input import PlanningInput, pod_key
from shoal.store.node_planning import found_removal

_START = datetime(2026, 11, 27, 12, tzinfo=UTC)
_STEP_S, _BOOT_S, _UNNEEDED_S = 30, 120, 60
_LOAD_S, _QUIET_S = 600, 1800
_STILL_S = 300
"""Longer than anything waits for."""
_STEADY = (
    machine("gpu-1", 8, price=2.0, gpus=1),
    machine("gpu-4", 48, price=7.0, gpus=4),
    machine("gpu-8", 96, price=13.0, gpus=8),
    machine("cpu", 16, price=0.8),
)
_WITH_SPOT = (machine("gpu-1", 8, price=2.0, gpus=1, spot=0.9), machine("gpu-8", 96, price=13.0, gpus=8, spot=6.0))


class _Node:
    def __init__(self, name: str, new: NewNode, now_s: int, replaces: Sequence[str] = ()) -> None:
        self.name, self.new, self.ready_s, self.replaces = name, new, now_s + _BOOT_S, tuple(replaces)
        self.pods: dict[str, Pod] = {}
        self.changed_s = now_s
        self.unneeded_s: int | None = None
        self.is_leaving = False

    def existing(self, now_s: int) -> ExistingNode:
        new = self.new
        kind, offering = new.launch, new.offering
        return standing(
            self.name,
            kind,
            *self.pods.values(),
            zone=offering.zone,
            capacity_type=offering.capacity_type,
            pool=new.pool,
            is_initialized=now_s >= self.ready_s,
            is_deleting=self.is_leaving,
        )


class _World:
    """What the controller of nodes, a scheduler and a cloud without failures do to one cluster."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.draw, self.now_s, self.made = draw, 0, 0
        self.nodes: dict[str, _Node] = {}
        self.waiting: dict[str, Pod] = {}
        self.ends_s: dict[str, int] = {}
        self.gangs: dict[str, str] = {}
        # A spot node is not replaced by another one.
        self.types = _WITH_SPOT if seed % 3 == 2 else _STEADY
        after = draw.choice(["0s", "30s", "120s"])
        self.pools = [pool(disruption={"consolidateAfter": after, "budgets": [{"nodes": "100%"}]})]
        if draw.random() < 0.3:
            self.pools[0] = replace(self.pools[0], limits={"nodes": 6})
        self.refused: set[str] = set()
        """The pods for which the limits of the pool are too low."""
        self.actions: list[tuple[int, str, float]] = []
        """When, what, and the price per hour of all nodes after it."""

    def given(self, nodes: Sequence[_Node] | None = None, waiting: dict[str, Pod] | None = None) -> PlanningInput:
        present = self.nodes.values() if nodes is None else nodes
        pods = (self.waiting if waiting is None else waiting).values()
        return world(
            self.types,
            list(pods),
            pools=self.pools,
            nodes=[each.existing(self.now_s) for each in present],
            gangs=dict(self.gangs),
            settings=PlanningSettings(packing="LeastCost"),
        )

    def price(self) -> float:
        return sum(each.new.price for each in self.nodes.values())

    def note(self, what: str) -> None:
        self.actions.append((self.now_s, what, round(self.price(), 6)))

    # -- one step -----------------------------------------------------------------------------------------------------

    def step(self) -> None:
        self.now_s += _STEP_S
        if self.now_s <= _LOAD_S:
            self.load()
        self.replace_old()
        self.place()
        plan = NodePlanner(self.given()).plan()
        self.take_back(set(plan.placed.values()))
        served = {key for node in plan.new_nodes for key in node.pods}
        was_refused, self.refused = self.refused, {each.pod for each in plan.pending}
        if served:
            self.add(plan.new_nodes)
            self.note("provision" if served - was_refused else "provision within limits that became free")
        else:
            self.remove(set(plan.placed.values()))

    def load(self) -> None:
        for key, end_s in list(self.ends_s.items()):
            if self.now_s >= end_s:
                del self.ends_s[key]
                self.waiting.pop(key, None)
                for node in self.nodes.values():
                    if node.pods.pop(key, None) is not None:
                        node.changed_s = self.now_s
        if self.draw.random() < 0.35:
            self.made += 1
            is_gang = self.draw.random() < 0.25
            gpus = 8 if is_gang else self.draw.choice([0, 0, 1, 1, 2, 4, 8])
            end_s = self.now_s + self.draw.choice([60, 200, 400, 10**9])
            for number in range(2 if is_gang else self.draw.choice([1, 1, 3])):
                made = pod(f"p{self.made}-{number}", str(self.draw.choice([1, 2, 6])), gpus=gpus)
                self.waiting[pod_key(made)] = made
                self.ends_s[pod_key(made)] = end_s
                if is_gang:
                    self.gangs[pod_key(made)] = f"gang-{self.made}"

    def place(self) -> None:
        ready = [each for each in self.nodes.values() if self.now_s >= each.ready_s and not each.is_leaving]
        for key, home in on_present_nodes(self.given(ready), tuple(self.waiting.values())).placed.items():
            node = self.nodes[home]
            node.pods[key] = self.waiting.pop(key)
            node.changed_s = self.now_s

    def add(self, new: Sequence[NewNode], replaces: Sequence[str] = ()) -> None:
        for each in new:
            self.made += 1
            name = f"node-{self.made}"
            self.nodes[name] = _Node(name, each, self.now_s, replaces)

    def take_back(self, needed: set[str]) -> None:
        for name, node in list(self.nodes.items()):
            if self.now_s >= node.ready_s or node.replaces or node.pods or name in needed:
                node.unneeded_s = None
                continue
            node.unneeded_s = self.now_s if node.unneeded_s is None else node.unneeded_s
            if self.now_s - node.unneeded_s >= _UNNEEDED_S:
                del self.nodes[name]
                self.note("take back")

    def replace_old(self) -> None:
        for node in list(self.nodes.values()):
            if node.replaces and self.now_s >= node.ready_s:
                for name in node.replaces:
                    self.evict(name)
                node.replaces = ()
                self.note("replaced")

    def evict(self, name: str) -> None:
        if (old := self.nodes.pop(name, None)) is not None:
            self.waiting.update(old.pods)

    def remove(self, needed: set[str]) -> None:
        replaced = {name for node in self.nodes.values() for name in node.replaces}
        keeps = needed | replaced
        given = self.given()
        now = _START + timedelta(seconds=self.now_s)
        nodes = [
            DisruptableNode(
                existing,
                is_ready=existing.is_initialized,
                last_pod_event=_START + timedelta(seconds=max(node.changed_s, node.ready_s)),
            )
            for existing, node in zip(given.nodes, self.nodes.values(), strict=True)
            if existing.name not in keeps
        ]
        planning = replace(given, settings=PlanningSettings())
        decision = found_removal(DisruptionInput(planning=planning, nodes=tuple(nodes), now=now)).decision
        if decision is not None:
            self.carry_out(decision)

    def carry_out(self, decision: DisruptionDecision) -> None:
        before = self.price()
        if decision.replacements:
            for name in decision.nodes:
                self.nodes[name].is_leaving = True
            self.add(decision.replacements, decision.nodes)
            assert sum(each.price for each in decision.replacements) < sum(
                self.nodes[name].new.price for name in decision.nodes
            )
            self.note("replace")
        else:
            for name in decision.nodes:
                self.evict(name)
            assert self.price() < before
            self.note("remove")
        self.is_not_undone(decision)

    def is_not_undone(self, decision: DisruptionDecision) -> None:
        """With the pods of the removed nodes waiting, nothing is provisioned; a pod that the limits of the pool refused
        may use what the removal leaves of them."""
        gone = set(decision.nodes)
        waiting = {key: pod for key, pod in self.waiting.items() if key not in self.refused}
        for name in gone & self.nodes.keys():
            waiting.update(self.nodes[name].pods)
        left = [node for name, node in self.nodes.items() if name not in gone]
        plan = NodePlanner(self.given(left, waiting)).plan()
        assert not plan.new_nodes, f"{decision.method} of {decision.nodes} is undone by {plan.new_nodes}"


@pytest.mark.parametrize("seed", seeds(3))
def test_what_is_removed_is_not_provisioned_again_and_a_steady_load_comes_to_rest(seed: int) -> None:
    cluster = _World(seed)
    last_s = 0
    while cluster.now_s <= _LOAD_S or cluster.now_s - last_s < _STILL_S:
        cluster.step()
        last_s = cluster.actions[-1][0] if cluster.actions else 0
        assert cluster.now_s < _LOAD_S + _QUIET_S, f"it does not come to rest: {cluster.actions[-10:]}"
    quiet: list[Any] = [each for each in cluster.actions if each[0] > _LOAD_S]
    kinds = [what for _, what, _ in quiet]
    removed_at = next((at for at, what in enumerate(kinds) if what in ("remove", "replace")), len(kinds))
    assert "provision" not in kinds[removed_at:], quiet
