"""The default roles and bindings as objects, made of the tables of people, components and controllers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import msgspec

from shoal.data.role_lines import rules
from shoal.embedded.apiserver.bootstrap import controller_roles, people_roles
from shoal.embedded.apiserver.bootstrap.seed import Seed, seed
from shoal.embedded.apiserver.resource import Obj, Ref
from shoal.embedded.apiserver.security import component_roles
from shoal.embedded.apiserver.security.aggregation import gathered_rules

_GROUP = "rbac.authorization.k8s.io"
_VERSION = f"{_GROUP}/v1"
_CLUSTER_ROLE = (_VERSION, "ClusterRole", "clusterroles")
_CLUSTER_BINDING = (_VERSION, "ClusterRoleBinding", "clusterrolebindings")
_ROLE = (_VERSION, "Role", "roles")
_BINDING = (_VERSION, "RoleBinding", "rolebindings")
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_KEPT_UP = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
_CONTROLLER = "system:controller:"


def default_roles() -> Iterator[Seed]:
    for ref, encoded in _encoded():
        yield Seed(ref, msgspec.json.decode(encoded))


@cache
def _encoded() -> tuple[tuple[Ref, bytes], ...]:
    """Kept, since all clusters of a process begin with the same roles; encoded, since each changes its own objects."""
    return tuple((one.ref, msgspec.json.encode(one.obj)) for one in _made())


def _made() -> Iterator[Seed]:
    yield from _cluster_roles()
    bindings = {**people_roles.BINDINGS, **component_roles.BINDINGS}
    for name in controller_roles.ROLES:
        bindings[_CONTROLLER + name] = (f"ServiceAccount {name}/kube-system",)
    for name, subjects in bindings.items():
        yield _bound(_CLUSTER_BINDING, name, "", "ClusterRole", subjects)
    for (namespace, name), lines in component_roles.NAMESPACE_ROLES.items():
        yield seed(_ROLE, name, namespace, labels=_LABELS, annotations=_KEPT_UP, rules=rules(lines))
    for (namespace, name), subjects in component_roles.NAMESPACE_BINDINGS.items():
        yield _bound(_BINDING, name, namespace, "Role", subjects)


def _cluster_roles() -> Iterator[Seed]:
    tables = {**people_roles.ROLES, **component_roles.ROLES}
    tables |= {_CONTROLLER + name: lines for name, lines in controller_roles.ROLES.items()}
    made = [_cluster_role(name, {"rules": rules(lines)}) for name, lines in tables.items()]
    # Narrowest first: the wider ones gather it.
    for name in ("view", "edit", "admin"):
        rule: Obj = {"clusterRoleSelectors": [{"matchLabels": {people_roles.GATHERED[name]: "true"}}]}
        role = _cluster_role(name, {"aggregationRule": rule})
        role.obj["rules"] = gathered_rules(role.obj, [one.obj for one in made])
        made.append(role)
    yield from made


def _cluster_role(name: str, fields: Obj) -> Seed:
    label = people_roles.LABELS.get(name)
    labels = {**_LABELS, label: "true"} if label else _LABELS
    return seed(_CLUSTER_ROLE, name, labels=labels, annotations=_KEPT_UP, **fields)


def _bound(kind: tuple[str, str, str], name: str, namespace: str, role: str, subjects: tuple[str, ...]) -> Seed:
    fields: Obj = {"roleRef": {"apiGroup": _GROUP, "kind": role, "name": name}}
    if subjects:
        fields["subjects"] = [_subject(one) for one in subjects]
    return seed(kind, name, namespace, labels=_LABELS, annotations=_KEPT_UP, **fields)


def _subject(text: str) -> Obj:
    kind, _, name = text.partition(" ")
    if kind == "ServiceAccount":
        account, _, namespace = name.partition("/")
        return {"kind": kind, "name": account, "namespace": namespace}
    return {"apiGroup": _GROUP, "kind": kind, "name": name}
