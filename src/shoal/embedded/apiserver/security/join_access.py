"""Authorizes the requests of machines that join, and of machines that have joined.

A join token has one permission: to get the certificate of a new node. A node has three more than Kubernetes gives it:
its next certificate, its connection for logs and commands, and the namespaces of its pods, by name. All of them name
the node or the object exactly; everything else is decided by the authorizer behind this one.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.client.kubelet.node_joining import AUTHORITY_PATH, JOIN_PATH, TOKEN, is_of_joining, node_in
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.security.authorize import Authorizer, UserPermissions
from shoal.embedded.apiserver.security.failed_attempts import FailedAttempts
from shoal.embedded.apiserver.security.join_tokens import JoinTokens
from shoal.embedded.apiserver.security.node_authorizer import node_of
from shoal.embedded.apiserver.security.verdict import AccessDecision
from shoal.embedded.apiserver.status import too_many_requests, unauthorized

JOINING = "system:bootstrappers:shoal"
"""The group of users of join tokens."""
_ALLOWED, _REFUSED = AccessDecision(True), AccessDecision(False)


class JoinAuthenticator:
    """Authenticates users of join tokens."""

    def __init__(self, tokens: JoinTokens) -> None:
        self._tokens = tokens
        self._failures = FailedAttempts()

    def accepts(self, token: str) -> bool:
        """Whether the text has the form of a join token."""
        return TOKEN.fullmatch(token) is not None

    def authenticate(self, token: str, address: str, now_s: float) -> Actor:
        """The user of a valid token. Raises 401, and 429 after several failures."""
        wait_s = self._failures.wait_s(address, now_s)
        if wait_s > 0:
            raise too_many_requests("too many wrong join tokens from this address", int(wait_s) + 1)
        name = self._tokens.name_of(token, now_s)
        if not name:
            self._failures.failed(address, now_s)
            raise unauthorized()
        self._failures.succeeded(address)
        return Actor(f"system:bootstrap:{name}", ("system:bootstrappers", JOINING, "system:authenticated"))


class JoinAccess:
    """An authorizer: the rules of joining, then those of `inner`."""

    def __init__(self, inner: Authorizer, has_pod_in: Callable[[str, str], bool]) -> None:
        """`has_pod_in`: whether a pod of a namespace is bound to a node."""
        self._inner = inner
        self._has_pod_in = has_pod_in
        self.rules_of = inner.rules_of

    def allows(self, actor: Actor, asked: RequestInfo) -> AccessDecision:
        if JOINING in actor.groups:
            if not asked.is_resource and (asked.verb, asked.path) == ("post", JOIN_PATH):
                return _ALLOWED
            return AccessDecision(False, "a join token can only be used to join a machine")
        if not asked.is_resource and is_of_joining(asked.path):
            return self._of_joining(actor, asked)
        node = node_of(actor)
        if node and (asked.group, asked.resource, asked.verb, asked.subresource) == ("", "namespaces", "get", ""):
            name = asked.name or asked.namespace
            return _ALLOWED if self._has_pod_in(node, name) else self._inner.allows(actor, asked)
        return self._inner.allows(actor, asked)

    def held(self, actor: Actor, namespace: str) -> UserPermissions:
        return UserPermissions(()) if JOINING in actor.groups else self._inner.held(actor, namespace)

    def _of_joining(self, actor: Actor, asked: RequestInfo) -> AccessDecision:
        if (asked.verb, asked.path) == ("get", AUTHORITY_PATH):
            return _ALLOWED
        name, what = node_in(asked.path)
        if not name:
            return _REFUSED
        if (asked.verb, what) == ("delete", "certificate"):
            return self._inner.allows(actor, RequestInfo("delete", "", "v1", "nodes", name=name))
        if (asked.verb, what) in (("post", "certificate"), ("get", "connection")):
            if node_of(actor) == name:
                return _ALLOWED
            return AccessDecision(False, "only the node itself can use this path")
        return _REFUSED
