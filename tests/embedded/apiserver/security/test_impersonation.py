"""Acting as somebody else: every part of it needs its own right."""

from __future__ import annotations

import pytest

from build.rbac import actor, cluster_binding, cluster_role
from build.readers import FixedReader
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.security.impersonate import impersonated
from shoal.embedded.apiserver.security.rbac import Rbac
from shoal.embedded.apiserver.status import ApiError

LISTING = RequestInfo("list", version="v1", resource="pods", namespace="web")
ADMIN = actor("root", "system:masters")


def acting(headers: dict[str, str] | list[tuple[str, str]], by: Actor = ADMIN, *lines: str) -> Actor:
    reader = FixedReader(cluster_role("r", *lines), cluster_binding("r", f"User {by.name}")) if lines else FixedReader()
    pairs = list(headers.items()) if isinstance(headers, dict) else headers
    return impersonated(by, pairs, LISTING, Rbac(reader).allows)


def test_without_such_headers_one_is_oneself() -> None:
    assert acting({"Accept": "*/*"}) is ADMIN


def test_a_user_with_groups_uid_and_extra() -> None:
    found = acting(
        [
            ("Impersonate-User", "jane"),
            ("Impersonate-Group", "devs"),
            ("impersonate-group", "ops"),
            ("Impersonate-Uid", "7"),
            ("Impersonate-Extra-Acme.com%2Fproject", "one"),
            ("Impersonate-Extra-Acme.com%2Fproject", "two"),
        ]
    )
    assert found == Actor("jane", ("devs", "ops", "system:authenticated"), "7", (("acme.com/project", ("one", "two")),))


def test_a_service_account_brings_its_groups() -> None:
    found = acting({"Impersonate-User": "system:serviceaccount:ci:builder"})
    assert found.groups == ("system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated")


def test_the_anonymous_user_stays_unauthenticated() -> None:
    assert acting({"Impersonate-User": "system:anonymous"}).groups == ("system:unauthenticated",)


AUTH = "authentication.k8s.io"
ON_PODS = "impersonate-on:user-info:list pods"
AS_JANE = f"impersonate:user-info users @{AUTH} =jane"


@pytest.mark.parametrize(
    ("headers", "lines"),
    [
        ({"Impersonate-User": "jane"}, ("impersonate users =jane",)),
        ({"Impersonate-User": "jane"}, (ON_PODS, AS_JANE)),
        (
            {"Impersonate-User": "jane", "Impersonate-Group": "devs", "Impersonate-Uid": "7"},
            (ON_PODS, AS_JANE, f"impersonate:user-info groups,uids @{AUTH}"),
        ),
        (
            {"Impersonate-User": "jane", "Impersonate-Extra-Acme.com%2Fproject": "one"},
            (ON_PODS, AS_JANE, f"impersonate:user-info userextras/acme.com/project @{AUTH}"),
        ),
        (
            {"Impersonate-User": "system:serviceaccount:ci:builder"},
            ("impersonate-on:serviceaccount:list pods", f"impersonate:serviceaccount serviceaccounts @{AUTH}"),
        ),
        (
            {"Impersonate-User": "system:node:n1"},
            ("impersonate-on:arbitrary-node:list pods", f"impersonate:arbitrary-node nodes @{AUTH} =n1"),
        ),
        ({"Impersonate-User": "system:node:n1"}, ("impersonate users =system:node:n1",)),
    ],
)
def test_a_mode_whose_rights_are_all_there_suffices(headers: dict[str, str], lines: tuple[str, ...]) -> None:
    assert acting(headers, actor("bob"), *lines).name == headers["Impersonate-User"]


def test_who_acts_as_a_node_in_a_constrained_mode_is_in_its_group() -> None:
    rights = ("impersonate-on:arbitrary-node:list pods", f"impersonate:arbitrary-node nodes @{AUTH}")
    found = acting({"Impersonate-User": "system:node:n1"}, actor("bob"), *rights)
    assert found.groups == ("system:nodes", "system:authenticated")
    old = acting({"Impersonate-User": "system:node:n1"}, actor("bob"), "impersonate users")
    assert old.groups == ("system:authenticated",)


def test_an_account_may_act_as_the_node_it_runs_on() -> None:
    rights = ("impersonate-on:associated-node:list pods", f"impersonate:associated-node nodes @{AUTH}")
    name = "system:serviceaccount:ci:agent"
    agent = Actor(name, ("system:authenticated",), "", (("authentication.kubernetes.io/node-name", ("n1",)),))
    assert acting({"Impersonate-User": "system:node:n1"}, agent, *rights).name == "system:node:n1"
    with pytest.raises(ApiError):
        acting({"Impersonate-User": "system:node:n2"}, agent, *rights)
    with pytest.raises(ApiError):
        acting({"Impersonate-User": "system:node:n1"}, actor("bob"), *rights)


NOT_ON_PODS = (
    'pods is forbidden: User "bob" cannot impersonate-on:user-info:list resource "pods" in API group "" in the '
    'namespace "web"'
)


@pytest.mark.parametrize(
    ("headers", "lines", "message"),
    [
        ({"Impersonate-User": "jane"}, ("get pods",), NOT_ON_PODS),
        ({"Impersonate-User": "jane"}, (AS_JANE,), NOT_ON_PODS),
        (
            {"Impersonate-User": "jane"},
            (ON_PODS,),
            (
                'users.authentication.k8s.io "jane" is forbidden: User "bob" cannot impersonate:user-info resource '
                '"users" in API group "authentication.k8s.io" at the cluster scope'
            ),
        ),
        (
            {"Impersonate-User": "jane", "Impersonate-Group": "system:masters"},
            (ON_PODS, AS_JANE, f"impersonate:user-info groups @{AUTH}", "impersonate users"),
            (
                'groups.authentication.k8s.io "system:masters" is forbidden: User "bob" cannot impersonate:user-info '
                'resource "groups" in API group "authentication.k8s.io" at the cluster scope: impersonating the '
                "system:masters group is not allowed"
            ),
        ),
        (
            {"Impersonate-User": "jane", "Impersonate-Extra-Scopes": "all"},
            (ON_PODS, AS_JANE),
            (
                'userextras.authentication.k8s.io is forbidden: User "bob" cannot impersonate:user-info resource '
                '"userextras" in API group "authentication.k8s.io" at the cluster scope: impersonating an invalid key '
                'in extra is not allowed: extra.key: Invalid value: "scopes": must be a domain-prefixed path (such as '
                '"acme.io/foo")'
            ),
        ),
        (
            {"Impersonate-User": "system:serviceaccount:ci:builder"},
            ("impersonate users",),
            (
                'pods is forbidden: User "bob" cannot impersonate-on:serviceaccount:list resource "pods" in API group '
                '"" in the namespace "web"'
            ),
        ),
        (
            {"Impersonate-User": "system:serviceaccount:ci:builder", "Impersonate-Group": "devs"},
            ("impersonate users",),
            (
                'serviceaccounts "builder" is forbidden: User "bob" cannot impersonate resource "serviceaccounts" in '
                'API group "" in the namespace "ci"'
            ),
        ),
    ],
)
def test_the_first_refusal_is_told_when_all_modes_refuse(
    headers: dict[str, str], lines: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ApiError) as caught:
        acting(headers, actor("bob"), *lines)
    assert (caught.value.code, caught.value.message) == (403, message)


def test_many_groups_are_allowed_at_once() -> None:
    headers = [("Impersonate-User", "jane"), *(("Impersonate-Group", f"g{number}") for number in range(4))]
    all_of_them = f"impersonate:user-info groups @{AUTH} =*"
    assert len(acting(headers, actor("bob"), ON_PODS, AS_JANE, all_of_them).groups) == 5
    with pytest.raises(ApiError):
        acting(headers[:4], actor("bob"), ON_PODS, AS_JANE, all_of_them)


def test_groups_without_a_user_are_a_mistake() -> None:
    with pytest.raises(ApiError) as caught:
        acting({"Impersonate-Group": "devs"})
    assert caught.value.code == 400
    assert caught.value.message == (
        'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"devs"}, Extra:map[string][]string(nil)} '
        "without impersonating a user name"
    )
