"""Checks the rules of webhooks and policies: operations, resources and selectors."""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import bad_value, duplicate, not_supported, required
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.labels import check_selector
from shoal.embedded.apiserver.kinds.spellings import path_segment_faults

FAILURE_POLICIES = ("Fail", "Ignore")
MATCH_POLICIES = ("Equivalent", "Exact")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")


def default_rules(rules: list[Obj]) -> None:
    for rule in rules:
        rule.setdefault("scope", "*")


_MUTATING = ("*", "CONNECT", "CREATE", "UPDATE")


def default_match(match: Obj) -> None:
    """Of a policy's matchConstraints and a binding's matchResources."""
    match.setdefault("matchPolicy", "Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    default_rules(match.get("resourceRules") or [])
    default_rules(match.get("excludeResourceRules") or [])


def check_match(match: Obj, path: str, errors: Errors) -> None:
    policy = match.get("matchPolicy")
    if policy is None:
        errors.append(required(f"{path}.matchPolicy"))
    elif policy not in MATCH_POLICIES:
        errors.append(not_supported(f"{path}.matchPolicy", policy, MATCH_POLICIES))
    for key in ("namespaceSelector", "objectSelector"):
        check_selector(match.get(key), f"{path}.{key}", errors)
    for key in ("resourceRules", "excludeResourceRules"):
        for place, rule in enumerate(match.get(key) or ()):
            here, names = f"{path}.{key}[{place}]", rule.get("resourceNames") or []
            for position, name in enumerate(names):
                where = f"{here}.resourceNames[{position}]"
                add_faults(errors, where, name, path_segment_faults(name))
                if name in names[:position]:
                    errors.append(duplicate(where, name))
            check_rule(rule, here, errors)


def check_mutated(match: Obj, path: str, errors: Errors) -> None:
    """Of what mutates: nothing of an object that goes can be changed."""
    for rule in match.get("resourceRules") or ():
        for one in rule.get("operations") or ():
            if one not in _MUTATING:
                errors.append(not_supported(f"{path}.resourceRules.operations", one, _MUTATING))


def check_rule(rule: Obj, path: str, errors: Errors) -> None:
    operations = rule.get("operations") or []
    _check_list(operations, "operations", "operations", path, errors)
    for place, one in enumerate(operations):
        if one not in _OPERATIONS:
            errors.append(not_supported(f"{path}.operations[{place}]", one, _OPERATIONS))
    _check_list(rule.get("apiGroups") or [], "apiGroups", "API groups", path, errors)
    versions = rule.get("apiVersions") or []
    _check_list(versions, "apiVersions", "API versions", path, errors)
    errors.extend(required(f"{path}.apiVersions[{place}]") for place, one in enumerate(versions) if not one)
    _check_resources(rule.get("resources") or [], f"{path}.resources", errors)
    scope = rule.get("scope")
    if scope is not None and scope not in _SCOPES:
        errors.append(not_supported(f"{path}.scope", scope, _SCOPES))


def _check_list(values: list[str], key: str, named: str, path: str, errors: Errors) -> None:
    if not values:
        errors.append(required(f"{path}.{key}"))
    if len(values) > 1 and "*" in values:
        words = f"if '*' is present, must not specify other {named}"
        errors.append(bad_value(f"{path}.{key}", values, words))


def _check_resources(resources: list[str], path: str, errors: Errors) -> None:
    if not resources:
        errors.append(required(path))
    whole: set[str] = set()
    anywhere: set[str] = set()
    has_plain = False
    for place, one in enumerate(resources):
        here = f"{path}[{place}]"
        if not one:
            errors.append(required(here))
            continue
        resource, slash, below = one.partition("/")
        if not slash:
            has_plain = one != "*"
            continue
        if resource in whole:
            errors.append(bad_value(here, one, f"if '{resource}/*' is present, must not specify {one}"))
        if below in anywhere:
            errors.append(bad_value(here, one, f"if '*/{below}' is present, must not specify {one}"))
        if below == "*":
            whole.add(resource)
        if resource == "*":
            anywhere.add(below)
    if len(resources) > 1 and "*/*" in resources:
        errors.append(bad_value(path, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and has_plain:
        words = "if '*' is present, must not specify other resources without subresources"
        errors.append(bad_value(path, resources, words))
