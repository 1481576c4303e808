"""The replicas of a model: single pods, or whole groups of a LeaderWorkerSet, and how long each took to start."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec import Struct, field

from shoal.api.conditions import Condition
from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.api.wire import ApiStruct

LWS_NAME = "leaderworkerset.sigs.k8s.io/name"
_GROUP, _WORKER = "leaderworkerset.sigs.k8s.io/group-index", "leaderworkerset.sigs.k8s.io/worker-index"


class ServingPodMeta(ApiStruct, frozen=True):
    name: str = ""
    uid: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None


class RunningState(ApiStruct, frozen=True):
    started_at: datetime | None = None


class ContainerRun(ApiStruct, frozen=True):
    running: RunningState | None = None


class ServingContainer(ApiStruct, frozen=True):
    restart_count: int = 0
    state: ContainerRun = ContainerRun()


class ServingPodStatus(ApiStruct, frozen=True):
    phase: str = ""
    pod_ip: str = field(default="", name="podIP")
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ServingContainer, ...] = ()


class ServingPod(ApiStruct, frozen=True):
    metadata: ServingPodMeta
    status: ServingPodStatus = ServingPodStatus()

    def is_active(self) -> bool:
        return self.metadata.deletion_timestamp is None and self.status.phase not in TERMINAL_PHASES

    def since(self, type_: str) -> datetime | None:
        """Since when a condition is true."""
        found = next((one for one in self.status.conditions if one.type == type_ and one.is_true()), None)
        return None if found is None else found.last_transition_time

    def start_phases(self) -> dict[str, float]:
        """How long each phase of its start took; empty before it is ready, and for a pod whose containers restarted."""
        created, scheduled, ready = self.metadata.creation_timestamp, self.since("PodScheduled"), self.since("Ready")
        runs = [one.state.running for one in self.status.container_statuses]
        if created is None or scheduled is None or ready is None or not runs:
            return {}
        if any(one.restart_count for one in self.status.container_statuses):
            return {}
        moments = [one.started_at for one in runs if one is not None and one.started_at is not None]
        if len(moments) < len(runs):
            return {}
        started = max(moments)
        return {
            "node": (scheduled - created).total_seconds(),
            "image": (started - scheduled).total_seconds(),
            "weights": (ready - started).total_seconds(),
        }


class ReplicaGroup(Struct, frozen=True):
    leader: ServingPod
    pods: tuple[ServingPod, ...]
    is_ready: bool

    def ready_since(self) -> datetime | None:
        """When the last of its pods became ready."""
        moments = [one.since("Ready") for one in self.pods]
        known = [one for one in moments if one is not None]
        return max(known) if len(known) == len(moments) and known else None

    def start_phases(self) -> dict[str, float]:
        """Of the pod that took longest."""
        phases = [one.start_phases() for one in self.pods]
        return max(phases, key=lambda one: sum(one.values())) if phases and all(phases) else {}


def single_pods(pods: Iterable[ServingPod]) -> list[ReplicaGroup]:
    return [ReplicaGroup(one, (one,), one.since("Ready") is not None) for one in pods if one.is_active()]


def worker_groups(pods: Iterable[ServingPod], size: int) -> list[ReplicaGroup]:
    """The groups whose leader exists. A group with fewer pods than `size` is not ready."""
    groups: Mapping[str, list[ServingPod]] = defaultdict(list)
    for one in pods:
        if one.is_active():
            groups[one.metadata.labels.get(_GROUP, "")].append(one)
    found = []
    for members in groups.values():
        leader = next((one for one in members if one.metadata.labels.get(_WORKER) == "0"), None)
        if leader is not None:
            is_ready = len(members) >= size and all(one.since("Ready") is not None for one in members)
            found.append(ReplicaGroup(leader, tuple(members), is_ready))
    return found
