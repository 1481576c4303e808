"""Acting as somebody else: every part of it needs its own right."""

from __future__ import annotations

import pytest

from build.rbac import actor, cluster_binding, cluster_role
from build.readers import FixedReader
from shoal.cluster.calls import Actor
from shoal.cluster.security.impersonate import impersonated
from shoal.cluster.security.rbac import Rbac
from shoal.cluster.status import ApiError

ADMIN = actor("root", "system:masters")


def acting(headers: dict[str, str] | list[tuple[str, str]], by: Actor = ADMIN, *lines: str) -> Actor:
    reader = FixedReader(cluster_role("r", *lines), cluster_binding("r", f"User {by.name}")) if lines else FixedReader()
    pairs = list(headers.items()) if isinstance(headers, dict) else headers
    return impersonated(by, pairs, Rbac(reader).allows)


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


@pytest.mark.parametrize(
    ("headers", "lines", "message"),
    [
        (
            {"Impersonate-User": "jane"},
            ("get pods",),
            (
                'users "jane" is forbidden: User "bob" cannot impersonate resource "users" in API group "" at the '
                "cluster scope"
            ),
        ),
        (
            {"Impersonate-User": "jane", "Impersonate-Group": "system:masters"},
            ("impersonate users =jane",),
            (
                'groups "system:masters" is forbidden: User "bob" cannot impersonate resource "groups" in API group "" '
                "at the cluster scope"
            ),
        ),
        (
            {"Impersonate-User": "jane", "Impersonate-Extra-Scopes": "all"},
            ("impersonate users",),
            (
                'userextras.authentication.k8s.io "all" is forbidden: User "bob" cannot impersonate resource '
                '"userextras/scopes" in API group "authentication.k8s.io" at the cluster scope'
            ),
        ),
        (
            {"Impersonate-User": "system:serviceaccount:ci:builder"},
            ("impersonate users",),
            (
                'serviceaccounts "builder" is forbidden: User "bob" cannot impersonate resource "serviceaccounts" in '
                'API group "" in the namespace "ci"'
            ),
        ),
    ],
)
def test_a_part_without_a_right_refuses_the_whole(
    headers: dict[str, str], lines: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ApiError) as caught:
        acting(headers, actor("bob"), *lines)
    assert (caught.value.code, caught.value.message) == (403, message)


def test_groups_without_a_user_are_a_mistake() -> None:
    with pytest.raises(ApiError, match="without impersonating a user"):
        acting({"Impersonate-Group": "devs"})
