"""Plans agree with Karpenter's rules written down a second time, on random worlds."""

from __future__ import annotations

import random
from typing import Any

import pytest

from build.depth import seeds
from build.literal_karpenter import LiteralKarpenter
from build.pool_worlds import machine, pod, pool, world
from shoal.api.pod import Pod
from shoal.autoscale.nodes.planner import plan_nodes
from shoal.autoscale.nodes.planning_input import PlanningInput
from shoal.autoscale.nodes.pools import NodePool

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def _spec(chance: random.Random, app: str) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    affinity: dict[str, Any] = {}
    kind = chance.randrange(10)
    labels = {"labelSelector": {"matchLabels": {"app": chance.choice([app, "a"])}}}
    key = chance.choice([ZONE, HOST])
    if kind == 0:
        spec["nodeSelector"] = {ZONE: chance.choice("abcx")}
    if kind == 1:
        hard = {"whenUnsatisfiable": chance.choice(["DoNotSchedule", "ScheduleAnyway"]), "maxSkew": 1}
        spec["topologySpreadConstraints"] = [{"topologyKey": key, **hard, **labels}]
    if kind in (2, 3):
        term = {"topologyKey": key, **labels}
        name = chance.choice(["podAffinity", "podAntiAffinity"])
        if chance.random() < 0.6:
            affinity[name] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        else:
            soft = {"weight": 1, "podAffinityTerm": term}
            affinity[name] = {"preferredDuringSchedulingIgnoredDuringExecution": [soft]}
    if kind == 4:
        terms = [_term(chance) for _ in range(2)]
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    if kind == 5:
        preferred = [{"weight": weight, "preference": _term(chance)} for weight in (3, 7)]
        affinity["nodeAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    if chance.random() < 0.5:
        spec["tolerations"] = [{"key": "t", "operator": "Exists"}]
    return spec | ({"affinity": affinity} if affinity else {})


def _term(chance: random.Random) -> dict[str, Any]:
    key = chance.choice([ZONE, "team", "kubernetes.io/arch"])
    values = {ZONE: ["a", "b", "x"], "team": ["red", "blue"], "kubernetes.io/arch": ["amd64", "arm64"]}[key]
    return {"matchExpressions": [{"key": key, "operator": "In", "values": chance.sample(values, chance.randint(1, 2))}]}


def _pools(chance: random.Random) -> list[NodePool]:
    found = []
    for name in chance.sample(["p", "q", "r"], chance.randint(1, 3)):
        spec: dict[str, Any] = {"weight": chance.choice([0, 5])}
        if chance.random() < 0.3:
            spec["taints"] = [{"key": "t", "effect": "NoSchedule"}]
        if chance.random() < 0.3:
            spec["limits"] = {chance.choice(["cpu", "nodes"]): chance.choice(["3", "12", "40"])}
        if chance.random() < 0.3:
            spec["labels"] = {"team": chance.choice(["red", "blue"])}
        requirements = [(ZONE, "In", chance.sample(["a", "b", "c"], 2))] if chance.random() < 0.4 else []
        found.append(pool(name, *requirements, **spec))
    return found


def _world(seed: int) -> PlanningInput:
    chance = random.Random(seed)
    types = []
    for number in range(chance.randint(1, 4)):
        cpu, gpus = chance.choice([2, 4, 8, 16]), chance.choice([0, 0, 1, 4])
        zones = chance.sample(["a", "b", "c"], chance.randint(1, 3))
        arch = chance.choice(["amd64", "amd64", "arm64"])
        types.append(
            machine(f"m{number}", cpu, price=cpu + gpus, gpus=gpus, zones=zones, labels={"kubernetes.io/arch": arch})
        )
    pods: list[Pod] = []
    for number in range(chance.randint(1, 9)):
        app = chance.choice("ab")
        cores = chance.choice(["1", "2", "3"])
        gpus = chance.choice([0, 0, 0, 1])
        pods.append(pod(f"x{number}", cores, gpus=gpus, labels={"app": app}, **_spec(chance, app)))
    return world(types, pods, pools=_pools(chance))


@pytest.mark.parametrize("block", range(4))
def test_random_plans_agree_with_the_literal_rules(block: int) -> None:
    different = []
    for seed in seeds(60):
        given = _world(1000 * block + seed)
        literal = LiteralKarpenter(given)
        literal.run()
        plan = plan_nodes(given)
        wanted = sorted(
            (claim.pool.name, sorted(each.metadata.name for each in claim.pods)) for claim in literal.claims
        )
        got = sorted((node.pool, sorted(key.partition("/")[2] for key in node.pods)) for node in plan.new_nodes)
        if wanted != got:
            different.append((1000 * block + seed, wanted, got))
    assert different == []
