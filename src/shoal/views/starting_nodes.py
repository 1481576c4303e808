"""Tells users which nodes are being provisioned, for how long, and how long it usually takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shoal.autoscale.node_claims.claim import INITIALIZED, LAUNCHED, REGISTERED, NodeClaim


def is_starting(claim: NodeClaim) -> bool:
    return not claim.is_deleting and not claim.has(INITIALIZED)


def starting_lines(claims: Iterable[NodeClaim], now_s: float) -> list[str]:
    """One line for each instance type and pool."""
    groups: dict[tuple[str, str], list[NodeClaim]] = {}
    for claim in claims:
        if is_starting(claim):
            groups.setdefault((claim.offering[0], claim.pool), []).append(claim)
    return [
        f"provisioning {len(group):,} x {kind}, started {_minutes(now_s - _oldest_s(group))} ago"
        f"{_expected(group)}, pool {pool}{_missing(group)}"
        for (kind, pool), group in sorted(groups.items())
    ]


def _oldest_s(group: Sequence[NodeClaim]) -> float:
    return min(claim.created_s for claim in group)


def _expected(group: Sequence[NodeClaim]) -> str:
    longest = max((claim.expected_s for claim in group if claim.expected_s is not None), default=None)
    return "" if longest is None else f", about {_minutes(longest)} expected"


def _missing(group: Sequence[NodeClaim]) -> str:
    """What the slowest of them waits for."""
    waiting = next((claim for claim in group if not claim.has(LAUNCHED)), None)
    if waiting is not None:
        return "; the cloud has not granted it yet"
    unregistered = sum(not claim.has(REGISTERED) for claim in group)
    if unregistered:
        return f"; {unregistered:,} of {len(group):,} have not registered"
    why = next((state.message for claim in group if (state := claim.conditions.get(INITIALIZED)) is not None), "")
    return f"; {why}" if why else ""


def _minutes(seconds: float) -> str:
    """`3:12`, or `1:03:12` from an hour on."""
    minutes, rest = divmod(max(int(seconds), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
