"""The figures of node scaling: nodes by phase and their cost, refused requests, and how long nodes took to start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from shoal.autoscale.node_claims.claim import INITIALIZED, LAUNCHED, PRICE, REGISTERED, NodeClaim

StartPhase = Literal["launch", "register", "initialize", "total"]
Refusal = Literal["no capacity", "throttled", "no answer", "invalid"]


class NodeScalingFigures(msgspec.Struct):
    """As of the last pass."""

    nodes: dict[tuple[str, str], int] = {}
    """By pool and phase: launching, starting, running, leaving."""
    usd_per_hour: dict[tuple[str, str], float] = {}
    """By pool and capacity type."""
    waiting_pods: int = 0
    """Pods that wait for nodes."""
    unprovided_pods: int = 0
    """Pods for which no pool can provide a node."""


class NodeScalingObserver:
    """Counts what happens, for metrics."""

    def __init__(self) -> None:
        self.requests_refused: Counter[str] = Counter()
        self.nodes_removed: Counter[tuple[str, str]] = Counter()
        """By pool and reason."""
        self.on_start: Callable[[str, StartPhase, float], None] = lambda _pool, _phase, _seconds: None
        """Called for each phase of a node that has started."""

    def refused(self, why: Refusal) -> None:
        self.requests_refused[why] += 1

    def took(self, pool: str, phase: StartPhase, seconds: float) -> None:
        self.on_start(pool, phase, seconds)

    def removed(self, pool: str, reason: str) -> None:
        self.nodes_removed[pool, reason] += 1


def phase_of(claim: NodeClaim) -> str:
    if claim.is_deleting:
        return "leaving"
    if claim.has(INITIALIZED):
        return "running"
    return "starting" if claim.has(LAUNCHED) else "launching"


def start_times(claim: NodeClaim, now_s: float) -> dict[StartPhase, float]:
    """How long each phase took, of a node that has started at this moment."""
    launched_s, registered_s = claim.since_s(LAUNCHED), claim.since_s(REGISTERED)
    return {
        "launch": launched_s - claim.created_s,
        "register": registered_s - launched_s,
        "initialize": now_s - registered_s,
        "total": now_s - claim.created_s,
    }


def counted(claims: list[NodeClaim]) -> dict[tuple[str, str], int]:
    return dict(Counter((claim.pool, phase_of(claim)) for claim in claims))


def costs(claims: Iterable[NodeClaim]) -> dict[tuple[str, str], float]:
    """What the instances cost per hour, by pool and capacity type."""
    found: dict[tuple[str, str], float] = {}
    for claim in claims:
        if claim.provider_id:
            key = claim.pool, claim.offering[2]
            found[key] = found.get(key, 0.0) + _number(claim.annotations.get(PRICE, ""))
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
