"""Writes the statuses of KAI's queues and pod groups: usage, requests, pod counts, and why a group waits.

The statuses are written outside the rounds, at most once per second, and only if they changed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Container, Mapping
from functools import partial
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import msgspec

from shoal.api.groups.kai import GROUP_ANNOTATION
from shoal.api.partial import LabeledMeta, PodPhaseStatus
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import KAI_POD_GROUPS, KAI_QUEUES
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import PODS, Kind
from shoal.client.optimistic_update import OptimisticUpdate
from shoal.controllers.kai.pod_conditions import HeldPodConditions
from shoal.engine.queues.disciplines.kai.admission_unit import AdmissionUnit, gang_of
from shoal.engine.queues.disciplines.kai.admission_units import AdmissionUnits
from shoal.engine.queues.disciplines.kai.objects import Queue
from shoal.engine.queues.disciplines.kai.queue_usage import QueueUsage, add, queue_usage, to_quantities
from shoal.engine.queues.disciplines.kai.unschedulable_reasons import (
    WAITING_FOR_EVICTIONS,
    not_ready,
    unschedulable_reason,
)
from shoal.engine.queues.facts import Amounts

_EVERY_S = 1.0
_POOL = "default"
_MARK = GROUP_ANNOTATION.encode()
_INDEX = "kai-group"
_PHASES = {"Pending": "pending", "Running": "running", "Succeeded": "succeeded", "Failed": "failed"}
Obj = dict[str, Any]


class _AnnotatedPod(msgspec.Struct):
    metadata: LabeledMeta
    status: PodPhaseStatus = msgspec.field(default_factory=PodPhaseStatus)


_pods = msgspec.json.Decoder(_AnnotatedPod)


class KaiStatusWriter:
    def __init__(
        self, context: Context, units: AdmissionUnits, nodes: Callable[[], int], awaited: Callable[[], Container[str]]
    ) -> None:
        """`nodes` returns the number of nodes; `awaited`: the groups for which other pods are being evicted."""
        self._awaited = awaited
        self._context = context
        self._units = units
        self._queues: Mapping[str, Queue] = {}
        self._informers: dict[Kind, Informer] = {}
        self._refused: dict[str, None] = {}
        """Units that a cycle considered and did not admit."""
        self._changed: dict[str, None] = {}
        """Changed groups (namespace/name)."""
        self._written: dict[str, tuple[str, str]] = {}
        """Unit of a group -> the written reason and message."""
        self._recorded: dict[str, tuple[str, str]] = {}
        """Unit of a pod without a group -> the recorded reason and message."""
        self._pod_conditions = HeldPodConditions(context, units, nodes)
        self._wake = asyncio.Event()
        self._guarded = OptimisticUpdate(context.api, context.clock, self._wake.set)
        self._is_active = False
        """False until a round was decided: before that nothing is known."""

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

    def mark_changed(self, unit: str) -> None:
        """The unit changed."""
        self._changed[gang_of(unit)] = None

    def mark_refused(self, unit: str) -> None:
        self._refused[unit] = None
        self.mark_changed(unit)

    def forget(self, unit: str) -> None:
        """The unit was admitted."""
        self._refused.pop(unit, None)
        self._recorded.pop(unit, None)
        self._written.pop(unit, None)
        self.mark_changed(unit)

    def mark_all_refused(self) -> None:
        self._refused.update({key: None for key, unit in self._units.all.items() if not unit.active})

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

    async def _write_all(self) -> bool:
        usage = queue_usage(self._queues, self._units.all.values())
        is_done = True
        for item in self._informers.get(KAI_QUEUES, ()):
            is_done = await self._write(KAI_QUEUES, item, self._of_queue(item.name, usage)) and is_done
        is_done = await self._write_groups(usage) and is_done
        self._record_pod_events(usage)
        return await self._pod_conditions.write(self._refused, partial(self._reason, usage=usage)) and is_done

    async def _write_groups(self, usage: QueueUsage) -> bool:
        """Writes only changed groups: each pod of KAI has a group, and there may be ten thousand."""
        groups = self._informers.get(KAI_POD_GROUPS)
        for key in self._refused:
            unit = self._units.all.get(key)
            # The free quota of a queue changes with other units.
            if unit is not None and unit.waiting and self._written.get(key) != self._reason(unit, usage):
                self.mark_changed(key)
        changed, self._changed = self._changed, {}
        for name in changed:
            item = groups.get(*name.split("/", 1)) if groups is not None else None
            if item is None:
                continue
            if not await self._write(KAI_POD_GROUPS, item, self._of_group(item, self._units.of_gang(name), usage)):
                self._changed[name] = None
        return not self._changed

    def _of_queue(self, name: str, usage: QueueUsage) -> Obj:
        below = sorted(queue.name for queue in self._queues.values() if queue.spec.parent_queue == name)
        found: Obj = {
            what: to_quantities(usage.get((name, what), {}))
            for what in ("allocated", "allocatedNonPreemptible", "requested")
        }
        return found | ({"childQueues": below} if below else {"childQueues": None})

    def _of_group(self, item: Item, units: list[AdmissionUnit], usage: QueueUsage) -> Obj:
        phases = Counter(
            _pods.decode(pod.data).status.phase
            for pod in self._context.informers.of(PODS).index(_INDEX, _group_of)[f"{item.namespace}/{item.name}"]
        )
        allocated, requested, non_preemptible = Amounts(), Amounts(), Amounts()
        for unit in units:
            held = unit.amounts(unit.active.values())
            add(allocated, held)
            add(requested, held)
            add(requested, unit.amounts(unit.waiting.values()))
            add(non_preemptible, held if unit.is_non_preemptible else {})
        found: Obj = {field: phases.get(phase, 0) for phase, field in _PHASES.items()}
        found["resourcesStatus"] = {
            "allocated": to_quantities(allocated),
            "allocatedNonPreemptible": to_quantities(non_preemptible),
            "requested": to_quantities(requested),
        }
        waiting = next((unit for unit in units if self._is_refused(unit)), None)
        found["schedulingConditions"] = None if waiting is None else [self._condition(item, waiting, usage)]
        return found

    def _is_refused(self, unit: AdmissionUnit) -> bool:
        if not unit.waiting:
            return False
        return unit.key in self._refused or not (unit.active or unit.is_ready)

    def _condition(self, item: Item, unit: AdmissionUnit, usage: QueueUsage) -> Obj:
        reason, message = self._written[unit.key] = self._reason(unit, usage)
        known = (item.obj().get("status") or {}).get("schedulingConditions") or [{}]
        result = (known[-1].get("reason"), known[-1].get("message")) == (reason, message)
        return {
            "type": "UnschedulableOnNodePool",
            "nodePool": _POOL,
            "status": "True",
            "reason": reason,
            "message": message,
            "reasons": [{"reason": reason, "message": message}],
            "transitionID": str(uuid5(NAMESPACE_URL, f"{item.uid}/{reason}/{message}")),
            "lastTransitionTime": known[-1]["lastTransitionTime"] if result else self._context.clock.text(),
        }

    def _reason(self, unit: AdmissionUnit, usage: QueueUsage) -> tuple[str, str]:
        def held(queue: str, non_preemptible: bool) -> Amounts:
            return usage.get((queue, "allocatedNonPreemptible" if non_preemptible else "allocated"), {})

        if not unit.is_ready:
            return not_ready(unit.pod_count, unit.spec.minimum or 0)
        if unit.spec.name in self._awaited():
            return WAITING_FOR_EVICTIONS
        requested = unit.amounts(unit.waiting.values())
        return unschedulable_reason(
            self._queues, unit.spec.queue, requested, held, is_non_preemptible=unit.is_non_preemptible
        )

    def _record_pod_events(self, usage: QueueUsage) -> None:
        """Records an Event about each waiting pod without a group, whenever the reason changes."""
        for key in list(self._refused):
            unit = self._units.all.get(key)
            if unit is None or not unit.waiting:
                self.forget(key)
                continue
            result = self._reason(unit, usage)
            if unit.spec.name not in unit.waiting or self._recorded.get(key) == result:
                continue
            self._recorded[key] = result
            namespace, _, name = unit.spec.name.partition("/")
            item = self._context.informers.of(PODS).get(namespace, name)
            if item is not None:
                meta = {"name": name, "namespace": namespace, "uid": item.uid}
                regarding = {"kind": PODS.name, "apiVersion": PODS.api_version, "metadata": meta}
                self._context.events.record(regarding, "Unschedulable", f"{result[0]}: {result[1]}", type_="Warning")

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


def has_succeeded(context: Context, group: str) -> bool:
    """Whether a pod of the group has succeeded."""
    pods = context.informers.of(PODS).index(_INDEX, _group_of)[group]
    return any(_pods.decode(pod.data).status.phase == "Succeeded" for pod in pods)


def _group_of(item: Item) -> list[str]:
    if _MARK not in item.data:
        return []
    try:
        name = (_pods.decode(item.data).metadata.annotations or {}).get(GROUP_ANNOTATION, "")
    except msgspec.DecodeError:
        return []
    return [f"{item.namespace}/{name}"] if name else []
