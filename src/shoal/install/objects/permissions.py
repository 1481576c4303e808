"""The objects that let `shoal run` do its work on a cluster: an account, roles for each part, and what binds them.

Made of one table (`data/permissions.py`), a role per part, so that people see what each may do before they apply it and
can leave out what they do not run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from shoal.data.permissions import (
    BESIDE_LEASE,
    CONFIG_MAPS_BESIDE_LEASE,
    ELECTION,
    ELECTION_NAMESPACE,
    EVERY_PART,
    IN_NAMESPACE,
    NAMESPACE,
    NODE_SCALING,
    PARTS,
    WITH_CLOUD,
)
from shoal.data.role_lines import rules

Obj = dict[str, Any]
ACCOUNT = "shoal"
OPERATOR = "shoal-operator"
_SECRETS = "secrets"
_GROUP = "rbac.authorization.k8s.io"
_LABELS = {"app.kubernetes.io/name": "shoal", "app.kubernetes.io/managed-by": "shoal"}


class RoleSubjects(msgspec.Struct, frozen=True):
    """The subject of the bindings, and the namespace of Shoal's own objects."""

    namespace: str = NAMESPACE
    user: str = ""
    """A user or client certificate instead of the service account."""
    account: str = ACCOUNT
    election: tuple[str, str] = (ELECTION_NAMESPACE, "shoal")
    """Namespace and name of the lease."""
    cloud: str = ""
    """Of node scaling. Rights on the machines of a cloud that is not used are not granted."""


def manifests(parts: Sequence[str], grant: RoleSubjects | None = None) -> list[Obj]:
    """In an order in which they can be applied."""
    grant = grant or RoleSubjects()
    found: list[Obj] = [_object("v1", "Namespace", grant.namespace)]
    if not grant.user:
        found.append(_object("v1", "ServiceAccount", grant.account, grant.namespace))
    found += _cluster_wide("shoal", EVERY_PART, grant)
    for part in parts:
        found += _cluster_wide(f"shoal-{part}", PARTS[part], grant)
    if NODE_SCALING in parts and WITH_CLOUD.get(grant.cloud):
        found += _cluster_wide(f"shoal-{NODE_SCALING}-{grant.cloud}", WITH_CLOUD[grant.cloud], grant)
    namespace, lease = grant.election
    found += _inside(namespace, "shoal-election", _about(ELECTION, lease), grant)
    for part in parts:
        found += _beside_lease(part, namespace, f"shoal-{part}", grant)
        if part in IN_NAMESPACE:
            found += _inside(grant.namespace, f"shoal-{part}", IN_NAMESPACE[part], grant)
    return found


def own_permissions(part: str, account: str, namespace: str) -> list[Obj]:
    """An account of its own for a process that runs one part: its permissions in the whole cluster, those in the
    namespace of the process, and its Lease, which has the name of the account."""
    grant = RoleSubjects(namespace, account=account, election=(ELECTION_NAMESPACE, account))
    inside = _inside(namespace, account, IN_NAMESPACE[part], grant) if part in IN_NAMESPACE else ()
    return [
        _object("v1", "ServiceAccount", account, namespace),
        *_cluster_wide(account, (*EVERY_PART, *PARTS[part]), grant),
        *inside,
        *_beside_lease(part, ELECTION_NAMESPACE, account, grant),
        *_inside(ELECTION_NAMESPACE, f"{account}-election", _about(ELECTION, account), grant),
    ]


def observer_permissions(lines: tuple[str, ...], account: str, namespace: str) -> list[Obj]:
    """An account that may do this alone: no Events and no Lease."""
    grant = RoleSubjects(namespace, account=account)
    return [_object("v1", "ServiceAccount", account, namespace), *_cluster_wide(account, lines, grant)]


def further_permissions(lines: tuple[str, ...], name: str, account: str, namespace: str) -> list[Obj]:
    """For an account that exists, in the whole cluster."""
    return list(_cluster_wide(name, lines, RoleSubjects(namespace, account=account)))


def without_secrets(roles: Sequence[Obj]) -> list[Obj]:
    """Where another program maintains the certificate of the webhook, no right on Secrets is needed."""
    return [{**one, "rules": _other_rules(one)} if "rules" in one else one for one in roles]


def _other_rules(role: Obj) -> list[Obj]:
    return [rule for rule in role["rules"] if _SECRETS not in rule["resources"]]


def _about(lines: tuple[str, ...], lease: str) -> tuple[str, ...]:
    return tuple(line.replace(f"={ACCOUNT}", f"={lease}") for line in lines)


def _beside_lease(part: str, namespace: str, name: str, grant: RoleSubjects) -> Iterator[Obj]:
    """The ConfigMaps have no data, so that applying them again keeps what the part has written."""
    if part in BESIDE_LEASE:
        yield from _inside(namespace, f"{name}-reports", BESIDE_LEASE[part], grant)
    for config_map in CONFIG_MAPS_BESIDE_LEASE.get(part, ()):
        yield _object("v1", "ConfigMap", config_map, namespace)


def _cluster_wide(name: str, lines: tuple[str, ...], grant: RoleSubjects) -> Iterator[Obj]:
    yield _rbac("ClusterRole", name, "", rules=rules(lines))
    yield _rbac("ClusterRoleBinding", name, "", **_bound("ClusterRole", name, grant))


def _inside(namespace: str, name: str, lines: tuple[str, ...], grant: RoleSubjects) -> Iterator[Obj]:
    yield _rbac("Role", name, namespace, rules=rules(lines))
    yield _rbac("RoleBinding", name, namespace, **_bound("Role", name, grant))


def _bound(kind: str, name: str, grant: RoleSubjects) -> Obj:
    subject: Obj = {"kind": "ServiceAccount", "name": grant.account, "namespace": grant.namespace}
    if grant.user:
        subject = {"apiGroup": _GROUP, "kind": "User", "name": grant.user}
    return {"roleRef": {"apiGroup": _GROUP, "kind": kind, "name": name}, "subjects": [subject]}


def _rbac(kind: str, name: str, namespace: str, **fields: Any) -> Obj:
    return {**_object(f"{_GROUP}/v1", kind, name, namespace), **fields}


def _object(api_version: str, kind: str, name: str, namespace: str = "") -> Obj:
    meta: Obj = {"name": name, **({"namespace": namespace} if namespace else {}), "labels": dict(_LABELS)}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta}
