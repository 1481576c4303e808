"""What a join token and a joined node may request, and what others may do to a node."""

from __future__ import annotations

import pytest

from shoal.embedded.apiserver.calls import ANONYMOUS, Actor
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.security.authorize import Authorizer, UserPermissions
from shoal.embedded.apiserver.security.join_access import JOINING, JoinAccess
from shoal.embedded.apiserver.security.rules import FULL_AUTHORITY, PolicyRule
from shoal.embedded.apiserver.security.verdict import AccessDecision

TOKEN = Actor("system:bootstrap:abcdef", (JOINING, "system:authenticated"))
NODE = Actor("system:node:n1", ("system:nodes", "system:authenticated"))
ADMIN = Actor("admin", ("system:masters",))
CERTIFICATE, CONNECTION = "/shoal/join/nodes/n1/certificate", "/shoal/join/nodes/n1/connection"


class _Inner:
    """The administrator may do everything, others nothing."""

    def allows(self, actor: Actor, asked: RequestInfo) -> AccessDecision:
        return AccessDecision(actor == ADMIN, f"asked: {asked.verb} {asked.resource} {asked.name}")

    def held(self, actor: Actor, namespace: str) -> UserPermissions:
        return UserPermissions(FULL_AUTHORITY)

    def rules_of(self, reference: dict[str, str], namespace: str) -> tuple[PolicyRule, ...]:
        return ()


@pytest.fixture
def access() -> Authorizer:
    return JoinAccess(_Inner(), lambda node, namespace: (node, namespace) == ("n1", "mine"))


@pytest.mark.parametrize(
    ("actor", "verb", "path", "is_allowed"),
    [
        (TOKEN, "post", "/shoal/join/certificate", True),
        (TOKEN, "get", "/shoal/join/certificate", False),
        (TOKEN, "post", CERTIFICATE, False),
        (TOKEN, "get", CONNECTION, False),
        (TOKEN, "get", "/metrics", False),
        (TOKEN, "get", "/api", False),
        (NODE, "post", CERTIFICATE, True),
        (NODE, "get", CONNECTION, True),
        (NODE, "delete", CERTIFICATE, False),
        (NODE, "post", "/shoal/join/certificate", False),
        (NODE, "post", "/shoal/join/nodes/n2/certificate", False),
        (NODE, "get", "/shoal/join/nodes/n2/connection", False),
        (NODE, "get", "/shoal/join/nodes/n1/connection/", False),
        (ANONYMOUS, "get", "/shoal/join/authority", True),
        (ANONYMOUS, "post", "/shoal/join/certificate", False),
        (ANONYMOUS, "get", CONNECTION, False),
        (ADMIN, "delete", CERTIFICATE, True),
        (ADMIN, "get", CONNECTION, False),
        (ADMIN, "post", CERTIFICATE, False),
        (ADMIN, "post", "/shoal/join/certificate", False),
    ],
)
def test_each_path_of_joining_is_for_its_own_users(
    access: Authorizer, actor: Actor, verb: str, path: str, is_allowed: bool
) -> None:
    assert access.allows(actor, RequestInfo.of_path(verb, path)).allowed is is_allowed


def test_a_join_token_reads_and_writes_no_object(access: Authorizer) -> None:
    for asked in (
        RequestInfo("get", "", "v1", "secrets", namespace="mine", name="s"),
        RequestInfo("create", "", "v1", "nodes"),
        RequestInfo("create", "certificates.k8s.io", "v1", "certificatesigningrequests"),
        RequestInfo("impersonate", "", "v1", "users", name="admin"),
    ):
        decided = access.allows(TOKEN, asked)
        assert (decided.allowed, decided.reason) == (False, "a join token can only be used to join a machine")
    assert access.held(TOKEN, "mine").rules == ()


def test_removing_a_machine_needs_the_permission_to_delete_its_node(access: Authorizer) -> None:
    found = access.allows(Actor("jane"), RequestInfo.of_path("delete", CERTIFICATE))

    assert (found.allowed, found.reason) == (False, "asked: delete nodes n1")


@pytest.mark.parametrize(
    ("verb", "name", "subresource", "is_allowed"),
    [
        ("get", "mine", "", True),
        ("get", "theirs", "", False),
        ("list", "", "", False),
        ("watch", "mine", "", False),
        ("update", "mine", "", False),
        ("get", "mine", "status", False),
    ],
)
def test_a_node_reads_only_the_namespaces_of_its_pods(
    access: Authorizer, verb: str, name: str, subresource: str, is_allowed: bool
) -> None:
    asked = RequestInfo(verb, "", "v1", "namespaces", subresource, name, name)

    assert access.allows(NODE, asked).allowed is is_allowed
