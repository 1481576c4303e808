"""The permissions that an installation needs, and the commands that grant the missing ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from shoal.install.kinds import installed_kind
from shoal.install.preflight.facts import Finding, Right

Obj = dict[str, Any]
_WRITING = ("create", "delete", "get", "patch")
_READ = ("list", "watch")
EVERYTHING = Right("*", "*", "*")
"""Of a cluster administrator: then no other right is asked for."""
_SERVICE_ACCOUNT = "system:serviceaccount:"
_FACTS = (
    ("nodes", ""),
    ("namespaces", ""),
    ("deployments", "apps"),
    ("daemonsets", "apps"),
    ("customresourcedefinitions", "apiextensions.k8s.io"),
)
"""What the preflight reads in the whole cluster."""


def needed_rights(objects: Iterable[Obj]) -> list[Right]:
    """To apply and remove the objects, to wait for them, and to grant the roles among them: RBAC lets a user grant what
    the user has, or with the verbs `escalate` and `bind` anything."""
    found: set[Right] = {Right(plural, group, verb) for plural, group in _FACTS for verb in ("get", "list")}
    for obj in objects:
        kind = installed_kind(obj["apiVersion"], obj["kind"])
        namespace = obj["metadata"].get("namespace", "") if kind.is_namespaced else ""
        found |= {Right(kind.plural, kind.group, verb, namespace) for verb in _WRITING}
        if kind.name in ("ClusterRole", "Role"):
            found |= {Right(kind.plural, kind.group, verb, namespace) for verb in ("escalate", "bind")}
        if kind.name in ("Deployment", "ClusterPolicy"):
            found |= {Right(kind.plural, kind.group, verb, namespace) for verb in _READ}
    return sorted(found)


def observing_rights() -> list[Right]:
    """Of `shoal install check`: nothing but reading."""
    plurals = (*_FACTS, ("pods", ""))
    return sorted(Right(plural, group, verb) for plural, group in plurals for verb in ("get", "list"))


def right_findings(denied: Sequence[Right], user: str) -> Iterator[Finding]:
    """One for each resource, with the commands that grant what is missing."""
    for (resource, group, namespace), rights in groupby(
        sorted(denied), key=lambda right: (right.resource, right.group, right.namespace)
    ):
        verbs = ",".join(sorted({right.verb for right in rights}))
        whole = f"{resource}.{group}" if group else resource
        inside = f" in the namespace {namespace}" if namespace else ""
        yield Finding(
            "error",
            "permissions",
            f"{user or 'the user'} may not {verbs} {whole}{inside}",
            f"a cluster administrator grants it with: {_commands(whole, verbs, namespace, user)}",
        )


def _commands(resource: str, verbs: str, namespace: str, user: str) -> str:
    role = "role" if namespace else "clusterrole"
    inside = f" -n {namespace}" if namespace else ""
    name = f"shoal-install-{resource.replace('.', '-')}"
    return (
        f"kubectl create {role} {name} --verb={verbs} --resource={resource}{inside} && "
        f"kubectl create {role}binding {name} --{role}={name} {_subject(user)}{inside}"
    )


def _subject(user: str) -> str:
    if user.startswith(_SERVICE_ACCOUNT):
        return f"--serviceaccount={user.removeprefix(_SERVICE_ACCOUNT)}"
    return f"--user={user or 'USER'}"
