"""FlowSchemas: which requests belong together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, duplicate, not_allowed, not_supported, required
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.spellings import dns_label_faults, subdomain_faults
from shoal.embedded.apiserver.strategy import Strategy

_METHODS = ("ByNamespace", "ByUser")
_SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_HIGHEST = 10000
_USUAL = 1000


class FlowSchemaStrategy(Strategy):
    has_status = True
    counts_generation = True

    initial_status: Mapping[str, Any] = {}

    def default(self, obj: Obj) -> None:
        spec = obj.setdefault("spec", {})
        spec["matchingPrecedence"] = spec.get("matchingPrecedence") or _USUAL
        obj.setdefault("status", {})

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        spec = obj["spec"]
        _check_precedence(spec["matchingPrecedence"], obj["metadata"].get("name", ""), errors)
        method = spec.get("distinguisherMethod")
        if method is not None and method.get("type") not in _METHODS:
            errors.append(not_supported("spec.distinguisherMethod.type", method.get("type", ""), _METHODS))
        path = "spec.priorityLevelConfiguration.name"
        if name := (spec.get("priorityLevelConfiguration") or {}).get("name"):
            add_faults(errors, path, name, subdomain_faults(name))
        else:
            errors.append(required(path, "must reference a priority level"))
        for place, rule in enumerate(spec.get("rules") or ()):
            _check_rule(rule, f"spec.rules[{place}]", errors)
        return errors

    def validate_status(self, new: Obj, old: Obj) -> list[FieldError]:  # noqa: ARG002 - the signature is the strategy's
        return check_conditions(new)


def check_conditions(obj: Obj) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for place, one in enumerate((obj.get("status") or {}).get("conditions") or ()):
        path, kind = f"status.conditions[{place}].type", one.get("type", "")
        if kind in seen:
            errors.append(duplicate(path, kind))
        seen.add(kind)
        if not kind:
            errors.append(required(path, "must not be empty"))
    return errors


def _check_precedence(value: int, name: str, errors: Errors) -> None:
    path = "spec.matchingPrecedence"
    if value <= 0:
        errors.append(bad_value(path, value, "must be a positive value"))
    if value > _HIGHEST:
        errors.append(bad_value(path, value, f"must not be greater than {_HIGHEST}"))
    if value == 1 and name != "exempt":
        words = "only the schema named 'exempt' may have matchingPrecedence 1"
        errors.append(bad_value(path, value, words))


def _check_rule(rule: Obj, path: str, errors: Errors) -> None:
    subjects, resources, paths = (rule.get(key) or [] for key in ("subjects", "resourceRules", "nonResourceRules"))
    if not subjects:
        errors.append(required(f"{path}.subjects", "subjects must contain at least one value"))
    for place, subject in enumerate(subjects):
        _check_subject(subject, f"{path}.subjects[{place}]", errors)
    if not resources and not paths:
        words = "at least one of resourceRules and nonResourceRules has to be non-empty"
        errors.append(required(path, words))
    for place, one in enumerate(resources):
        _check_resources(one, f"{path}.resourceRules[{place}]", errors)
    for place, one in enumerate(paths):
        here = f"{path}.nonResourceRules[{place}]"
        _check_verbs(one, here, errors)
        _check_list(one, "nonResourceURLs", "nonResourceURLs must contain at least one value", here, errors)
        for position, where in enumerate(one.get("nonResourceURLs") or ()):
            if where != "*" and (fault := _path_fault(where)):
                errors.append(bad_value(f"{here}.nonResourceURLs[{position}]", where, fault))


def _check_subject(subject: Obj, path: str, errors: Errors) -> None:
    kind = subject.get("kind", "")
    if kind not in _SUBJECTS:
        errors.append(not_supported(f"{path}.kind", kind, tuple(_SUBJECTS)))
        return
    for other, key in _SUBJECTS.items():
        held = subject.get(key)
        if other != kind:
            if held is not None:
                words = f"{key} is forbidden when subject kind is not '{other}'"
                errors.append(not_allowed(f"{path}.{key}", words))
        elif held is None:
            errors.append(required(f"{path}.{key}", f"{key} is required when subject kind is '{kind}'"))
        else:
            _check_named(held, kind, f"{path}.{key}", errors)


def _check_named(held: Obj, kind: str, path: str, errors: Errors) -> None:
    name = held.get("name", "")
    if not name:
        errors.append(required(f"{path}.name"))
    if kind != "ServiceAccount":
        return
    if name and name != "*":
        add_faults(errors, f"{path}.name", name, subdomain_faults(name))
    if namespace := held.get("namespace"):
        add_faults(errors, f"{path}.namespace", namespace, dns_label_faults(namespace))
    else:
        errors.append(required(f"{path}.namespace", "must specify namespace for service account"))


_OTHERS = {"apiGroups": "api groups", "nonResourceURLs": "non-resource URLs"}


def _check_list(rule: Obj, key: str, missing: str, path: str, errors: Errors) -> None:
    values = rule.get(key) or []
    if not values:
        errors.append(required(f"{path}.{key}", missing))
    elif len(values) > 1 and "*" in values:
        words = f"if '*' is present, must not specify other {_OTHERS.get(key, key)}"
        errors.append(bad_value(f"{path}.{key}", values, words))


def _check_verbs(rule: Obj, path: str, errors: Errors) -> None:
    verbs = rule.get("verbs") or []
    _check_list(rule, "verbs", "verbs must contain at least one value", path, errors)
    if verbs and "*" not in verbs and not {*verbs} <= {*_VERBS}:
        errors.append(not_supported(f"{path}.verbs", verbs, _VERBS))


def _check_resources(rule: Obj, path: str, errors: Errors) -> None:
    _check_verbs(rule, path, errors)
    _check_list(rule, "apiGroups", "resource rules must supply at least one api group", path, errors)
    _check_list(rule, "resources", "resource rules must supply at least one resource", path, errors)
    namespaces = rule.get("namespaces") or []
    if not namespaces and not rule.get("clusterScope"):
        words = "resource rules that are not cluster scoped must supply at least one namespace"
        errors.append(required(f"{path}.namespaces", words))
    elif "*" in namespaces:
        _check_list(rule, "namespaces", "", path, errors)
    else:
        for place, name in enumerate(namespaces):
            faults = (
                f"each member of this list must be '*' or a DNS-1123 label; {one}" for one in dns_label_faults(name)
            )
            add_faults(errors, f"{path}.namespaces[{place}]", name, faults)


def _path_fault(path: str) -> str:
    if not path:
        return "must not be empty"
    if not path.startswith("/"):
        return "must start with slash"
    if " " in path:
        return "must not contain white-space"
    if "//" in path:
        return "must not contain double slash"
    if path.count("*") > 1 or ("*" in path and not path.endswith("/*")):
        return "wildcard can only do suffix matching"
    return ""
