"""What every namespace has: the default account and the certificate of the cluster's authority."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest

from build.cluster_api import Api, Obj
from build.live_waits import until, until_gone

pytestmark = pytest.mark.needs("controllers")
ROOT = "kube-root-ca.crt"
UID = "kubernetes.io/service-account.uid"
LAST_USED = "kubernetes.io/legacy-token-last-used"


async def test_the_default_account_comes_and_comes_back(api: Api) -> None:
    path = api.core("serviceaccounts", "default")
    first = await until(api, path, bool)
    (await api.delete(path)).ok()
    again = await until(api, path, lambda one: one["metadata"]["uid"] != first["metadata"]["uid"])
    assert "deletionTimestamp" not in again["metadata"]


async def test_the_certificate_of_the_authority_comes_and_comes_back(api: Api) -> None:
    path = api.core("configmaps", ROOT)
    first = await until(api, path, lambda one: "kubernetes.io/description" in one["metadata"].get("annotations", {}))
    text = first["data"]["ca.crt"]
    assert text.startswith("-----BEGIN CERTIFICATE-----")
    (await api.delete(path)).ok()
    await until(api, path, lambda one: one["metadata"]["uid"] != first["metadata"]["uid"])
    (await api.patch(path, {"data": {"ca.crt": "changed"}})).ok()
    await until(api, path, lambda one: one["data"] == {"ca.crt": text})


async def filled_secret(api: Api) -> Obj:
    account: Obj = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    (await api.post(api.core("serviceaccounts"), account)).ok(201)
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "robot", "annotations": {"kubernetes.io/service-account.name": "robot"}},
        "type": "kubernetes.io/service-account-token",
    }
    (await api.post(api.core("secrets"), body)).ok(201)
    return await until(api, api.core("secrets", "robot"), lambda one: "token" in one.get("data", {}))


async def test_a_secret_for_a_token_is_filled_and_goes_with_its_account(api: Api) -> None:
    filled = await filled_secret(api)
    assert set(filled["data"]) == {"ca.crt", "namespace", "token"}
    assert "kubernetes.io/service-account.uid" in filled["metadata"]["annotations"]
    (await api.delete(api.core("serviceaccounts", "robot"))).ok()
    await until_gone(api, api.core("secrets", "robot"))


async def test_the_token_in_a_secret_is_its_account_while_the_secret_is_there(api: Api, kubeconfig: Path) -> None:
    secret = await filled_secret(api)
    token = base64.b64decode(secret["data"]["token"]).decode()
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims == {
        "iss": "kubernetes/serviceaccount",
        "sub": f"system:serviceaccount:{api.namespace}:robot",
        "kubernetes.io/serviceaccount/namespace": api.namespace,
        "kubernetes.io/serviceaccount/secret.name": "robot",
        "kubernetes.io/serviceaccount/service-account.name": "robot",
        "kubernetes.io/serviceaccount/service-account.uid": secret["metadata"]["annotations"][UID],
    }
    review: Obj = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    async with Api.open(kubeconfig, token=token) as robot:
        user = (await robot.post(reviews, review)).ok(201)["status"]["userInfo"]
        assert user["username"] == f"system:serviceaccount:{api.namespace}:robot"
        assert user["uid"] == secret["metadata"]["annotations"][UID]
        labelled = await until(api, api.core("secrets", "robot"), lambda one: one["metadata"].get("labels"))
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", labelled["metadata"]["labels"][LAST_USED])
        (await api.delete(api.core("secrets", "robot"))).ok()
        await until_gone(api, api.core("secrets", "robot"))
        while (answer := await robot.post(reviews, review)).code != 401:
            # A real server keeps what it found out about a token for some seconds.
            answer.ok(201)


async def test_it_is_noted_since_when_the_use_of_tokens_in_secrets_is_noted(api: Api) -> None:
    path = "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking"
    found = (await api.get(path)).ok()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["data"]["since"])
