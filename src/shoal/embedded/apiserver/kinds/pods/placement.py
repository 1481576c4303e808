"""Checks of what says where a pod may run: node and pod affinity, tolerations, topology spread."""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import bad_value, duplicate, not_allowed, not_supported, required
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.labels import check_selector
from shoal.embedded.apiserver.kinds.spellings import (
    dns_label_faults,
    label_key_faults,
    label_value_faults,
    subdomain_faults,
)

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_INCLUSIONS = ("Honor", "Ignore")
_WEIGHT_WORDS = "must be in the range 1-100"
_NOT_POSITIVE = "must be greater than zero"


def check_effect(effect: str, path: str, errors: Errors) -> None:
    if effect not in _EFFECTS:
        errors.append(not_supported(path, effect, _EFFECTS))


def check_tolerations(tolerations: list[Obj], path: str, errors: Errors) -> None:
    for place, one in enumerate(tolerations):
        key, operator = one.get("key", ""), one.get("operator", "")
        value, effect = one.get("value", ""), one.get("effect", "")
        here = f"{path}[{place}]"
        if key and (faults := label_key_faults(key)):
            add_faults(errors, f"{here}.key", key, faults)
        if not key and operator != "Exists":
            words = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            errors.append(bad_value(f"{here}.operator", operator, words))
        if "tolerationSeconds" in one and effect != "NoExecute":
            words = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(bad_value(f"{here}.effect", effect, words))
        if operator in ("", "Equal"):
            if faults := label_value_faults(value):
                errors.append(bad_value(f"{here}.operator", value, ";".join(faults)))
        elif operator == "Exists":
            if value:
                errors.append(bad_value(f"{here}.operator", value, "value must be empty when `operator` is 'Exists'"))
        else:
            errors.append(not_supported(f"{here}.operator", operator, ("Equal", "Exists")))
        if effect:
            check_effect(effect, f"{here}.effect", errors)


def check_affinity(affinity: Obj, path: str, errors: Errors) -> None:
    if node := affinity.get("nodeAffinity"):
        _check_node_affinity(node, f"{path}.nodeAffinity", errors)
    for key in ("podAffinity", "podAntiAffinity"):
        if found := affinity.get(key):
            _check_pod_affinity(found, f"{path}.{key}", errors)


def _check_node_affinity(node: Obj, path: str, errors: Errors) -> None:
    if (wanted := node.get(_REQUIRED)) is not None:
        check_node_selector(wanted, f"{path}.{_REQUIRED}", errors)
    for place, one in enumerate(node.get(_PREFERRED) or ()):
        here = f"{path}.{_PREFERRED}[{place}]"
        if not 1 <= one.get("weight", 0) <= 100:
            errors.append(bad_value(f"{here}.weight", one.get("weight", 0), _WEIGHT_WORDS))
        _check_node_term(one.get("preference") or {}, f"{here}.preference", errors)


def check_node_selector(selector: Obj, path: str, errors: Errors) -> None:
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        errors.append(required(f"{path}.nodeSelectorTerms", "must have at least one node selector term"))
        return
    for place, term in enumerate(terms):
        _check_node_term(term, f"{path}.nodeSelectorTerms[{place}]", errors)


def _check_node_term(term: Obj, path: str, errors: Errors) -> None:
    for place, one in enumerate(term.get("matchExpressions") or ()):
        _check_node_requirement(one, f"{path}.matchExpressions[{place}]", errors)
    for place, one in enumerate(term.get("matchFields") or ()):
        _check_field_requirement(one, f"{path}.matchFields[{place}]", errors)


def _check_node_requirement(one: Obj, path: str, errors: Errors) -> None:
    operator, values, key = one.get("operator", ""), one.get("values") or [], one.get("key", "")
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            words = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(not_allowed(f"{path}.values", words))
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            errors.append(required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"))
    else:
        errors.append(bad_value(f"{path}.operator", operator, "not a valid selector operator"))
    add_faults(errors, f"{path}.key", key, label_key_faults(key))


def _check_field_requirement(one: Obj, path: str, errors: Errors) -> None:
    operator, values, key = one.get("operator", ""), one.get("values") or [], one.get("key", "")
    if operator not in ("In", "NotIn"):
        errors.append(bad_value(f"{path}.operator", operator, "not a valid selector operator"))
    elif len(values) != 1:
        words = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(required(f"{path}.values", words))
    if key != "metadata.name":
        errors.append(bad_value(f"{path}.key", key, "not a valid field selector key"))
        return
    for place, value in enumerate(values):
        add_faults(errors, f"{path}.values[{place}]", value, subdomain_faults(value))


def _check_pod_affinity(affinity: Obj, path: str, errors: Errors) -> None:
    for place, term in enumerate(affinity.get(_REQUIRED) or ()):
        _check_pod_term(term, f"{path}.{_REQUIRED}[{place}]", errors)
    for place, one in enumerate(affinity.get(_PREFERRED) or ()):
        here = f"{path}.{_PREFERRED}[{place}]"
        if not 1 <= one.get("weight", 0) <= 100:
            errors.append(bad_value(f"{here}.weight", one.get("weight", 0), _WEIGHT_WORDS))
        _check_pod_term(one.get("podAffinityTerm") or {}, f"{here}.podAffinityTerm", errors)


def _check_pod_term(term: Obj, path: str, errors: Errors) -> None:
    selector = term.get("labelSelector")
    check_selector(selector, f"{path}.labelSelector", errors)
    check_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector", errors)
    for name in term.get("namespaces") or ():
        add_faults(errors, f"{path}.namespace", name, dns_label_faults(name))
    _check_match_keys(term, "matchLabelKeys", path, errors)
    _check_match_keys(term, "mismatchLabelKeys", path, errors)
    key = term.get("topologyKey", "")
    if not key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    add_faults(errors, f"{path}.topologyKey", key, label_key_faults(key))


def _check_match_keys(one: Obj, field: str, path: str, errors: Errors) -> None:
    keys = one.get(field)
    if not keys:
        return
    if one.get("labelSelector") is None:
        errors.append(not_allowed(f"{path}.{field}", "must not be specified when labelSelector is not set"))
    for place, key in enumerate(keys):
        add_faults(errors, f"{path}.{field}[{place}]", key, label_key_faults(key))


def _spread_of(constraint: Obj) -> tuple[str, str]:
    return constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")


def check_spread(constraints: list[Obj], path: str, errors: Errors) -> None:
    for place, one in enumerate(constraints):
        here = f"{path}[{place}]"
        key, action = _spread_of(one)
        if one.get("maxSkew", 0) <= 0:
            errors.append(bad_value(f"{here}.maxSkew", one.get("maxSkew", 0), _NOT_POSITIVE))
        if not key:
            errors.append(required(f"{here}.topologyKey", "can not be empty"))
        else:
            add_faults(errors, f"{here}.topologyKey", key, label_key_faults(key))
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            allowed = ("DoNotSchedule", "ScheduleAnyway")
            errors.append(not_supported(f"{here}.whenUnsatisfiable", action, allowed))
        # The earlier one is named, once for each that comes later.
        later = [other for other in constraints[place + 1 :] if _spread_of(other) == (key, action)]
        errors += [duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}") for _ in later]
        _check_spread_rest(one, action, here, errors)


def _check_spread_rest(one: Obj, action: str, path: str, errors: Errors) -> None:
    if (least := one.get("minDomains")) is not None:
        if least <= 0:
            errors.append(bad_value(f"{path}.minDomains", least, _NOT_POSITIVE))
        if action != "DoNotSchedule":
            words = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            errors.append(bad_value(f"{path}.minDomains", least, words))
    for key in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if (policy := one.get(key)) is not None and policy not in _INCLUSIONS:
            errors.append(not_supported(f"{path}.{key}", policy, _INCLUSIONS))
    _check_match_keys(one, "matchLabelKeys", path, errors)
    check_selector(one.get("labelSelector"), f"{path}.labelSelector", errors)
