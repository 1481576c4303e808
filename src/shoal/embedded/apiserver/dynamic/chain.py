"""Runs all configured admission in Kubernetes' order: policies before webhooks, mutating before validating."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shoal.embedded.apiserver.calls import AdmissionAttributes, Call, Operation
from shoal.embedded.apiserver.cel.kinds import CelType
from shoal.embedded.apiserver.dynamic import mutation, scales, validating_policies
from shoal.embedded.apiserver.dynamic.admission_context import ConfiguredAdmissionContext
from shoal.embedded.apiserver.dynamic.invocations import Invoking
from shoal.embedded.apiserver.dynamic.mutating_policies import Body, MutatingPolicies
from shoal.embedded.apiserver.dynamic.parameters import Parameters
from shoal.embedded.apiserver.dynamic.policy import Policies
from shoal.embedded.apiserver.dynamic.reinvocation import MutationRound
from shoal.embedded.apiserver.dynamic.review import Reviewing
from shoal.embedded.apiserver.dynamic.rules import Matcher
from shoal.embedded.apiserver.dynamic.validating_policies import ValidatingPolicies
from shoal.embedded.apiserver.dynamic.versions import Versions
from shoal.embedded.apiserver.dynamic.webhook import Configured
from shoal.embedded.apiserver.dynamic.webhooks import Webhooks


class Chain:
    """Everything that is configured; `read` after it changed."""

    def __init__(self, around: ConfiguredAdmissionContext) -> None:
        matcher, versions = Matcher(around.catalog, around.reader), Versions(around.convert)
        parameters = Parameters(around.catalog, around.reader, around.convert)
        invoking = Invoking(matcher, versions, parameters, around.reader, around.allows)
        reviewing = Reviewing(around.posting, around.new_uid)
        self._webhooks = Webhooks(matcher, versions, reviewing, around.allows)
        self._mutating = MutatingPolicies(invoking)
        self._validating = ValidatingPolicies(invoking)
        reader = around.reader
        self._mutating_webhooks = Configured(reader, "mutatingwebhookconfigurations")
        self._validating_webhooks = Configured(reader, "validatingwebhookconfigurations")
        self._mutating_policies = Policies(reader, "mutatingadmissionpolicies", _mutating_body)
        self._validating_policies = Policies(reader, "validatingadmissionpolicies", validating_policies.compiled)

    def read(self) -> None:
        """Read all configurations anew."""
        self._webhooks.mutating.set(self._mutating_webhooks.read())
        self._webhooks.validating.set(self._validating_webhooks.read())
        self._mutating.policies.set(self._mutating_policies.read())
        self._validating.policies.set(self._validating_policies.read())

    def may_concern(self, call: Call, operation: Operation) -> tuple[bool, bool]:
        """Whether any policy or webhook may be meant, and whether a webhook may be asked: one of these, or one that
        converts a policy's parameters."""
        call, hooks = scales.door_of(call), self._webhooks
        policies = [*self._mutating.policies.of(call, operation), *self._validating.policies.of(call, operation)]
        has_hooks = any(configured.of(call, operation) for configured in (hooks.mutating, hooks.validating))
        asks = has_hooks or any(policy.param_kind for policy in policies)
        return bool(policies) or has_hooks, asks

    async def mutate(self, admission: AdmissionAttributes, again: Callable[[AdmissionAttributes], None]) -> None:
        """`again` are the built-in plugins, which run once more after the object was changed."""
        if admission.call.through_scale:
            scale = scales.shown(admission)
            # The built-in plugins have nothing to do with scales.
            await self.mutate(scale, lambda _: None)
            scales.kept(scale, admission)
            return
        by_policies, by_webhooks = MutationRound(), MutationRound()
        await self._round(admission, by_policies, by_webhooks)
        if by_policies.is_touched or by_policies.is_changed or by_webhooks.is_changed:
            by_policies.is_second = by_webhooks.is_second = True
            again(admission)
            await self._round(admission, by_policies, by_webhooks)

    async def validate(self, admission: AdmissionAttributes) -> None:
        if admission.call.through_scale:
            admission = scales.shown(admission)
        if admission.operation == "DELETE":
            # There is no object to change, but mutating webhooks are asked about deletions too and may refuse them.
            await self._webhooks.mutate(admission, MutationRound())
        await self._validating.validate(admission)
        await self._webhooks.validate(admission)

    async def _round(
        self, admission: AdmissionAttributes, by_policies: MutationRound, by_webhooks: MutationRound
    ) -> None:
        await self._mutating.mutate(admission, by_policies)
        await self._webhooks.mutate(admission, by_webhooks)


def _mutating_body(spec: Mapping[str, Any], visible: Mapping[str, CelType]) -> Body:
    return Body(mutation.compiled(spec, visible), spec.get("reinvocationPolicy") == "IfNeeded")
