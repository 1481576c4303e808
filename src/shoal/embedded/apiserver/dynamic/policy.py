"""Policies as they are configured, compiled, each with its bindings: what both kinds of policies have in common.

Read anew when a policy or a binding changes, and only then; compiled anew only what says something else. A policy that
nothing binds does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from shoal.embedded.apiserver.admission_expressions import AUTHORIZER, BASE, PARAMS, Variables
from shoal.embedded.apiserver.cel.kinds import CelType
from shoal.embedded.apiserver.dynamic.conditions import Conditions
from shoal.embedded.apiserver.dynamic.kept import Kept, name_of
from shoal.embedded.apiserver.dynamic.rules import GROUP
from shoal.embedded.apiserver.reading import Reader

Written = Mapping[str, Any]
Plural = Literal["mutatingadmissionpolicies", "validatingadmissionpolicies"]
Body = TypeVar("Body")


class Binding(msgspec.Struct, frozen=True, eq=False):
    name: str
    matching: Written
    params: Written | None
    actions: tuple[str, ...]


class AdmissionPolicy(msgspec.Struct, frozen=True, eq=False):
    """What every policy has; `body` is what it does."""

    name: str
    matching: Written
    """Its match constraints."""
    param_kind: Written | None
    conditions: Conditions
    variables: Variables
    is_ignored: bool
    """Whether its own failures do not matter."""
    bindings: tuple[Binding, ...]
    body: Any

    @property
    def rules(self) -> Sequence[Written]:
        return self.matching.get("resourceRules") or ()

    @property
    def match_policy(self) -> str:
        return self.matching.get("matchPolicy") or "Equivalent"


def visible_to(spec: Written) -> dict[str, CelType]:
    """The variables of a policy's expressions, but for its own."""
    found: dict[str, CelType] = {**BASE, "authorizer": AUTHORIZER}
    if spec.get("paramKind"):
        found["params"] = PARAMS
    return found


class Policies:
    """All of a kind. `compiled` makes the body from the spec and the variables its expressions see."""

    def __init__(
        self, reader: Reader, plural: Plural, compiled: Callable[[Written, Mapping[str, CelType]], Any]
    ) -> None:
        self._reader = reader
        self._plural = plural
        mutates = plural.startswith("mutating")
        self._kept = Kept(lambda written: _policy(written, compiled, mutates=mutates))

    def read(self) -> Sequence[AdmissionPolicy]:
        """In the order of their names."""
        bindings = self._bindings()
        bound = [one for one in self._reader.all(GROUP, self._plural) if name_of(one) in bindings]
        return [replace(one, bindings=tuple(bindings[one.name])) for one in self._kept.of(bound)]

    def _bindings(self) -> dict[str, list[Binding]]:
        """By the policies that they bind."""
        found: dict[str, list[Binding]] = {}
        singular = self._plural.removesuffix("ies") + "y"
        for one in sorted(self._reader.all(GROUP, f"{singular}bindings"), key=name_of):
            spec = one.get("spec") or {}
            made = Binding(
                name_of(one),
                spec.get("matchResources") or {},
                spec.get("paramRef"),
                tuple(spec.get("validationActions") or ()),
            )
            found.setdefault(spec.get("policyName", ""), []).append(made)
        return found


def _policy(
    written: Written, compiled: Callable[[Written, Mapping[str, CelType]], Any], *, mutates: bool
) -> AdmissionPolicy:
    """As yet without bindings."""
    spec = written.get("spec") or {}
    visible = visible_to(spec)
    variables = Variables(spec.get("variables") or (), visible, mutates=mutates)
    return AdmissionPolicy(
        name_of(written),
        spec.get("matchConstraints") or {},
        spec.get("paramKind"),
        Conditions(spec.get("matchConditions") or (), visible),
        variables,
        spec.get("failurePolicy") == "Ignore",
        (),
        compiled(spec, {**visible, "variables": variables.kind}),
    )
