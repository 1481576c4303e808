"""Finds the pods of a set of manifests that KAI's queues hold back: at a limit, beyond a quota, or without a queue.

What waits for room on nodes, or for others to yield, is not held: the rounds decide about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from shoal.api.decode import Document, Unknown
from shoal.api.groups.kai import NODE_POOL_LABEL, USAGE_ANNOTATION, KaiPodGroup
from shoal.engine.cluster import Cluster
from shoal.engine.events import Event, GroupSeen, PodArrived, PodBound
from shoal.engine.evidence import Evidences
from shoal.engine.intake import Intake
from shoal.engine.queues.disciplines.kai.config_object import CONFIG_NAME, KaiConfig
from shoal.engine.queues.disciplines.kai.objects import Queue
from shoal.engine.queues.disciplines.kai.shard_objects import SchedulingShard
from shoal.engine.queues.disciplines.kai.shards import shards_of
from shoal.engine.queues.disciplines.kai.unschedulable_reasons import POD_SCHEDULING_ERRORS
from shoal.engine.queues.disciplines.kai.usage_record import Usage, UsageRecord
from shoal.engine.queues.disciplines.kai.usage_text import usage_state
from shoal.engine.queues.disciplines.kai.waiting_jobs import tree_usage, waiting_job
from shoal.engine.reasons import Code, Evidence
from shoal.sim.kai_changes import held_by_kai_queue
from shoal.sim.kai_rounds import KaiShards, decided
from shoal.store.held_pods import HeldPod

_GROUP, _SHARD_GROUP = "scheduling.run.ai/", "kai.scheduler/"


def is_queue(document: Document) -> bool:
    value = document.value
    return isinstance(value, Unknown) and value.kind == "Queue" and value.api_version.startswith(_GROUP)


def is_shard(document: Document) -> bool:
    value = document.value
    if not isinstance(value, Unknown) or value.kind != "SchedulingShard":
        return False
    return value.api_version.startswith(_SHARD_GROUP)


def is_config(document: Document) -> bool:
    value = document.value
    return isinstance(value, Unknown) and value.kind == "Config" and value.api_version.startswith(_SHARD_GROUP)


def _pool_label(documents: Iterable[Document]) -> str:
    """The label that names the node pool, by KAI's Config."""
    for document in documents:
        value = document.value
        if is_config(document) and isinstance(value, Unknown):
            try:
                found = msgspec.convert(value.raw, KaiConfig)
            except msgspec.ValidationError:
                continue
            if found.name == CONFIG_NAME:
                return found.pool_label
    return NODE_POOL_LABEL


def kai_shards(documents: Sequence[Document]) -> KaiShards:
    """With the use that Shoal recorded on them. A record that cannot be read counts as none."""
    objects: list[SchedulingShard] = []
    for document in documents:
        value = document.value
        if is_shard(document) and isinstance(value, Unknown):
            try:
                objects.append(msgspec.convert(value.raw, SchedulingShard))
            except msgspec.ValidationError:
                continue
    shards = shards_of(objects, _pool_label(documents))
    texts = {each.name: each.metadata.annotations.get(USAGE_ANNOTATION, "") for each in objects}
    usage: dict[str, Usage] = {}
    for shard in shards.each:
        if shard.usage is not None and (text := texts.get(shard.name)):
            try:
                usage[shard.name] = UsageRecord(shard.usage, usage_state(text)).usage()
            except ValueError:
                continue
    return KaiShards(shards, usage)


def kai_queues(documents: Iterable[Document]) -> dict[str, Queue]:
    found = (_queue(document) for document in documents if is_queue(document))
    return {queue.name: queue for queue in found if queue is not None}


def held_by_kai(documents: Sequence[Document], events: Sequence[Event], now_s: float) -> dict[str, HeldPod]:
    """The reason by held pod."""
    queues, shards = kai_queues(documents), kai_shards(documents)
    world = decided(queues, list(_as_written(documents, events)), now_s, shards)
    if world is None:
        return {}
    pools, evidences = shards.shards.pools, Evidences(_empty_nodes(events))
    found: dict[str, HeldPod] = {}
    for gang in world.cluster.gangs:
        cycle = world.discipline.cycle_of(gang)
        job = waiting_job(cycle, gang) if cycle is not None else None
        if cycle is None or job is None or not job.is_ready:
            # A gang with missing pods waits for them, not for quota.
            continue
        is_over = cycle.why.get(job.name) in (Code.OVER_LIMIT, Code.OVER_QUOTA, Code.CLAIM_UNUSABLE)
        asks = (cycle.cluster.pending[pod].charge.ask for pod in job.waiting)
        if gang.name in cycle.jobs and (not is_over or any(_is_too_large(evidences.of(ask)) for ask in asks)):
            continue
        kept = held_by_kai_queue(queues, job, tree_usage(world.before), pools)
        if kept.code == POD_SCHEDULING_ERRORS:
            # Not pods on nodes alone explain it, but those that come before it as well.
            kept = held_by_kai_queue(queues, job, tree_usage(cycle.tree), pools)
        found |= dict.fromkeys(job.waiting, kept)
    return found


def _as_written(documents: Iterable[Document], events: Iterable[Event]) -> Iterator[Event]:
    """The events with the queues that the PodGroups name: a remedy is tried by changing documents."""
    named = {
        each.value.metadata.key: (each.value.spec.queue, tuple(sorted(each.value.metadata.labels.items())))
        for each in documents
        if isinstance(each.value, KaiPodGroup)
    }
    for event in events:
        if isinstance(event, GroupSeen) and event.group.name in named:
            queue, labels = named[event.group.name]
            event = GroupSeen(replace(event.group, queue=queue, labels=labels))  # noqa: PLW2901 - the same group
        yield event


def _empty_nodes(events: Iterable[Event]) -> Cluster:
    intake = Intake(Cluster())
    for event in events:
        if not isinstance(event, PodArrived | PodBound):
            intake.apply(event)
    return intake.cluster


def _is_too_large(found: Evidence) -> bool:
    return bool(found.nodes) and (not found.nearest or any(lack.total < lack.asked for lack in found.shortfalls))


def _queue(document: Document) -> Queue | None:
    raw: Any = document.value.raw if isinstance(document.value, Unknown) else {}
    try:
        return msgspec.convert(raw, Queue)
    except msgspec.ValidationError:
        return None
