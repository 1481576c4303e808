"""Writes the statuses of KAI's queues and pod groups: usage, requests, pod counts, and why a group waits.

All of it follows from the last cycle of the discipline and from the facts. The statuses are written outside the cycles,
at most once per second, and only if they changed. A gang that runs below its minimum has an annotation with the moment
when that began, so that a successor of this process does not wait for the whole grace again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import msgspec

from shoal.api.groups.kai import GROUP_ANNOTATION, STALE_ANNOTATION
from shoal.api.partial import LabeledMeta, PodPhaseStatus
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import KAI_POD_GROUPS, KAI_QUEUES
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import PODS, Kind
from shoal.client.optimistic_update import OptimisticUpdate
from shoal.engine.cluster import Cluster
from shoal.engine.gang_members import Gang
from shoal.engine.queues.disciplines.kai.objects import Queue
from shoal.engine.queues.disciplines.kai.sharded_fairshare import ShardedFairshare
from shoal.engine.queues.disciplines.kai.unschedulable_reasons import (
    POD_SCHEDULING_ERRORS,
    WAITING_FOR_EVICTIONS,
)
from shoal.engine.queues.disciplines.kai.waiting_jobs import (
    by_name,
    gang_amounts,
    is_promised,
    reason_of,
    to_quantities,
    tree_usage,
    waiting_job,
)

_EVERY_S = 1.0
_POOL = "default"
_MARK = GROUP_ANNOTATION.encode()
_STALE = STALE_ANNOTATION.encode()
_INDEX = "kai-group"
_PHASES = {"Pending": "pending", "Running": "running", "Succeeded": "succeeded", "Failed": "failed"}
Obj = dict[str, Any]


class _AnnotatedPod(msgspec.Struct):
    metadata: LabeledMeta
    status: PodPhaseStatus = msgspec.field(default_factory=PodPhaseStatus)


_pods = msgspec.json.Decoder(_AnnotatedPod)


class KaiStatusWriter:
    def __init__(self, context: Context, cluster: Cluster, discipline: ShardedFairshare) -> None:
        self._context = context
        self._cluster = cluster
        self._discipline = discipline
        self._queues: Mapping[str, Queue] = {}
        self._informers: dict[Kind, Informer] = {}
        self._changed: dict[str, None] = {}
        """Changed groups (namespace/name)."""
        self._reasons: dict[str, tuple[str, str]] = {}
        """Gang that waits -> the reason and message, as found last."""
        self._recorded: dict[str, tuple[str, str]] = {}
        """Pod without a group -> the recorded reason and message."""
        self._marked: dict[str, None] = {}
        """Groups with the annotation that says since when they are below their minimum."""
        self._wake = asyncio.Event()
        self._guarded = OptimisticUpdate(context.api, context.clock, self._wake.set)
        self._is_active = False
        """False until a cycle was decided: before that nothing is known."""

    def follow(self, kind: Kind, informer: Informer) -> None:
        self._informers[kind] = informer
        if kind == KAI_POD_GROUPS:
            pods = self._context.informers.of(PODS)
            pods.index(_INDEX, _group_of)
            pods.on_change(self._pod_changed)
            informer.on_change(self._group_changed)
        informer.on_change(lambda _, __: self._wake.set())

    def round_done(self, queues: Mapping[str, Queue]) -> None:
        """Called after each round."""
        self._queues = queues
        self._is_active = True
        self._wake.set()

    def pause(self) -> None:
        """Stops writing until the next round is decided here."""
        self._is_active = False

    def words_of(self, group: str) -> str:
        """Why a queue holds the pods of a gang back; empty if none does."""
        gang = self._cluster.gangs.find(group)
        reason = self._reason(gang) if gang is not None else None
        if reason is None or reason[0] == POD_SCHEDULING_ERRORS or not self._is_whole(gang):
            return ""
        return ": ".join(reason)

    def _is_whole(self, gang: Gang | None) -> bool:
        cycle = self._discipline.cycle_of(gang) if gang is not None else None
        job = waiting_job(cycle, gang) if cycle is not None and gang is not None else None
        return job is not None and job.is_ready

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._is_active and not await self._write_all():
                self._wake.set()
            await self._context.clock.sleep(_EVERY_S)

    # internals

    def _pod_changed(self, before: Item | None, after: Item | None) -> None:
        groups = {name for item in (before, after) if item is not None for name in _group_of(item)}
        if groups:
            self._changed.update(dict.fromkeys(groups))
            self._wake.set()

    def _group_changed(self, _: Item | None, after: Item | None) -> None:
        if after is not None:
            self._changed[f"{after.namespace}/{after.name}"] = None
            if _STALE in after.data:
                self._marked[f"{after.namespace}/{after.name}"] = None

    async def _write_all(self) -> bool:
        cycles = [cycle for _, cycle in self._discipline.cycles()]
        if not cycles:
            return True
        is_done = True
        for item in self._informers.get(KAI_QUEUES, ()):
            is_done = await self._write(KAI_QUEUES, item, self._of_queue(item.name)) and is_done
        if not any(cycle.state.is_cut for cycle in cycles):
            # In a backlog most jobs wait for the next cycle only.
            self._find_reasons()
        is_done = await self._mark_stale() and is_done
        is_done = await self._write_groups() and is_done
        self._record_pod_events()
        return is_done

    def _find_reasons(self) -> None:
        """Of the gangs that wait: each whose reason is another one than before is written again."""
        found: dict[str, tuple[str, str]] = {}
        for gang in self._cluster.gangs:
            reason = self._reason(gang)
            if reason is not None:
                found[gang.name] = reason
        for name in found.keys() | self._reasons.keys():
            if found.get(name) != self._reasons.get(name):
                self._changed[name] = None
        self._reasons = found

    def _reason(self, gang: Gang) -> tuple[str, str] | None:
        """None for a gang that does not wait, or in no queue."""
        if gang.facts is None or not gang.facts.queue:
            return None
        cycle = self._discipline.cycle_of(gang)
        if cycle is None:
            return None
        if is_promised(self._cluster, gang):
            return WAITING_FOR_EVICTIONS
        job = waiting_job(cycle, gang)
        if job is None or (job.exist > len(job.waiting) and not job.is_ready):
            return None
        return reason_of(self._queues, job, tree_usage(cycle.tree), self._discipline.shards.pools)

    async def _write_groups(self) -> bool:
        """Writes only changed groups: each pod of KAI has a group, and there may be ten thousand."""
        groups = self._informers.get(KAI_POD_GROUPS)
        changed, self._changed = self._changed, {}
        for name in changed:
            item = groups.get(*name.split("/", 1)) if groups is not None else None
            if item is None:
                continue
            if not await self._write(KAI_POD_GROUPS, item, self._of_group(item, name)):
                self._changed[name] = None
        return not self._changed

    async def _mark_stale(self) -> bool:
        """Record on each group since when it runs below its minimum."""
        groups, stale = self._informers.get(KAI_POD_GROUPS), self._discipline.stale_since_s
        is_done = True
        for name in dict.fromkeys((*stale, *self._marked)):
            item = groups.get(*name.split("/", 1)) if groups is not None else None
            wanted = _text(stale[name]) if name in stale else None
            if item is None or (item.obj()["metadata"].get("annotations") or {}).get(STALE_ANNOTATION) == wanted:
                if wanted is None:
                    self._marked.pop(name, None)
                continue
            body = {"metadata": {"annotations": {STALE_ANNOTATION: wanted}}}
            is_done = await self._guarded.merged(KAI_POD_GROUPS, item, body) and is_done
        return is_done

    def _of_queue(self, name: str) -> Obj:
        below = sorted(queue.name for queue in self._queues.values() if queue.spec.parent_queue == name)
        cycle = self._discipline.cycle_of_queue(name)
        node = cycle.tree.nodes.get(name) if cycle is not None else None
        amounts = (
            {}
            if node is None
            else {
                "allocated": by_name(node.allocated),
                "allocatedNonPreemptible": by_name(node.non_preemptible),
                "requested": by_name(node.requested),
            }
        )
        found: Obj = {
            what: to_quantities(amounts.get(what, {})) for what in ("allocated", "allocatedNonPreemptible", "requested")
        }
        return found | ({"childQueues": below} if below else {"childQueues": None})

    def _of_group(self, item: Item, name: str) -> Obj:
        phases = Counter(
            _pods.decode(pod.data).status.phase
            for pod in self._context.informers.of(PODS).index(_INDEX, _group_of)[f"{item.namespace}/{item.name}"]
        )
        gang = self._cluster.gangs.find(name)
        cycle = self._discipline.cycle_of(gang) if gang is not None else None
        job = cycle.jobs.get(name) if cycle is not None else None
        held: Sequence[int] = ()
        wanted: Sequence[int] = ()
        if gang is not None and cycle is not None:
            held, wanted = gang_amounts(self._cluster, cycle.amounts, gang)
        is_fixed = job is not None and not job.is_preemptible
        found: Obj = {field: phases.get(phase, 0) for phase, field in _PHASES.items()}
        found["resourcesStatus"] = {
            "allocated": _quantities(held),
            "allocatedNonPreemptible": _quantities(held if is_fixed else ()),
            "requested": _quantities(wanted),
        }
        reason = self._reasons.get(name)
        pool = gang.facts.node_pool if gang is not None and gang.facts is not None else ""
        found["schedulingConditions"] = None if reason is None else [self._condition(item, pool or _POOL, *reason)]
        return found

    def _condition(self, item: Item, pool: str, reason: str, message: str) -> Obj:
        known = (item.obj().get("status") or {}).get("schedulingConditions") or [{}]
        result = (known[-1].get("reason"), known[-1].get("message")) == (reason, message)
        return {
            "type": "UnschedulableOnNodePool",
            "nodePool": pool,
            "status": "True",
            "reason": reason,
            "message": message,
            "reasons": [{"reason": reason, "message": message}],
            "transitionID": str(uuid5(NAMESPACE_URL, f"{item.uid}/{reason}/{message}")),
            "lastTransitionTime": known[-1]["lastTransitionTime"] if result else self._context.clock.text(),
        }

    def _record_pod_events(self) -> None:
        """Records an Event about each waiting pod without a group, whenever the reason changes."""
        for key in [key for key in self._recorded if key not in self._reasons]:
            del self._recorded[key]
        for key, reason in self._reasons.items():
            gang = self._cluster.gangs.find(key)
            if gang is None or key not in gang.waiting or self._recorded.get(key) == reason:
                continue
            self._recorded[key] = reason
            namespace, _, name = key.partition("/")
            item = self._context.informers.of(PODS).get(namespace, name)
            if item is not None:
                meta = {"name": name, "namespace": namespace, "uid": item.uid}
                regarding = {"kind": PODS.name, "apiVersion": PODS.api_version, "metadata": meta}
                self._context.events.record(regarding, "Unschedulable", ": ".join(reason), type_="Warning")

    async def _write(self, kind: Kind, item: Item, wanted: Obj) -> bool:
        before = item.obj().get("status") or {}
        body: Obj = {}
        for name, value in wanted.items():
            if before.get(name) != value and not (value is None and name not in before):
                gone = dict.fromkeys(before.get(name) or {}) if isinstance(value, dict) else {}
                body[name] = {**gone, **value} if isinstance(value, dict) else value
        if not body:
            return True
        return await self._guarded.merged(kind, item, {"status": body}, "status")


def _text(moment_s: float) -> str:
    return datetime.fromtimestamp(moment_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _quantities(amounts: Sequence[int]) -> dict[str, str]:
    return to_quantities(by_name(amounts)) if amounts else {}


def _group_of(item: Item) -> list[str]:
    if _MARK not in item.data:
        return []
    try:
        name = (_pods.decode(item.data).metadata.annotations or {}).get(GROUP_ANNOTATION, "")
    except msgspec.DecodeError:
        return []
    return [f"{item.namespace}/{name}"] if name else []
