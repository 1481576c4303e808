"""Lists queues and workloads for `shoal get`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shoal.api.decode import Document
from shoal.api.kueue.cluster_queues import ClusterQueue
from shoal.api.kueue.local_queues import LocalQueue
from shoal.api.kueue.workloads import Workload
from shoal.api.wire import to_json
from shoal.cli.manifests import rounds_of
from shoal.cli.object_source import Source
from shoal.cli.other_queues import other_queues_in_use
from shoal.cli.queue_manifests import are_queues, queues_of
from shoal.cli.search_deadline import SearchDeadline
from shoal.engine.from_api.queues.wait_slo import wait_slo_of
from shoal.sim.queue_outlook import outlook, with_places
from shoal.sim.queued_world import kueue_of
from shoal.store.queues import ManifestQueues
from shoal.units.errors import UserError
from shoal.views.dashboard.queue_reading import workload
from shoal.views.dashboard.queue_state import QueueState
from shoal.views.decision import Reason
from shoal.views.other_queues import OtherQueue
from shoal.views.queue_backlog import waiters_of
from shoal.views.queue_history import queue_history
from shoal.views.queue_list import QueueLine, lines_of
from shoal.views.queue_tree import Tree, queue_tree
from shoal.views.queue_waits import QueueWaits, queue_waits
from shoal.views.queue_workloads import ADMISSIBLE, workloads_of
from shoal.views.workload_list import WorkloadLine
from shoal.views.workload_list import lines_of as workload_lines_of

_SEED = 42
_MOST_S = 2.0
"""For looking for places on nodes."""


def queue_lines(source: Source) -> list[QueueLine]:
    """Kueue's local queues, then the queues of Volcano and KAI that are in use."""
    return [*_local_queues(source), *map(_line, other_queues_in_use(source))]


def workload_lines(source: Source) -> Sequence[WorkloadLine]:
    if not are_queues(source.documents):
        return []
    manifests = queues_of(source.documents, [source.words])
    kueue = kueue_of(manifests, manifests.now_s)
    waiters = waiters_of(kueue, {facts.key: facts for facts in manifests.workloads})
    reasons = reasons_of(source, manifests)
    return workload_lines_of(workloads_of(kueue.queues.held.values(), waiters, reasons))


def reasons_of(source: Source, manifests: ManifestQueues) -> dict[str, Reason]:
    """What would become of each waiting workload now. What was loaded of the source is used up."""
    reasons = outlook(kueue_of(manifests, manifests.now_s), manifests.now_s)
    if not any(reason.code == ADMISSIBLE for reason in reasons.values()):
        return reasons
    try:
        loaded = source.taken()
    except UserError:
        # Files are read for their queues alone; of pods that cannot be read no places are known.
        return reasons
    return with_places(reasons, rounds_of(loaded, _SEED), SearchDeadline(_MOST_S))


def quota_tree_of(source: Source) -> Tree | None:
    """As `shoal queue` prints it; None without queues of Kueue."""
    if not are_queues(source.documents):
        return None
    manifests = queues_of(source.documents, [source.words])
    kueue = kueue_of(manifests, manifests.now_s)
    waiters = waiters_of(kueue, {facts.key: facts for facts in manifests.workloads})
    return queue_tree(kueue.queues, waiters)


def waits_of(documents: Iterable[Document]) -> QueueWaits:
    """What the conditions of the Workloads tell of their waits and preemptions."""
    state, goals = QueueState(), {}
    for document in documents:
        value = document.value
        if isinstance(value, LocalQueue):
            state.put_local_queue(value.metadata.namespace, value.metadata.name, value.spec.cluster_queue)
        elif isinstance(value, Workload):
            state.put_workload(workload(to_json(value)))
        elif isinstance(value, ClusterQueue):
            goals[value.metadata.name] = wait_slo_of(value.metadata.annotations)
    return queue_waits(queue_history(state.all_workloads()), goals)


def _local_queues(source: Source) -> list[QueueLine]:
    if not are_queues(source.documents):
        return []
    manifests = queues_of(source.documents, [source.words])
    kueue = kueue_of(manifests, manifests.now_s)
    waiters = waiters_of(kueue, {facts.key: facts for facts in manifests.workloads})
    return lines_of(queue_tree(kueue.queues, waiters), [held.facts.queue for held in kueue.queues.held.values()])


def _line(queue: OtherQueue) -> QueueLine:
    closed = "" if queue.state in ("", "Open") else queue.state
    return QueueLine(queue.queue, queue.parent, "", queue.waiting, None, {**queue.used}, closed, queue.project)
