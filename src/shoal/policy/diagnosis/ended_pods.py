"""Why the containers of a pod ended or do not start, from their states, the status of the pod and its log."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.policy.advice import Obj
from shoal.policy.diagnosis.cluster_facts import DiagnosedCluster, named, text_of
from shoal.policy.diagnosis.log_patterns import SHARED_MEMORY, SHARED_MEMORY_FIX
from shoal.policy.diagnosis.log_reading import causes_in, read_log
from shoal.policy.diagnosis.missing_objects import (
    missing_in,
    missing_in_events,
    pull_secrets_words,
    unchecked_secrets,
)
from shoal.policy.diagnosis.verdicts import FoundCause, NotRun, RuledOut, Verdict, shell_command
from shoal.policy.fields import dig, maps
from shoal.policy.object_set import key_of

_IMAGE_REASONS = frozenset({"ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull"})
_CREATE_REASONS = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError"})
_BEING_CREATED = frozenset({"ContainerCreating", "PodInitializing"})
_QUIET = _BEING_CREATED | {"", "CrashLoopBackOff"}
_SIGBUS = 128 + 7
_OOM = "OOMKilled"
_PULLING = (
    (("not found", "manifest unknown", "name unknown"), "the registry has no such image or tag", "correct the image"),
    (
        ("unauthorized", "authentication required", "denied", "forbidden", "no basic auth"),
        "the registry refuses access",
        "name a valid Secret in imagePullSecrets",
    ),
    (("toomanyrequests", "rate limit"), "the registry limits the pulls", "log in to it, or use a mirror"),
    (
        ("no such host", "timeout", "connection refused", "i/o timeout", "tls:", "x509"),
        "the node does not reach the registry",
        "check DNS, proxy and certificates of the node",
    ),
    (("no space left", "disk"), "the disk of the node is full", "free space on the node"),
)
_POD_REASONS = {
    "UnexpectedAdmissionError": "the kubelet could not allocate the devices; often a device became unhealthy",
    "TopologyAffinityError": "no NUMA node of the machine has all devices that the pod asks for",
    "OutOfnvidia.com/gpu": "the kubelet had fewer free GPUs than the scheduler assumed",
    "Evicted": "the kubelet evicted the pod because the node lacked a resource",
    "NodeLost": "the node of the pod was lost",
    "NodeShutdown": "the node of the pod was shut down",
    "Terminated": "the node of the pod was shut down",
    "DeadlineExceeded": "the pod ran longer than activeDeadlineSeconds",
}


def container_ends(facts: DiagnosedCluster, pod: Obj) -> Iterator[Verdict]:
    subject = named(pod)
    yield from _pod_reason(pod, subject)
    statuses = [each for field in ("initContainerStatuses", "containerStatuses") for each in _statuses(pod, field)]
    found: list[FoundCause] = []
    for status in statuses:
        found += _container(facts, pod, status, subject)
    if any(dig(status, "state", "waiting", "reason") in _BEING_CREATED for status in statuses):
        found += missing_in_events(facts, pod)
        yield from unchecked_secrets(facts, pod)
    logs = facts.logs.get("/".join(key_of(pod)))
    shown = causes_in(logs, subject) if logs is not None else []
    known = {cause.id for cause in found}
    yield from found
    yield from (cause for cause in shown if cause.id not in known)
    if not statuses and dig(pod, "spec", "nodeName"):
        yield NotRun(subject, "how its containers started and ended", "the status of the pod lists no containers")
    elif statuses and not found and not shown:
        yield RuledOut(subject, "no container was ended for memory, failed to start, or left a known message")
    if logs is None:
        namespace, name = key_of(pod)
        command = shell_command("kubectl logs {} -n {} --all-containers | shoal doctor --log -", name, namespace)
        yield NotRun(subject, "its log", f"no log is given; run {command}")
    elif not shown:
        yield from read_log(logs, f"log of {subject}")


def _statuses(pod: Obj, field: str) -> list[Obj]:
    return maps(dig(pod, "status", field))


def _pod_reason(pod: Obj, subject: str) -> Iterator[FoundCause]:
    reason = str(dig(pod, "status", "reason") or "")
    if dig(pod, "status", "phase") == "Failed" and reason in _POD_REASONS:
        evidence = (text_of(f"status.reason {reason}: {dig(pod, 'status', 'message') or ''}"),)
        fix = "start the pod again; its controller does so within its limit of retries"
        if reason == "TopologyAffinityError":
            fix = "ask for devices that fit one NUMA node, or set the policy of the Topology Manager to best-effort"
        identifier = "OutOfDevices" if reason.startswith("OutOf") else reason
        yield FoundCause(identifier, subject, _POD_REASONS[reason], fix, evidence)


def _container(facts: DiagnosedCluster, pod: Obj, status: Obj, subject: str) -> Iterator[FoundCause]:
    name = str(status.get("name") or "")
    where = f"{subject}, container {name}"
    waiting = dig(status, "state", "waiting") or {}
    reason, message = str(dig(waiting, "reason") or ""), str(dig(waiting, "message") or "")
    if reason in _IMAGE_REASONS:
        yield _image(pod, where, f"{reason}: {status.get('image') or ''}: {message}", pull_secrets_words(facts, pod))
    elif reason in _CREATE_REASONS:
        yield missing_in(message, where, key_of(pod)[0]) or _creation(where, reason, message)
    elif reason not in _QUIET:
        yield FoundCause(
            "ContainerDoesNotStart", where, f"the container waits: {reason}", "see the message", (text_of(message),)
        )
    for state in ("state", "lastState"):
        ended = dig(status, state, "terminated")
        if isinstance(ended, dict) and (ended.get("exitCode") or ended.get("signal")):
            yield from _end(pod, where, name, ended)
            return


def _end(pod: Obj, where: str, name: str, ended: Obj) -> Iterator[FoundCause]:
    message = str(ended.get("message") or "")
    found = causes_in(message, where)
    container = _named_container(pod, name)
    if ended.get("reason") == _OOM:
        limit = dig(container, "resources", "limits", "memory")
        words = f"the memory limit of {limit}" if limit else "its memory; it has no limit, so the node had no more"
        yield FoundCause(
            "ContainerOutOfMemory",
            where,
            f"the container exceeded {words}, and the kernel ended it (this is memory of the machine, not of a GPU)",
            "raise resources.limits.memory, or load less data at a time; a volume in memory counts too",
            (f"terminated: {_OOM}, exit code {ended.get('exitCode')}",),
            (shell_command("kubectl top pod {} -n {} --containers", key_of(pod)[1], key_of(pod)[0]),),
        )
    elif ended.get("exitCode") == _SIGBUS and not any(cause.id == "SharedMemoryTooSmall" for cause in found):
        mounted = _has_shared_memory(pod, container)
        shm = "is a volume that is too small" if mounted else "has 64 MiB, because no volume is mounted there"
        yield FoundCause(
            "SharedMemoryTooSmall",
            where,
            f"the container ended with SIGBUS; {SHARED_MEMORY} {shm}",
            SHARED_MEMORY_FIX,
            (f"exit code {_SIGBUS} (SIGBUS)",),
        )
    yield from found


def _image(pod: Obj, where: str, message: str, told: tuple[str, ...]) -> FoundCause:
    lower = message.lower()
    why, fix = next(
        ((why, fix) for words, why, fix in _PULLING if any(word in lower for word in words)),
        ("the image cannot be pulled", "check its name and the access of the node to the registry"),
    )
    if lower.startswith("invalidimagename"):
        why, fix = "the name of the image is not valid", "correct the image"
    namespace, name = key_of(pod)
    return FoundCause(
        "ImagePull",
        where,
        why,
        fix,
        (text_of(message), *told),
        (shell_command("kubectl describe pod {} -n {}", name, namespace),),
    )


def _creation(where: str, reason: str, message: str) -> FoundCause:
    known = next(iter(causes_in(message, where)), None)
    if known is not None:
        return known
    lower = message.lower()
    if "runtime handler" in lower or "no runtime for" in lower:
        what = "the container runtime of the node has no handler of that name: the NVIDIA container toolkit is missing"
        return FoundCause("RuntimeHandlerMissing", where, what, "repair the toolkit on the node", (text_of(message),))
    if "unresolvable cdi devices" in lower:
        what = "the node has no CDI specification of the devices"
        fix = "restart the container toolkit and the device plugin of the node"
        return FoundCause("DeviceSpecMissing", where, what, fix, (text_of(message),))
    return FoundCause(
        "ContainerDoesNotStart",
        where,
        f"the container is not created: {reason}",
        "see the message",
        (text_of(message),),
    )


def _named_container(pod: Obj, name: str) -> Obj:
    for field in ("containers", "initContainers"):
        for container in maps(dig(pod, "spec", field)):
            if container.get("name") == name:
                return container
    return {}


def _has_shared_memory(pod: Obj, container: Obj) -> bool:
    mounted = {
        mount.get("name") for mount in maps(container.get("volumeMounts")) if mount.get("mountPath") == SHARED_MEMORY
    }
    return any(volume.get("name") in mounted for volume in maps(dig(pod, "spec", "volumes")))
