"""MutatingAdmissionPolicy: policies that change a write, one after the other, each seeing what those before it did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.admission.plugin import forbid
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.dynamic.admission_index import AdmissionIndex
from shoal.embedded.apiserver.dynamic.conditions import ConditionsError
from shoal.embedded.apiserver.dynamic.invocations import Invocation, Invoking
from shoal.embedded.apiserver.dynamic.mutation import Mutation, MutationFault
from shoal.embedded.apiserver.dynamic.policy import AdmissionPolicy, Binding
from shoal.embedded.apiserver.dynamic.reinvocation import MutationRound
from shoal.embedded.apiserver.dynamic.versions import restored

Obj = dict[str, Any]


class Body(msgspec.Struct, frozen=True, eq=False):
    """What a mutating policy does."""

    mutations: tuple[Mutation, ...]
    is_reinvoked: bool


class Failure(msgspec.Struct, frozen=True):
    policy: AdmissionPolicy
    binding: Binding | None
    why: str
    reason: str = ""

    @property
    def text(self) -> str:
        if self.binding is None:
            return f'policy "{self.policy.name}" denied request: {self.why}'
        return f"policy '{self.policy.name}' with binding '{self.binding.name}' denied request: {self.why}"


class MutatingPolicies:
    def __init__(self, invoking: Invoking) -> None:
        self.policies: AdmissionIndex[AdmissionPolicy] = AdmissionIndex(invoking.matcher)
        self._invoking = invoking

    async def mutate(self, admission: AdmissionAttributes, turn: MutationRound) -> None:
        policies = self.policies.of(admission.call, admission.operation)
        if not policies or admission.obj is None:
            return
        turn.begin(admission.obj)
        found, faulty = await self._invoking.find(policies, admission)
        failures = [Failure(one.policy, one.binding, one.why) for one in faulty]
        for invocation in found:
            failures += await self._invoke(invocation, admission, turn)
        if turn.is_touched:
            # Kubernetes asks even the one who made the change again; who counts on that is not let down.
            turn.require()
        turn.end(admission.obj)
        counted = [one for one in failures if not one.policy.is_ignored]
        if counted:
            raise _refusal(admission, counted)

    async def _invoke(
        self, invocation: Invocation, admission: AdmissionAttributes, turn: MutationRound
    ) -> list[Failure]:
        policy, binding = invocation.policy, invocation.binding
        scope = await self._invoking.scope(invocation, admission)
        try:
            if not policy.conditions.hold(scope):
                return []
        except ConditionsError as error:
            return [Failure(policy, binding, str(error), "Invalid")]
        if not turn.includes(invocation.key):
            return []
        body: Body = policy.body
        failures = []
        before: Obj = scope["object"]
        for mutation in body.mutations:
            try:
                made = mutation.made(scope["object"], policy.variables.bound(scope), invocation.resource)
            except MutationFault as fault:
                failures.append(Failure(policy, binding, str(fault), "Invalid"))
                continue
            turn.is_touched = True
            if made is not scope["object"]:
                scope["object"] = restored(made, invocation.resource, admission.call)
        changed = scope["object"] != before
        if changed:
            call = admission.call
            admission.obj = await self._invoking.versions.to(call.resource, scope["object"], call)
        turn.done(invocation.key, changed=changed, again=body.is_reinvoked)
        return failures


def _refusal(admission: AdmissionAttributes, failures: Sequence[Failure]) -> status.ApiError:
    refused = forbid(admission, "admission request denied by policy")
    details = {**(refused.details or {}), "causes": [{"message": one.text} for one in failures]}
    return status.ApiError(403, failures[0].reason or "Forbidden", failures[0].text, details=details)
