"""Follows the queues of a server for the recorder: which part of what pods hold is borrowed, whose work is preempted.

Kueue's Workloads say what they hold of which queue; the pods of KAI's and Volcano's queues are counted by the devices
that they hold. Where none of these kinds is served, nothing is borrowed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from shoal.api.cost_budgets import queue_of_pod
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES, KAI_QUEUES, VOLCANO_QUEUES, WORKLOADS
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import Kind
from shoal.client.served import Served
from shoal.controllers.history.group_queues import GroupQueues
from shoal.cost.borrowing import BorrowedTime, QuotaHolder, borrowed_parts
from shoal.cost.records import Holding
from shoal.store.history.pod_rows import RecordedPod, group_key
from shoal.store.history.quota_rows import WorkloadQuota, kai_quota, nominal_of, read_workload, volcano_quota

_log = logging.getLogger("shoal.history")
_ANNOTATION = "kueue.x-k8s.io/workload"
_OTHERS = ((KAI_QUEUES, "kai.scheduler/queue", kai_quota), (VOLCANO_QUEUES, "volcano.sh/queue-name", volcano_quota))
_SCHEDULERS = {"kai-scheduler": KAI_QUEUES, "volcano": VOLCANO_QUEUES}
"""Pods of other schedulers may be in the queues of either project."""
_GPUS = "gpus"
_DRIFT_PPM = 5_000
"""A row is written again when its mean has changed by so much."""


class _PodOwner(NamedTuple):
    workload: str
    """As the pod names it."""
    controller: str
    """Its uid."""
    queues: Mapping[Kind, str]
    """The queues of KAI and Volcano that its labels name."""
    queue: str
    """The queue that decides about it by its labels, where it is of no Workload."""
    kinds: tuple[Kind, ...]
    """The kinds of queues that its scheduler knows."""
    group: str
    """The key of its PodGroup, where it has one."""


class BorrowedQuota:
    def __init__(self, context: Context, served: Served | None) -> None:
        self._context = context
        self._workloads: dict[str, WorkloadQuota] = {}
        """By namespace/name."""
        self._by_owner: dict[str, str] = {}
        """Uid of a job or pod -> its Workload."""
        self._pods: dict[str, _PodOwner] = {}
        """By uid."""
        self._nominal: dict[str, dict[str, int]] = {}
        self.cluster_queues: dict[str, str] = {}
        """The ClusterQueue that admitted work of a LocalQueue last, by namespace/name of the latter."""
        self.on_cluster_queue: Callable[[], None] = lambda: None
        """Called when one of them is new."""
        self._others: dict[Kind, dict[str, int]] = {}
        self._times: dict[str, BorrowedTime] = {}
        self._decided: set[str] = set()
        """Uids of pods whose Workload or group was seen: what they have held stays in its first queue."""
        self._is_stale = False
        self._groups: GroupQueues | None = None
        if served is not None:
            self._groups = GroupQueues(context, served, self._group_changed)
            served.when_there(WORKLOADS, self._follow(self._workload_changed), WORKLOADS._replace(version="v1beta1"))
            older = CLUSTER_QUEUES._replace(version="v1beta1")
            served.when_there(CLUSTER_QUEUES, self._follow(self._queue_changed), older)
            for kind, _, read in _OTHERS:
                served.when_there(kind, self._follow(self._other_changed(kind, read)))

    # -- what the recorder says ------------------------------------------------------------------------------------

    def seen(self, uid: str, pod: RecordedPod) -> None:
        if uid not in self._pods:
            owner, named = pod.metadata.controller(), pod.metadata.annotations.get(_ANNOTATION)
            key = f"{pod.metadata.namespace}/{named}" if named else ""
            scheduler, labels = pod.spec.scheduler_name, pod.metadata.labels
            kinds = tuple(kind for kind, _, _ in _OTHERS if _SCHEDULERS.get(scheduler, kind) == kind)
            queues = {kind: labels[label] for kind, label, _ in _OTHERS if labels.get(label) and kind in kinds}
            queue, controller = queue_of_pod(scheduler, labels), "" if owner is None else owner.uid
            self._pods[uid] = _PodOwner(key, controller, queues, queue, kinds, group_key(pod))
            self._is_stale = True

    def queue_of(self, uid: str, named: str) -> str:
        """The queue of the budgets that pay for a pod. `named`: the one that its labels name, where Workloads are not
        followed."""
        if self._groups is None:
            return named
        pod, found = self._pods.get(uid), self._decided_queue(uid)
        if found is None:
            self._decided.discard(uid)
        else:
            # Until the pod holds something, it follows its group.
            self._decided.add(uid)
        return found or ("" if pod is None else pod.queue)

    def resume(self, uid: str, held: Holding, until_ms: int) -> None:
        """A row of an earlier recorder, which wrote it until then."""
        until_ms = max(until_ms, held.start_ms)
        part = held.borrowed_ppm
        if held.holder.queue:
            self._decided.add(uid)
        self._times[uid] = BorrowedTime(held.start_ms, until_ms, part, part * (until_ms - held.start_ms))

    def is_preempted(self, uid: str) -> bool:
        """Whether the work of the pod is being preempted now."""
        found = self._workloads.get(self._workload_of(uid))
        return found is not None and found.is_preempted

    def ended(self, uid: str, held: Holding) -> Holding:
        time = self._times.pop(uid, None)
        self._is_stale = True
        if time is None or held.end_ms is None:
            return held
        return msgspec.structs.replace(held, borrowed_ppm=time.mean(held.end_ms))

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self._pods.pop(uid, None)
        self._times.pop(uid, None)
        self._decided.discard(uid)

    def changed(self, holdings: Mapping[str, Holding], now_ms: int, *, is_new: bool) -> Iterable[tuple[str, Holding]]:
        """The rows of which the borrowed part or the queue has changed. `is_new`: pods started or ended since the last
        call."""
        queues: dict[str, str] = {}
        if self._is_stale or is_new:
            queues = self._other_queues(holdings)
            self._is_stale = False
            for uid, part in self._parts(holdings).items():
                held = holdings[uid]
                time = self._times.get(uid)
                if time is None:
                    # What it borrows now it has borrowed since it started.
                    self._times[uid] = BorrowedTime(held.start_ms, held.start_ms, part)
                elif time.ppm != part:
                    self._times[uid] = time.changed(now_ms, part)
        for uid, time in self._times.items():
            known = holdings.get(uid)
            if known is not None and abs(time.mean(now_ms) - known.borrowed_ppm) >= _DRIFT_PPM:
                holder = known.holder
                if uid in queues:
                    holder = msgspec.structs.replace(holder, queue=queues.pop(uid))
                yield uid, msgspec.structs.replace(known, holder=holder, borrowed_ppm=time.mean(now_ms))
        for uid, queue in queues.items():
            known = holdings[uid]
            yield uid, msgspec.structs.replace(known, holder=msgspec.structs.replace(known.holder, queue=queue))

    # -- internals -------------------------------------------------------------------------------------------------

    def _parts(self, holdings: Mapping[str, Holding]) -> dict[str, int]:
        found: dict[str, int] = {}
        if self._nominal:
            by_workload = self._workload_parts()
            for uid in holdings:
                if (part := by_workload.get(self._workload_of(uid))) is not None:
                    found[uid] = part
        for kind, _, _ in _OTHERS:
            if queues := self._others.get(kind):
                of_pods = {uid: self._queue_in(kind, pod) for uid, pod in self._pods.items()}
                found |= _device_parts(holdings, queues, of_pods)
        return found

    def _other_queues(self, holdings: Mapping[str, Holding]) -> dict[str, str]:
        """The queues of pods whose Workloads or groups were seen later than they. Users edit groups: a queue that one
        is given afterwards does not pay for what its pods have held."""
        found: dict[str, str] = {}
        for uid, held in holdings.items():
            if uid in self._decided or (queue := self._decided_queue(uid)) is None:
                continue
            self._decided.add(uid)
            if queue not in ("", held.holder.queue):
                found[uid] = queue
        return found

    def _decided_queue(self, uid: str) -> str | None:
        """What its Workload or its group says; None until one of them was seen."""
        workload, pod = self._workloads.get(self._workload_of(uid)), self._pods.get(uid)
        if workload is not None and workload.local_queue:
            return workload.local_queue
        if self._groups is None or pod is None:
            return None if workload is None else ""
        groups = self._groups
        known = [groups.queue(kind, pod.group) for kind in pod.kinds if groups.is_known(kind, pod.group)]
        if workload is None and not known:
            return None
        return next(filter(None, known), "")

    def _queue_in(self, kind: Kind, pod: _PodOwner) -> str:
        of_group = self._groups.queue(kind, pod.group) if self._groups is not None and kind in pod.kinds else ""
        return of_group or pod.queues.get(kind, "")

    def _group_changed(self) -> None:
        self._is_stale = True

    def _workload_of(self, uid: str) -> str:
        """Empty for a pod of no Workload, and until the Workload was seen. Users write the annotations of their pods:
        the Workload that one names counts if it has the same owner."""
        pod = self._pods.get(uid)
        if pod is None:
            return ""
        named = self._workloads.get(pod.workload)
        if named is not None and (
            not {uid, pod.controller}.isdisjoint(named.owners) or (named.makes_owners and pod.controller)
        ):
            return pod.workload
        return self._by_owner.get(uid, "") or self._by_owner.get(pod.controller, "")

    def _workload_parts(self) -> dict[str, int]:
        by_queue: dict[str, list[QuotaHolder]] = {}
        for one in self._workloads.values():
            if one.queue:
                by_queue.setdefault(one.queue, []).append(one.holder)
        found: dict[str, int] = {}
        for queue, holders in by_queue.items():
            if queue in self._nominal:
                found |= borrowed_parts(self._nominal[queue], holders)
        return found

    def _follow(self, handler: Callable[[Item | None, Item | None], None]) -> Callable[[Kind], None]:
        def follow(kind: Kind) -> None:
            informer: Informer = self._context.informers.of(kind)
            informer.on_change(handler)

        return follow

    def _workload_changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is None:
            return
        key, self._is_stale = f"{item.namespace}/{item.name}", True
        known = self._workloads.pop(key, None)
        for uid in known.owners if known is not None else ():
            self._by_owner.pop(uid, None)
        if after is None:
            return
        try:
            found = self._workloads[key] = read_workload(after)
        except (msgspec.DecodeError, ValueError) as error:
            _log.warning("Workload %s is not recorded: %s", key, error)
            return
        self._by_owner.update(dict.fromkeys(found.owners, key))
        local = f"{after.namespace}/{found.local_queue}"
        if found.queue and found.local_queue and self.cluster_queues.get(local) != found.queue:
            self.cluster_queues[local] = found.queue
            self.on_cluster_queue()

    def _queue_changed(self, before: Item | None, after: Item | None) -> None:
        self._is_stale = True
        if after is None:
            self._nominal.pop(before.name if before is not None else "", None)
            return
        try:
            self._nominal[after.name] = nominal_of(after)
        except (msgspec.DecodeError, ValueError) as error:
            _log.warning("ClusterQueue %s is not recorded: %s", after.name, error)

    def _other_changed(
        self, kind: Kind, read: Callable[[Item], int | None]
    ) -> Callable[[Item | None, Item | None], None]:
        def changed(before: Item | None, after: Item | None) -> None:
            queues, self._is_stale = self._others.setdefault(kind, {}), True
            item = after or before
            name = "" if item is None else item.name
            queues.pop(name, None)
            try:
                quota = None if after is None else read(after)
            except msgspec.DecodeError as error:
                _log.warning("queue %s is not recorded: %s", name, error)
                return
            if quota is not None:
                queues[name] = quota

        return changed


def _device_parts(
    holdings: Mapping[str, Holding], quotas: Mapping[str, int], queues: Mapping[str, str]
) -> dict[str, int]:
    """`queues`: of pods by uid."""
    by_queue: dict[str, list[QuotaHolder]] = {}
    for uid, held in holdings.items():
        queue = queues.get(uid, "")
        if queue in quotas and held.devices:
            share = sum(one.share for one in held.devices)
            by_queue.setdefault(queue, []).append(QuotaHolder(uid, held.start_ms, {_GPUS: share}))
    found: dict[str, int] = {}
    for queue, holders in by_queue.items():
        found |= borrowed_parts({_GPUS: quotas[queue]}, holders)
    return found
