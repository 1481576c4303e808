"""Decides the next steps of a StatefulSet from its pods, as pure functions whose order can be tested.

There are three passes: missing pods from the lowest ordinal; surplus pods from the highest; then outdated pods from the
highest. `OrderedReady` stops at the first ordinal that is not ready; `Parallel` does not wait within a pass.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shoal.client.owned_pods.pod_view import PodView

REVISION_LABEL = "controller-revision-hash"
MAX_PODS_PER_SYNC = 500
"""The maximum number of pods created or deleted in one sync."""


class DesiredSet(msgspec.Struct, frozen=True):
    """The desired state. `partition`: None if not set; `current`, `update`: names of revisions."""

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
        """The revision of a new pod: pods below the partition keep the current revision."""
        if not self.is_rolling:
            return self.update
        kept = self.current_replicas if self.partition is None else self.partition
        return self.current if ordinal < self.start + kept else self.update


class CreatePod(msgspec.Struct, frozen=True):
    ordinal: int
    revision: str


class Delete(msgspec.Struct, frozen=True):
    ordinal: int


Step = CreatePod | Delete


def steps(desired: DesiredSet, pods: Mapping[int, PodView], now_s: float) -> list[Step]:
    """The next steps, in order."""
    planner = _Planner(desired, pods, now_s)
    found, continues = planner.missing_pods()
    if continues:
        removed, continues = planner.surplus_pods()
        found += removed
    if continues and desired.is_rolling:
        found += planner.outdated_pods()
    return found[:MAX_PODS_PER_SYNC]


class _Planner:
    def __init__(self, desired: DesiredSet, pods: Mapping[int, PodView], now_s: float) -> None:
        self._desired = desired
        self._pods = pods
        self._now_s = now_s
        self._places = range(desired.start, desired.start + desired.replicas)
        self._condemned = sorted((ordinal for ordinal in pods if ordinal not in self._places), reverse=True)

    def missing_pods(self) -> tuple[list[Step], bool]:
        found: list[Step] = []
        continues = True
        for ordinal in self._places:
            pod = self._pods.get(ordinal)
            if pod is None:
                found.append(CreatePod(ordinal, self._desired.revision_for(ordinal)))
            elif pod.is_finished():
                if not pod.is_terminating():
                    found.append(Delete(ordinal))
                continues = False
            elif self._is_available(pod):
                continue
            if self._desired.is_ordered or len(found) >= MAX_PODS_PER_SYNC:
                return found, False
        return found, continues

    def surplus_pods(self) -> tuple[list[Step], bool]:
        found: list[Step] = []
        unwell = [one for one in reversed(self._condemned) if not self._is_available(self._pods[one])]
        # Kubernetes also waits for finished pods, and so waits forever.
        weakest = next((one for one in unwell if not self._pods[one].is_finished()), None)
        for ordinal in self._condemned:
            pod = self._pods[ordinal]
            if not pod.is_terminating():
                waits = ordinal in unwell and ordinal != weakest and not pod.is_finished()
                if self._desired.is_ordered and waits:
                    return found, False
                found.append(Delete(ordinal))
            if self._desired.is_ordered:
                return found, False
        return found, True

    def outdated_pods(self) -> list[Step]:
        rolled = range(self._desired.start + (self._desired.partition or 0), self._places.stop)
        places = sorted((ordinal for ordinal in self._pods if ordinal in rolled), reverse=True)
        return self._several(places) if self._desired.most_unavailable > 1 else self._one_by_one(places)

    def _one_by_one(self, places: list[int]) -> list[Step]:
        for ordinal in places:
            if self._is_outdated(ordinal):
                return [Delete(ordinal)]
            if not self._is_available(self._pods[ordinal]):
                return []
        return []

    def _several(self, places: list[int]) -> list[Step]:
        """Deletes unavailable pods, and as many available ones as may be unavailable."""
        missing = sum(not self._is_available(pod) for ordinal, pod in self._pods.items() if ordinal in self._places)
        may_delete = self._desired.most_unavailable - missing
        found: list[Step] = []
        for ordinal in places:
            if self._is_outdated(ordinal):
                may_delete -= self._is_available(self._pods[ordinal])
                if may_delete < 0:
                    break
                found.append(Delete(ordinal))
        return found

    def _is_outdated(self, ordinal: int) -> bool:
        pod = self._pods[ordinal]
        return pod.metadata.labels.get(REVISION_LABEL) != self._desired.update and not pod.is_terminating()

    def _is_available(self, pod: PodView) -> bool:
        """Whether the pod is available and not terminating."""
        runs = pod.status.phase == "Running" and not pod.is_terminating()
        return runs and pod.is_available(self._desired.min_ready_s, self._now_s)
