"""Decides which pods of a set of manifests KAI's queues hold back for lack of quota, with the engine's quota tree.

Rejected: evicting pods to return quota. On a cluster that needs pods that end and others that are created; for
manifests, the reason says that other pods would have to be evicted.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from shoal.api.decode import Document, Unknown
from shoal.api.groups.kai import QUEUE_LABEL, KaiPodGroup
from shoal.engine.cluster import Cluster
from shoal.engine.events import Event, PodArrived, PodBound
from shoal.engine.evidence import Evidences
from shoal.engine.intake import Intake
from shoal.engine.pod_identity import PodIdentity
from shoal.engine.queues.disciplines.kai.admission_unit import AdmissionUnit, GangSpec
from shoal.engine.queues.disciplines.kai.admission_units import AdmissionUnits
from shoal.engine.queues.disciplines.kai.objects import Queue, minimum_of, parts_of
from shoal.engine.queues.disciplines.kai.queue_quotas import SETTINGS
from shoal.engine.queues.disciplines.kai.queue_usage import queue_usage
from shoal.engine.queues.disciplines.kai.quota_tree_updater import QuotaTreeUpdater
from shoal.engine.queues.disciplines.kai.unschedulable_reasons import OVER_LIMIT, OVER_QUOTA, POD_SCHEDULING_ERRORS
from shoal.engine.queues.facts import Amounts
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.state import Queues
from shoal.engine.reasons import Evidence
from shoal.sim.kai_changes import UsageOf, held_by_kai_queue
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
    if not queues:
        return {}
    units = kai_units(documents, events, now_s)
    # Only those that nodes can hold use quota.
    hopeless = _hopeless(units, events)
    on_nodes = _usage_of(queues, units)
    victims = _admit_all(units, _quota_tree(queues, events, units, hopeless, now_s), now_s)
    with_admitted = _usage_of(queues, units)
    found: dict[str, HeldPod] = {}
    for unit in units.all.values():
        if not unit.waiting or not unit.spec.is_known or not unit.is_ready:
            # A gang with missing pods waits for them, not for quota.
            continue
        kept = held_by_kai_queue(queues, unit, on_nodes, victims.get(unit.key))
        if kept.code not in (OVER_LIMIT, OVER_QUOTA) and unit.key not in hopeless:
            kept = held_by_kai_queue(queues, unit, with_admitted, victims.get(unit.key))
        if unit.key not in hopeless or kept.code != POD_SCHEDULING_ERRORS:
            found |= dict.fromkeys(unit.waiting, kept)
    return found


def _usage_of(queues: Mapping[str, Queue], units: AdmissionUnits) -> UsageOf:
    """As of now."""
    usage = queue_usage(queues, units.all.values())

    def usage_of(queue: str, is_non_preemptible: bool) -> Amounts:
        return usage.get((queue, "allocatedNonPreemptible" if is_non_preemptible else "allocated"), {})

    return usage_of


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


def _quota_tree(
    queues: Mapping[str, Queue], events: Iterable[Event], units: AdmissionUnits, hopeless: Container[str], now_s: float
) -> Kueue:
    kueue = Kueue(Queues(SETTINGS))
    updater = QuotaTreeUpdater(kueue.queues)
    for event in events:
        updater.hear(event)
    updater.refresh(queues)
    for unit in units.all.values():
        facts = unit.facts()
        if facts is not None and (unit.active or unit.key not in hopeless):
            kueue.put_workload(facts, now_s)
    return kueue


def _admit_all(units: AdmissionUnits, kueue: Kueue, now_s: float) -> dict[str, list[str]]:
    """Returns the units for which others have to be evicted, with these."""
    victims: dict[str, list[str]] = {}
    for _ in range(_MAX_CYCLES):
        if kueue.is_idle:
            break
        decisions = kueue.cycle(now_s)
        for waiting in decisions.waiting:
            if waiting.why is Wait.VICTIMS:
                victims.setdefault(waiting.workload, [])
        for preempted in decisions.preempted:
            victims.setdefault(preempted.beneficiary, []).append(preempted.workload)
        for admitted in decisions.admitted:
            unit: AdmissionUnit = units.all[admitted.workload]
            units.admit(unit, now_s)
    return victims


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
