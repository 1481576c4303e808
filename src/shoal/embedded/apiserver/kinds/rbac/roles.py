"""Roles and ClusterRoles: rules that can be meant."""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, required
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj
from shoal.embedded.apiserver.kinds.labels import check_selector
from shoal.embedded.apiserver.names import path_segment_fault
from shoal.embedded.apiserver.strategy import Strategy


class RoleStrategy(Strategy):
    counts_generation = False
    creates_on_update = True

    def __init__(self, *, is_namespaced: bool) -> None:
        self._is_namespaced = is_namespaced

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        for place, rule in enumerate(obj.get("rules") or ()):
            _check_rule(rule, f"rules[{place}]", errors, is_namespaced=self._is_namespaced)
        if (gathered := obj.get("aggregationRule")) is not None and not self._is_namespaced:
            path = "aggregationRule.clusterRoleSelectors"
            selectors = gathered.get("clusterRoleSelectors") or []
            if not selectors:
                words = "at least one clusterRoleSelector required if aggregationRule is non-nil"
                errors.append(required(path, words))
            for place, selector in enumerate(selectors):
                before = len(errors)
                check_selector(selector, f"{path}[{place}]", errors)
                if len(errors) > before:
                    errors.append(bad_value(f"{path}[{place}]", None, "invalid label selector."))
        return errors

    def name_fault(self, name: str, is_prefix: bool) -> str:
        return path_segment_fault(name, is_prefix)


def _check_rule(rule: Obj, path: str, errors: Errors, *, is_namespaced: bool) -> None:
    if not rule.get("verbs"):
        errors.append(required(f"{path}.verbs", "verbs must contain at least one value"))
    resources, names = rule.get("resources") or [], rule.get("resourceNames") or []
    if paths := rule.get("nonResourceURLs"):
        if is_namespaced:
            words = "namespaced rules cannot apply to non-resource URLs"
            errors.append(bad_value(f"{path}.nonResourceURLs", paths, words))
        if rule.get("apiGroups") or resources or names:
            words = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(bad_value(f"{path}.nonResourceURLs", paths, words))
        return
    if not rule.get("apiGroups"):
        errors.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not resources:
        errors.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
