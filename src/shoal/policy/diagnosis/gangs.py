"""Why the pods of a job do not all run: some wait while others hold GPUs, pods are refused, or retries are used up."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.policy.advice import Obj
from shoal.policy.diagnosis.cluster_facts import (
    DiagnosedCluster,
    device_requests,
    event_words,
    few,
    has_ended,
    is_waiting,
    labels_of,
    name_of,
    named,
    text_of,
)
from shoal.policy.diagnosis.node_states import resumption
from shoal.policy.diagnosis.verdicts import FoundCause, NotRun, RuledOut, Verdict, shell_command
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import EVENT, JOB, JOB_SET, POD, RAY_CLUSTER, RAY_JOB, TRAIN_JOB, TRAINING_JOBS, VOLCANO_JOB
from shoal.policy.object_set import key_of

JOB_KINDS = (JOB, *TRAINING_JOBS, JOB_SET, TRAIN_JOB, RAY_JOB, RAY_CLUSTER, VOLCANO_JOB)
_GROUP_KEYS = ("scheduling.x-k8s.io/pod-group", "scheduling.k8s.io/group-name", "pod-group-name")
_LOST = frozenset({"NodeLost", "NodeShutdown", "Terminated", "Shutdown", "Evicted"})
_NODE_EVENTS = ("TaintManagerEviction", "NodeNotReady")
_GANG_LABELS = ("kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/pod-group-name")


def jobs(facts: DiagnosedCluster) -> list[Obj]:
    return [job for kind in JOB_KINDS for job in facts.all(kind)]


def pods_of(facts: DiagnosedCluster, job: Obj) -> list[Obj]:
    """By their labels, or by their owner."""
    found = {key_of(pod): pod for pod in (*facts.labelled_for(job), *facts.owned_by(POD, job))}
    return [found[key] for key in sorted(found)]


def job_progress(facts: DiagnosedCluster, job: Obj) -> Iterator[Verdict]:
    subject = named(job)
    missing = facts.not_run(subject, "the pods of the job", POD)
    if missing is not None and not _wanted(job):
        yield missing
        return
    pods = [pod for pod in pods_of(facts, job) if not dig(pod, "metadata", "deletionTimestamp")]
    yield from _failed(facts, job, pods)
    if dig(job, "spec", "suspend") or dig(job, "spec", "runPolicy", "suspend"):
        yield NotRun(subject, "whether all pods run", "the job is suspended: ask about its queue")
        return
    yield from _creation(facts, job, pods)
    yield from _partial(facts, job, pods)


def _wanted(job: Obj) -> int:
    """The number of pods that run at one time; 0 if it is not known."""
    spec = string_keys(job.get("spec"))
    replicas = [group for field, group in spec.items() if field.endswith("ReplicaSpecs") and isinstance(group, dict)]
    if replicas:
        return sum(
            _number(one.get("replicas"), 1) for group in replicas for one in group.values() if isinstance(one, dict)
        )
    if job.get("kind") == "Job" and isinstance(spec.get("tasks"), list):
        return sum(_number(task.get("replicas"), 1) for task in maps(spec["tasks"]))
    if job.get("kind") == "Job":
        parallel, completions = _number(spec.get("parallelism"), 1), spec.get("completions")
        left = _number(completions, parallel) - _number(dig(job, "status", "succeeded"), 0)
        return min(parallel, left) if isinstance(completions, int) else parallel
    if job.get("kind") == "JobSet":
        return sum(
            _number(one.get("replicas"), 1) * _number(dig(one, "template", "spec", "parallelism"), 1)
            for one in maps(spec.get("replicatedJobs"))
        )
    return 0


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) and value >= 0 else default


def _partial(facts: DiagnosedCluster, job: Obj, pods: list[Obj]) -> Iterator[Verdict]:
    subject = named(job)
    waiting = [pod for pod in pods if is_waiting(pod)]
    running = [pod for pod in pods if dig(pod, "spec", "nodeName") and not has_ended(pod)]
    wanted = max(_wanted(job), len(waiting) + len(running))
    ended = len(pods) - len(waiting) - len(running)
    if waiting and running:
        held = sum(sum(device_requests(pod).values()) for pod in running)
        evidence = [
            f"{len(running)} of {wanted} pods have a node and hold {held} devices",
            f"waiting: {few([name_of(pod) for pod in waiting])}",
        ]
        evidence += [event_words(event) for event in _pod_events(facts, waiting[0])]
        is_gang = any(_group_of(pod) for pod in pods)
        fix = "make room for the waiting pods, or lower the minimum of the group"
        if not is_gang:
            evidence.append("its pods belong to no group, so a scheduler places them one by one")
            fix = "schedule the job as a gang (a queue of Kueue, a PodGroup), so that it takes all GPUs or none"
        what = "a part of the gang runs and waits for the rest: it holds GPUs without progress"
        commands = (
            shell_command("shoal why job/{} -n {}", name_of(job), key_of(job)[0]),
            shell_command("shoal doctor pod {} -n {}", name_of(waiting[0]), key_of(job)[0]),
        )
        yield FoundCause("PartialGang", subject, what, fix, tuple(evidence), commands)
    elif running and len(running) + ended >= wanted:
        yield RuledOut(subject, f"all of its {wanted} pods have a node")
    elif not pods and not facts.is_known(POD):
        yield NotRun(subject, "whether a part of the gang runs", facts.why_unknown(POD))
    elif not waiting:
        yield RuledOut(subject, "no pod of the job waits beside others that run")


def _group_of(pod: Obj) -> str:
    annotations = string_keys(dig(pod, "metadata", "annotations"))
    keys = (*_GROUP_KEYS, "scheduling.volcano.sh/group-name", "scheduling.k8s.io/group-name", *_GANG_LABELS)
    found = next((str(source[key]) for source in (labels_of(pod), annotations) for key in keys if key in source), "")
    return found or str(dig(pod, "spec", "schedulingGroup", "podGroupName") or "")


def _pod_events(facts: DiagnosedCluster, pod: Obj) -> list[Obj]:
    return [event for event in facts.events(pod) if event.get("reason") == "FailedScheduling"][-1:]


def _creation(facts: DiagnosedCluster, job: Obj, pods: list[Obj]) -> Iterator[Verdict]:
    namespace, name = key_of(job)
    refused = [event for event in facts.events(job) if event.get("reason") in ("FailedCreate", "FailedCreatePod")]
    if refused and len(pods) < max(_wanted(job), 1):
        message = str(refused[-1].get("message") or "")
        is_quota = "exceeded quota" in message
        what = (
            "a ResourceQuota refuses the pods of the job" if is_quota else "the API server refuses the pods of the job"
        )
        fix = "ask for less, or raise the quota" if is_quota else "correct what the message names"
        command = (
            shell_command("kubectl describe resourcequota -n {}", namespace)
            if is_quota
            else shell_command("kubectl describe {} {} -n {}", str(job.get("kind")).lower(), name, namespace)
        )
        yield FoundCause("PodsRefused", named(job), what, fix, (event_words(refused[-1]),), (command,))
    elif not facts.is_known(EVENT):
        yield NotRun(named(job), "whether its pods are refused", facts.why_unknown(EVENT))
    else:
        yield RuledOut(named(job), "no Event says that pods of the job are refused")


def _failed(facts: DiagnosedCluster, job: Obj, pods: list[Obj]) -> Iterator[Verdict]:
    """After the failure of a node: whether the job goes on."""
    lost = [pod for pod in pods if str(dig(pod, "status", "reason") or "") in _LOST or _was_disrupted(pod)]
    condition = next(
        (
            one
            for one in maps(dig(job, "status", "conditions"))
            if one.get("type") == "Failed" and one.get("status") == "True"
        ),
        None,
    )
    limit = dig(
        job,
        "spec",
        "backoffLimit",
    )
    if limit is None:
        limit = dig(job, "spec", "runPolicy", "backoffLimit")
    if condition is None:
        if lost:
            yield RuledOut(named(job), f"the job goes on after the loss of {few([name_of(pod) for pod in lost])}")
        return
    evidence = [text_of(f"Failed: {condition.get('reason') or ''}: {condition.get('message') or ''}")]
    deleted = [] if lost else _evictions(facts, job, pods)
    if lost or deleted:
        evidence += [
            f"{name_of(pod)} was lost with its node ({dig(pod, 'status', 'reason') or 'DisruptionTarget'})"
            for pod in lost[:4]
        ]
        evidence += [f"{dig(event, 'involvedObject', 'name')}: {event_words(event)}" for event in deleted[:4]]
        evidence += [resumption(pod) for pod in lost[:1]]
        retries = "the default" if limit is None else str(limit)
        what = f"the job failed after the loss of a node: its limit of retries is {retries}"
        fix = (
            "raise backoffLimit, ignore DisruptionTarget in podFailurePolicy, use restartPolicy OnFailure, and resume"
            " from a checkpoint on a volume"
        )
        yield FoundCause(
            "JobLostWithNode",
            named(job),
            what,
            fix,
            tuple(evidence),
            (shell_command("kubectl get pods -n {} -o wide", key_of(job)[0]),),
        )
        return
    what = "the job has failed" + (f" (backoffLimit {limit})" if limit is not None else "")
    fix = "see why its last pod ended, correct that, and create the job again"
    commands = tuple(
        shell_command("shoal doctor pod {} -n {}", name_of(pod), key_of(job)[0])
        for pod in pods
        if dig(pod, "status", "phase") == "Failed"
    )[:2]
    yield FoundCause("JobFailed", named(job), what, fix, tuple(evidence), commands)


def _evictions(facts: DiagnosedCluster, job: Obj, pods: list[Obj]) -> list[Obj]:
    """Events about pods of the job that do not exist any more: the control plane deletes the pods of a lost node."""
    namespace, name = key_of(job)
    there = {name_of(pod) for pod in pods}
    found = []
    for event in facts.events_of("Pod"):
        about = string_keys(event.get("involvedObject"))
        pod = str(about.get("name") or "")
        is_own = about.get("namespace") == namespace and pod.rpartition("-")[0] == name and pod not in there
        if is_own and event.get("reason") in _NODE_EVENTS:
            found.append(event)
    return found


def _was_disrupted(pod: Obj) -> bool:
    return has_ended(pod) and any(
        one.get("type") == "DisruptionTarget" and one.get("status") == "True"
        for one in maps(dig(pod, "status", "conditions"))
    )
