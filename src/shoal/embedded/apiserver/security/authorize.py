"""Two ways to decide: everybody who is recognised may do everything, or what RBAC's objects say.

The first is the default, because a cluster on one's own machine is one's own; anonymous callers may then ask how the
server is, and nothing else.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from shoal.embedded.apiserver.calls import ANONYMOUS, Actor, Attributes
from shoal.embedded.apiserver.security.rules import FULL_AUTHORITY, Rule
from shoal.embedded.apiserver.security.verdict import Verdict

_ALLOWED, _REFUSED = Verdict(True), Verdict(False)
_OPEN_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})


class Held(msgspec.Struct, frozen=True):
    """Everything somebody may do in a namespace, as far as it could be found out."""

    rules: tuple[Rule, ...]
    faults: tuple[str, ...] = ()


class Authorizer(Protocol):
    """Decides every request, and knows what somebody holds and what a role gives."""

    def allows(self, actor: Actor, asked: Attributes) -> Verdict: ...

    def held(self, actor: Actor, namespace: str) -> Held: ...

    def rules_of(self, reference: dict[str, str], namespace: str) -> tuple[Rule, ...]:
        """Of the role a binding names; raises 404 when there is none."""


class AllowRecognised:
    """Whoever has shown good credentials may do everything."""

    def allows(self, actor: Actor, asked: Attributes) -> Verdict:
        if actor != ANONYMOUS or (asked.verb == "get" and asked.path in _OPEN_PATHS):
            return _ALLOWED
        return _REFUSED

    def held(self, actor: Actor, namespace: str) -> Held:  # noqa: ARG002 - the same in every namespace
        return Held(() if actor == ANONYMOUS else FULL_AUTHORITY)

    def rules_of(self, reference: dict[str, str], namespace: str) -> tuple[Rule, ...]:  # noqa: ARG002 - the signature is the protocol's
        return ()
