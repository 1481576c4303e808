"""Matches writes against the rules of a webhook or policy: groups, versions, resources, operations, scope, selectors.

With the match policy Equivalent a rule for one version of a resource also holds for its others; the object is then
shown in the version that the rule names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.admission_request import namespace_of
from shoal.embedded.apiserver.calls import AdmissionAttributes, Call, Operation
from shoal.embedded.apiserver.catalog import ResourceCatalog
from shoal.embedded.apiserver.label_selectors import selects
from shoal.embedded.apiserver.reading import Reader
from shoal.embedded.apiserver.resource import Resource

Rule = Mapping[str, Any]
_NAMESPACES = ("", "namespaces")
GROUP = "admissionregistration.k8s.io"
EXEMPT = frozenset(
    (GROUP, plural)
    for plural in (
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    )
)
"""What configures admission is not itself subject to it: a broken policy can always be taken away."""


class Matcher:
    """Asks whether a write is meant."""

    def __init__(self, catalog: ResourceCatalog, reader: Reader) -> None:
        self._catalog = catalog
        self._reader = reader
        self._equivalents: dict[tuple[Resource, str], list[Resource]] = {}
        self._stamp = -1

    @property
    def stamp(self) -> int:
        """What is served decides; this changes with it."""
        return self._catalog.stamp

    def equivalents(self, call: Call) -> Sequence[Resource]:
        """The other versions and groups in which the same objects are served behind the same subresource."""
        if self._stamp != self.stamp:
            self._stamp = self.stamp
            self._equivalents.clear()
        found = self._equivalents.get((call.resource, call.subresource))
        if found is None:
            found = self._equivalents[call.resource, call.subresource] = self._find_equivalents(call)
        return found

    def _find_equivalents(self, call: Call) -> list[Resource]:
        found = []
        for one in self._catalog.all():
            if one.home == call.resource.home and one is not call.resource:
                if call.subresource and one.subresource(call.subresource) is None:
                    continue
                found.append(one)
        return found

    def may_concern(self, rules: Sequence[Rule], policy: str, call: Call, operation: Operation) -> bool:
        """Whether such a write through this subresource can be meant at all, whatever its name and namespace."""
        faces = [call.resource, *(self.equivalents(call) if policy != "Exact" else ())]
        meant = [rule for rule in rules if _has(rule.get("operations"), operation)]
        return any(_is_door(rule, face, call.subresource) for rule in meant for face in faces)

    def resource_for(self, rules: Sequence[Rule], policy: str, admission: AdmissionAttributes) -> Resource | None:
        """The resource as the first rule that holds names it."""
        call = admission.call
        if any(_holds(rule, call.resource, admission) for rule in rules):
            return call.resource
        if policy != "Exact":
            others = self.equivalents(call)
            for rule in rules:
                for other in others:
                    if _holds(rule, other, admission):
                        return other
        return None

    def matched(self, constraints: Mapping[str, Any], admission: AdmissionAttributes) -> Resource | None:
        """Of the constraints of a policy or binding: the resource as they name it, None if the write is not meant."""
        policy = constraints.get("matchPolicy") or "Equivalent"
        if not self.is_selected(constraints, admission):
            return None
        if self.resource_for(constraints.get("excludeResourceRules") or (), policy, admission) is not None:
            return None
        rules = constraints.get("resourceRules") or ()
        return self.resource_for(rules, policy, admission) if rules else admission.call.resource

    def is_selected(self, selecting: Mapping[str, Any], admission: AdmissionAttributes) -> bool:
        """Whether namespace and object have the labels that are asked for; ApiError when the namespace is not there."""
        wanted = selecting.get("namespaceSelector") or {}
        if wanted.get("matchLabels") or wanted.get("matchExpressions"):
            labels = self._namespace_labels(admission)
            if labels is not None and not selects(wanted, labels):
                return False
        wanted = selecting.get("objectSelector") or {}
        if not (wanted.get("matchLabels") or wanted.get("matchExpressions")):
            return True
        return any(
            obj is not None and selects(wanted, (obj.get("metadata") or {}).get("labels") or {})
            for obj in (admission.obj, admission.old)
        )

    def _namespace_labels(self, admission: AdmissionAttributes) -> Mapping[str, str] | None:
        """None for what is in no namespace: it is never left out."""
        call = admission.call
        is_namespace = call.resource.home == _NAMESPACES
        name = namespace_of(admission)
        if not name and not is_namespace:
            return None
        if is_namespace and not call.subresource and admission.operation in ("CREATE", "UPDATE"):
            found = admission.obj
        else:
            found = self._reader.get("", "namespaces", "", name)
        if found is None:
            raise status.not_found("namespaces", "", name)
        labels: Mapping[str, str] = (found.get("metadata") or {}).get("labels") or {}
        return labels


def _has(allowed: Iterable[str] | None, value: str) -> bool:
    listed = allowed or ()
    return value in listed or "*" in listed


def _is_door(rule: Rule, resource: Resource, subresource: str) -> bool:
    if not _has(rule.get("apiGroups"), resource.group) or not _has(rule.get("apiVersions"), resource.version):
        return False
    for one in rule.get("resources") or ():
        plural, _, listed = one.partition("/")
        if plural in ("*", resource.plural) and listed in ("*", subresource):
            return True
    return False


def _holds(rule: Rule, resource: Resource, admission: AdmissionAttributes) -> bool:
    if not _is_door(rule, resource, admission.call.subresource) or not _has(
        rule.get("operations"), admission.operation
    ):
        return False
    names = rule.get("resourceNames")
    if names and admission.name not in names:
        return False
    scope = rule.get("scope") or "*"
    if scope == "*":
        return True
    is_namespaced = resource.home != _NAMESPACES and bool(namespace_of(admission))
    return is_namespaced == (scope == "Namespaced")
