"""The objects of smoke tests, in a namespace of their own; their pods satisfy the Pod Security level restricted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from shoal.policy.advice import Obj
from shoal.policy.object_set import key_of
from shoal.policy.pod_templates import GPU

NAMESPACE: Final = "shoal-smoke-test"
MANAGED_BY: Final = {"app.kubernetes.io/managed-by": "shoal-check"}
PAUSE_IMAGE: Final = "registry.k8s.io/pause:3.10"
_USER: Final = 65532


def is_of_smoke_tests(obj: Obj) -> bool:
    """Whether it is the namespace of the tests or in it: it may end long after the tests."""
    namespace, name = key_of(obj)
    return (namespace or name) == NAMESPACE and (bool(namespace) or obj.get("kind") == "Namespace")


def namespace_object() -> Obj:
    labels = {**MANAGED_BY, "pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}


def pod_object(name: str, image: str, resources: Mapping[str, int], command: Sequence[str] = ()) -> Obj:
    spec = _pod_spec(image, resources, command)
    return _object("v1", "Pod", name, {**spec, "restartPolicy": "Never"})


def deployment_object(name: str, resource: str) -> Obj:
    """Without replicas."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": _pod_spec(PAUSE_IMAGE, {resource: 1}, ())}
    return _object(
        "apps/v1", "Deployment", name, {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    )


def job_object(name: str, resource: str) -> Obj:
    """One that tolerates the loss of its pod: a disruption is not counted as a failure."""
    ignored = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    # Simulated kubelets end pods of Jobs after ten seconds, if nothing else is said.
    meta = {"annotations": {"shoal.dev/run-for": "30m"}}
    spec = {**_pod_spec(PAUSE_IMAGE, {resource: 1}, ()), "restartPolicy": "Never"}
    fields = {
        "backoffLimit": 0,
        "podFailurePolicy": {"rules": [ignored]},
        "podReplacementPolicy": "Failed",
        "template": {"metadata": meta, "spec": spec},
    }
    return _object("batch/v1", "Job", name, fields)


def indexed_job_object(name: str, image: str, resource: str, pods: int) -> Obj:
    """One pod for each index, all at once."""
    spec = {**_pod_spec(image, {resource: 1}, ()), "restartPolicy": "Never"}
    fields = {
        "completionMode": "Indexed",
        "completions": pods,
        "parallelism": pods,
        "backoffLimit": 0,
        "template": {"spec": spec},
    }
    return _object("batch/v1", "Job", name, fields)


def pytorch_job_object(name: str, image: str, resource: str, workers: int) -> Obj:
    """A master, and the workers beside it; the image starts its own training."""
    spec = _pod_spec(image, {resource: 1}, ())
    spec["containers"][0]["name"] = "pytorch"
    part: dict[str, Any] = {"restartPolicy": "Never", "template": {"spec": spec}}
    replicas = {"Master": {"replicas": 1, **part}}
    if workers:
        replicas["Worker"] = {"replicas": workers, **part}
    policy = {"backoffLimit": 0, "cleanPodPolicy": "None"}
    return _object("kubeflow.org/v1", "PyTorchJob", name, {"pytorchReplicaSpecs": replicas, "runPolicy": policy})


def _pod_spec(image: str, resources: Mapping[str, int], command: Sequence[str]) -> Obj:
    container: Obj = {
        "name": "main",
        "image": image,
        "resources": {
            "requests": {"cpu": "100m", "memory": "256Mi"},
            "limits": {name: str(amount) for name, amount in resources.items()},
        },
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    if command:
        container["command"] = list(command)
    return {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "securityContext": {"runAsNonRoot": True, "runAsUser": _USER, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "tolerations": [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}],
    }


def _object(version: str, kind: str, name: str, spec: Any) -> Obj:
    meta = {"name": name, "namespace": NAMESPACE, "labels": MANAGED_BY}
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec}
