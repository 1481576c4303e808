"""Role-based access control: what roles bound to a user, a group or a service account allow.

Rules only ever add; so the first that allows decides, and its binding is the reason. Bindings are read once per change
of any RBAC object and kept per actor and namespace, and so are verdicts: a controller that asks the same a thousand
times a second pays for a look-up. Requests that a user can vary without limit are not kept: refusals, long names, and
namespaces without bindings, where the cluster-wide permissions apply.

Rejected: keeping verdicts for a fixed time, as API servers do with remote authorizers. A revoked right would outlive
its revocation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.field_errors import shown
from shoal.embedded.apiserver.reading import Reader
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.security.aggregation import gathered_rules
from shoal.embedded.apiserver.security.authorize import UserPermissions
from shoal.embedded.apiserver.security.rules import PolicyRule, read_rules
from shoal.embedded.apiserver.security.verdict import AccessDecision
from shoal.embedded.apiserver.status import ApiError, not_found

GROUP = "rbac.authorization.k8s.io"
SUPERUSERS = "system:masters"
_KINDS = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
_ALLOWED = AccessDecision(True)
_MOST_VERDICTS = 20_000
_MOST_GRANTS = 10_000
_KEPT_LETTERS = 300
"""Of the names in a question whose answer is kept."""
Obj = dict[str, Any]
Who = tuple[str, tuple[str, ...]]


class BindingGrant(msgspec.Struct, frozen=True):
    """The permissions of one binding, or why it has none."""

    source: str
    rules: tuple[PolicyRule, ...] = ()
    fault: str = ""


class Rbac:
    """Decides by the objects a reader sees; everything kept is dropped when one of them changes."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._stamps: tuple[int, ...] = ()
        self._roles: dict[tuple[str, str], tuple[PolicyRule, ...]] = {}
        self._grants: dict[tuple[Who, str], tuple[BindingGrant, ...]] = {}
        self._verdicts: dict[tuple[Who, RequestInfo], AccessDecision] = {}

    def allows(self, actor: Actor, asked: RequestInfo) -> AccessDecision:
        if SUPERUSERS in actor.groups:
            return _ALLOWED
        self._follow()
        key = ((actor.name, actor.groups), asked)
        found = self._verdicts.get(key)
        if found is None:
            found = self._decide(actor, asked)
            if found.allowed and _is_short(asked):
                if len(self._verdicts) >= _MOST_VERDICTS:
                    self._verdicts.clear()
                self._verdicts[key] = found
        return found

    def held(self, actor: Actor, namespace: str) -> UserPermissions:
        self._follow()
        grants = self._granted(actor, namespace)
        rules = tuple(rule for grant in grants for rule in grant.rules)
        return UserPermissions(rules, tuple(dict.fromkeys(grant.fault for grant in grants if grant.fault)))

    def rules_of(self, reference: dict[str, str], namespace: str) -> tuple[PolicyRule, ...]:
        self._follow()
        kind, name = reference["kind"], reference["name"]
        home = namespace if kind == "Role" else ""
        found = self._roles.get((home, name))
        if found is not None:
            return found
        role = self._reader.get(GROUP, f"{kind.lower()}s", home, name)
        if role is None:
            raise not_found(kind.lower(), GROUP, name)
        written = role.get("rules")
        if role.get("aggregationRule"):
            written = gathered_rules(role, self._reader.all(GROUP, "clusterroles"))
        return self._roles.setdefault((home, name), read_rules(written))

    def _decide(self, actor: Actor, asked: RequestInfo) -> AccessDecision:
        grants = self._granted(actor, asked.namespace)
        for grant in grants:
            if any(rule.allows(asked) for rule in grant.rules):
                return AccessDecision(True, f"RBAC: allowed by {grant.source}")
        faults = list(dict.fromkeys(grant.fault for grant in grants if grant.fault))
        return AccessDecision(False, f"RBAC: {aggregate(faults)}" if faults else "")

    def _granted(self, actor: Actor, namespace: str) -> tuple[BindingGrant, ...]:
        if namespace and not any(True for _ in self._reader.all(GROUP, "rolebindings", namespace)):
            namespace = ""
        key = ((actor.name, actor.groups), namespace)
        found = self._grants.get(key)
        if found is None:
            if len(self._grants) >= _MOST_GRANTS:
                self._grants.clear()
            found = self._grants[key] = tuple(self._bound(actor, namespace))
        return found

    def _bound(self, actor: Actor, namespace: str) -> Iterator[BindingGrant]:
        yield from self._through(self._reader.all(GROUP, "clusterrolebindings"), actor, "")
        if namespace:
            yield from self._through(self._reader.all(GROUP, "rolebindings", namespace), actor, namespace)

    def _through(self, bindings: Iterable[Obj], actor: Actor, namespace: str) -> Iterator[BindingGrant]:
        for binding in bindings:
            subject = next((one for one in binding.get("subjects") or () if _is(one, actor, namespace)), None)
            if subject is not None:
                yield self._grant(binding["roleRef"], namespace, _source(binding, subject, namespace))

    def _grant(self, reference: dict[str, str], namespace: str, source: str) -> BindingGrant:
        try:
            return BindingGrant(source, self.rules_of(reference, namespace))
        except ApiError as error:
            return BindingGrant(source, fault=error.message)

    def _follow(self) -> None:
        stamp = self._reader.stamp
        stamps = tuple(stamp(GROUP, kind) for kind in _KINDS)
        if stamps != self._stamps:
            self._stamps = stamps
            self._roles.clear()
            self._grants.clear()
            self._verdicts.clear()


def _is_short(asked: RequestInfo) -> bool:
    return sum(map(len, (asked.name, asked.namespace, asked.path, asked.resource, asked.subresource))) <= _KEPT_LETTERS


def aggregate(faults: list[str]) -> str:
    """Several faults in one text, as Kubernetes lists them."""
    return faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"


def _is(subject: Obj, actor: Actor, namespace: str) -> bool:
    match subject["kind"]:
        case "User":
            return bool(subject["name"] == actor.name)
        case "Group":
            return subject["name"] in actor.groups
        case "ServiceAccount":
            home = subject.get("namespace") or namespace
            return bool(home) and actor.name == f"system:serviceaccount:{home}:{subject['name']}"
        case _:
            return False


def _source(binding: Obj, subject: Obj, namespace: str) -> str:
    name, reference = binding["metadata"]["name"], binding["roleRef"]
    who = subject["name"]
    if subject["kind"] == "ServiceAccount":
        who = f"{who}/{subject.get('namespace') or namespace}"
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    bound = f"{name}/{namespace}" if namespace else name
    return f"{kind} {shown(bound)} of {reference['kind']} {shown(reference['name'])} to {subject['kind']} {shown(who)}"
