"""Stores the queues, Workloads and PodGroups of a cluster, and the gangs that pods and Jobs form.

A change costs the change: a gang is summed up again only when one of its pods or its PodGroup has changed.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice

from msgspec import structs

from shoal.views.dashboard.facts import (
    Address,
    DashboardPod,
    GangFacts,
    GroupFacts,
    QueueDetail,
    QueueFacts,
    WorkloadFacts,
)

_MOST_WORKLOADS = 2_000
"""How many waiting Workloads a user looks through."""
_MOST_OF_QUEUE = 200
_MADE = ("Volcano/default", "Volcano/root")
"""The keys of the queues that Volcano makes when it starts."""


class QueueState:
    def __init__(self) -> None:
        self.changes = 0
        self._queues: dict[str, QueueFacts] = {}
        self._local: dict[Address, str] = {}
        """LocalQueue -> ClusterQueue."""
        self._workloads: dict[Address, WorkloadFacts] = {}
        self._pending: list[tuple[str, Address]] = []
        """In order; the first is when the Workload was created."""
        self._by_owner: dict[tuple[str, str], Address] = {}
        """Namespace and `kind/name` of the object that a Workload was made for -> the Workload."""

    def put_queue(self, queue: QueueFacts) -> None:
        self._queues[queue.key] = queue
        self.changes += 1

    def drop_queue(self, key: str) -> None:
        self._queues.pop(key, None)
        self.changes += 1

    def put_local_queue(self, namespace: str, name: str, cluster_queue: str) -> None:
        self._local[namespace, name] = cluster_queue
        self.changes += 1

    def put_workload(self, workload: WorkloadFacts) -> None:
        self.drop_workload(workload.address)
        self._workloads[workload.address] = workload
        if workload.state == "pending":
            insort(self._pending, (workload.created, workload.address))
        self._by_owner[workload.namespace, workload.owner] = workload.address

    def drop_workload(self, address: Address) -> None:
        before = self._workloads.pop(address, None)
        self.changes += 1
        if before is None:
            return
        if before.state == "pending":
            self._pending.pop(bisect_left(self._pending, (before.created, address)))
        if self._by_owner.get((before.namespace, before.owner)) == address:
            del self._by_owner[before.namespace, before.owner]

    def queues(self, refused: Mapping[str, int]) -> list[QueueFacts]:
        """Volcano's own `root` and `default` are left out while no work uses them. `refused`: how many gangs each queue
        of KAI keeps back, which its status does not say."""
        shown = (queue for _, queue in sorted(self._queues.items()) if queue.key not in _MADE or queue.is_used)
        return [_with_pending(queue, refused) for queue in shown]

    def without_pods(self, waiting: Sequence[DashboardPod], namespace: str = "") -> list[WorkloadFacts]:
        """The Workloads that wait, the oldest first, but for those whose gated pods are among `waiting`.
        `namespace`: only its own; empty for all."""
        groups = {pod.gang for pod in waiting if pod.is_gated}
        pending = (address for _, address in self._pending if not namespace or address[0] == namespace)
        found = (self._workloads[address] for address in islice(pending, _MOST_WORKLOADS))
        return [
            structs.replace(one, cluster_queue=self.queue_of(one))
            for one in found
            if not one.owner.startswith("pod/") and f"{one.namespace}/{one.name}" not in groups
        ]

    def all_workloads(self) -> list[WorkloadFacts]:
        """With their cluster queues, in no order."""
        return [structs.replace(one, cluster_queue=self.queue_of(one)) for one in self._workloads.values()]

    def workload_of(self, namespace: str, kind: str, name: str) -> WorkloadFacts | None:
        """Of the object of this kind, with its cluster queue. A gang is a pod group, or a Job whose pods run together;
        the Workload of a pod group has the name of the group."""
        owned = self._by_owner.get((namespace, f"{'job' if kind == 'gang' else kind}/{name}"))
        found = None if owned is None else self._workloads.get(owned)
        if found is None and kind == "gang":
            found = self._workloads.get((namespace, name))
        return None if found is None else structs.replace(found, cluster_queue=self.queue_of(found))

    def why_gated(self, pod: DashboardPod) -> str:
        """The reason of the Workload that a gated pod belongs to; empty if there is none."""
        group = self._workloads.get((pod.namespace, pod.gang.partition("/")[2]))
        own = self._by_owner.get((pod.namespace, f"pod/{pod.name}"))
        found = group or (self._workloads.get(own) if own is not None else None)
        return found.why if found is not None and found.state == "pending" else ""

    def queue_of(self, workload: WorkloadFacts) -> str:
        """The name of its ClusterQueue; empty if its LocalQueue does not exist."""
        return workload.cluster_queue or self._local.get((workload.namespace, workload.queue), "")

    def detail(self, key: str, gangs: Sequence[GangFacts], refused: Mapping[str, int]) -> QueueDetail | None:
        queue = self._queues.get(key)
        if queue is None:
            return None
        queue = _with_pending(queue, refused)
        if queue.kind != "ClusterQueue":
            return QueueDetail(queue, gangs=[gang for gang in gangs if gang.queue == queue.name][:_MOST_OF_QUEUE])
        mine = [one for one in self._workloads.values() if self.queue_of(one) == queue.name]
        mine.sort(key=lambda one: (one.created, one.address))
        pending = [one for one in mine if one.state == "pending"]
        admitted = [one for one in mine if one.state == "admitted"]
        return QueueDetail(queue, pending[:_MOST_OF_QUEUE], admitted[:_MOST_OF_QUEUE])


def _with_pending(queue: QueueFacts, refused: Mapping[str, int]) -> QueueFacts:
    return structs.replace(queue, pending=refused.get(queue.name, 0)) if queue.kind == "KAI" else queue


class GangState:
    def __init__(self) -> None:
        self.changes = 0
        """How often a PodGroup has changed."""
        self._groups: dict[str, GroupFacts] = {}
        self._pods: dict[str, dict[Address, DashboardPod]] = {}
        self._known: dict[str, GangFacts] = {}
        """Those that are still right."""
        self._jobs: dict[str, int] = {}
        """Jobs that are gangs, as namespace/name, with the number of pods that must run together."""
        self._job_pods: dict[str, dict[Address, DashboardPod]] = {}
        """By their Job, the pods that name no gang."""

    def move(self, before: DashboardPod | None, after: DashboardPod | None) -> None:
        _move(self._job_pods, (_job_of(before), before), (_job_of(after), after))
        left, entered = self._gang_of(before), self._gang_of(after)
        _move(self._pods, (left, before), (entered, after))
        self._known.pop(left, None)
        self._known.pop(entered, None)

    def put_job(self, name: str, needs: int) -> None:
        """The Job is a gang."""
        if self._jobs.get(name) == needs:
            return
        self.drop_job(name)
        self._jobs[name] = needs
        self.changes += 1
        for pod in self._job_pods.get(name, {}).values():
            _move(self._pods, ("", None), (name, pod))
        self._known.pop(name, None)

    def drop_job(self, name: str) -> None:
        """The Job is gone, or is no gang."""
        if self._jobs.pop(name, None) is None:
            return
        self.changes += 1
        for pod in self._job_pods.get(name, {}).values():
            _move(self._pods, (name, pod), ("", None))
        self._known.pop(name, None)

    def put_group(self, group: GroupFacts) -> None:
        self._groups[group.full_name] = group
        self.changes += 1
        self._known.pop(group.full_name, None)

    def drop_group(self, name: str) -> None:
        self._groups.pop(name, None)
        self.changes += 1
        self._known.pop(name, None)

    def all(self, namespace: str = "") -> list[GangFacts]:
        """Those that wait first, the oldest first. Gangs whose pods have all ended are left out. `namespace`: only its
        own; empty for all."""
        names = self._groups.keys() | self._pods.keys()
        if namespace:
            names = {name for name in names if name.startswith(f"{namespace}/")}
        gangs = (self._known.get(name) or self._gang(name) for name in names)
        active = (gang for gang in gangs if gang.running or gang.waiting or gang.name not in self._pods)
        return sorted(active, key=lambda gang: (not gang.waiting, gang.created, gang.name))

    def refused(self) -> Counter[str]:
        """How many gangs with waiting pods are kept back by each queue of KAI."""
        names = (group.full_name for group in self._groups.values() if group.is_refused)
        gangs = (self._known.get(name) or self._gang(name) for name in names)
        return Counter(gang.queue for gang in gangs if gang.waiting)

    def get(self, name: str) -> GangFacts | None:
        return self._gang(name) if name in self._groups or name in self._pods else None

    def pods(self, name: str) -> list[DashboardPod]:
        return sorted(self._pods.get(name, {}).values(), key=lambda pod: (not pod.waits, pod.address))

    def job_pods(self, name: str) -> list[DashboardPod] | None:
        """Those of a Job that name no gang; None where there are none, so that the Job may be gone."""
        found = self._job_pods.get(name)
        return None if found is None else sorted(found.values(), key=lambda pod: (not pod.waits, pod.address))

    def _gang(self, name: str) -> GangFacts:
        group, pods = self._groups.get(name), list(self._pods.get(name, {}).values())
        active = [pod for pod in pods if pod.phase in ("Pending", "Running")]
        waiting = [pod for pod in active if pod.waits and not pod.node]
        refused = next((pod.why for pod in waiting if pod.why), "")
        least = (group.needs if group is not None else 0) or self._jobs.get(name, 0)
        found = self._known[name] = GangFacts(
            name=name,
            needs=least or max((pod.gang_needs for pod in pods), default=0),
            running=sum(pod.phase == "Running" for pod in active),
            waiting=len(waiting),
            gpus=sum(pod.gpus for pod in active),
            nodes=len({pod.node for pod in active if pod.node}),
            queue=(group.queue if group is not None else "") or next((pod.queue for pod in pods if pod.queue), ""),
            why=((group.why if group is not None else "") or refused) if waiting or not active else "",
            created=min((pod.created for pod in pods), default=""),
        )
        return found

    def _gang_of(self, pod: DashboardPod | None) -> str:
        if pod is None:
            return ""
        return pod.gang or (pod.job if pod.job in self._jobs else "")


def _job_of(pod: DashboardPod | None) -> str:
    return pod.job if pod is not None and not pod.gang else ""


Place = tuple[str, DashboardPod | None]
"""The name of a gang or of a Job, and the pod there; an empty name is no place."""


def _move(pods: dict[str, dict[Address, DashboardPod]], before: Place, after: Place) -> None:
    (left, old), (entered, new) = before, after
    if old is not None and left and left != entered:
        del pods[left][old.address]
        if not pods[left]:
            del pods[left]
    if new is not None and entered:
        pods.setdefault(entered, {})[new.address] = new
