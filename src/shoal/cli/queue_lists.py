"""Lists queues and workloads for `shoal get`."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.cli.object_source import Source
from shoal.cli.queue_manifests import queues_of
from shoal.sim.queue_outlook import outlook
from shoal.sim.queued_world import kueue_of
from shoal.views.queue_backlog import waiters_of
from shoal.views.queue_list import QueueLine, lines_of
from shoal.views.queue_tree import queue_tree
from shoal.views.queue_workloads import Workloads, workloads_of


def queue_lines(source: Source, filename: Sequence[str] | None) -> list[QueueLine]:
    manifests = queues_of(source.documents, filename or [source.words])
    kueue = kueue_of(manifests, manifests.now_s)
    waiters = waiters_of(kueue, {facts.key: facts for facts in manifests.workloads})
    return lines_of(queue_tree(kueue.queues, waiters), [held.facts.queue for held in kueue.queues.held.values()])


def workloads_listed(source: Source, filename: Sequence[str] | None, namespace: str) -> Workloads:
    """Those of one namespace, or all."""
    manifests = queues_of(source.documents, filename or [source.words])
    kueue = kueue_of(manifests, manifests.now_s)
    waiters = waiters_of(kueue, {facts.key: facts for facts in manifests.workloads})
    reasons = outlook(kueue_of(manifests, manifests.now_s), manifests.now_s)
    found = workloads_of(kueue.queues.held.values(), waiters, reasons)
    if not namespace:
        return found
    inside = f"{namespace}/"
    return Workloads(
        [each for each in found.holding if each.workload.startswith(inside)],
        [each for each in found.waiting if each.workload.startswith(inside)],
    )
