"""Policy rules of RBAC, read once and asked often; and what it means for one rule to cover another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from shoal.embedded.apiserver.request_info import RequestInfo

ALL = "*"


class PolicyRule(msgspec.Struct, frozen=True):
    """Verbs on resources of groups, or on paths; with names, only on objects of these names."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def allows(self, asked: RequestInfo) -> bool:
        if ALL not in self.verbs and asked.verb not in self.verbs:
            return False
        if not asked.is_resource:
            return any(_path_covers(path, asked.path) for path in self.paths)
        if ALL not in self.groups and asked.group not in self.groups:
            return False
        if self.names and asked.name not in self.names:
            return False
        return _resource_allowed(self.resources, asked.resource, asked.subresource)

    def covers(self, other: PolicyRule) -> bool:
        """Whether this rule allows everything that the other allows."""
        if not (_has_all(self.verbs, other.verbs) and _has_all(self.groups, other.groups)):
            return False
        if self.names and not (other.names and set(other.names) <= set(self.names)):
            return False
        resources = all(_resource_allowed(self.resources, *_split(one)) for one in other.resources)
        return resources and all(any(_path_covers(own, path) for own in self.paths) for path in other.paths)

    def text(self) -> str:
        parts = {
            "APIGroups": self.groups,
            "Resources": self.resources,
            "NonResourceURLs": self.paths,
            "ResourceNames": self.names,
            "Verbs": self.verbs,
        }
        return "{" + ", ".join(f"{key}:{quoted(values)}" for key, values in parts.items() if values) + "}"

    def to_api(self) -> dict[str, Any]:
        found: dict[str, Any] = {"verbs": list(self.verbs)}
        for key, values in (
            ("apiGroups", self.groups),
            ("resources", self.resources),
            ("resourceNames", self.names),
            ("nonResourceURLs", self.paths),
        ):
            if values:
                found[key] = list(values)
        return found


FULL_AUTHORITY = (PolicyRule((ALL,), (ALL,), (ALL,)), PolicyRule((ALL,), paths=(ALL,)))


def read_rules(written: Iterable[dict[str, Any]] | None) -> tuple[PolicyRule, ...]:
    return tuple(
        PolicyRule(
            tuple(one.get("verbs") or ()),
            tuple(one.get("apiGroups") or ()),
            tuple(one.get("resources") or ()),
            tuple(one.get("resourceNames") or ()),
            tuple(one.get("nonResourceURLs") or ()),
        )
        for one in written or ()
    )


def missing(owned: Sequence[PolicyRule], wanted: Iterable[PolicyRule]) -> list[PolicyRule]:
    """What of the wanted rules no owned one covers, taken apart and joined again by resource."""
    lacking = [single for rule in wanted for single in _singles(rule) if not any(own.covers(single) for own in owned)]
    return _joined(lacking)


def quoted(values: Iterable[str]) -> str:
    """A list as Kubernetes prints one: `["get" "list"]`."""
    return "[" + " ".join(f'"{value}"' for value in values) + "]"


def _singles(rule: PolicyRule) -> Iterable[PolicyRule]:
    for group in rule.groups:
        for resource in rule.resources:
            for verb in rule.verbs:
                for name in rule.names or ("",):
                    yield PolicyRule((verb,), (group,), (resource,), (name,) if name else ())
    for path in rule.paths:
        for verb in rule.verbs:
            yield PolicyRule((verb,), paths=(path,))


def _joined(rules: Iterable[PolicyRule]) -> list[PolicyRule]:
    verbs: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    joined: list[PolicyRule] = []
    for rule in rules:
        if rule.paths:
            joined.append(rule)
            continue
        known = verbs.setdefault((rule.groups, rule.resources, rule.names), [])
        known += [verb for verb in rule.verbs if verb not in known]
    return joined + [PolicyRule(tuple(found), *key) for key, found in verbs.items()]


def _has_all(own: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return ALL in own or set(wanted) <= set(own)


def _split(resource: str) -> tuple[str, str]:
    plural, _, subresource = resource.partition("/")
    return plural, subresource


def _resource_allowed(own: tuple[str, ...], plural: str, subresource: str) -> bool:
    if ALL in own:
        return True
    if not subresource:
        return plural in own
    return f"{plural}/{subresource}" in own or f"*/{subresource}" in own


def _path_covers(pattern: str, path: str) -> bool:
    return pattern in (ALL, path) or (pattern.endswith(ALL) and path.startswith(pattern.rstrip(ALL)))
