"""Declares the values that the dashboard shows: nodes, pods, queues, gangs, Events and their sums.

Every text is one printable line. The readers ensure this, because a user who may write Events could otherwise send
control sequences to the terminal that shows the dashboard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from shoal.engine.from_api.queues.wait_slo import WaitSlo

Address = tuple[str, str]
"""Namespace and name."""


class Slot(msgspec.Struct, frozen=True):
    """A part of a GPU that is handed out as one device: all of it, a MIG instance, a replica."""

    device: str
    gpu: int
    start: float
    """Where on the GPU it begins, 0 to 1."""
    width: float


class DashboardNode(msgspec.Struct, frozen=True):
    name: str
    kind: str
    """What machines of one kind share: the instance type, else the GPU product."""
    gpus: int
    slots: tuple[Slot, ...]
    """Empty where nothing says which devices there are; then GPUs are filled in order."""
    is_ready: bool = True
    is_cordoned: bool = False
    is_leaving: bool = False
    """Whether it is being removed."""
    broken: frozenset[int] = frozenset()
    """GPUs that have failed. Where only their number is known, the last ones of the node."""


class DashboardPod(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    phase: str
    node: str
    gpus: float
    """How many devices it asks for, of whatever size."""
    devices: tuple[str, ...]
    why: str
    """Why it waits, in the scheduler's or kubelet's words."""
    created: str
    is_ending: bool = False
    gang: str = ""
    """As namespace/name; empty for a pod that names no gang."""
    job: str = ""
    """The Job that made it, as namespace/name; empty if there is none, or if the pod names a gang."""
    gang_needs: int = 0
    """How many pods of the gang must run together, if the pod itself says so."""
    queue: str = ""
    is_gated: bool = False
    """Whether a scheduling gate keeps it back."""
    load: int | None = None
    """How busy its GPUs are, in percent; None where that is unknown."""
    started: str = ""
    """When its node took it."""
    reported: tuple[tuple[str, str], ...] = ()
    """The annotations in which a training program says how far it is, by their names."""

    @property
    def address(self) -> Address:
        return (self.namespace, self.name)

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def waits(self) -> bool:
        return self.phase == "Pending" and not self.is_ending

    @property
    def holds(self) -> bool:
        return bool(self.node) and self.phase in ("Pending", "Running")


class EventFacts(msgspec.Struct, frozen=True):
    """An Event, in a line."""

    at: str
    about: str
    """Kind and name of its object: `pod/train-0`."""
    reason: str
    message: str
    is_warning: bool
    count: int = 1
    name: str = ""
    """The Event's own namespace/name, by which its later versions are recognized."""
    namespace: str = ""
    """Of its object."""


class WarningFacts(msgspec.Struct, frozen=True):
    """All Events of one reason in one namespace that report a fault or an eviction."""

    key: str
    reason: str
    count: int
    at: str
    """When the last one happened."""
    about: str
    message: str


class QuotaFacts(msgspec.Struct, frozen=True):
    """One resource of one queue. Volcano and KAI have no flavors."""

    resource: str
    flavor: str
    nominal: float | None
    """None where there is no limit."""
    used: float
    borrowed: float


class QueueFacts(msgspec.Struct, frozen=True):
    kind: str
    """`ClusterQueue`, `Volcano` or `KAI`."""
    name: str
    parent: str
    """The cohort of a ClusterQueue, the parent of other queues."""
    quotas: tuple[QuotaFacts, ...] = ()
    pending: int | None = None
    """Workloads or gangs that wait; None where the queue does not report it."""
    admitted: int | None = None
    fault: str = ""
    """Why it admits nothing; empty while it does."""
    wait_slo: WaitSlo = WaitSlo()
    """Of a ClusterQueue."""

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def is_used(self) -> bool:
        return any(quota.used for quota in self.quotas) or bool(self.pending or self.admitted)


class PreemptionFacts(msgspec.Struct, frozen=True):
    """The last time that a Workload had to give its quota to another."""

    by_queue: str
    """The ClusterQueue of the other one; empty where the condition does not name it."""
    queue: str
    """Its own ClusterQueue at that time."""
    reason: str
    at: str


class WorkloadFacts(msgspec.Struct, frozen=True):
    """A Workload of Kueue."""

    namespace: str
    name: str
    queue: str
    """The LocalQueue that it was sent to."""
    cluster_queue: str
    """The ClusterQueue that reserved quota for it, else the one of its LocalQueue; empty if neither is known."""
    owner: str
    """Kind and name of the object that it was made for: `job/train`."""
    pods: int
    gpus: float
    state: Literal["pending", "admitted", "finished"]
    why: str
    created: str
    reserved: str = ""
    """When it got its quota; empty while it has none."""
    requeued: str = ""
    """When it was queued again, if it was."""
    preemption: PreemptionFacts | None = None

    @property
    def address(self) -> Address:
        return (self.namespace, self.name)

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.owner or self.name}"


class GroupFacts(msgspec.Struct, frozen=True):
    """A PodGroup of any scheduler."""

    namespace: str
    name: str
    needs: int
    queue: str
    why: str
    is_refused: bool = False
    """Whether KAI's queue keeps it back."""

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"


class GangFacts(msgspec.Struct, frozen=True):
    """A gang and the pods that name it."""

    name: str
    """As namespace/name."""
    needs: int
    """Pods that must run together; 0 where nothing says so."""
    running: int
    waiting: int
    gpus: float
    nodes: int
    queue: str
    why: str
    created: str


class GpuSlot(msgspec.Struct, frozen=True):
    """A stretch of one GPU with one owner (a namespace; empty where it is free)."""

    start: float
    width: float
    owner: str
    load: int | None = None
    pod: str = ""
    """The pod that holds it, as namespace/name."""
    device: str = ""


class Tile(msgspec.Struct, frozen=True):
    """A node and who holds which part of it."""

    node: DashboardNode
    parts: Sequence[Sequence[GpuSlot]]
    """For each GPU, in order."""
    sums: Mapping[str, float]
    """GPUs by owner, parts as fractions."""
    held: float
    """The sum of these."""
    main_owner: str
    """The owner that holds the most; empty if there is none."""

    @property
    def whole_free(self) -> int:
        """GPUs that are entirely free and work."""
        return sum(
            all(not part.owner for part in parts)
            for index, parts in enumerate(self.parts)
            if index not in self.node.broken
        )


class Fleet(msgspec.Struct, frozen=True):
    """All tiles together."""

    gpus: int
    broken: int
    sums: Mapping[str, float]
    """GPUs by owner."""
    most_free: tuple[str, int] = ("", 0)
    """The ready node with the most free GPUs, and their number."""
    lost: float = 0.0
    """Failed GPUs that no pod holds: neither held nor free."""

    @property
    def held(self) -> float:
        return sum(self.sums.values())

    @property
    def free(self) -> float:
        return max(0.0, self.gpus - self.held - self.lost)


class PageSubject(msgspec.Struct, frozen=True):
    """What a detail page is about."""

    kind: Literal["node", "pod", "gang", "job", "queue"]
    name: str
    """Of a node its name, of a queue its key, of a pod, gang or Job namespace/name."""


class NodeDetail(msgspec.Struct, frozen=True):
    tile: Tile
    pods: Sequence[DashboardPod]
    labels: Sequence[tuple[str, str]] = ()
    conditions: Sequence[str] = ()
    """Those that are not as they should be, and taints."""
    faults: Mapping[int, str] = {}
    """By GPU, where the node reports a code."""


class PodDetail(msgspec.Struct, frozen=True):
    pod: DashboardPod
    events: Sequence[EventFacts] = ()


class GangDetail(msgspec.Struct, frozen=True):
    gang: GangFacts
    pods: Sequence[DashboardPod]
    workload: WorkloadFacts | None = None
    """The one that holds or waits for its quota."""


class JobDetail(msgspec.Struct, frozen=True):
    """A Job whose pods name no gang."""

    namespace: str
    name: str
    pods: Sequence[DashboardPod]
    workload: WorkloadFacts | None = None
    """The one that holds or waits for its quota."""


class QueueDetail(msgspec.Struct, frozen=True):
    queue: QueueFacts
    pending: Sequence[WorkloadFacts] = ()
    admitted: Sequence[WorkloadFacts] = ()
    gangs: Sequence[GangFacts] = ()


Detail = NodeDetail | PodDetail | GangDetail | JobDetail | QueueDetail


class DashboardFacts(msgspec.Struct, frozen=True):
    """Everything one frame shows."""

    title: str
    clock: str
    """How long the dashboard has run."""
    tiles: Sequence[Tile]
    fleet: Fleet
    waiting: Sequence[DashboardPod]
    """Those that wait longest, oldest first: as many as a user looks through."""
    waits: int
    """How many wait in all."""
    running: int
    done: int
    failed: int
    events: Sequence[EventFacts]
    """The newest first."""
    footer: str = ""
    now_s: float = 0.0
    """Seconds since 1970, for ages."""
    queues: Sequence[QueueFacts] = ()
    workloads: Sequence[WorkloadFacts] = ()
    """Those that wait for quota, oldest first."""
    gangs: Sequence[GangFacts] = ()
    warnings: Sequence[WarningFacts] = ()
    """The newest first."""
    history: Sequence[float] = ()
    """The share of GPUs held, 0 to 1, at regular times; the newest last."""
    note: str = ""
    """A problem with the connection to the cluster."""
    starting: int = 0
    """Nodes that are provisioned and do not take pods yet."""
    leaving: int = 0
    """Nodes that are being removed."""
    node_lines: Sequence[str] = ()
    """The nodes that come and go, in words."""
    detail: Detail | None = None
    """Of the subject that is open; None if the cluster no longer has it."""

    @property
    def all_waiting(self) -> int:
        """Pods without a node, and Workloads without quota, whose pods do not exist yet."""
        return self.waits + len(self.workloads)
