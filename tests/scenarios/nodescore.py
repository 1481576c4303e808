"""Cases about the order of nodes for one request: ours by our scores, compared tier by tier."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.engine import facts
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import FULL_MILLI, WholeGpus
from shoal.engine.events import NodeFacts, NodeSeen
from shoal.engine.intake import Intake
from shoal.engine.queues.disciplines.volcano.node_scores import binpack_score, strategy_score
from shoal.engine.scores.allocation import BalancedAllocation, ResourceAllocationScore
from shoal.engine.scores.rule import NodeScore, Points
from shoal.engine.scores.strategies import Packed, Spread, column_of
from shoal.engine.window import Window

from .case import Case, Node

_GPU = "nvidia.com/gpu"
_UNITS = {"gpu": (_GPU, 1), "cpu": ("cpu", 1), "memory": ("memory", 1 << 20)}
_COLUMNS = {"cpu": [facts.CPU, facts.CPU_SCORED], "memory": [facts.MEMORY, facts.MEMORY_SCORED]}
"""Where an amount is counted more than once."""
_CORES_AND_MEMORY = {"cpu": 1, "memory": 1}


def score_of(case: Case) -> NodeScore | None:
    """The strategy that the case names, or None when we have none of the kind."""
    config = case.config
    resource, unit = _UNITS.get(case.resource, (case.resource, 1))
    weighed = tuple((name, int(weight)) for name, weight in (config.weights or _CORES_AND_MEMORY).items())
    match config.strategy.lower().replace("-", "").replace("_", "").removesuffix("resource"):
        case "binpack":
            return Packed(resource, unit)
        case "spread":
            return Spread(resource)
        case "weightedbinpack":
            return binpack_score(config.weights)
        case "perresourcestrategy":
            return strategy_score(config.resources)
        case "leastrequested" | "leastallocated":
            return ResourceAllocationScore("LeastAllocated", weighed)
        case "mostrequested" | "mostallocated":
            return ResourceAllocationScore("MostAllocated", weighed)
        case "balanced" | "balancedallocation":
            return BalancedAllocation()
    return None


def ranking(case: Case, score: NodeScore) -> list[list[str]]:
    """Nodes in tiers of equal points, best first."""
    cluster = Cluster()
    intake = Intake(cluster)
    ask = _ask(case.request)
    cluster.charge(ask)
    for rank, node in enumerate(case.nodes):
        amounts = _amounts({"cpu": node.cpu, "memory": node.memory, **node.extended})
        intake.apply(NodeSeen(NodeFacts(node.name, {"pods": 110, **amounts}, gpus=node.gpus, rank=rank)))
        row = cluster.row_of[node.name]
        for name, amount in _used(node).items():
            for column in _COLUMNS.get(name) or [column_of(cluster, name)]:
                cluster.free[row, column] -= amount
    rule = score.compiled(cluster, ask)
    rows = cluster.all_rows()
    points = np.zeros(len(rows), np.int64) if rule is None else rule(Window(cluster, rows))
    if isinstance(score, Packed):
        points = _rescaled(points, cluster.free[rows, column_of(cluster, score.resource)])
    tiers: dict[int, list[str]] = {}
    for row, value in enumerate(points.tolist()):
        tiers.setdefault(value, []).append(cluster.names[row])
    return [sorted(tiers[value]) for value in sorted(tiers, reverse=True)]


def _rescaled(points: Points, free: Points) -> Points:
    """KAI's scale of packing: unless all are alike, the emptiest node is worth no more than one without any."""
    owners = points > 0
    if not owners.any() or not (free > 0).any():
        return np.zeros_like(points)
    emptiest = points[owners].min()
    return points if (points[owners] == emptiest).all() else np.where(points == emptiest, 0, points)


def _used(node: Node) -> dict[str, int]:
    used = dict(node.used)
    gpus = used.pop("gpus", used.pop("gpu", used.pop(_GPU, 0)))
    if node.free_gpus is not None:
        gpus = node.gpus - node.free_gpus
    if node.free_cpu is not None:
        used["cpu"] = node.cpu - node.free_cpu
    if node.free_memory is not None:
        used["memory"] = node.memory - node.free_memory
    return _amounts(used) | {_GPU: round(gpus * FULL_MILLI)}


def _ask(request: dict[str, Any]) -> Ask:
    amounts = _amounts(
        {"cpu": request.get("cpu", 0), "memory": request.get("memory", 0), **request.get("extended", {})}
    )
    gpus = int(request.get("gpus", 0))
    return Ask(
        requests=tuple(sorted((name, amount) for name, amount in amounts.items() if amount)),
        devices=WholeGpus(gpus) if gpus else None,
    )


def _amounts(amounts: dict[str, float]) -> dict[str, int]:
    return {name: round(amount * 1000) if name == "cpu" else int(amount) for name, amount in amounts.items()}


def differences(tiers: list[list[str]], expect: dict[str, Any]) -> list[str]:
    wanted = [sorted(tier) for tier in expect.get("ranking", [])]
    return [] if wanted == tiers else [f"ranking: expected {wanted}, got {tiers}"]
