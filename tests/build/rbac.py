"""Roles and bindings in a line each."""

from __future__ import annotations

from typing import Any

from shoal.data.role_lines import rules
from shoal.embedded.apiserver.calls import Actor

Obj = dict[str, Any]
_GROUP = "rbac.authorization.k8s.io"


def cluster_role(name: str, *lines: str, labels: dict[str, str] | None = None, gathers: str = "") -> Obj:
    obj = _rbac("ClusterRole", name, "", rules=rules(lines))
    if labels:
        obj["metadata"]["labels"] = labels
    if gathers:
        obj["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {gathers: "true"}}]}
    return obj


def role(namespace: str, name: str, *lines: str) -> Obj:
    return _rbac("Role", name, namespace, rules=rules(lines))


def cluster_binding(role_name: str, *subjects: str, name: str = "") -> Obj:
    return _bound("ClusterRoleBinding", name or f"{role_name}-binding", "", f"ClusterRole {role_name}", subjects)


def binding(namespace: str, role_name: str, *subjects: str, name: str = "") -> Obj:
    """`role_name` is `Role NAME` or `ClusterRole NAME`; a subject is `User bob`, `ServiceAccount builder/ci` ..."""
    return _bound("RoleBinding", name or f"{role_name.split()[1]}-binding", namespace, role_name, subjects)


def actor(name: str, *groups: str) -> Actor:
    return Actor(name, (*groups, "system:authenticated"))


def _bound(kind: str, name: str, namespace: str, role_name: str, subjects: tuple[str, ...]) -> Obj:
    role_kind, _, referred = role_name.partition(" ")
    reference = {"apiGroup": _GROUP, "kind": role_kind, "name": referred}
    return _rbac(kind, name, namespace, roleRef=reference, subjects=[_subject(one) for one in subjects])


def _subject(text: str) -> Obj:
    kind, _, name = text.partition(" ")
    if kind != "ServiceAccount":
        return {"apiGroup": _GROUP, "kind": kind, "name": name}
    account, _, namespace = name.partition("/")
    subject = {"kind": kind, "name": account}
    return {**subject, "namespace": namespace} if namespace else subject


def _rbac(kind: str, name: str, namespace: str, **fields: Any) -> Obj:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": f"{_GROUP}/v1", "kind": kind, "metadata": metadata, **fields}
