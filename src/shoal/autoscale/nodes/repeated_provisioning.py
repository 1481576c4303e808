"""Slows down provisioning for pods that no node helps, although each plan says that the next one will.

A scheduler may refuse a pod for a reason that plans do not know: what runs on every new node, a rule of its own, or a
webhook. A node that has started for a pod which still waits was in vain. After the second one, the pod gets another
only after a delay, which doubles each time. A pod that is placed, or gone, is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, NamedTuple

from msgspec.structs import replace

from shoal.autoscale.nodes.planning_input import PlanningInput, pod_key

_FREE: Final = 2
"""Nodes without a delay: another pod may have taken the first one."""
_FIRST_S: Final = 180.0
_LONGEST_S: Final = 1800.0


class _Tries(NamedTuple):
    nodes: int
    until_s: float


class RepeatedProvisioning:
    def __init__(self) -> None:
        self._pods_of: dict[str, tuple[str, ...]] = {}
        """By the name of the NodeClaim, of nodes that start."""
        self._tries: dict[str, _Tries] = {}
        """By namespace and name of the pod."""

    def note_claim(self, claim: str, pods: Iterable[str]) -> None:
        """A node is provisioned for these pods."""
        self._pods_of[claim] = tuple(pods)

    def note_started(self, started: Iterable[str], starting: Iterable[str], now_s: float) -> None:
        """The NodeClaims as they are now; those that failed do not count."""
        for claim in started:
            for pod in self._pods_of.pop(claim, ()):
                count = self._tries[pod].nodes + 1 if pod in self._tries else 1
                delay_s = min(_FIRST_S * 2.0 ** (count - _FREE), _LONGEST_S) if count >= _FREE else 0.0
                self._tries[pod] = _Tries(count, now_s + delay_s)
        there = frozenset(starting)
        self._pods_of = {claim: pods for claim, pods in self._pods_of.items() if claim in there}

    def applied(self, given: PlanningInput, now_s: float) -> PlanningInput:
        """The input with the pods forbidden whose delay is not over. Pods that do not wait any more are forgotten."""
        waiting = {pod_key(pod) for pod in given.pods}
        self._tries = {pod: each for pod, each in self._tries.items() if pod in waiting}
        delayed = {pod: _words(each) for pod, each in self._tries.items() if now_s < each.until_s}
        return replace(given, forbidden={**delayed, **given.forbidden}) if delayed else given

    def next_s(self, now_s: float) -> float | None:
        """When the first delay is over."""
        return min((each.until_s for each in self._tries.values() if each.until_s > now_s), default=None)


def _words(tries: _Tries) -> str:
    at = datetime.fromtimestamp(tries.until_s, UTC)
    return (
        f"{tries.nodes} nodes have started for it, but its scheduler places it on none of them: see the pod's "
        f"condition PodScheduled for the reason; another node is provisioned from {at:%H:%M:%S} UTC"
    )
