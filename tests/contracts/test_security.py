"""Who asks and what they may: credentials, reviews, tokens, acting as others, and the words of refusals."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from build.cluster_api import Api, Obj
from build.cluster_server import ServerProcess
from build.contract_objects import eventually

pytestmark = pytest.mark.needs("serviceaccounts")
AUTHN = "/apis/authentication.k8s.io/v1"
AUTHZ = "/apis/authorization.k8s.io/v1"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cluster that asks for rights: `shoal up` does when told to, others do anyway."""
    given = os.environ.get("SHOAL_TEST_KUBECONFIG")
    if given:
        yield Path(given)
        return
    server = ServerProcess(tmp_path_factory.mktemp("guarded"), "--authorization", "rbac")
    yield server.kubeconfig
    server.stop()


@pytest.fixture
async def admin(guarded: Path) -> AsyncIterator[Api]:
    async with Api.open(guarded) as client:
        await client.make_namespace()
        yield client
        await client.remove_namespace()


async def make_account(admin: Api, name: str) -> str:
    """A token of a new account, without any rights."""
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    (await admin.post(admin.core("serviceaccounts"), body)).ok(201)
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    made = (await admin.post(admin.core("serviceaccounts", name, "token"), asked)).ok(201)
    token: str = made["status"]["token"]
    return token


async def grant(admin: Api, name: str, rule: Obj) -> None:
    group = "rbac.authorization.k8s.io"
    kind = {"apiVersion": f"{group}/v1", "metadata": {"name": name}}
    (await admin.post(admin.group(f"{group}/v1", "roles"), {**kind, "kind": "Role", "rules": [rule]})).ok(201)
    reference = {"apiGroup": group, "kind": "Role", "name": name}
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": admin.namespace}]
    binding = {**kind, "kind": "RoleBinding", "roleRef": reference, "subjects": subjects}
    (await admin.post(admin.group(f"{group}/v1", "rolebindings"), binding)).ok(201)
    wanted = {"verb": rule["verbs"][0], "group": rule["apiGroups"][0], "resource": rule["resources"][0]}
    wanted |= {"namespace": admin.namespace, "name": rule.get("resourceNames", [""])[0]}
    user = f"system:serviceaccount:{admin.namespace}:{name}"
    review: Obj = {"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1"}
    review["spec"] = {"user": user, "resourceAttributes": wanted}
    # An authorizer learns of a binding a little later.
    await eventually(
        lambda: admin.post(f"{AUTHZ}/subjectaccessreviews", review),
        lambda answer: answer.ok(201)["status"]["allowed"],
    )


async def who(client: Api, **headers: str) -> Obj:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    found = (await client.post(f"{AUTHN}/selfsubjectreviews", body, headers=headers)).ok(201)
    info: Obj = found["status"]["userInfo"]
    return info


async def test_the_administrator_is_recognised_and_may_do_everything(admin: Api) -> None:
    found = await who(admin)
    assert found["username"]
    assert "system:authenticated" in found["groups"]
    body = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1"}
    spec = {"resourceAttributes": {"verb": "delete", "resource": "nodes"}}
    review = (await admin.post(f"{AUTHZ}/selfsubjectaccessreviews", {**body, "spec": spec})).ok(201)
    assert review["status"]["allowed"] is True
    assert review["spec"] == spec


async def test_without_credentials_nothing_of_the_api_is_seen(guarded: Path) -> None:
    async with Api.open(guarded, anonymous=True) as nobody:
        answer = await nobody.get("/api/v1/namespaces")
    if answer.code == 401:
        assert answer.refused(401, "Unauthorized") == "Unauthorized"
        return
    assert answer.refused(403, "Forbidden") == (
        'namespaces is forbidden: User "system:anonymous" cannot list resource "namespaces" in API group "" '
        "at the cluster scope"
    )


@pytest.mark.parametrize("token", ["nonsense", "a.b.c"])
async def test_a_token_of_nobody_is_not_recognised(guarded: Path, token: str) -> None:
    async with Api.open(guarded, token=token) as nobody:
        answer = await nobody.get("/api/v1/namespaces")
    assert answer.refused(401, "Unauthorized") == "Unauthorized"
    assert answer.body["metadata"] == {}
    assert "details" not in answer.body


async def test_a_token_speaks_for_its_account(admin: Api, guarded: Path) -> None:
    token = await make_account(admin, "robot")
    async with Api.open(guarded, token=token) as robot:
        found = await who(robot)
    assert found["username"] == f"system:serviceaccount:{admin.namespace}:robot"
    assert set(found["groups"]) == {
        "system:serviceaccounts",
        f"system:serviceaccounts:{admin.namespace}",
        "system:authenticated",
    }
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["sub"] == found["username"]
    assert claims["kubernetes.io"]["namespace"] == admin.namespace
    assert claims["kubernetes.io"]["serviceaccount"]["name"] == "robot"


async def test_who_has_no_right_is_refused_in_a_sentence(admin: Api, guarded: Path) -> None:
    token, user = await make_account(admin, "robot"), f"system:serviceaccount:{admin.namespace}:robot"
    place = f'in API group "" in the namespace "{admin.namespace}"'
    async with Api.open(guarded, token=token) as robot:
        path = f"/api/v1/namespaces/{admin.namespace}/secrets"
        listed = await robot.get(path)
        words = f'secrets is forbidden: User "{user}" cannot list resource "secrets" {place}'
        assert listed.refused(403, "Forbidden") == words
        assert listed.body["details"] == {"kind": "secrets"}
        one = await robot.get(f"{path}/s")
        words = f'secrets "s" is forbidden: User "{user}" cannot get resource "secrets" {place}'
        assert one.refused(403, "Forbidden") == words
        assert one.body["details"] == {"name": "s", "kind": "secrets"}
        watched = await robot.get(path, watch="true")
        assert watched.refused(403, "Forbidden").startswith(
            f'secrets is forbidden: User "{user}" cannot watch resource'
        )
        nodes = await robot.get("/api/v1/nodes")
        words = f'nodes is forbidden: User "{user}" cannot list resource "nodes" in API group "" at the cluster scope'
        assert nodes.refused(403, "Forbidden") == words
        apps = await robot.post(f"/apis/apps/v1/namespaces/{admin.namespace}/deployments", {})
        words = (
            f'deployments.apps is forbidden: User "{user}" cannot create resource "deployments" in API group "apps" '
            f'in the namespace "{admin.namespace}"'
        )
        assert apps.refused(403, "Forbidden") == words
        metrics = await robot.get("/metrics")
        assert metrics.refused(403, "Forbidden") == f'forbidden: User "{user}" cannot get path "/metrics"'


async def test_a_right_that_is_granted_is_a_right_and_no_more(admin: Api, guarded: Path) -> None:
    token = await make_account(admin, "robot")
    await grant(admin, "robot", {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]})
    path = f"/api/v1/namespaces/{admin.namespace}/configmaps"
    async with Api.open(guarded, token=token) as robot:
        (await robot.get(path)).ok(200)
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
        assert (await robot.post(path, body)).refused(403, "Forbidden")


async def test_who_may_list_one_name_lists_it_by_a_field_selector(admin: Api, guarded: Path) -> None:
    token = await make_account(admin, "robot")
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"], "resourceNames": ["mine"]}
    await grant(admin, "robot", rule)
    for name in ("mine", "other"):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        (await admin.post(admin.core("configmaps"), body)).ok(201)
    path = f"/api/v1/namespaces/{admin.namespace}/configmaps"
    async with Api.open(guarded, token=token) as robot:
        found = (await robot.get(path, fieldSelector="metadata.name=mine")).ok(200)
        assert [one["metadata"]["name"] for one in found["items"]] == ["mine"]
        for selector in ("metadata.name=other", "metadata.name!=mine", "metadata.namespace=x", ""):
            assert (await robot.get(path, fieldSelector=selector)).refused(403, "Forbidden")


async def test_a_writer_of_rights_cannot_give_more_than_it_has(admin: Api, guarded: Path) -> None:
    token = await make_account(admin, "robot")
    group = "rbac.authorization.k8s.io"
    await grant(admin, "robot", {"apiGroups": [group], "resources": ["roles"], "verbs": ["create"]})
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    role = {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": {"name": "more"}, "rules": [rule]}
    async with Api.open(guarded, token=token) as robot:
        answer = await robot.post(f"/apis/{group}/v1/namespaces/{admin.namespace}/roles", role)
    message = answer.refused(403, "Forbidden")
    user = f"system:serviceaccount:{admin.namespace}:robot"
    assert message.startswith(f'roles.{group} "more" is forbidden: user "{user}" (groups=[')
    assert message.endswith(
        "is attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
    )


async def test_one_may_ask_what_another_may(admin: Api) -> None:
    await make_account(admin, "robot")
    await grant(admin, "robot", {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]})
    user = f"system:serviceaccount:{admin.namespace}:robot"
    body = {"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1"}
    for verb, allowed in (("get", True), ("delete", False)):
        wanted = {"namespace": admin.namespace, "verb": verb, "resource": "configmaps"}
        spec = {"user": user, "resourceAttributes": wanted}
        status = (await admin.post(f"{AUTHZ}/subjectaccessreviews", {**body, "spec": spec})).ok(201)["status"]
        assert status["allowed"] is allowed
        assert ("RBAC: allowed by RoleBinding" in status.get("reason", "")) is allowed


async def test_one_may_ask_for_all_rights_in_a_namespace(admin: Api) -> None:
    body = {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": "authorization.k8s.io/v1",
        "spec": {"namespace": admin.namespace},
    }
    status = (await admin.post(f"{AUTHZ}/selfsubjectrulesreviews", body)).ok(201)["status"]
    assert any(rule["verbs"] == ["*"] and rule["resources"] == ["*"] for rule in status["resourceRules"])
    assert "nonResourceRules" in status
    assert "incomplete" in status


async def test_a_token_can_be_reviewed(admin: Api) -> None:
    token = await make_account(admin, "robot")
    body = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1"}
    status = (await admin.post(f"{AUTHN}/tokenreviews", {**body, "spec": {"token": token}})).ok(201)["status"]
    assert status["authenticated"] is True
    assert status["user"]["username"] == f"system:serviceaccount:{admin.namespace}:robot"
    status = (await admin.post(f"{AUTHN}/tokenreviews", {**body, "spec": {"token": "nonsense"}})).ok(201)["status"]
    assert not status.get("authenticated", False)


async def test_a_token_for_others_does_not_open_this_door(admin: Api, guarded: Path) -> None:
    await make_account(admin, "robot")
    spec = {"audiences": ["somewhere-else"], "expirationSeconds": 3600}
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    made = (await admin.post(admin.core("serviceaccounts", "robot", "token"), asked)).ok(201)
    assert made["spec"]["audiences"] == ["somewhere-else"]
    async with Api.open(guarded, token=made["status"]["token"]) as robot:
        (await robot.get("/api/v1/nodes")).refused(401, "Unauthorized")


async def test_a_token_lives_for_ten_minutes_at_least(admin: Api) -> None:
    await make_account(admin, "robot")
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 10}}
    answer = await admin.post(admin.core("serviceaccounts", "robot", "token"), asked)
    message = answer.refused(422, "Invalid")
    assert "spec.expirationSeconds: Invalid value: 10: may not specify a duration less than 10 minutes" in message


async def test_nobody_gets_a_token_of_an_account_that_is_not_there(admin: Api) -> None:
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await admin.post(admin.core("serviceaccounts", "none", "token"), asked)
    assert answer.refused(404, "NotFound") == 'serviceaccounts "none" not found'


async def test_the_administrator_may_act_as_others(admin: Api) -> None:
    headers = {"Impersonate-User": "jane", "Impersonate-Group": "readers"}
    found = await who(admin, **headers)
    assert found["username"] == "jane"
    assert set(found["groups"]) == {"readers", "system:authenticated"}
    answer = await admin.get("/api/v1/nodes", headers=headers)
    words = 'nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope'
    assert answer.refused(403, "Forbidden") == words


async def test_others_may_not_act_as_others(admin: Api, guarded: Path) -> None:
    token = await make_account(admin, "robot")
    async with Api.open(guarded, token=token) as robot:
        answer = await robot.get("/api/v1/nodes", headers={"Impersonate-User": "jane"})
    user = f"system:serviceaccount:{admin.namespace}:robot"
    message = answer.refused(403, "Forbidden")
    assert message == (
        f'nodes is forbidden: User "{user}" cannot impersonate-on:user-info:list resource "nodes" in API group "" at '
        "the cluster scope"
    )


async def test_acting_as_another_can_be_allowed_for_one_request_only(admin: Api, guarded: Path) -> None:
    token = await make_account(admin, "robot")
    headers = {"Impersonate-User": f"jane-{admin.namespace}"}
    async with Api.open(guarded, token=token) as robot:
        verb = "impersonate-on:user-info:list"
        await grant(admin, "robot", {"apiGroups": [""], "resources": ["configmaps"], "verbs": [verb]})
        words = (
            'cannot impersonate:user-info resource "users" in API group "authentication.k8s.io" at the cluster scope'
        )
        listing = admin.core("configmaps")
        assert words in (await robot.get(listing, headers=headers)).refused(403, "Forbidden")
        answer = await robot.get(admin.core("secrets"), headers=headers)
    assert 'cannot impersonate-on:user-info:list resource "secrets"' in answer.refused(403, "Forbidden")
