"""Runs the decision trees for one subject: a cluster, a node, a pod, a job, a queue or a GPU.

Related objects are judged too: a pod that waits leads to the nodes whose GPU stack does not work, and a job to its pods
and its queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

import msgspec

from shoal.policy.advice import Obj
from shoal.policy.diagnosis.cluster_facts import (
    DiagnosedCluster,
    device_requests,
    few,
    has_ended,
    is_waiting,
    name_of,
    named,
)
from shoal.policy.diagnosis.device_topology import across_sockets
from shoal.policy.diagnosis.ended_pods import container_ends
from shoal.policy.diagnosis.gangs import JOB_KINDS, job_progress, jobs, pods_of
from shoal.policy.diagnosis.gpu_stack import gpu_stack
from shoal.policy.diagnosis.gpu_use import gpu_use, measured_use
from shoal.policy.diagnosis.mig_and_sharing import mig_layout, time_slicing
from shoal.policy.diagnosis.node_scaling import scale_up
from shoal.policy.diagnosis.node_states import gpu_errors, is_silent, lost_node, nodes_of_gpu
from shoal.policy.diagnosis.pending_pods import has_gpus, pending_pod
from shoal.policy.diagnosis.severity import result_of
from shoal.policy.diagnosis.stuck_queues import is_unadmitted, queued_job, stuck_workload
from shoal.policy.diagnosis.verdicts import (
    DiagnosisResult,
    FoundCause,
    NotRun,
    Patient,
    RuledOut,
    SubjectKind,
    Verdict,
    shell_command,
)
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import CLUSTER_QUEUE, LOCAL_QUEUE, NODE, POD, WORKLOAD
from shoal.policy.object_set import key_of

_SOFTWARE = (gpu_stack, mig_layout, time_slicing)
_ASKING = ("nodeSelector", "affinity", "tolerations", "schedulingGates", "schedulerName")
_CONTAINERS = ("initContainers", "containers")
_MOST_ALIKE = 3
"""Causes of the same kind that are listed one by one."""
_MOST_NAMED = 20


def diagnose(facts: DiagnosedCluster, patient: Patient) -> DiagnosisResult | None:
    """None if there is no such object."""
    match patient.kind:
        case "cluster":
            found: Iterator[Verdict] | None = _cluster(facts)
        case "node":
            node = facts.find(NODE, "", patient.name)
            found = None if node is None else _node(facts, node)
        case "pod":
            pod = facts.find(POD, patient.namespace, patient.name)
            found = None if pod is None else _pod(facts, pod)
        case "job":
            job = next((one for one in jobs(facts) if key_of(one) == (patient.namespace, patient.name)), None)
            found = None if job is None else _job(facts, job)
        case "queue":
            found = _queue(facts, patient)
        case "gpu":
            found = _gpu(facts, patient.name)
    return None if found is None else result_of(str(patient), found)


def names(facts: DiagnosedCluster, kind: SubjectKind) -> list[tuple[str, str]]:
    """Namespaces and names of the objects of a kind, for messages about a missing one."""
    kinds = {"node": (NODE,), "pod": (POD,), "job": JOB_KINDS, "queue": (LOCAL_QUEUE, CLUSTER_QUEUE)}.get(kind, ())
    return sorted(key_of(obj) for each in kinds for obj in facts.all(each))


def pods_with_logs(facts: DiagnosedCluster, patient: Patient) -> list[Obj]:
    """The pods whose logs may show the cause: the subject itself, or those of it that do not run well."""
    match patient.kind:
        case "pod":
            pod = facts.find(POD, patient.namespace, patient.name)
            return [] if pod is None or is_waiting(pod) else [pod]
        case "job":
            job = next((one for one in jobs(facts) if key_of(one) == (patient.namespace, patient.name)), None)
            return [] if job is None else _troubled(pods_of(facts, job))
        case "node":
            return _troubled(pod for pod in facts.pods if dig(pod, "spec", "nodeName") == patient.name)
        case "cluster":
            return _troubled(facts.pods)
        case _:
            return []


def _troubled(pods: Iterable[Obj]) -> list[Obj]:
    return [pod for pod in pods if not is_waiting(pod) and _has_trouble(pod)]


def _node(facts: DiagnosedCluster, node: Obj) -> Iterator[Verdict]:
    yield from lost_node(facts, node)
    for check in _SOFTWARE:
        yield from _reported(check, facts, node)
    if has_gpus(node):
        yield from gpu_errors(facts, node)
        yield from gpu_use(facts, node=name_of(node))


def _pod(facts: DiagnosedCluster, pod: Obj) -> Iterator[Verdict]:
    if is_waiting(pod):
        yield from _waiting_pod(facts, pod)
        yield from _admission_of(facts, pod)
        return
    node = facts.find(NODE, "", str(dig(pod, "spec", "nodeName") or ""))
    yield from container_ends(facts, pod)
    if node is not None and not has_ended(pod):
        yield from lost_node(facts, node)
    if node is not None and has_gpus(node):
        yield from gpu_errors(facts, node)
    yield from across_sockets(facts, pod)
    if not has_ended(pod):
        yield from gpu_use(facts, pod="/".join(key_of(pod)))
        yield from measured_use(facts, (pod,))


def _waiting_pod(facts: DiagnosedCluster, pod: Obj) -> Iterator[Verdict]:
    found = list(pending_pod(facts, pod))
    yield from found
    if any(isinstance(each, FoundCause) and each.id == "GpusNotAdvertised" for each in found):
        nodes = (node for node in facts.nodes if has_gpus(node))
        yield from _causes(_condensed((each for node in nodes for each in gpu_stack(facts, node)), "nodes"))
    yield from scale_up(facts, pod)


def _admission_of(facts: DiagnosedCluster, pod: Obj) -> Iterator[Verdict]:
    """Of the Workload that belongs to the pod."""
    for workload in facts.owned_by(WORKLOAD, pod):
        if is_unadmitted(workload):
            yield from stuck_workload(facts, workload)


def _job(facts: DiagnosedCluster, job: Obj) -> Iterator[Verdict]:
    yield from queued_job(facts, job)
    yield from job_progress(facts, job)
    pods = pods_of(facts, job)
    for pod in pods:
        yield from _causes(_waiting_pod(facts, pod) if is_waiting(pod) else container_ends(facts, pod))
    yield from measured_use(facts, pods)
    used = {str(dig(pod, "spec", "nodeName") or "") for pod in pods if not has_ended(pod)}
    for node in facts.nodes:
        if name_of(node) in used:
            yield from _causes(chain(lost_node(facts, node), gpu_errors(facts, node) if has_gpus(node) else ()))


def _queue(facts: DiagnosedCluster, patient: Patient) -> Iterator[Verdict] | None:
    """A LocalQueue of the namespace, or else a ClusterQueue."""
    local = facts.find(LOCAL_QUEUE, patient.namespace, patient.name)
    if local is not None:
        return _workloads_of(facts, {key_of(local)})
    if facts.find(CLUSTER_QUEUE, "", patient.name) is None:
        return None
    users = {key_of(one) for one in facts.all(LOCAL_QUEUE) if dig(one, "spec", "clusterQueue") == patient.name}
    return _workloads_of(facts, users)


def _workloads_of(facts: DiagnosedCluster, queues: set[tuple[str, str]]) -> Iterator[Verdict]:
    missing = facts.not_run("queue", "its workloads", WORKLOAD)
    if missing is not None:
        yield missing
        return
    waiting = [
        one
        for one in facts.all(WORKLOAD)
        if (key_of(one)[0], dig(one, "spec", "queueName")) in queues and is_unadmitted(one)
    ]
    for workload in waiting:
        yield from stuck_workload(facts, workload)
    if not waiting:
        yield RuledOut("queue", "no workload of the queue waits for admission")


def _gpu(facts: DiagnosedCluster, uuid: str) -> Iterator[Verdict]:
    nodes = nodes_of_gpu(facts, uuid)
    for node in nodes:
        yield from gpu_errors(facts, node, uuid)
    if not nodes:
        yield NotRun(f"gpu {uuid}", "its errors", "no node, condition or Event names the GPU")
    yield from gpu_use(facts, uuid=uuid)


def _cluster(facts: DiagnosedCluster) -> Iterator[Verdict]:
    """Everything that is wrong; the result has only sums of what works. What is wrong with a node is not said of its
    pods again.
    """
    of_nodes = list(_of_nodes(facts))
    yield from of_nodes
    reported = {(each.subject, each.id) for each in of_nodes if isinstance(each, FoundCause)}
    missing = facts.not_run("cluster", "pods", POD)
    if missing is not None:
        yield missing
    waiting = [pod for pod in facts.pods if is_waiting(pod)]
    yield from _others(waiting)
    broken = [pod for pod in facts.pods if not is_waiting(pod) and _has_trouble(pod)]
    yield from _condensed(_alike(facts, waiting), "pods")
    ended = [
        each
        for pod in broken
        for each in container_ends(facts, pod)
        if not isinstance(each, FoundCause) or (f"node {dig(pod, 'spec', 'nodeName')}", each.id) not in reported
    ]
    yield from _condensed(ended, "pods")
    yield from _condensed((each for job in jobs(facts) for each in job_progress(facts, job)), "jobs")
    queued = (each for job in jobs(facts) for each in queued_job(facts, job))
    unadmitted = (one for one in facts.all(WORKLOAD) if is_unadmitted(one))
    stuck = (each for one in unadmitted for each in stuck_workload(facts, one))
    yield from _condensed(dict.fromkeys(chain(queued, stuck)), "workloads")
    yield from gpu_use(facts)
    yield from measured_use(facts, facts.pods)
    if missing is None:
        fine = len(facts.pods) - len(waiting) - len(broken)
        yield RuledOut("cluster", f"{fine:,} of {len(facts.pods):,} pods run or have ended well")


def _of_nodes(facts: DiagnosedCluster) -> Iterator[Verdict]:
    missing = facts.not_run("cluster", "nodes", NODE)
    if missing is not None:
        yield missing
        return
    found: list[Verdict] = []
    wrong = 0
    for node in facts.nodes:
        own = list(lost_node(facts, node))
        own += (each for check in _SOFTWARE for each in _reported(check, facts, node))
        own += gpu_errors(facts, node) if has_gpus(node) else ()
        wrong += any(isinstance(each, FoundCause) for each in own)
        found += own
    yield from _condensed(found, "nodes")
    yield RuledOut("cluster", f"{len(facts.nodes) - wrong:,} of {len(facts.nodes):,} nodes have no known problem")


def _reported(
    check: Callable[[DiagnosedCluster, Obj], Iterator[Verdict]], facts: DiagnosedCluster, node: Obj
) -> Iterator[Verdict]:
    """Of the software of a node that reports its state: what a lost node last said is neither true nor false."""
    if not is_silent(node):
        yield from check(facts, node)
    elif check is gpu_stack and has_gpus(node):
        yield NotRun(named(node), "its GPU software", "the node does not report any more")


def _condensed(verdicts: Iterable[Verdict], what: str) -> Iterator[Verdict]:
    """The causes, those of many objects once, and each check that has not run once, with the first reason."""
    unchecked: dict[str, list[NotRun]] = {}
    causes: dict[tuple[str, str], list[FoundCause]] = {}
    for each in verdicts:
        if isinstance(each, FoundCause):
            causes.setdefault((each.id, each.what), []).append(each)
        elif isinstance(each, NotRun):
            unchecked.setdefault(each.check, []).append(each)
    for alike in causes.values():
        yield from alike if len(alike) <= _MOST_ALIKE else (_of_many(alike, what),)
    for check, some in unchecked.items():
        count = len({one.subject for one in some})
        yield NotRun(some[0].subject if count == 1 else f"{count:,} {what}", check, some[0].why)


def _others(waiting: list[Obj]) -> Iterator[Verdict]:
    """Pods that wait for no device: only the scheduler knows why."""
    found = [pod for pod in waiting if not device_requests(pod)]
    if found:
        namespace, name = key_of(found[0])
        command = shell_command("shoal why pod/{} -n {}", name, namespace)
        why = f"they request no device of NVIDIA; run {command}"
        yield NotRun(f"{len(found):,} pods", "why they wait", why)


def _of_many(alike: list[FoundCause], what: str) -> FoundCause:
    """With the evidence and the commands of the first one."""
    first, names = alike[0], list(dict.fromkeys(each.subject for each in alike))
    evidence = (*first.evidence, f"the same of {few(names, _MOST_NAMED)}")
    return msgspec.structs.replace(first, subject=f"{len(names):,} {what}", evidence=evidence)


def _alike(facts: DiagnosedCluster, waiting: list[Obj]) -> Iterator[Verdict]:
    """One pod of those that ask alike is judged: the others wait for the same reasons."""
    groups: dict[str, list[Obj]] = {}
    for pod in waiting:
        spec = string_keys(pod.get("spec"))
        asked = [spec.get(field) for field in _ASKING]
        sizes = [each.get("resources") for field in _CONTAINERS for each in maps(spec.get(field))]
        groups.setdefault(repr((asked, sizes)), []).append(pod)
    for pods in groups.values():
        said = [pod for pod in pods if facts.events(pod)]
        for each in _waiting_pod(facts, (said or pods)[0]):
            if isinstance(each, FoundCause) and len(pods) > 1:
                words = f"{len(pods):,} pods that ask alike wait: {few([named(pod) for pod in pods], 4)}"
                yield msgspec.structs.replace(each, evidence=(*each.evidence, words))
            else:
                yield each


def _has_trouble(pod: Obj) -> bool:
    if dig(pod, "status", "phase") == "Failed":
        return True
    for field in ("initContainerStatuses", "containerStatuses"):
        for status in maps(dig(pod, "status", field)):
            if status.get("ready") is not True and (
                dig(status, "state", "waiting") or dig(status, "state", "terminated", "exitCode")
            ):
                return True
    return False


def _causes(verdicts: Iterable[Verdict]) -> Iterator[FoundCause]:
    return (each for each in verdicts if isinstance(each, FoundCause))
