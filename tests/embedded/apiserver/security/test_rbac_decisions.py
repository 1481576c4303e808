"""What roles bound to somebody allow, why, and what is said when they do not."""

from __future__ import annotations

import tracemalloc

import pytest

from build.rbac import actor, binding, cluster_binding, cluster_role, role
from build.readers import FixedReader
from shoal.embedded.apiserver.bootstrap.default_roles import default_roles
from shoal.embedded.apiserver.calls import ANONYMOUS
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.security.authorize import AllowRecognised
from shoal.embedded.apiserver.security.rbac import Rbac
from shoal.embedded.apiserver.security.verdict import forbidden, refusal

LIST_PODS = RequestInfo("list", "", "v1", "pods", namespace="default")


def test_a_cluster_binding_allows_in_every_namespace_and_says_through_what() -> None:
    rbac = Rbac(FixedReader(cluster_role("reader", "list pods"), cluster_binding("reader", "User bob")))
    verdict = rbac.allows(actor("bob"), LIST_PODS)
    assert verdict.allowed
    assert (
        verdict.reason == 'RBAC: allowed by ClusterRoleBinding "reader-binding" of ClusterRole "reader" to User "bob"'
    )
    assert not rbac.allows(actor("eve"), LIST_PODS).allowed


def test_a_binding_in_a_namespace_gives_a_cluster_role_there_only() -> None:
    reader = FixedReader(cluster_role("reader", "list pods"), binding("team", "ClusterRole reader", "Group devs"))
    rbac = Rbac(reader)
    asked = RequestInfo("list", "", "v1", "pods", namespace="team")
    verdict = rbac.allows(actor("bob", "devs"), asked)
    assert (
        verdict.reason == 'RBAC: allowed by RoleBinding "reader-binding/team" of ClusterRole "reader" to Group "devs"'
    )
    assert not rbac.allows(actor("bob", "devs"), LIST_PODS).allowed


def test_a_service_account_without_a_namespace_is_one_of_the_bindings_namespace() -> None:
    reader = FixedReader(role("ci", "r", "get pods"), binding("ci", "Role r", "ServiceAccount builder"))
    rbac = Rbac(reader)
    asked = RequestInfo("get", "", "v1", "pods", namespace="ci", name="p")
    verdict = rbac.allows(actor("system:serviceaccount:ci:builder"), asked)
    assert verdict.reason.endswith('of Role "r" to ServiceAccount "builder/ci"')
    assert not rbac.allows(actor("system:serviceaccount:other:builder"), asked).allowed


@pytest.mark.parametrize(
    ("line", "asked", "allowed"),
    [
        ("get pods", RequestInfo("get", resource="pods"), True),
        ("get pods", RequestInfo("get", resource="pods", subresource="log"), False),
        ("get pods/log", RequestInfo("get", resource="pods", subresource="log"), True),
        ("get */scale @*", RequestInfo("get", "apps", resource="deployments", subresource="scale"), True),
        ("get */scale @*", RequestInfo("get", "apps", resource="deployments"), False),
        ("* * @*", RequestInfo("escalate", "x", resource="anything", subresource="deep"), True),
        ("get pods", RequestInfo("get", "apps", resource="pods"), False),
        ("get secrets =one", RequestInfo("get", resource="secrets", name="one"), True),
        ("get secrets =one", RequestInfo("get", resource="secrets", name="two"), False),
        ("list secrets =one", RequestInfo("list", resource="secrets"), False),
        ("get /healthz/*", RequestInfo.of_path("get", "/healthz/etcd"), True),
        ("get /healthz/*", RequestInfo.of_path("get", "/healthz"), False),
        ("get /healthz", RequestInfo.of_path("post", "/healthz"), False),
        ("* * (paths)", RequestInfo.of_path("get", "/metrics"), True),
        ("* * @*", RequestInfo.of_path("get", "/metrics"), False),
    ],
)
def test_a_rule_allows_just_what_it_names(line: str, asked: RequestInfo, allowed: bool) -> None:
    rbac = Rbac(FixedReader(cluster_role("r", line), cluster_binding("r", "User bob")))
    assert rbac.allows(actor("bob"), asked).allowed is allowed


def test_a_right_ends_when_its_binding_is_deleted() -> None:
    bound = cluster_binding("reader", "User bob")
    reader = FixedReader(cluster_role("reader", "list pods"), bound)
    rbac = Rbac(reader)
    assert rbac.allows(actor("bob"), LIST_PODS).allowed
    reader.drop(bound)
    assert not rbac.allows(actor("bob"), LIST_PODS).allowed


def test_a_role_that_gathers_others_allows_what_a_new_one_brings_at_once() -> None:
    reader = FixedReader(cluster_role("ops", gathers="to-ops"), cluster_binding("ops", "User bob"))
    rbac = Rbac(reader)
    asked = RequestInfo("list", "kueue.x-k8s.io", "v1", "workloads")
    assert not rbac.allows(actor("bob"), asked).allowed
    reader.put(cluster_role("kueue", "list workloads @kueue.x-k8s.io", labels={"to-ops": "true"}))
    assert rbac.allows(actor("bob"), asked).allowed


def test_a_missing_role_is_named_in_the_refusal() -> None:
    rbac = Rbac(FixedReader(cluster_binding("gone", "User bob")))
    verdict = rbac.allows(actor("bob"), LIST_PODS)
    assert verdict.reason == 'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found'
    assert forbidden(actor("bob"), LIST_PODS, verdict.reason).message == (
        'pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the namespace "default": '
        'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found'
    )


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            LIST_PODS,
            'pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the namespace "default"',
        ),
        (
            RequestInfo("get", "", "v1", "pods", "log", "ns", "p"),
            'pods "p" is forbidden: User "bob" cannot get resource "pods/log" in API group "" in the namespace "ns"',
        ),
        (
            RequestInfo("delete", "apps", "v1", "deployments", "", "ns", "web"),
            (
                'deployments.apps "web" is forbidden: User "bob" cannot delete resource "deployments" in API group '
                '"apps" in the namespace "ns"'
            ),
        ),
        (
            RequestInfo("create", "", "v1", "namespaces"),
            (
                'namespaces is forbidden: User "bob" cannot create resource "namespaces" in API group "" at the '
                "cluster scope"
            ),
        ),
        (RequestInfo.of_path("get", "/metrics"), 'forbidden: User "bob" cannot get path "/metrics"'),
    ],
)
def test_a_refusal_says_who_cannot_do_what_where(asked: RequestInfo, message: str) -> None:
    error = forbidden(actor("bob"), asked)
    assert (error.code, error.reason, error.message) == (403, "Forbidden", message)


def test_without_credentials_the_answer_is_401_and_not_403() -> None:
    assert refusal(ANONYMOUS, LIST_PODS, AllowRecognised().allows(ANONYMOUS, LIST_PODS)).code == 401


def test_without_rbac_everybody_recognised_may_everything_and_anonymous_may_ask_for_health() -> None:
    authorizer = AllowRecognised()
    assert authorizer.allows(actor("anybody"), RequestInfo("delete", resource="nodes")).allowed
    assert authorizer.allows(ANONYMOUS, RequestInfo.of_path("get", "/readyz")).allowed
    assert not authorizer.allows(ANONYMOUS, RequestInfo.of_path("get", "/metrics")).allowed


DEFAULTS = FixedReader(*(seed.obj for seed in default_roles()))


@pytest.mark.parametrize(
    ("bound", "verb", "group", "resource", "allowed"),
    [
        ("view", "list", "", "pods", True),
        ("view", "get", "", "secrets", False),
        ("view", "create", "", "pods", False),
        ("view", "list", "resource.k8s.io", "resourceclaims", True),
        ("edit", "create", "apps", "deployments", True),
        ("edit", "get", "", "secrets", True),
        ("edit", "impersonate", "", "serviceaccounts", True),
        ("edit", "create", "rbac.authorization.k8s.io", "roles", False),
        ("edit", "update", "", "resourcequotas", False),
        ("admin", "create", "rbac.authorization.k8s.io", "rolebindings", True),
        ("admin", "list", "", "pods", True),
        ("admin", "update", "", "resourcequotas", False),
        ("admin", "create", "", "namespaces", False),
    ],
)
def test_the_default_roles_for_people_reach_as_far_as_they_should(
    bound: str, verb: str, group: str, resource: str, allowed: bool
) -> None:
    reader = FixedReader(*DEFAULTS.all("rbac.authorization.k8s.io", "clusterroles"))
    reader.put(binding("ns", f"ClusterRole {bound}", "User bob"))
    asked = RequestInfo(verb, group, "v1", resource, namespace="ns")
    assert Rbac(reader).allows(actor("bob"), asked).allowed is allowed


def test_components_have_what_they_need_and_no_more() -> None:
    rbac = Rbac(DEFAULTS)
    scheduler = actor("system:kube-scheduler")
    assert rbac.allows(scheduler, RequestInfo("create", "", "v1", "pods", "binding", "ns", "p")).allowed
    assert rbac.allows(scheduler, RequestInfo("update", "resource.k8s.io", "v1", "resourceclaims", "status")).allowed
    assert not rbac.allows(scheduler, RequestInfo("create", "", "v1", "pods", "", "ns")).allowed
    controller = actor("system:serviceaccount:kube-system:job-controller", "system:serviceaccounts")
    assert rbac.allows(controller, RequestInfo("create", "", "v1", "pods", "", "ns")).allowed


def test_everybody_recognised_may_discover_and_ask_what_they_may() -> None:
    rbac = Rbac(DEFAULTS)
    bob = actor("bob")
    assert rbac.allows(bob, RequestInfo.of_path("get", "/apis/apps/v1")).allowed
    review = RequestInfo("create", "authorization.k8s.io", "v1", "selfsubjectaccessreviews")
    assert rbac.allows(bob, review).allowed
    assert not rbac.allows(ANONYMOUS, review).allowed
    assert rbac.allows(ANONYMOUS, RequestInfo.of_path("get", "/version")).allowed


def test_questions_that_anybody_can_make_up_leave_nothing_behind() -> None:
    reader = FixedReader(cluster_role("reader", "get pods"), cluster_binding("reader", "User bob"))
    rbac = Rbac(reader)
    bob = actor("bob")
    long = "x" * 8000
    asked = [RequestInfo("get", resource="pods", namespace=f"made-up-{place}", name=long) for place in range(10_000)]
    tracemalloc.start()
    try:
        for one in asked:
            assert not rbac.allows(ANONYMOUS, one).allowed
            assert rbac.allows(bob, one).allowed
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # As much as Python itself puts by.
    assert kept < 500_000


def test_what_is_refused_is_allowed_once_a_first_binding_of_the_namespace_says_so() -> None:
    reader = FixedReader(role("default", "r", "list pods"))
    rbac = Rbac(reader)
    assert not rbac.allows(actor("bob"), LIST_PODS).allowed
    reader.put(binding("default", "Role r", "User bob"))
    assert rbac.allows(actor("bob"), LIST_PODS).allowed
