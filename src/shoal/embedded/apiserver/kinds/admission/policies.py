"""ValidatingAdmissionPolicies and MutatingAdmissionPolicies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, duplicate, not_supported, required
from shoal.embedded.apiserver.kinds.admission.expressions import (
    check_expression,
    check_match_conditions,
    expression_fault,
    variables_kind,
    visible,
)
from shoal.embedded.apiserver.kinds.admission.rules import FAILURE_POLICIES, check_match, check_mutated, default_match
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.spellings import dns_1035_label_faults, label_key_faults, subdomain_faults
from shoal.embedded.apiserver.strategy import Strategy

_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
    "let", "loop", "package", "namespace", "return", "var", "void", "while",
})  # fmt: skip
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_EITHER = "validations or auditAnnotations must contain at least one item"
_MOST_ANNOTATIONS, _LONGEST_ANNOTATION = 20, 5 * 1024
_PATCHES = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
_RESULTS = {"ApplyConfiguration": ("Object",), "JSONPatch": ("list(JSONPatch)",)}


class PolicyStrategy(Strategy):
    """What both kinds of policies share."""

    counts_generation = True
    needs_version = True
    mutates = False

    def default(self, obj: Obj) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("failurePolicy", "Fail")
        if (match := spec.get("matchConstraints")) is not None:
            default_match(match)

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        spec = obj["spec"]
        policy, match = spec.get("failurePolicy"), spec.get("matchConstraints")
        if policy not in FAILURE_POLICIES:
            errors.append(not_supported("spec.failurePolicy", policy, FAILURE_POLICIES))
        if (kind := spec.get("paramKind")) is not None:
            _check_param_kind(kind, "spec.paramKind", errors)
        if match is None:
            errors.append(required("spec.matchConstraints"))
        else:
            check_match(match, "spec.matchConstraints", errors)
            if not match.get("resourceRules"):
                errors.append(required("spec.matchConstraints.resourceRules"))
        conditions = spec.get("matchConditions") or []
        has_params = kind is not None
        check_match_conditions(conditions, "spec.matchConditions", errors, has_params=has_params)
        self._check_variables(spec.get("variables") or [], has_params, errors)
        self.check_rest(obj, errors)
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        """A policy whose rules stay as they are is not judged again by newer rules."""
        return [] if new["spec"] == old.get("spec") else self.validate(new)

    def check_rest(self, policy: Obj, errors: Errors) -> None:
        raise NotImplementedError

    def _check_variables(self, variables: list[Obj], has_params: bool, errors: Errors) -> None:
        if not variables:
            return
        _, faults = variables_kind(variables, visible(has_params=has_params), mutates=self.mutates)
        for place, one in enumerate(variables):
            path, name, text = f"spec.variables[{place}]", one.get("name", ""), one.get("expression", "")
            if not name.strip():
                errors.append(required(f"{path}.name", "name is not specified"))
            elif not _IDENTIFIER.fullmatch(name) or name in _RESERVED:
                errors.append(bad_value(f"{path}.name", name, "name is not a valid CEL identifier"))
            if not text.strip():
                errors.append(required(f"{path}.expression", "expression is not specified"))
            elif place in faults:
                errors.append(bad_value(f"{path}.expression", text, faults[place]))


def _check_param_kind(kind: Obj, path: str, errors: Errors) -> None:
    written = kind.get("apiVersion", "")
    if not written:
        errors.append(required(f"{path}.apiVersion"))
    elif written.count("/") > 1:
        words = f"unexpected GroupVersion string: {written}"
        errors.append(bad_value(f"{path}.apiVersion", written, words))
    else:
        group, _, version = written.rpartition("/")
        if group and (faults := subdomain_faults(group)):
            errors.append(bad_value(f"{path}.apiVersion", group, ",".join(faults)))
        if not version:
            errors.append(bad_value(f"{path}.apiVersion", written, "version must be specified"))
        elif faults := dns_1035_label_faults(version):
            errors.append(bad_value(f"{path}.apiVersion", version, ",".join(faults)))
    name = kind.get("kind", "")
    if not name:
        errors.append(required(f"{path}.kind"))
    elif faults := dns_1035_label_faults(name.lower()):
        words = f"may have mixed case, but should otherwise match: {','.join(faults)}"
        errors.append(bad_value(f"{path}.kind", name, words))


class ValidatingPolicyStrategy(PolicyStrategy):
    has_status = True

    initial_status: Mapping[str, Any] = {}

    def default(self, obj: Obj) -> None:
        super().default(obj)
        obj.setdefault("status", {})

    def check_rest(self, policy: Obj, errors: Errors) -> None:
        spec = policy["spec"]
        validations, annotations = spec.get("validations") or [], spec.get("auditAnnotations") or []
        if not validations and not annotations:
            errors.extend(required(f"spec.{key}", _EITHER) for key in ("validations", "auditAnnotations"))
            return
        kinds = visible(has_params=spec.get("paramKind") is not None)
        kinds["variables"], _ = variables_kind(spec.get("variables") or [], kinds)
        for place, one in enumerate(validations):
            _check_validation(one, kinds, f"spec.validations[{place}]", errors)
        if len(annotations) > _MOST_ANNOTATIONS:
            words = f"must not have more than {_MOST_ANNOTATIONS} auditAnnotations"
            errors.append(bad_value("spec.auditAnnotations", annotations, words))
        keys: set[str] = set()
        for place, one in enumerate(annotations):
            path, key, text = f"spec.auditAnnotations[{place}]", one.get("key", ""), one.get("valueExpression", "")
            whole = f"{policy['metadata'].get('name', '')}/{key}"
            add_faults(errors, f"{path}.key", whole, label_key_faults(whole))
            if key in keys:
                errors.append(duplicate(f"{path}.key", key))
            keys.add(key)
            if not text.strip():
                errors.append(required(f"{path}.valueExpression", "valueExpression is not specified"))
            elif len(text.strip().encode()) > _LONGEST_ANNOTATION:
                words = f"must not exceed {_LONGEST_ANNOTATION} bytes in length"
                errors.append(required(f"{path}.valueExpression", words))
            else:
                check_expression(text, kinds, ("string", "null_type"), f"{path}.valueExpression", errors)


def _check_validation(one: Obj, kinds: dict[str, Any], path: str, errors: Errors) -> None:
    text, message = one.get("expression", ""), one.get("message", "")
    if not text.strip():
        errors.append(required(f"{path}.expression", "expression is not specified"))
    else:
        check_expression(text, kinds, ("bool",), f"{path}.expression", errors)
    spoken = one.get("messageExpression", "")
    if spoken and not spoken.strip():
        errors.append(bad_value(f"{path}.messageExpression", spoken, "must be non-empty if specified"))
    elif spoken:
        known = {name: kind for name, kind in kinds.items() if name != "authorizer"}
        check_expression(spoken, known, ("string",), f"{path}.messageExpression", errors)
    if message and not message.strip():
        errors.append(bad_value(f"{path}.message", message, "message must be non-empty if specified"))
    elif "\n" in message.strip() or "\r" in message.strip():
        errors.append(bad_value(f"{path}.message", message, "message must not contain line breaks"))
    reason = one.get("reason")
    if reason is not None and reason not in _REASONS:
        errors.append(not_supported(f"{path}.reason", reason, _REASONS))


class MutatingPolicyStrategy(PolicyStrategy):
    mutates = True

    def check_rest(self, policy: Obj, errors: Errors) -> None:
        spec = policy["spec"]
        check_mutated(spec.get("matchConstraints") or {}, "spec.matchConstraints", errors)
        again = spec.get("reinvocationPolicy", "")
        if not again:
            errors.append(required("spec.reinvocationPolicy"))
        elif again not in ("IfNeeded", "Never"):
            errors.append(not_supported("spec.reinvocationPolicy", again, ("IfNeeded", "Never")))
        mutations = spec.get("mutations") or []
        if not mutations:
            errors.append(required("spec.mutations", "mutations must contain at least one item"))
            return
        kinds = visible(has_params=spec.get("paramKind") is not None)
        kinds["variables"], _ = variables_kind(spec.get("variables") or [], kinds, mutates=True)
        for place, one in enumerate(mutations):
            _check_mutation(one, kinds, f"spec.mutations[{place}]", errors)


def _check_mutation(one: Obj, kinds: dict[str, Any], path: str, errors: Errors) -> None:
    kind = one.get("patchType", "")
    if not kind:
        errors.append(required(f"{path}.patchType"))
        return
    if kind not in _PATCHES:
        errors.append(not_supported(f"{path}.patchType", kind, tuple(_PATCHES)))
        return
    for other, key in _PATCHES.items():
        held = one.get(key)
        if other != kind:
            if held is not None:
                words = f"must not be specified when patchType is {kind}"
                errors.append(bad_value(f"{path}.{key}", f"{{{key}}}", words))
        elif held is None:
            errors.append(required(f"{path}.{key}", f"must be specified when patchType is {kind}"))
        elif not (text := held.get("expression", "")).strip():
            errors.append(required(f"{path}.{key}.expression", "expression is not specified"))
        elif fault := expression_fault(text, kinds, _RESULTS[kind], mutates=True):
            errors.append(bad_value(f"{path}.{key}.expression", text, fault))
