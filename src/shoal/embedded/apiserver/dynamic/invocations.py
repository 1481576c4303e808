"""Selects the policies that apply to one write, each with its binding and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.admission_expressions import Allows, Scope, authorizer_of, namespace_object
from shoal.embedded.apiserver.admission_request import namespace_of, request_of
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.dynamic.parameters import Parameters, ParametersError
from shoal.embedded.apiserver.dynamic.policy import AdmissionPolicy, Binding
from shoal.embedded.apiserver.dynamic.rules import Matcher
from shoal.embedded.apiserver.dynamic.versions import Versions
from shoal.embedded.apiserver.reading import Reader
from shoal.embedded.apiserver.resource import Resource

Obj = dict[str, Any]


class Invocation(msgspec.Struct, frozen=True, eq=False):
    """A policy that applies, and what to evaluate it with."""

    policy: AdmissionPolicy
    binding: Binding
    resource: Resource
    params: Obj | None

    @property
    def key(self) -> str:
        metadata = (self.params or {}).get("metadata") or {}
        place = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
        return f"{self.policy.name}/{self.binding.name}/{place}"


class Misconfigured(msgspec.Struct, frozen=True):
    """A policy that cannot be applied to this write for a fault of its own."""

    policy: AdmissionPolicy
    binding: Binding | None
    why: str


class Invoking:
    """What both kinds of policies are found and evaluated with."""

    def __init__(
        self, matcher: Matcher, versions: Versions, parameters: Parameters, reader: Reader, allows: Allows
    ) -> None:
        self.matcher = matcher
        self._parameters = parameters
        self._reader = reader
        self._allows = allows
        self.versions = versions

    async def find(
        self, policies: Sequence[AdmissionPolicy], admission: AdmissionAttributes
    ) -> tuple[list[Invocation], list[Misconfigured]]:
        found: list[Invocation] = []
        faulty: list[Misconfigured] = []
        for policy in policies:
            try:
                resource = self.matcher.matched(policy.matching, admission)
                if resource is None:
                    continue
                kind = self._parameters.resource(policy.param_kind)
            except (ParametersError, status.ApiError) as error:
                faulty.append(Misconfigured(policy, None, f"failed to configure policy: {error}"))
                continue
            for binding in policy.bindings:
                try:
                    if self.matcher.matched(binding.matching, admission) is None:
                        continue
                    every = await self._parameters.of(kind, binding.params, namespace_of(admission))
                except (ParametersError, status.ApiError) as error:
                    faulty.append(Misconfigured(policy, binding, f"failed to configure binding: {error}"))
                    continue
                found += [Invocation(policy, binding, resource, params) for params in every]
        return found, faulty

    async def scope(self, invocation: Invocation, admission: AdmissionAttributes) -> Scope:
        """The values of all variables but the policy's own."""
        call, resource = admission.call, invocation.resource
        namespace = call.namespace
        seen = namespace_object(self._reader, namespace)
        if namespace and seen is None:
            raise status.not_found("namespaces", "", namespace)
        scope: Scope = {
            "object": await self.versions.to(resource, admission.obj, call),
            "oldObject": await self.versions.to(resource, admission.old, call),
            "request": request_of(admission, resource),
            "namespaceObject": seen,
            "authorizer": authorizer_of(self._allows, admission),
        }
        if invocation.policy.param_kind:
            scope["params"] = invocation.params
        return scope
