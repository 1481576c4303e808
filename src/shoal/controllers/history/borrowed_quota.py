"""Follows the queues of a server for the recorder: which part of what pods hold is borrowed, whose work is preempted.

Kueue's Workloads say what they hold of which queue; the pods of KAI's and Volcano's queues are counted by the devices
that they hold. Where none of these kinds is served, nothing is borrowed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from shoal.client.context import Context
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES, KAI_QUEUES, VOLCANO_QUEUES, WORKLOADS
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import Kind
from shoal.client.served import Served
from shoal.cost.borrowing import BorrowedTime, QuotaHolder, borrowed_parts
from shoal.cost.records import Holding
from shoal.store.history.pod_rows import RecordedPod
from shoal.store.history.quota_rows import WorkloadQuota, kai_quota, nominal_of, read_workload, volcano_quota

_log = logging.getLogger("shoal.history")
_ANNOTATION = "kueue.x-k8s.io/workload"
_OTHERS = ((KAI_QUEUES, "kai.scheduler/queue", kai_quota), (VOLCANO_QUEUES, "volcano.sh/queue-name", volcano_quota))
_GPUS = "gpus"
_DRIFT_PPM = 5_000
"""A row is written again when its mean has changed by so much."""


class _PodOwner(NamedTuple):
    workload: str
    """As the pod names it."""
    controller: str
    """Its uid."""


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
        self._others: dict[Kind, dict[str, int]] = {}
        self._times: dict[str, BorrowedTime] = {}
        self._is_stale = False
        if served is not None:
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
            self._pods[uid] = _PodOwner(key, "" if owner is None else owner.uid)
            self._is_stale = True

    def resume(self, uid: str, held: Holding, until_ms: int) -> None:
        """A row of an earlier recorder, which wrote it until then."""
        until_ms = max(until_ms, held.start_ms)
        part = held.borrowed_ppm
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

    def changed(self, holdings: Mapping[str, Holding], now_ms: int, *, is_new: bool) -> Iterable[tuple[str, Holding]]:
        """The rows of which the borrowed part has changed. `is_new`: pods started or ended since the last call."""
        if self._is_stale or is_new:
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
                yield uid, msgspec.structs.replace(known, borrowed_ppm=time.mean(now_ms))

    # -- internals -------------------------------------------------------------------------------------------------

    def _parts(self, holdings: Mapping[str, Holding]) -> dict[str, int]:
        found: dict[str, int] = {}
        if self._nominal:
            by_workload = self._workload_parts()
            for uid in holdings:
                if (part := by_workload.get(self._workload_of(uid))) is not None:
                    found[uid] = part
        for kind, label, _ in _OTHERS:
            if queues := self._others.get(kind):
                found |= _device_parts(holdings, queues, label)
        return found

    def _workload_of(self, uid: str) -> str:
        """Empty for a pod of no Workload, and until the Workload was seen."""
        pod = self._pods.get(uid)
        if pod is None:
            return ""
        return pod.workload or self._by_owner.get(uid, "") or self._by_owner.get(pod.controller, "")

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


def _device_parts(holdings: Mapping[str, Holding], quotas: Mapping[str, int], label: str) -> dict[str, int]:
    by_queue: dict[str, list[QuotaHolder]] = {}
    for uid, held in holdings.items():
        queue = dict(held.holder.labels).get(label, "")
        if queue in quotas and held.devices:
            share = sum(one.share for one in held.devices)
            by_queue.setdefault(queue, []).append(QuotaHolder(uid, held.start_ms, {_GPUS: share}))
    found: dict[str, int] = {}
    for queue, holders in by_queue.items():
        found |= borrowed_parts({_GPUS: quotas[queue]}, holders)
    return found
