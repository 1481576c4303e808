"""Classifies a request: its FlowSchema and its flow.

The schema with the lowest matchingPrecedence that matches counts, of equal ones the first by name, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.request_info import RequestInfo

Obj = Mapping[str, Any]
_ACCOUNTS = "system:serviceaccount:"
_PRECEDENCE = 1000


class Schema(msgspec.Struct, frozen=True):
    name: str
    uid: str
    level: str
    distinguisher: str
    """`ByUser`, `ByNamespace`, or empty: all its requests are one flow."""
    rules: tuple[Obj, ...]

    def matches(self, actor: Actor, asked: RequestInfo) -> bool:
        return any(_rule_matches(rule, actor, asked) for rule in self.rules)

    def flow_of(self, actor: Actor, asked: RequestInfo) -> str:
        if self.distinguisher == "ByUser":
            return actor.name
        return asked.namespace if self.distinguisher == "ByNamespace" else ""


def read_schemas(objects: Iterable[Obj], levels: Iterable[str]) -> tuple[Schema, ...]:
    """In the order in which they are tried. Those of a priority level that does not exist are left out."""
    known = set(levels)
    found = [
        (spec.get("matchingPrecedence", _PRECEDENCE), obj["metadata"]["name"], obj["metadata"].get("uid", ""), spec)
        for obj in objects
        if (spec := obj.get("spec") or {}) and spec["priorityLevelConfiguration"]["name"] in known
    ]
    return tuple(
        Schema(
            name,
            uid,
            spec["priorityLevelConfiguration"]["name"],
            (spec.get("distinguisherMethod") or {}).get("type", ""),
            tuple(spec.get("rules") or ()),
        )
        for _, name, uid, spec in sorted(found, key=lambda one: one[:2])
    )


def _rule_matches(rule: Obj, actor: Actor, asked: RequestInfo) -> bool:
    if not any(_is_subject(subject, actor) for subject in rule.get("subjects") or ()):
        return False
    if not asked.is_resource:
        return any(_path_matches(one, asked) for one in rule.get("nonResourceRules") or ())
    return any(_resource_matches(one, asked) for one in rule.get("resourceRules") or ())


def _is_subject(subject: Obj, actor: Actor) -> bool:
    match subject["kind"]:
        case "User":
            return subject["user"]["name"] in ("*", actor.name)
        case "Group":
            name = subject["group"]["name"]
            return name == "*" or name in actor.groups
        case "ServiceAccount":
            account = subject["serviceAccount"]
            prefix = f"{_ACCOUNTS}{account['namespace']}:"
            return actor.name.startswith(prefix) and account["name"] in ("*", actor.name.removeprefix(prefix))
        case _:
            return False


def _resource_matches(rule: Obj, asked: RequestInfo) -> bool:
    named = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    if not (_has(rule, "verbs", asked.verb) and _has(rule, "resources", named)):
        return False
    if not _has(rule, "apiGroups", asked.group):
        return False
    return _has(rule, "namespaces", asked.namespace) if asked.namespace else bool(rule.get("clusterScope"))


def _has(rule: Obj, field: str, wanted: str) -> bool:
    given: Sequence[str] = rule.get(field) or ()
    return wanted in given or "*" in given


def _path_matches(rule: Obj, asked: RequestInfo) -> bool:
    return _has(rule, "verbs", asked.verb) and any(_covers(one, asked.path) for one in rule["nonResourceURLs"])


def _covers(written: str, path: str) -> bool:
    prefix = written.removesuffix("*")
    return written in ("*", path) or path.startswith(prefix if prefix.endswith("/") else f"{prefix}/")
