"""Tracks which nodes' kubelets refused pods that Shoal bound, and keeps similar requests off these nodes for a while.

A kubelet that refuses a pod knows more than the facts: another scheduler filled the node, or its devices do not work.
Pod after pod would fail there. But a pod may also fail by a fault of its own, so a failure says little:

- it keeps off only asks for at least as much of what was lacking,
- it ends when something is seen to change by which the kubelet admits pods, and after `LASTS_S` in any case,
- the pods of one owner keep others off `MOST_NODES` nodes at a time; a further node frees the one that failed first.

Rejected: keeping off the pods of the same owner only. Several owners whose pods wait would each lose a pod there.
"""

from __future__ import annotations

import msgspec

from shoal.engine.asks import Ask, counted
from shoal.engine.changes import ChangeLog

LASTS_S = 60.0
MOST_NODES = 4

_GPUS = "nvidia.com/gpu"


class _Failure(msgspec.Struct, frozen=True):
    least: dict[str, int]
    """Asks for at least these amounts are kept off."""
    owner: str
    until_s: float


class AdmissionFailures:
    """The failures by row. Each change is noted in both change logs, because it changes which requests fit the row."""

    def __init__(self, changes: ChangeLog, static_changes: ChangeLog) -> None:
        self._logs = (changes, static_changes)
        self._of: dict[int, list[_Failure]] = {}
        """Oldest first."""

    def __contains__(self, row: int) -> bool:
        return row in self._of

    def add(self, row: int, ask: Ask, resource: str, owner: str, at_s: float) -> None:
        """The kubelet of the row refused a pod with this ask for lack of a resource; empty: it did not say of which."""
        failure = _Failure(_lacking(ask, resource), owner, at_s + LASTS_S)
        before = self._of.pop(row, [])
        self._of[row] = [one for one in before if (one.owner, one.least) != (owner, failure.least)] + [failure]
        self._changed(row)
        rows = [each for each, failures in self._of.items() if any(one.owner == owner for one in failures)]
        if len(rows) > MOST_NODES:
            self._keep(rows[0], [one for one in self._of[rows[0]] if one.owner != owner])

    def lift(self, row: int) -> None:
        """Something was seen to change by which the kubelet of the row admits pods."""
        if row in self._of:
            self._keep(row, [])

    def expire(self, now_s: float) -> None:
        """Forget what is too old."""
        if self._of and self.next_s() <= now_s:
            for row, failures in list(self._of.items()):
                self._keep(row, [one for one in failures if one.until_s > now_s])

    def next_s(self) -> float:
        """When the next one is too old; infinite: there is none."""
        return min((one.until_s for failures in self._of.values() for one in failures), default=float("inf"))

    def rows_against(self, ask: Ask) -> list[int]:
        """The rows that the ask is kept off."""
        if not self._of:
            return []
        amounts = _amounts(ask)
        return [row for row, failures in self._of.items() if any(_is_as_large(amounts, one.least) for one in failures)]

    def _keep(self, row: int, failures: list[_Failure]) -> None:
        if failures == self._of[row]:
            return
        if failures:
            self._of[row] = failures
        else:
            del self._of[row]
        self._changed(row)

    def _changed(self, row: int) -> None:
        for log in self._logs:
            log.append(row)


def _amounts(ask: Ask) -> dict[str, int]:
    gpus = {_GPUS: ask.gpu_milli} if ask.gpu_milli else {}
    return {**counted(ask), **gpus, "pods": 1}


def _lacking(ask: Ask, resource: str) -> dict[str, int]:
    """Where the kubelet names nothing that the pod asks for, it lacks devices, as far as the pod asks for any."""
    amounts = _amounts(ask)
    if resource in amounts:
        return {resource: amounts[resource]}
    return {name: amount for name, amount in amounts.items() if "/" in name} or amounts


def _is_as_large(amounts: dict[str, int], least: dict[str, int]) -> bool:
    return all(amounts.get(name, 0) >= amount for name, amount in least.items())
