"""What a stateful set does next, from its pods: pure, so that the order of things can be read and tested by itself.

Three passes: every place that should be filled, from the lowest; every pod beyond them, from the highest; then pods of
an old template, from the highest. `OrderedReady` stops at the first thing that is not as it should be; `Parallel` does
not wait within a pass.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shoal.controllers.owned_pods.sight import PodSight

REVISION_LABEL = "controller-revision-hash"
MOST_AT_ONCE = 500
"""Pods made or deleted before the set is looked at again, however many there are to be."""


class Wanted(msgspec.Struct, frozen=True):
    """What the set asks for. `partition`: None where none was ever written; `current`, `update`: revisions' names."""

    start: int
    replicas: int
    current: str
    update: str
    is_ordered: bool = True
    is_rolling: bool = True
    partition: int | None = 0
    most_unavailable: int = 1
    min_ready_s: int = 0
    current_replicas: int = 0

    def revision_for(self, ordinal: int) -> str:
        """Of a pod that is made anew: below the partition pods stay what they were."""
        if not self.is_rolling:
            return self.update
        kept = self.current_replicas if self.partition is None else self.partition
        return self.current if ordinal < self.start + kept else self.update


class Create(msgspec.Struct, frozen=True):
    ordinal: int
    revision: str


class Delete(msgspec.Struct, frozen=True):
    ordinal: int


Step = Create | Delete


def steps(wanted: Wanted, pods: Mapping[int, PodSight], now_s: float) -> list[Step]:
    """The next, in the order in which they are to be taken."""
    look = _Look(wanted, pods, now_s)
    found, goes_on = look.filling()
    if goes_on:
        removed, goes_on = look.emptying()
        found += removed
    if goes_on and wanted.is_rolling:
        found += look.updating()
    return found[:MOST_AT_ONCE]


class _Look:
    def __init__(self, wanted: Wanted, pods: Mapping[int, PodSight], now_s: float) -> None:
        self._wanted = wanted
        self._pods = pods
        self._now_s = now_s
        self._places = range(wanted.start, wanted.start + wanted.replicas)
        self._condemned = sorted((ordinal for ordinal in pods if ordinal not in self._places), reverse=True)

    def filling(self) -> tuple[list[Step], bool]:
        found: list[Step] = []
        goes_on = True
        for ordinal in self._places:
            pod = self._pods.get(ordinal)
            if pod is None:
                found.append(Create(ordinal, self._wanted.revision_for(ordinal)))
            elif pod.is_finished():
                if not pod.is_terminating():
                    found.append(Delete(ordinal))
                goes_on = False
            elif self._serves(pod):
                continue
            if self._wanted.is_ordered or len(found) >= MOST_AT_ONCE:
                return found, False
        return found, goes_on

    def emptying(self) -> tuple[list[Step], bool]:
        found: list[Step] = []
        unwell = [one for one in reversed(self._condemned) if not self._serves(self._pods[one])]
        # Kubernetes waits for pods that have ended too, which is for ever.
        weakest = next((one for one in unwell if not self._pods[one].is_finished()), None)
        for ordinal in self._condemned:
            pod = self._pods[ordinal]
            if not pod.is_terminating():
                waits = ordinal in unwell and ordinal != weakest and not pod.is_finished()
                if self._wanted.is_ordered and waits:
                    return found, False
                found.append(Delete(ordinal))
            if self._wanted.is_ordered:
                return found, False
        return found, True

    def updating(self) -> list[Step]:
        rolled = range(self._wanted.start + (self._wanted.partition or 0), self._places.stop)
        places = sorted((ordinal for ordinal in self._pods if ordinal in rolled), reverse=True)
        return self._several(places) if self._wanted.most_unavailable > 1 else self._one_by_one(places)

    def _one_by_one(self, places: list[int]) -> list[Step]:
        for ordinal in places:
            if self._is_outdated(ordinal):
                return [Delete(ordinal)]
            if not self._serves(self._pods[ordinal]):
                return []
        return []

    def _several(self, places: list[int]) -> list[Step]:
        """Pods that do not serve cost nothing; of the others so many that no more are missing than allowed."""
        missing = sum(not self._serves(pod) for ordinal, pod in self._pods.items() if ordinal in self._places)
        room = self._wanted.most_unavailable - missing
        found: list[Step] = []
        for ordinal in places:
            if self._is_outdated(ordinal):
                room -= self._serves(self._pods[ordinal])
                if room < 0:
                    break
                found.append(Delete(ordinal))
        return found

    def _is_outdated(self, ordinal: int) -> bool:
        pod = self._pods[ordinal]
        return pod.metadata.labels.get(REVISION_LABEL) != self._wanted.update and not pod.is_terminating()

    def _serves(self, pod: PodSight) -> bool:
        """It runs, has been ready for long enough and is not about to end."""
        runs = pod.status.phase == "Running" and not pod.is_terminating()
        return runs and pod.is_available(self._wanted.min_ready_s, self._now_s)
