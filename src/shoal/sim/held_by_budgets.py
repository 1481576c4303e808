"""Finds the pods of a set of manifests that a spent budget holds back, as the guard of the scheduling loop does.

What was spent is in a BudgetReport, which snapshots contain. The pods of Kueue's workloads are left out: their
Workloads wait with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shoal.api.budget_report import BudgetReport
from shoal.api.cost_budgets import cost_budgets_of, owner_of, queue_of_pod
from shoal.api.decode import Document
from shoal.api.meta import Namespace
from shoal.engine.events import Event, GroupSeen, PodArrived, PodBound
from shoal.engine.queues.reasons import Wait
from shoal.store.held_pods import HeldPod
from shoal.store.manifest_cluster import ManifestCluster
from shoal.views.waits import HELP


def held_by_budgets(
    documents: Sequence[Document], events: Sequence[Event], world: ManifestCluster
) -> dict[str, HeldPod]:
    """The reason by held pod."""
    reports = [each.value for each in documents if isinstance(each.value, BudgetReport)]
    if not reports:
        return {}
    now_s = max(world.now_s, reports[-1].computed_at.timestamp())
    budgets = cost_budgets_of(reports[-1]).at(now_s)
    namespaces = {
        each.value.metadata.name: each.value.metadata.labels for each in documents if isinstance(each.value, Namespace)
    }
    running = {event.who.group for event in events if isinstance(event, PodBound) and event.who.group}
    schedulers = {placed.value.metadata.key: placed.value.spec.scheduler_name for placed in world.waiting}
    groups = {event.group.name: event.group.budget_queue for event in events if isinstance(event, GroupSeen)}
    found: dict[str, HeldPod] = {}
    for event in _concerned(events, running, world.queued):
        traits = event.who.traits
        queue = queue_of_pod(schedulers.get(event.key, ""), dict(traits.labels), groups.get(event.who.group, ""))
        owner = owner_of(namespaces.get(traits.namespace, {}), traits.namespace, queue)
        refused = budgets.refusal(owner, now_s)
        if refused is not None:
            found[event.key] = HeldPod(
                Wait.OVER_BUDGET, f"{refused.message}.", HELP[Wait.OVER_BUDGET], group=event.who.group
            )
    return found


def _concerned(events: Iterable[Event], running: set[str], queued: frozenset[str]) -> Iterable[PodArrived]:
    for event in events:
        if not isinstance(event, PodArrived) or event.daemon_set or not event.ask.asks_devices:
            continue
        if event.key not in queued and event.who.group not in running:
            yield event
