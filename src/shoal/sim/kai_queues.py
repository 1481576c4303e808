"""Finds the pods of a set of manifests that KAI's queues hold back: at a limit, beyond a quota, or without a queue.

What waits for room on nodes, or for others to yield, is not held: the rounds decide about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from shoal.api.decode import Document, Unknown
from shoal.api.groups.kai import QUEUE_LABEL, KaiPodGroup
from shoal.engine.cluster import Cluster
from shoal.engine.events import Event, PodArrived, PodBound
from shoal.engine.evidence import Evidences
from shoal.engine.intake import Intake
from shoal.engine.pod_identity import PodIdentity
from shoal.engine.queues.disciplines.kai.admission_unit import GangSpec
from shoal.engine.queues.disciplines.kai.admission_units import AdmissionUnits
from shoal.engine.queues.disciplines.kai.fair_cycle import FairshareCycle
from shoal.engine.queues.disciplines.kai.objects import RESOURCES, Queue, minimum_of, parts_of
from shoal.engine.queues.disciplines.kai.queue_usage import QueueUsage, queue_usage
from shoal.engine.queues.disciplines.kai.unschedulable_reasons import POD_SCHEDULING_ERRORS
from shoal.engine.queues.facts import Amounts
from shoal.engine.reasons import Code, Evidence
from shoal.sim.kai_changes import held_by_kai_queue
from shoal.sim.kai_rounds import decided
from shoal.store.held_pods import HeldPod

_GROUP = "scheduling.run.ai/"
_MAX_CYCLES = 10_000


def is_queue(document: Document) -> bool:
    value = document.value
    return isinstance(value, Unknown) and value.kind == "Queue" and value.api_version.startswith(_GROUP)


def kai_queues(documents: Iterable[Document]) -> dict[str, Queue]:
    found = (_queue(document) for document in documents if is_queue(document))
    return {queue.name: queue for queue in found if queue is not None}


def kai_units(documents: Sequence[Document], events: Iterable[Event], now_s: float) -> AdmissionUnits:
    """The admission units of waiting and running pods."""
    groups = {each.value.metadata.key: each.value for each in documents if isinstance(each.value, KaiPodGroup)}
    units = AdmissionUnits(lambda _: now_s)
    for event in events:
        if not isinstance(event, PodArrived | PodBound):
            continue
        spec = _gang_spec(groups, event.key, event.who)
        if spec is None:
            continue
        if isinstance(event, PodBound):
            units.add_bound(event, spec)
        else:
            units.add_waiting(event, spec)
    return units


def held_by_kai(documents: Sequence[Document], events: Sequence[Event], now_s: float) -> dict[str, HeldPod]:
    """The reason by held pod."""
    queues = kai_queues(documents)
    cycle = decided(queues, events, now_s)
    if cycle is None:
        return {}
    units = kai_units(documents, events, now_s)
    on_nodes = queue_usage(queues, units.all.values())
    hopeless = _hopeless(units, events)
    found: dict[str, HeldPod] = {}
    for unit in units.all.values():
        if not unit.waiting or not unit.spec.is_known or not unit.is_ready:
            # A gang with missing pods waits for them, not for quota.
            continue
        has_queue = cycle.tree.leaf(unit.spec.queue) is not None
        is_over = cycle.why.get(unit.spec.name) in (Code.OVER_LIMIT, Code.OVER_QUOTA)
        if has_queue and (not is_over or unit.key in hopeless):
            continue
        kept = held_by_kai_queue(queues, unit, partial(_usage_now, on_nodes))
        if kept.code == POD_SCHEDULING_ERRORS:
            # Not pods on nodes alone explain it, but those that come before it as well.
            kept = held_by_kai_queue(queues, unit, partial(_usage, cycle))
        found |= dict.fromkeys(unit.waiting, kept)
    return found


def _usage_now(usage: QueueUsage, queue: str, is_non_preemptible: bool) -> Amounts:
    return usage.get((queue, "allocatedNonPreemptible" if is_non_preemptible else "allocated"), {})


def _usage(cycle: FairshareCycle, queue: str, is_non_preemptible: bool) -> Amounts:
    """What a queue holds once all is decided."""
    node = cycle.tree.nodes.get(queue)
    if node is None:
        return {}
    held = node.non_preemptible if is_non_preemptible else node.allocated
    return dict(zip(RESOURCES, held, strict=True))


def _hopeless(units: AdmissionUnits, events: Iterable[Event]) -> frozenset[str]:
    """The units with a pod that no node can hold, even an empty one."""
    intake = Intake(Cluster())
    for event in events:
        if not isinstance(event, PodArrived | PodBound):
            intake.apply(event)
    evidences = Evidences(intake.cluster)
    return frozenset(
        key
        for key, unit in units.all.items()
        if any(_is_too_large(evidences.of(pod.ask)) for pod in unit.waiting.values())
    )


def _is_too_large(found: Evidence) -> bool:
    return bool(found.nodes) and (not found.nearest or any(lack.total < lack.asked for lack in found.shortfalls))


def _gang_spec(groups: Mapping[str, KaiPodGroup], pod: str, who: PodIdentity) -> GangSpec | None:
    group = groups.get(who.group) if who.group else None
    if group is not None:
        spec = group.spec
        return GangSpec(who.group, spec.queue, minimum_of(spec), parts_of(spec), is_preemptible=spec.is_preemptible())
    queue = dict(who.traits.labels).get(QUEUE_LABEL, "")
    if queue and who.group:
        return GangSpec(who.group, queue, is_known=False)
    return GangSpec(pod, queue) if queue else None


def _queue(document: Document) -> Queue | None:
    raw: Any = document.value.raw if isinstance(document.value, Unknown) else {}
    try:
        return msgspec.convert(raw, Queue)
    except msgspec.ValidationError:
        return None
