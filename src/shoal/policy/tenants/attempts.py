"""What a team must not be able to do, and what it must: each as a request that the server checks without keeping it.

The requests that must succeed show that a refusal of the others is no accident: a team that may do nothing at all is
refused everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

import msgspec

from shoal.policy.advice import Obj
from shoal.policy.tenants.labels import QUOTA
from shoal.policy.tenants.team import GPU, Role

Verb = Literal["get", "create", "patch", "delete"]
AttemptGroup = Literal["controls", "other teams", "cluster", "own limits", "pods"]
_NAME: Final = "shoal-tenant-check"
_IMAGE: Final = "registry.k8s.io/pause:3.10"
_RBAC: Final = "rbac.authorization.k8s.io/v1"


class Attempt(msgspec.Struct, frozen=True):
    id: str
    group: AttemptGroup
    what: str
    verb: Verb
    obj: Obj
    """The object; of a `get` and a `delete` its kind and name."""
    is_allowed: bool = False
    """Whether it must succeed."""
    by: str = "RBAC"
    """What refuses it."""
    fix: str = "shoal tenant apply TEAM"


def attempts(namespace: str, others: Iterable[str], gpus: int, role: Role | None) -> list[Attempt]:
    """`others`: namespaces of other teams. `gpus`: the quota of the team. `role`: None for an account, of which is not
    known what it must be able to do."""
    return [
        *(one for one in _controls(namespace, gpus) if role is not None and (one.verb == "get" or role != "viewer")),
        *(one for other in (*others, "kube-system") for one in _on(other)),
        *_of_cluster(),
        *_own_limits(namespace),
        *_pods(namespace, gpus),
    ]


def _object(version: str, kind: str, name: str, namespace: str = "", **more: Any) -> Obj:
    meta: Obj = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": meta, **more}


def pod(namespace: str, gpus: int = 0, resource: str = GPU, **spec: Any) -> Obj:
    """One that satisfies the level restricted, and asks for GPUs as the admission rules want it."""
    container: Obj = {
        "name": "main",
        "image": _IMAGE,
        "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        **spec.pop("container", {}),
    }
    full: Obj = {
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        **spec,
    }
    if gpus:
        amounts = container["resources"]
        amount = str(gpus)
        container["resources"] = {
            "requests": {**amounts["requests"], resource: amount},
            "limits": {**amounts["limits"], resource: amount},
        }
        full["tolerations"] = [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]
        full["nodeSelector"] = {f"{GPU}.present": "true"}
    return _object("v1", "Pod", _NAME, namespace, spec=full)


def _controls(namespace: str, gpus: int) -> Iterator[Attempt]:
    own = pod(namespace)
    yield Attempt("create-pod", "controls", "create a pod without GPUs", "create", own, is_allowed=True)
    if gpus:
        what = "create a pod with one GPU"
        yield Attempt("create-gpu-pod", "controls", what, "create", pod(namespace, 1), is_allowed=True)
    yield Attempt("read-own-pods", "controls", "read pods of its own", "get", own, is_allowed=True)


def _on(other: str) -> Iterator[Attempt]:
    for plural, kind in (("pods", "Pod"), ("secrets", "Secret"), ("configmaps", "ConfigMap")):
        obj = _object("v1", kind, _NAME, other)
        yield Attempt(f"read-{plural}-{other}", "other teams", f"read {plural} of {other}", "get", obj)
    what = f"create a pod in {other}"
    yield Attempt(f"create-pod-{other}", "other teams", what, "create", pod(other))


def _of_cluster() -> Iterator[Attempt]:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": _NAME}]
    objects: tuple[tuple[str, str, Verb, Obj], ...] = (
        ("create-namespace", "create a namespace", "create", _object("v1", "Namespace", _NAME)),
        (
            "label-node",
            "label a node",
            "patch",
            _object("v1", "Node", _NAME) | {"metadata": {"name": _NAME, "labels": {"shoal.dev/check": "x"}}},
        ),
        (
            "become-admin",
            "bind itself to cluster-admin",
            "create",
            _object(_RBAC, "ClusterRoleBinding", _NAME, roleRef=role, subjects=subjects),
        ),
        (
            "create-queue",
            "create a ClusterQueue",
            "create",
            _object("kueue.x-k8s.io/v1beta2", "ClusterQueue", _NAME, spec={}),
        ),
        (
            "create-priority",
            "create a PriorityClass",
            "create",
            _object("scheduling.k8s.io/v1", "PriorityClass", _NAME, value=1),
        ),
        (
            "read-volumes",
            "read PersistentVolumes of the cluster",
            "get",
            _object("v1", "PersistentVolume", _NAME),
        ),
    )
    for name, what, verb, obj in objects:
        yield Attempt(name, "cluster", what, verb, obj)


def _own_limits(namespace: str) -> Iterator[Attempt]:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": _NAME}]
    open_label = {"pod-security.kubernetes.io/enforce": "privileged"}
    objects: tuple[tuple[str, str, Verb, Obj], ...] = (
        (
            "raise-quota",
            "raise its quota",
            "patch",
            _object("v1", "ResourceQuota", QUOTA, namespace, spec={"hard": {f"requests.{GPU}": "1000"}}),
        ),
        ("delete-quota", "delete its quota", "delete", _object("v1", "ResourceQuota", QUOTA, namespace)),
        ("delete-limits", "delete its LimitRange", "delete", _object("v1", "LimitRange", "team-defaults", namespace)),
        (
            "open-network",
            "delete its NetworkPolicy",
            "delete",
            _object("networking.k8s.io/v1", "NetworkPolicy", "default-deny", namespace),
        ),
        (
            "allow-traffic",
            "create a NetworkPolicy",
            "create",
            _object("networking.k8s.io/v1", "NetworkPolicy", _NAME, namespace, spec={"podSelector": {}}),
        ),
        (
            "open-pod-security",
            "allow privileged pods in its namespace",
            "patch",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": open_label}},
        ),
        (
            "escalate",
            "bind itself to cluster-admin in its namespace",
            "create",
            _object(_RBAC, "RoleBinding", _NAME, namespace, roleRef=role, subjects=subjects),
        ),
    )
    for name, what, verb, obj in objects:
        yield Attempt(name, "own limits", what, verb, obj)


def _pods(namespace: str, gpus: int) -> Iterator[Attempt]:
    security = "Pod Security"
    quota = "its quota"
    rules = "admission rules"
    device = [{"name": "device", "hostPath": {"path": "/dev/nvidia0"}}]
    privileged = {"securityContext": {"privileged": True}}
    visible = {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}
    service = _object("v1", "Service", _NAME, namespace, spec={"type": "LoadBalancer", "ports": [{"port": 80}]})
    enforce = "label the namespace pod-security.kubernetes.io/enforce=restricted"
    admit = "install the admission rules: shoal policy generate | kubectl apply -f -"
    made: tuple[tuple[str, str, Obj, str, str], ...] = (
        ("privileged", "run a privileged pod", pod(namespace, container=privileged), security, enforce),
        ("host-path", "mount a device of the host", pod(namespace, volumes=device), security, enforce),
        ("host-network", "use the network of the host", pod(namespace, hostNetwork=True), security, enforce),
        ("host-pid", "see processes of the host", pod(namespace, hostPID=True), security, enforce),
        ("too-many-gpus", "request more GPUs than its quota", pod(namespace, gpus + 1), quota, ""),
        ("other-devices", "use shared GPUs outside of its quota", pod(namespace, 1, f"{GPU}.shared"), quota, ""),
        (
            "system-priority",
            "use a priority of the system",
            pod(namespace, priorityClassName="system-node-critical"),
            quota,
            "",
        ),
        ("load-balancer", "publish a Service by a load balancer", service, quota, ""),
        (
            "visible-devices",
            "see GPUs that it did not request (NVIDIA_VISIBLE_DEVICES=all)",
            pod(namespace, container=visible),
            rules,
            admit,
        ),
        (
            "runtime-class",
            "use the runtime class nvidia without a GPU",
            pod(namespace, runtimeClassName="nvidia"),
            rules,
            admit,
        ),
    )
    for name, what, obj, by, fix in made:
        yield Attempt(name, "pods", what, "create", obj, by=by, fix=fix or "shoal tenant apply TEAM")
