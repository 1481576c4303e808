"""Two ways to decide: every authenticated user may do everything, or RBAC's objects decide.

The first is the default, because a cluster on one's own machine is one's own; anonymous callers may then ask how the
server is, and nothing else.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from shoal.embedded.apiserver.calls import ANONYMOUS, Actor
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.security.rules import FULL_AUTHORITY, PolicyRule
from shoal.embedded.apiserver.security.verdict import AccessDecision

_ALLOWED, _REFUSED = AccessDecision(True), AccessDecision(False)
_OPEN_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})


class UserPermissions(msgspec.Struct, frozen=True):
    """The permissions of a user in a namespace, as far as they are known."""

    rules: tuple[PolicyRule, ...]
    faults: tuple[str, ...] = ()


class Authorizer(Protocol):
    """Decides each request, and lists the permissions of users and roles."""

    def allows(self, actor: Actor, asked: RequestInfo) -> AccessDecision: ...

    def held(self, actor: Actor, namespace: str) -> UserPermissions: ...

    def rules_of(self, reference: dict[str, str], namespace: str) -> tuple[PolicyRule, ...]:
        """Of the role a binding names; raises 404 when there is none."""


class AllowRecognised:
    """Every authenticated user may do everything."""

    def allows(self, actor: Actor, asked: RequestInfo) -> AccessDecision:
        if actor != ANONYMOUS or (asked.verb == "get" and not asked.is_resource and asked.path in _OPEN_PATHS):
            return _ALLOWED
        return _REFUSED

    def held(self, actor: Actor, namespace: str) -> UserPermissions:  # noqa: ARG002 - the same in every namespace
        return UserPermissions(() if actor == ANONYMOUS else FULL_AUTHORITY)

    def rules_of(self, reference: dict[str, str], namespace: str) -> tuple[PolicyRule, ...]:  # noqa: ARG002 - the signature is the protocol's
        return ()
