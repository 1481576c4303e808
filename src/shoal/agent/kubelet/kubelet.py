"""Runs the pods of one node: it admits pods that are bound to the node, runs them by a runtime, and reports their
state.

Guarantees: a pod whose processes run is found again after this process was killed, and no container runs twice; a pod
that the API server does not know any more is stopped. When `run` is cancelled, pods continue to run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from shoal.agent.kubelet.node import NodeOfThisMachine
from shoal.agent.kubelet.pod_on_node import NodeParts, PodOnNode
from shoal.agent.kubelet.pod_worker import PodWorker
from shoal.agent.kubelet.runtime import RunKey
from shoal.agent.kubelet.source_reader import SourceReader
from shoal.agent.kubelet.storage_watch import StorageWatch
from shoal.agent.kubelet.volume_updates import VolumeUpdates
from shoal.api.partial import PartialNode
from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.client.context import Context
from shoal.client.item import Item
from shoal.client.kind import NODES, PODS
from shoal.client.kubelet.admission import NodeCapacity, misplaced
from shoal.client.kubelet.pod_facts import PartialPod, PodFacts, summary_of
from shoal.client.kubelet.pod_run import PodRun, new_run
from shoal.client.kubelet.pod_status import status_of
from shoal.client.kubelet.storage_limits import EVICTED
from shoal.client.kubelet.writes import Writes
from shoal.client.port import Deletion, Patch
from shoal.client.refusals import NotFoundError, StaleError
from shoal.devices.pod_refusal import Refused

Obj = dict[str, Any]
_log = logging.getLogger("shoal.agent.kubelet")
_WRITERS, _EVICTION_GRACE_S = 8, 1.0
Admission = Callable[[Obj], Refused | None]
"""The refusal of a pod by the runtime, if it cannot run it."""


class Kubelet:
    def __init__(self, context: Context, parts: NodeParts, node: NodeOfThisMachine, admission: Admission) -> None:
        """`parts.report` must be `report` of this kubelet."""
        self._context, self._parts, self._node, self._admission = context, parts, node, admission
        self._pods: dict[str, PodOnNode] = {}
        self._workers: dict[str, PodWorker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._removals: dict[str, asyncio.Task[None]] = {}
        """Of what the runtimes have of deleted pods, by uid."""
        # Devices, which come and go, are counted by `parts.gpus`.
        self._capacity = NodeCapacity({name: text for name, text in parts.allocatable().items() if "/" not in name})
        self._writes: Writes[str] = Writes(parts.clock, _WRITERS, self._write)
        self._volumes = VolumeUpdates(parts.clock, self.all, lambda: SourceReader(parts.api))
        self._storage = StorageWatch(parts.clock, self.all, self.evict)
        self._is_running = self._is_following = False
        self.has_taken_over = asyncio.Event()
        """Set when the pods of an earlier process are known."""

    def report(self, uid: str) -> None:
        if self._is_running:
            self._writes.add(uid)

    def find(self, namespace: str, name: str) -> PodOnNode | None:
        return next(
            (one for one in self._pods.values() if (one.run.namespace, one.run.name) == (namespace, name)), None
        )

    def by_uid(self, uid: str) -> PodOnNode | None:
        return self._pods.get(uid)

    def all(self) -> Mapping[str, PodOnNode]:
        return self._pods

    async def run(self) -> None:
        """Runs until cancelled; it may be called again after its end."""
        pods = self._context.informers.of(PODS)
        await self._context.informers.synced((PODS, NODES))
        await self._node.register()
        self._writes = Writes(self._parts.clock, _WRITERS, self._write)
        self._is_running = True
        steady = [asyncio.ensure_future(one.run()) for one in (self._node, self._volumes, self._storage)]
        try:
            self._take_over()
            self.has_taken_over.set()
            if self._is_following:
                for item in pods:
                    self._on_pod(None, item)
            else:
                self._is_following = True
                pods.on_change(self._on_pod)
                self._context.informers.of(NODES).on_change(self._on_node)
            await asyncio.Event().wait()
        finally:
            self._is_running = False
            tasks = (*steady, *self._tasks.values(), *self._removals.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._pods, self._workers, self._tasks, self._removals = {}, {}, {}, {}
            await self._writes.close()

    def _take_over(self) -> None:
        """Continue with the pods of an earlier process. Those that were deleted meanwhile are stopped."""
        known = {item.uid for item in self._context.informers.of(PODS)}
        for stored in self._parts.store.all():
            run = stored.run
            run.changes += 1
            self._parts.gpus.restore(run.uid, stored.held)
            self._capacity.take(run.uid, msgspec.convert(stored.pod, PodFacts), is_forced=True)
            self._adopt(PodOnNode(self._parts, stored.pod, run))
            if run.uid not in known:
                run.is_deleted = True
                self._stop(run.uid, run.grace_s)

    def _adopt(self, pod: PodOnNode) -> None:
        uid = pod.run.uid
        self._pods[uid] = pod
        if pod.run.is_over:
            self.report(uid)
            if pod.run.sandboxes:
                # The process that ended it may have been killed before it was done.
                self._tasks[uid] = asyncio.ensure_future(pod.end())
            return
        worker = self._workers[uid] = PodWorker(pod)
        self._tasks[uid] = asyncio.ensure_future(self._work(pod, worker))

    async def _work(self, pod: PodOnNode, worker: PodWorker) -> None:
        uid = pod.run.uid
        if pod.run.stop_since_s is not None:
            worker.stop(pod.run.grace_s)
        try:
            await worker.work()
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - a fault in one pod must not end the others
            _log.exception("pod %s/%s", pod.run.namespace, pod.run.name)
            pod.run.step, pod.run.phase = "over", "Failed"
            pod.run.reason, pod.run.message = "KubeletError", f"{type(error).__name__}: {error}"
            for one in pod.run.containers:
                await pod.runtime.stop(RunKey(pod.run.uid, one.name, one.restarts), 0.0)
                one.step = "ended"
            pod.changed()
        self._capacity.give(uid)
        self._parts.gpus.release(uid)
        self.report(uid)
        await pod.end()

    def evict(self, uid: str, message: str) -> None:
        """End a pod that uses more than it may."""
        pod, worker = self._pods.get(uid), self._workers.get(uid)
        if pod is not None and worker is not None and worker.fail(EVICTED, message, _EVICTION_GRACE_S):
            pod.tell(EVICTED, message, warns=True)

    def _stop(self, uid: str, grace_s: float) -> None:
        worker, pod = self._workers.get(uid), self._pods[uid]
        if worker is not None and not pod.run.is_over:
            worker.stop(grace_s)
        else:
            self.report(uid)

    # -- changes from the server
    # ------------------------------------------------------------------------------------------

    def _on_pod(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is None or not self._is_running:
            return
        summary = summary_of(item)
        if summary.spec.node_name != self._parts.node:
            return
        if after is None:
            self._gone(item.uid)
        elif item.uid in self._pods:
            self._changed(item, summary)
        elif summary.status.phase not in TERMINAL_PHASES or summary.metadata.deletion_timestamp is not None:
            self._begin(item, summary)

    def _on_node(self, _: Item | None, after: Item | None) -> None:
        """The server does not know that this node works, because it had no heartbeat for some time."""
        if after is None or after.name != self._parts.node or not self._is_running:
            return
        if any(one.type == "Ready" and one.status == "Unknown" for one in after.read(PartialNode).status.conditions):
            self._node.wake()

    def _gone(self, uid: str) -> None:
        pod = self._pods.get(uid)
        if pod is not None:
            pod.run.is_deleted = pod.run.is_dismissed = True
            self._stop(uid, 0.0)

    def _changed(self, item: Item, summary: PartialPod) -> None:
        pod = self._pods[item.uid]
        if pod.follow(item.obj()):
            self._volumes.check(item.uid)
        if summary.metadata.deletion_timestamp is not None:
            pod.run.is_deleted = True
            self._stop(item.uid, float(summary.metadata.deletion_grace_period_seconds or 0))

    def _begin(self, item: Item, summary: PartialPod) -> None:
        obj = item.obj()
        facts = msgspec.convert(obj, PodFacts)
        run = new_run(facts, self._parts.clock.seconds())
        pod = PodOnNode(self._parts, obj, run)
        run.runtime = pod.runtime.name
        run.admitted_s = self._parts.clock.seconds()
        if summary.metadata.deletion_timestamp is not None:
            run.is_deleted = True
            refused: Refused | None = Refused("", "")
        else:
            refused = self._refusal(obj, facts, run)
        if refused is not None:
            run.step, run.phase, run.reason, run.message = "over", "Failed", refused.reason, refused.message
            if refused.reason:
                pod.tell(refused.reason, refused.message, warns=True)
        else:
            run.step, run.sandboxes = "running", 1
        pod.changed()
        self._adopt(pod)

    def _refusal(self, obj: Obj, facts: PodFacts, run: PodRun) -> Refused | None:
        node = self._context.informers.of(NODES).get("", self._parts.node)
        labels = ((node.obj()["metadata"].get("labels") or {}) if node is not None else {}) or {}
        refused = self._admission(obj) or misplaced(facts, self._parts.node, labels)
        refused = refused or self._capacity.take(run.uid, facts)
        if refused is None:
            refused = self._parts.gpus.admit(obj)
            if refused is not None:
                self._capacity.give(run.uid)
        return refused

    # -- writes
    # ------------------------------------------------------------------------------------------

    async def _write(self, uid: str) -> None:
        pod = self._pods.get(uid)
        if pod is None:
            return
        run = pod.run
        try:
            if run.changes != run.written and not run.is_dismissed:
                changes = run.changes
                status = status_of(run, pod.facts, self._parts.address, self._parts.clock.seconds())
                patch = Patch("strategic", {"metadata": {"uid": run.uid}, "status": status})
                await self._parts.api.patch(PODS, run.namespace, run.name, patch, "status")
                run.written = changes
                if run.changes != changes:
                    self.report(uid)
                    return
            if run.is_over and run.is_deleted:
                if not self._is_removed(pod):
                    return
                if not run.is_dismissed:
                    await self._parts.api.delete(PODS, run.namespace, run.name, Deletion(grace_s=0, uid=uid))
                self._forget(uid)
        except (NotFoundError, StaleError):
            run.is_deleted = run.is_dismissed = True
            if not run.is_over:
                self._stop(uid, 0.0)
            elif self._is_removed(pod):
                self._forget(uid)

    def _is_removed(self, pod: PodOnNode) -> bool:
        """Whether the runtime has nothing of the pod any more. If not, its removal begins, and is reported."""
        uid = pod.run.uid
        if not pod.run.sandboxes:
            return True
        if uid not in self._removals:
            self._removals[uid] = asyncio.ensure_future(pod.remove())
            self._removals[uid].add_done_callback(lambda _: self.report(uid))
        return self._removals[uid].done()

    def _forget(self, uid: str) -> None:
        self._pods.pop(uid, None)
        self._workers.pop(uid, None)
        self._tasks.pop(uid, None)
        self._removals.pop(uid, None)
        self._capacity.give(uid)
        self._parts.gpus.release(uid)
        self._parts.store.remove(uid)
