"""Checks bindings of admission policies: where they apply, and with which parameters."""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, duplicate, not_allowed, not_supported, required
from shoal.embedded.apiserver.kinds.admission.rules import check_match, check_mutated, default_match
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.labels import check_selector
from shoal.embedded.apiserver.kinds.spellings import path_segment_faults, subdomain_faults
from shoal.embedded.apiserver.strategy import Strategy

_ACTIONS = ("Audit", "Deny", "Warn")
_NOT_BOTH = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and "
    "headers serves no purpose)"
)
_EXCLUSIVE = "name and selector are mutually exclusive"


class PolicyBindingStrategy(Strategy):
    counts_generation = True
    needs_version = True

    def __init__(self, *, mutates: bool = False) -> None:
        self._mutates = mutates

    def default(self, obj: Obj) -> None:
        spec = obj.setdefault("spec", {})
        if (match := spec.get("matchResources")) is not None:
            default_match(match)

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        spec = obj["spec"]
        if name := spec.get("policyName"):
            add_faults(errors, "spec.policyName", name, subdomain_faults(name))
        else:
            errors.append(required("spec.policyName"))
        if (reference := spec.get("paramRef")) is not None:
            _check_reference(reference, "spec.paramRef", errors)
        if (match := spec.get("matchResources")) is not None:
            check_match(match, "spec.matchResources", errors)
            if self._mutates:
                check_mutated(match, "spec.matchResources", errors)
        if not self._mutates:
            _check_actions(spec.get("validationActions") or [], "spec.validationActions", errors)
        return errors


def _check_reference(reference: Obj, path: str, errors: Errors) -> None:
    name, selector = reference.get("name", ""), reference.get("selector")
    if name:
        add_faults(errors, f"{path}.name", name, path_segment_faults(name))
    check_selector(selector, f"{path}.selector", errors)
    if name and selector is not None:
        errors.extend(not_allowed(f"{path}.{key}", _EXCLUSIVE) for key in ("name", "selector"))
    if not name and selector is None:
        errors.append(required(path, "one of name or selector must be specified"))
    action = reference.get("parameterNotFoundAction")
    if not action:
        errors.append(required(f"{path}.parameterNotFoundAction"))
    elif action not in ("Allow", "Deny"):
        errors.append(not_supported(f"{path}.parameterNotFoundAction", action, ("Deny", "Allow")))


def _check_actions(actions: list[str], path: str, errors: Errors) -> None:
    for place, one in enumerate(actions):
        if one not in _ACTIONS:
            errors.append(not_supported(f"{path}[{place}]", one, _ACTIONS))
        if one in actions[:place]:
            errors.append(duplicate(f"{path}[{place}]", one))
    if "Deny" in actions and "Warn" in actions:
        errors.append(bad_value(path, actions, _NOT_BOTH))
    if not actions:
        errors.append(required(path, "at least one validation action is required"))
