"""ValidatingAdmissionPolicy: expressions that must be true of a write, and what happens where one is not.

All policies are evaluated whatever the first says, since each may have a warning to give; the first denial is the
answer. Audit annotations have nowhere to go here, so of them only failures are seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.admission.plugin import forbid
from shoal.embedded.apiserver.admission_expressions import Expression, Scope
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.cel.faults import CelFault
from shoal.embedded.apiserver.cel.kinds import CelType
from shoal.embedded.apiserver.cel.values import kind_name
from shoal.embedded.apiserver.dynamic.admission_index import AdmissionIndex
from shoal.embedded.apiserver.dynamic.conditions import ConditionsError
from shoal.embedded.apiserver.dynamic.invocations import Invocation, Invoking
from shoal.embedded.apiserver.dynamic.policy import AdmissionPolicy, Binding

_CODES = {"Forbidden": 403, "RequestEntityTooLarge": 413}
_INVALID = 422
_LONGEST_MESSAGE = 5 * 1024


class Validation(msgspec.Struct, frozen=True, eq=False):
    expression: Expression
    message: str
    message_expression: Expression | None
    reason: str


class Body(msgspec.Struct, frozen=True, eq=False):
    """What a validating policy does."""

    validations: tuple[Validation, ...]
    annotations: tuple[Expression, ...]


class Denial(msgspec.Struct, frozen=True):
    policy: AdmissionPolicy
    binding: Binding | None
    message: str
    reason: str = ""


def compiled(spec: Mapping[str, Any], visible: Mapping[str, CelType]) -> Body:
    without = {name: kind for name, kind in visible.items() if name != "authorizer"}
    validations = tuple(
        Validation(
            Expression(one.get("expression", ""), visible, "bool"),
            str(one.get("message") or "").strip(),
            Expression(one["messageExpression"], without, "string") if one.get("messageExpression") else None,
            one.get("reason") or "Invalid",
        )
        for one in spec.get("validations") or ()
    )
    annotations = (one.get("valueExpression", "") for one in spec.get("auditAnnotations") or ())
    return Body(validations, tuple(Expression(text, visible, "any") for text in annotations))


class ValidatingPolicies:
    def __init__(self, invoking: Invoking) -> None:
        self.policies: AdmissionIndex[AdmissionPolicy] = AdmissionIndex(invoking.matcher)
        self._invoking = invoking

    async def validate(self, admission: AdmissionAttributes) -> None:
        policies = self.policies.of(admission.call, admission.operation)
        if not policies:
            return
        found, faulty = await self._invoking.find(policies, admission)
        denials = [Denial(one.policy, one.binding, one.why) for one in faulty if not one.policy.is_ignored]
        for invocation in found:
            scope = await self._invoking.scope(invocation, admission)
            for message, reason in _failures(invocation, scope):
                denials += _acted(invocation, admission, message, reason)
            denials += _annotated(invocation, scope)
        if denials:
            raise _refusal(admission, denials[0])


def _failures(invocation: Invocation, scope: Scope) -> Iterator[tuple[str, str]]:
    """The message and reason of each validation that is not met, or that could not be evaluated."""
    policy = invocation.policy
    try:
        if not policy.conditions.hold(scope):
            return
    except ConditionsError as error:
        if not policy.is_ignored:
            yield str(error), ""
        return
    body: Body = policy.body
    bound = policy.variables.bound(scope)
    for validation in body.validations:
        try:
            is_met = validation.expression.value(dict(bound)) is True
        except CelFault as fault:
            if not policy.is_ignored:
                yield str(fault), ""
            continue
        if not is_met:
            yield _message(validation, bound), validation.reason


def _message(validation: Validation, scope: Scope) -> str:
    said = ""
    if validation.message_expression is not None:
        try:
            found = validation.message_expression.value(dict(scope))
        except CelFault:
            found = ""
        said = found.strip() if isinstance(found, str) else ""
        if len(said) > _LONGEST_MESSAGE or "\n" in said:
            said = ""
    return said or validation.message or f"failed expression: {validation.expression.text.strip()}"


def _acted(invocation: Invocation, admission: AdmissionAttributes, message: str, reason: str) -> list[Denial]:
    policy, binding = invocation.policy, invocation.binding
    if "Warn" in binding.actions:
        lead = f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}'"
        admission.warn(f"{lead}: {message}")
    return [Denial(policy, binding, message, reason)] if "Deny" in binding.actions else []


def _annotated(invocation: Invocation, scope: Scope) -> Iterator[Denial]:
    """What is wrong with the annotations: a failure counts as the policy says, a value of another type always."""
    policy = invocation.policy
    body: Body = policy.body
    if not body.annotations or not _applies(policy, scope):
        return
    bound = policy.variables.bound(scope)
    for expression in body.annotations:
        try:
            value = expression.value(dict(bound))
        except CelFault as fault:
            if not policy.is_ignored:
                yield Denial(policy, invocation.binding, str(fault))
            continue
        if value is not None and not isinstance(value, str):
            lead = f"valueExpression '{expression.text}' resulted in unsupported return type: {kind_name(value)}"
            yield Denial(policy, invocation.binding, f"{lead}. Return type must be either string or null.")


def _applies(policy: AdmissionPolicy, scope: Scope) -> bool:
    try:
        return policy.conditions.hold(scope)
    except ConditionsError:
        return False


def _refusal(admission: AdmissionAttributes, denial: Denial) -> status.ApiError:
    lead = f"ValidatingAdmissionPolicy '{denial.policy.name}'"
    if denial.binding is not None:
        lead = f"{lead} with binding '{denial.binding.name}'"
    message = f"{lead} denied request: {denial.message}"
    refused = forbid(admission, message)
    reason = denial.reason or "Invalid"
    details = {**(refused.details or {}), "causes": [{"message": message}]}
    return status.ApiError(_CODES.get(reason, _INVALID), reason, refused.message, details=details)
