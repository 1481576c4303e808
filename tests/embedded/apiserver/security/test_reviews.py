"""Questions about rights, identities and tokens, and their answers."""

from __future__ import annotations

from typing import Any

import pytest

from build.identities import NOW_S, account, authority, running_pod
from build.rbac import actor, cluster_binding, cluster_role
from build.readers import FixedReader
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.security import reviews
from shoal.embedded.apiserver.security.authenticate import Authenticator
from shoal.embedded.apiserver.security.authorize import AllowRecognised
from shoal.embedded.apiserver.security.rbac import Rbac
from shoal.embedded.apiserver.security.service_accounts import ISSUER, TokenSigner
from shoal.embedded.apiserver.security.token_request import token_request
from shoal.embedded.apiserver.status import ApiError

Obj = dict[str, Any]
SIGNER = TokenSigner(authority().signing_key)
BOB_LISTS = Rbac(FixedReader(cluster_role("r", "list pods", "get /metrics"), cluster_binding("r", "User bob")))
LIST_PODS = {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "ns"}}


def review(**spec: Any) -> Obj:
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}, "spec": spec}


def refusal(question: Any, *arguments: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        question(*arguments)
    return caught.value


def test_whether_somebody_may_is_answered_with_the_binding_that_lets_them() -> None:
    answer = reviews.subject_access_review(review(user="bob", **LIST_PODS), BOB_LISTS)
    assert answer["status"] == {
        "allowed": True,
        "reason": 'RBAC: allowed by ClusterRoleBinding "r-binding" of ClusterRole "r" to User "bob"',
    }
    assert reviews.subject_access_review(review(user="eve", **LIST_PODS), BOB_LISTS)["status"] == {"allowed": False}


def test_one_may_ask_about_oneself_and_about_paths() -> None:
    path = review(nonResourceAttributes={"verb": "get", "path": "/metrics"})
    assert reviews.self_subject_access_review(path, actor("bob"), BOB_LISTS)["status"]["allowed"]
    assert not reviews.self_subject_access_review(path, actor("eve"), BOB_LISTS)["status"]["allowed"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"user": "bob"},
            (
                '.authorization.k8s.io "" is invalid: spec.resourceAttributes: Invalid value: null: '
                "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            ),
        ),
        (
            LIST_PODS,
            (
                '.authorization.k8s.io "" is invalid: spec.user: Invalid value: "": at least one of '
                "user or group must be specified"
            ),
        ),
    ],
)
def test_a_question_without_its_parts_is_refused(spec: Obj, message: str) -> None:
    error = refusal(reviews.subject_access_review, review(**spec), BOB_LISTS)
    assert (error.code, error.message) == (422, message)


def test_a_local_question_stays_in_its_namespace() -> None:
    question = review(user="bob", **LIST_PODS)
    assert reviews.local_subject_access_review(question, "ns", BOB_LISTS)["status"]["allowed"]
    error = refusal(reviews.local_subject_access_review, question, "other", BOB_LISTS)
    assert (error.code, error.message) == (400, "spec.resourceAttributes.namespace must match namespace: other")


def test_what_one_may_is_listed_as_rules() -> None:
    answer = reviews.self_subject_rules_review(review(namespace="ns"), actor("bob"), BOB_LISTS)["status"]
    assert answer == {
        "incomplete": False,
        "resourceRules": [{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}],
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}],
    }
    everything = reviews.self_subject_rules_review(review(namespace="ns"), actor("bob"), AllowRecognised())["status"]
    assert everything["resourceRules"] == [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
    error = refusal(reviews.self_subject_rules_review, review(), actor("bob"), BOB_LISTS)
    assert (error.code, error.message) == (400, "no namespace on request")


def test_who_am_i() -> None:
    me = Actor("bob", ("devs",), "7", (("scopes", ("all",)),))
    expected = {"username": "bob", "uid": "7", "groups": ["devs"], "extra": {"scopes": ["all"]}}
    assert reviews.self_subject_review(review(), me)["status"] == {"userInfo": expected}


BUILDER = account("ci", "builder")
READER = FixedReader(
    BUILDER, running_pod("ci", "job-1", "builder", node="n1"), running_pod("ci", "other", "default", uid="u2")
)
AUTHENTICATOR = Authenticator(authority(), SIGNER, READER)


def requested(**spec: Any) -> Obj:
    return token_request({"spec": spec}, BUILDER, SIGNER, READER, NOW_S)


def test_a_token_is_issued_and_recognised_for_its_audience() -> None:
    made = requested()
    assert made["spec"]["expirationSeconds"] == 3600
    assert made["spec"]["audiences"] == [ISSUER]
    assert made["status"]["expirationTimestamp"] == "2026-11-21T11:00:00Z"
    found = reviews.token_review(review(token=made["status"]["token"]), AUTHENTICATOR, NOW_S)["status"]
    assert found["authenticated"]
    assert found["user"]["username"] == "system:serviceaccount:ci:builder"
    assert found["audiences"] == [ISSUER]


def test_a_token_for_another_audience_is_good_there_only() -> None:
    token = requested(audiences=["vault"])["status"]["token"]
    asked = reviews.token_review(review(token=token, audiences=["vault", "more"]), AUTHENTICATOR, NOW_S)["status"]
    assert asked["audiences"] == ["vault"]
    unasked = reviews.token_review(review(token=token), AUTHENTICATOR, NOW_S)["status"]
    assert "authenticated" not in unasked
    assert unasked["error"] == (
        f'[invalid bearer token, token audiences ["vault"] is invalid for the target audiences ["{ISSUER}"]]'
    )


def test_a_token_that_is_none_is_answered_and_not_refused() -> None:
    status = reviews.token_review(review(token="x"), AUTHENTICATOR, NOW_S)["status"]  # noqa: S106 - not a secret
    assert status == {"error": "invalid bearer token", "user": {}}
    assert refusal(reviews.token_review, review(), AUTHENTICATOR, NOW_S).code == 400


def test_a_token_can_be_bound_to_a_pod_of_the_account() -> None:
    reference = {"kind": "Pod", "apiVersion": "v1", "name": "job-1", "uid": "pod-uid"}
    made = requested(boundObjectRef=reference, expirationSeconds=600)
    assert made["spec"]["boundObjectRef"] == reference
    status = reviews.token_review(review(token=made["status"]["token"]), AUTHENTICATOR, NOW_S)["status"]
    assert status["user"]["extra"]["authentication.kubernetes.io/pod-uid"] == ["pod-uid"]


@pytest.mark.parametrize(
    ("spec", "code", "message"),
    [
        (
            {"expirationSeconds": 60},
            422,
            (
                'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 60: may not '
                "specify a duration less than 10 minutes"
            ),
        ),
        (
            {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "c"}},
            400,
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
        ({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "gone"}}, 404, 'pods "gone" not found'),
        (
            {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "job-1", "uid": "old"}},
            409,
            (
                'Operation cannot be fulfilled on Pod "job-1": the UID in the bound object reference (old) does not '
                "match the UID in record. The object might have been deleted and then recreated"
            ),
        ),
        (
            {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "other"}},
            400,
            'cannot bind token for serviceaccount "builder" to pod running with different serviceaccount name.',
        ),
    ],
)
def test_a_token_request_that_cannot_be_met_says_why(spec: Obj, code: int, message: str) -> None:
    error = refusal(lambda: requested(**spec))
    assert (error.code, error.message) == (code, message)
