"""Every namespace has an account, the certificate to trust, and tokens where a secret asks for one."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path

from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.client.context import Context, Controller
from shoal.client.item import Obj
from shoal.client.kind import CONFIG_MAPS, NAMESPACES, SECRETS, SERVICE_ACCOUNTS
from shoal.embedded.controllers.service_accounts.accounts import service_account_controller
from shoal.embedded.controllers.service_accounts.root_certificate import root_certificate_publisher
from shoal.embedded.controllers.service_accounts.token_secrets import token_secrets_controller


def _publisher(context: Context) -> Controller:
    return root_certificate_publisher(context, "trusted")


def _tokens(context: Context) -> Controller:
    def sign(account: Obj, secret: Obj) -> str:
        return f"token of {account['metadata']['name']} in {secret['metadata']['name']}"

    return token_secrets_controller(context, sign, "trusted")


@virtual
async def test_what_people_take_from_a_namespace_comes_back(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [service_account_controller, _publisher]) as cluster:
        await cluster.create(NAMESPACES, {"metadata": {"name": "team"}})
        await cluster.delete(SERVICE_ACCOUNTS, "default", namespace="team")
        await cluster.delete(CONFIG_MAPS, "kube-root-ca.crt", namespace="team")
        await cluster.pass_time(2)
        assert await cluster.get(SERVICE_ACCOUNTS, "default", "team")
        assert (await cluster.get(CONFIG_MAPS, "kube-root-ca.crt", "team"))["data"] == {"ca.crt": "trusted"}
        await cluster.patch(CONFIG_MAPS, "kube-root-ca.crt", {"data": {"ca.crt": "forged", "more": "x"}})
        await cluster.pass_time(2)
        assert (await cluster.get(CONFIG_MAPS, "kube-root-ca.crt"))["data"] == {"ca.crt": "trusted"}


@virtual
async def test_a_secret_that_asks_for_a_token_gets_one_and_goes_with_its_account(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [_tokens]) as cluster:
        await cluster.create(SERVICE_ACCOUNTS, {"metadata": {"name": "robot"}})
        meta = {"name": "key", "annotations": {"kubernetes.io/service-account.name": "robot"}}
        await cluster.create(SECRETS, {"metadata": meta, "type": "kubernetes.io/service-account-token"})
        await cluster.pass_time(2)
        secret = await cluster.get(SECRETS, "key")
        found = {name: b64decode(value).decode() for name, value in secret["data"].items()}
        assert found == {"token": "token of robot in key", "ca.crt": "trusted", "namespace": "default"}
        account = await cluster.get(SERVICE_ACCOUNTS, "robot")
        uid = secret["metadata"]["annotations"]["kubernetes.io/service-account.uid"]
        assert uid == account["metadata"]["uid"]
        await cluster.delete(SERVICE_ACCOUNTS, "robot")
        await cluster.pass_time(2)
        assert not await cluster.all(SECRETS, "default")
