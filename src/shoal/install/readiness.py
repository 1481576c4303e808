"""Decides from objects whether a stage of an installation is ready, and what blocks it, with the node and the fix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Obj = dict[str, Any]
_STUCK = {
    "ImagePullBackOff": "check the name of the image, image.repository and imagePullSecrets",
    "ErrImagePull": "check the name of the image, image.repository and imagePullSecrets",
    "InvalidImageName": "correct image.repository and image.tag",
    "CrashLoopBackOff": "read its log: kubectl logs -n {namespace} {pod} --previous",
    "CreateContainerConfigError": "create the ConfigMap or Secret that it names",
    "CreateContainerError": "read its events: kubectl describe pod -n {namespace} {pod}",
    "RunContainerError": "read its events: kubectl describe pod -n {namespace} {pod}",
}
_MOST_LETTERS = 200


def waits_for(obj: Obj) -> str:
    """What an applied object lacks, in a few words; empty if it is ready."""
    check = _CHECKS.get(obj.get("kind", ""))
    return "" if check is None else check(obj)


def _deployment(obj: Obj) -> str:
    status, wanted = obj.get("status") or {}, obj["spec"].get("replicas", 1)
    if status.get("observedGeneration", 0) < obj["metadata"].get("generation", 0):
        return "its controller has not seen the change"
    updated, available = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
    if updated < wanted or available < wanted or status.get("replicas", 0) > wanted:
        return f"{min(updated, available)} of {wanted} pods ready"
    return ""


def _daemon_set(obj: Obj) -> str:
    status = obj.get("status") or {}
    if status.get("observedGeneration", 0) < obj["metadata"].get("generation", 0):
        return "its controller has not seen the change"
    wanted, ready = status.get("desiredNumberScheduled", 0), status.get("numberReady", 0)
    return f"{ready} of {wanted} nodes ready" if ready < wanted else ""


def _definition(obj: Obj) -> str:
    conditions = {one["type"]: one for one in (obj.get("status") or {}).get("conditions") or ()}
    if conditions.get("Established", {}).get("status") == "True":
        return ""
    names = conditions.get("NamesAccepted", {})
    return str(names.get("message", "")) if names.get("status") == "False" else "not established"


def _certificate(obj: Obj) -> str:
    for one in (obj.get("status") or {}).get("conditions") or ():
        if one.get("type") == "Ready":
            return "" if one.get("status") == "True" else f"{one.get('reason', '')}: {one.get('message', '')}"
    return "cert-manager has not issued it; see kubectl describe certificate"


def _policy(obj: Obj) -> str:
    status = obj.get("status") or {}
    state = status.get("state", "")
    if (status.get("conditions") or [{}])[0].get("observedGeneration", 0) not in (0, obj["metadata"].get("generation")):
        return "the operator has not seen the change"
    if state == "ready":
        return ""
    told = [one for one in status.get("conditions") or () if one.get("type") == "Error" and one.get("status") == "True"]
    if told:
        return f"{told[0].get('reason', '')}: {told[0].get('message', '')}"
    if state:
        return f"state {state}"
    return "the operator has not reported a state; its log: kubectl logs -A -l app.kubernetes.io/component=operator"


_CHECKS = {
    "Deployment": _deployment,
    "DaemonSet": _daemon_set,
    "CustomResourceDefinition": _definition,
    "ClusterPolicy": _policy,
    "Certificate": _certificate,
}


def has_no_gpus(policy: Obj) -> bool:
    """Whether the operator has found no node with GPUs. Right after its start, the discovery has not labelled them."""
    conditions = (policy.get("status") or {}).get("conditions") or ()
    return any(one.get("reason") in ("NFDLabelsMissing", "NoGPUNodes") for one in conditions)


def blocked_pods(pods: Iterable[Obj], stage: str) -> Iterator[str]:
    """One line for each pod that does not start: stage, node, reason, next step."""
    for pod in pods:
        meta, status = pod["metadata"], pod.get("status") or {}
        node = (pod.get("spec") or {}).get("nodeName", "")
        where = f"{stage}: pod {meta['name']}" + (f" on node {node}" if node else "")
        if status.get("phase") == "Failed" and status.get("reason"):
            fix = "free space there; the pod is replaced" if status["reason"] == "Evicted" else "read its events"
            yield f"{where}: {status['reason']}: {_short(status.get('message', ''))}; {fix}"
            continue
        unscheduled = _unscheduled(status)
        if unscheduled:
            yield f"{where}: not scheduled: {_short(unscheduled)}; kubectl describe pod -n {meta['namespace']} {meta['name']}"  # noqa: E501
            continue
        for one in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
            waiting = (one.get("state") or {}).get("waiting") or {}
            fix = _STUCK.get(waiting.get("reason", ""), "")
            if fix:
                told = _short(waiting.get("message", "")) or f"image {one.get('image', '')}"
                named = fix.format(namespace=meta["namespace"], pod=meta["name"])
                yield f"{where}: {waiting['reason']}: {told}; {named}"
                break


def _unscheduled(status: Mapping[str, Any]) -> str:
    for one in status.get("conditions") or ():
        if one.get("type") == "PodScheduled" and one.get("status") == "False":
            return str(one.get("message", ""))
    return ""


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _MOST_LETTERS else f"{plain[: _MOST_LETTERS - 3]}..."
