"""Fills the state of the dashboard from watch caches: nodes, pods, Events, and queues and PodGroups where a cluster
has such kinds.

It needs a cluster that serves them and the right to list and watch them, not Shoal's scheduler. An object that cannot
be decoded is left out; the cache logs it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from shoal.api.wire import dec_hook
from shoal.api.workloads import Job
from shoal.autoscale.node_claims.claim import claim_of
from shoal.client.ecosystem_kinds import (
    CLUSTER_QUEUES,
    GROUP_POD_GROUPS,
    KAI_POD_GROUPS,
    KAI_QUEUES,
    LIGHT_POD_GROUPS,
    LOCAL_QUEUES,
    NODE_CLAIMS,
    VOLCANO_POD_GROUPS,
    VOLCANO_QUEUES,
    WORKLOADS,
)
from shoal.client.kind import EVENTS, JOBS, NODES, PODS
from shoal.client.served import answering
from shoal.store.inventory import Placed
from shoal.store.pod_makers import GANG, PodMaker
from shoal.units.errors import ShoalError, UserError, Where
from shoal.views.dashboard.facts import NodeDetail, QueueFacts
from shoal.views.dashboard.queue_reading import cluster_queue, group, kai_queue, local_queue, volcano_queue, workload
from shoal.views.dashboard.reading import event_facts, node_detail, node_facts, pod_facts

if TYPE_CHECKING:
    from shoal.client.clock import Clock
    from shoal.client.informer import Handler
    from shoal.client.informers import Informers
    from shoal.client.item import Item
    from shoal.client.kind import Kind
    from shoal.client.port import Api, ServedKind
    from shoal.views.dashboard.cluster_state import ClusterState

_log = logging.getLogger("shoal")
_EVERY_S = 15.0
_OLD_KUEUE = "v1beta1"
_jobs = msgspec.json.Decoder(Job, dec_hook=dec_hook)


class DashboardCaches:
    def __init__(self, informers: Informers, state: ClusterState) -> None:
        self._informers = informers
        self._state = state
        informers.of(NODES).on_change(self._node)
        informers.of(PODS).on_change(self._pod)
        informers.of(EVENTS).on_change(self._event)
        self._wanted: list[tuple[Kind, Handler]] = [
            (CLUSTER_QUEUES, self._queue(cluster_queue, "ClusterQueue")),
            (VOLCANO_QUEUES, self._queue(volcano_queue, "Volcano")),
            (KAI_QUEUES, self._queue(kai_queue, "KAI")),
            (LOCAL_QUEUES, self._local_queue),
            (WORKLOADS, self._workload),
            (NODE_CLAIMS, self._claim),
            (JOBS, self._job),
            *((kind, self._group) for kind in (VOLCANO_POD_GROUPS, KAI_POD_GROUPS, LIGHT_POD_GROUPS, GROUP_POD_GROUPS)),
        ]

    async def follow_optional_kinds(self, api: Api, clock: Clock) -> None:
        """Runs until cancelled: kinds of other projects may be installed later."""
        while self._wanted:
            try:
                self.follow(await answering(api))
            except ShoalError as error:
                _log.info("the server's kinds cannot be read: %s", error)
            await clock.sleep(_EVERY_S)

    def follow(self, served: Sequence[ServedKind]) -> None:
        versions = {(one.kind.group, one.kind.plural): one.versions for one in served}
        missing: list[tuple[Kind, Handler]] = []
        for kind, handler in self._wanted:
            there = versions.get((kind.group, kind.plural), ())
            older = kind._replace(version=_OLD_KUEUE)
            found = kind if kind.version in there else older if older.version in there else None
            if found is None:
                missing.append((kind, handler))
            else:
                self._informers.of(found).on_change(handler)
        self._wanted = missing

    def completed(self, detail: NodeDetail) -> NodeDetail:
        """With the labels and conditions of the node."""
        item = self._informers.of(NODES).get("", detail.tile.node.name)
        return detail if item is None else node_detail(item.data, detail.tile, detail.pods)

    def _node(self, before: Item | None, after: Item | None) -> None:
        if after is not None:
            self._state.put_node(node_facts(after.data))
        elif before is not None:
            self._state.drop_node(node_facts(before.data).name)

    def _pod(self, before: Item | None, after: Item | None) -> None:
        if after is not None:
            self._state.put_pod(pod_facts(after.data))
        elif before is not None:
            self._state.drop_pod(pod_facts(before.data).address)

    def _event(self, _: Item | None, after: Item | None) -> None:
        if after is not None:
            self._state.put_event(event_facts(after.data))

    def _queue(self, read: Callable[[bytes], QueueFacts], kind: str) -> Handler:
        def handle(before: Item | None, after: Item | None) -> None:
            if after is not None:
                self._state.queues.put_queue(read(after.data))
            elif before is not None:
                self._state.queues.drop_queue(f"{kind}/{before.name}")

        return handle

    def _local_queue(self, _: Item | None, after: Item | None) -> None:
        if after is not None:
            self._state.queues.put_local_queue(*local_queue(after.data))

    def _workload(self, before: Item | None, after: Item | None) -> None:
        if after is not None:
            self._state.queues.put_workload(workload(after.data))
        elif before is not None:
            self._state.queues.drop_workload(before.key)

    def _claim(self, before: Item | None, after: Item | None) -> None:
        if after is not None:
            self._state.node_changes.put(claim_of(after.obj()))
        elif before is not None:
            self._state.node_changes.drop(before.name)

    def _job(self, before: Item | None, after: Item | None) -> None:
        known = after or before
        if known is None:
            return
        name = f"{known.namespace}/{known.name}"
        needs = None if after is None else _gang_of_job(after.data)
        if needs is None:
            self._state.gangs.drop_job(name)
        else:
            self._state.gangs.put_job(name, needs)

    def _group(self, before: Item | None, after: Item | None) -> None:
        if after is not None:
            self._state.gangs.put_group(group(after.data))
        elif before is not None:
            self._state.gangs.drop_group(f"{before.namespace}/{before.name}")


def _gang_of_job(data: bytes) -> int | None:
    """How many of its pods must run together; None if it is no gang, has ended, or its pods belong to the gang of
    the object that made it."""
    job = _jobs.decode(data)
    if job.is_finished() or (job.metadata.controller() is not None and GANG not in job.metadata.annotations):
        return None
    try:
        return PodMaker("Job", job.metadata, Placed(job, Where(obj=f"job/{job.metadata.name}"))).declared_minimum()
    except UserError:
        # An annotation with another value makes no gang.
        return None
