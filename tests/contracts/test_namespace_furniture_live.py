"""What every namespace has: the default account and the certificate of the cluster's authority."""

from __future__ import annotations

import pytest

from build.cluster_api import Api, Obj
from build.live_waits import until, until_gone

pytestmark = pytest.mark.needs("controllers")
ROOT = "kube-root-ca.crt"


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


async def test_a_secret_for_a_token_is_filled_and_goes_with_its_account(api: Api) -> None:
    account: Obj = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    (await api.post(api.core("serviceaccounts"), account)).ok(201)
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "robot", "annotations": {"kubernetes.io/service-account.name": "robot"}},
        "type": "kubernetes.io/service-account-token",
    }
    (await api.post(api.core("secrets"), body)).ok(201)
    filled = await until(api, api.core("secrets", "robot"), lambda one: "token" in one.get("data", {}))
    assert set(filled["data"]) == {"ca.crt", "namespace", "token"}
    assert "kubernetes.io/service-account.uid" in filled["metadata"]["annotations"]
    (await api.delete(api.core("serviceaccounts", "robot"))).ok()
    await until_gone(api, api.core("secrets", "robot"))
