"""Reports obstacles that no remedy removes, without trying any.

A workload whose LocalQueue is missing, or whose queue is stopped, is not looked at; trying quotas would say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.decisions import StillWaiting
from shoal.engine.queues.facts import PODS, WorkloadFacts
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.remedies.remedy import Effect, FieldChange, Remedy, RemedyKind
from shoal.engine.queues.state import Queues
from shoal.engine.queues.workloads import totals_of


def why_not_queued(queues: Queues, waiting: StillWaiting) -> Remedy:
    """It takes no part: its door is missing or shut, or it is held back itself."""
    local = queues.local_queues.get(waiting.queue)
    if waiting.why is Wait.ON_HOLD and waiting.message.startswith("The workload "):
        return _correct(waiting.message, FieldChange("Workload", waiting.workload, "spec.active", "false", "true"))
    if not waiting.message.startswith(("LocalQueue ", "ClusterQueue ")):
        return _correct(waiting.message)
    if local is None:
        return _correct(waiting.message, _missing("LocalQueue", waiting.queue))
    if local.stop != "None":
        return _correct(waiting.message, FieldChange("LocalQueue", local.key, "stopPolicy", local.stop, "None"))
    return _correct(waiting.message, _missing("ClusterQueue", local.cluster_queue))


def why_stopped(queues: Queues, queue: ClusterQueue) -> Remedy | None:
    """The cluster queue admits no workloads."""
    if queue.closed is None:
        return None
    message = f"ClusterQueue {queue.name} {queue.closed[1]}"
    return _correct(message, *_openings(queues, queue))


def why_refused(queues: Queues, queue: ClusterQueue, facts: WorkloadFacts) -> Remedy | None:
    """The workload is one that this queue, or every queue, refuses."""
    selector = queue.facts.namespaces
    if selector.requirements is None:
        message = f"ClusterQueue {queue.name} has no namespaceSelector, so no namespace may use it"
        return _correct(message, FieldChange("ClusterQueue", queue.name, "namespaceSelector", None, "{}"))
    if not selector.matches(queues.namespaces.get(facts.namespace, {})):
        message = f"the labels of Namespace {facts.namespace} do not match the namespaceSelector of {queue.name}"
        return _correct(message, FieldChange("Namespace", facts.namespace, "labels"))
    absent = _not_covered(queues, queue, facts)
    if absent:
        message = f"ClusterQueue {queue.name} has no quota of {', '.join(absent)}"
        return _correct(
            message, *(FieldChange("ClusterQueue", queue.name, "coveredResources", None, name) for name in absent)
        )
    failed = sorted(name for name, state in facts.checks.items() if state in {"Retry", "Rejected"})
    if failed:
        return _correct(f"admission check {', '.join(failed)} has not passed")
    return _correct(facts.fault) if facts.fault else None


def why_all_wait(queues: Queues) -> Remedy:
    """No workload is admitted until the pods of earlier ones are ready."""
    late = sorted(key for key, held in queues.held.items() if held.facts.admitted and not held.facts.pods_ready)
    return _correct(f"the pods of {', '.join(late)} are not ready, and no workload is admitted until they are")


def _not_covered(queues: Queues, queue: ClusterQueue, facts: WorkloadFacts) -> list[str]:
    """Resources that are asked for and that the queue does not count."""
    if queues.settings.ignore_undeclared:
        return []
    asked = {name for total in totals_of(facts) for name, amount in total.requests.items() if amount}
    return sorted(asked - queue.group_of.keys() - {PODS})


def _openings(queues: Queues, queue: ClusterQueue) -> Iterator[FieldChange]:
    facts = queue.facts
    if facts.stop != "None":
        yield FieldChange("ClusterQueue", queue.name, "stopPolicy", facts.stop, "None")
        return
    if facts.cohort in queues.cycles:
        yield FieldChange("Cohort", facts.cohort, "parentName")
        return
    names = dict.fromkeys(flavor.name for group in facts.groups for flavor in group.flavors)
    for name in names:
        flavor = queues.flavors.get(name)
        if flavor is None:
            yield _missing("ResourceFlavor", name)
        elif flavor.topology and flavor.topology not in queues.topologies:
            yield _missing("Topology", flavor.topology)
    for use in facts.checks:
        if use.name not in queues.checks:
            yield _missing("AdmissionCheck", use.name)


def _missing(kind: str, name: str) -> FieldChange:
    return FieldChange(kind, name, "", None, name)


def _correct(message: str, *changes: FieldChange) -> Remedy:
    return Remedy(RemedyKind.CORRECT, Effect.UNTRIED, changes, message)
