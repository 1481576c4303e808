"""Defines the reasons and messages in conditions of Workloads and queues, with Kueue's wording: users, scripts and
dashboards compare them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shoal.engine.queues.clusterqueue import AdmittedWorkload, ClusterQueue
from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.reasons import Wait, Yield
from shoal.engine.queues.state import Queues

DEACTIVATED = "Deactivated"
PREEMPTED = "Preempted"
SUSPENDED = "Suspended"
ADMISSION_CHECK = "AdmissionCheck"
TOO_OFTEN = ("RequeuingLimitExceeded", "exceeding the maximum number of re-queuing retries")
TOO_LONG = ("MaximumExecutionTimeExceeded", "exceeding the maximum execution time")
NO_RESERVATION = ("NoReservation", "The workload has no reservation")
UNSATISFIED = ("UnsatisfiedAdmissionChecks", "The workload has not all checks ready")
DELAYED = ("PendingDelayedTopologyRequests", "There are pending delayed topology requests")

_FOR = {
    Yield.IN_CLUSTER_QUEUE: "prioritization in the ClusterQueue",
    Yield.RECLAIM: "reclamation within the cohort",
    Yield.FAIR_SHARING: "Fair Sharing within the cohort",
    Yield.RECLAIM_WHILE_BORROWING: "reclamation within the cohort while borrowing",
}


def preempted(preemptor_uid: str, job_uid: str, reason: Yield, paths: tuple[str, str]) -> str:
    """`paths`: the cohort paths of the preemptor and of the preemptee."""
    uids = f"(UID: {preemptor_uid or 'UNKNOWN'}, JobUID: {job_uid or 'UNKNOWN'})"
    message = f"Preempted to accommodate a workload {uids} due to {_FOR[reason]}"
    return f"{message}; preemptor path: {paths[0] or 'UNKNOWN'}; preemptee path: {paths[1] or 'UNKNOWN'}"


def cohort_path(queue: ClusterQueue | None) -> str:
    """The path from the root of the cohort tree: `/cohort/queue`."""
    if queue is None:
        return ""
    names = [queue.name, *(cohort.name for cohort in queue.path_up())]
    return "/" + "/".join(reversed(names))


def checks_in(state: str, names: Iterable[str]) -> str:
    quoted = [f'"{name}"' for name in sorted(names)]
    return f"AdmissionCheck{'s' if len(quoted) > 1 else ''} in {state} state: {', '.join(quoted)}"


def deactivated(cause: str, message: str) -> tuple[str, str]:
    """Reason and message of the eviction of a Workload that is not active any more."""
    if not cause:
        return DEACTIVATED, "The workload is deactivated"
    return f"{DEACTIVATED}DueTo{cause}", f"The workload is deactivated due to {message}"


def stopped(reason: str, facts: WorkloadFacts) -> str:
    """Message of an eviction that is not a preemption."""
    if reason == "ClusterQueueStopped":
        return "The ClusterQueue is stopped"
    if reason == "LocalQueueStopped":
        return "The LocalQueue is stopped"
    if reason == "PodsReadyTimeout":
        return f"Exceeded the PodsReady timeout {facts.key}"
    return "At least one admission check is false"


def why_not_queued(queues: Queues, facts: WorkloadFacts) -> tuple[str, str] | None:
    """Reason and message of a Workload that is in no queue, or in a queue that admits none; None if it is queued."""
    name = facts.queue.partition("/")[2]
    if not facts.active:
        return Wait.ON_HOLD, "The workload is deactivated"
    local = queues.local_queues.get(facts.queue)
    if local is None:
        return Wait.MISCONFIGURED, f"LocalQueue {name} doesn't exist"
    if local.stop != "None":
        return SUSPENDED, f"LocalQueue {name} is inactive"
    queue = queues.cluster_queues.get(local.cluster_queue)
    if queue is None:
        return Wait.MISCONFIGURED, f"ClusterQueue {local.cluster_queue} doesn't exist"
    if queue.closed is not None:
        return SUSPENDED, f"ClusterQueue {queue.name} is inactive"
    if facts.closed_gates:
        return Wait.GATED, f"Admission is gated by: {', '.join(facts.closed_gates)}"
    return None


def active_condition(queues: Queues, queue: ClusterQueue, *, is_terminating: bool) -> tuple[bool, str, str]:
    """Status, reason and message of the Active condition of a ClusterQueue."""
    if is_terminating:
        return False, "Terminating", "Can't admit new workloads; clusterQueue is terminating"
    if queue.closed is None:
        return True, "Ready", "Can admit new workloads"
    found = list(_why_inactive(queues, queue))
    if not found:
        return False, queue.closed[0], f"Can't admit new workloads: {queue.closed[1]}."
    return False, found[0][0], f"Can't admit new workloads: {', '.join(message for _, message in found)}."


def _why_inactive(queues: Queues, queue: ClusterQueue) -> Iterable[tuple[str, str]]:
    facts = queue.facts
    if facts.stop != "None":
        yield "Stopped", "is stopped"
    used = dict.fromkeys(flavor.name for group in facts.groups for flavor in group.flavors)
    missing = [name for name in used if name not in queues.flavors]
    if missing:
        yield "FlavorNotFound", f"references missing ResourceFlavor(s): {','.join(missing)}"
    checks = {check.name: queues.checks.get(check.name) for check in facts.checks}
    absent = [name for name, check in checks.items() if check is None]
    if absent:
        yield "AdmissionCheckNotFound", f"references missing AdmissionCheck(s): {','.join(absent)}"
    idle = [name for name, check in checks.items() if check is not None and not check.active]
    if idle:
        yield "AdmissionCheckInactive", f"references inactive AdmissionCheck(s): {','.join(idle)}"
    yield from _topology_faults(queues, used)


def _topology_faults(queues: Queues, used: Iterable[str]) -> Iterable[tuple[str, str]]:
    for name in used:
        topology = queues.flavors[name].topology if name in queues.flavors else ""
        if topology and topology not in queues.topologies:
            yield "TopologyNotFound", f'there is no Topology "{topology}" for TAS flavor "{name}"'


def required_checks(held: AdmittedWorkload) -> tuple[str, ...]:
    """Names of the checks that the ClusterQueue requires for the flavors of the admission."""
    flavors = {flavor for each in held.admission.pod_sets for flavor in each.flavors.values()}
    return tuple(use.name for use in held.queue.facts.checks if use.concerns(flavors))


def checks_in_state(checks: Mapping[str, str], state: str) -> list[str]:
    return sorted(name for name, found in checks.items() if found == state)
