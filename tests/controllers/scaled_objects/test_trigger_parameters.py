"""Parameters of triggers come from Secrets, ConfigMaps and the environment of the scaled container."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.autoscale.scaled_objects.spec import AuthenticationRef, Trigger
from shoal.autoscale.scaled_objects.trigger_metadata import TriggerError
from shoal.client.ecosystem_kinds import TRIGGER_AUTHENTICATIONS
from shoal.client.item import Obj
from shoal.client.kind import CONFIG_MAPS, DEFINITIONS, SECRETS
from shoal.controllers.scaled_objects.trigger_parameters import TriggerParameters
from shoal.embedded.apiserver.foreign.definitions import definitions

POD: Obj = {
    "containers": [
        {
            "name": "web",
            "envFrom": [
                {"configMapRef": {"name": "settings"}, "prefix": "A_"},
                {"secretRef": {"name": "gone", "optional": True}},
            ],
            "env": [
                {"name": "PLAIN", "value": "p"},
                {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                {"name": "MISSING", "valueFrom": {"secretKeyRef": {"name": "s", "key": "n", "optional": True}}},
                {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            ],
        },
        {"name": "other", "env": [{"name": "PLAIN", "value": "of the other"}]},
    ]
}
TRIGGER = Trigger("redis", metadata={"passwordFromEnv": "PASSWORD"})
WITH_AUTHENTICATION = Trigger("redis", authentication_ref=AuthenticationRef("auth"))


async def prepared(cluster: SmallCluster) -> None:
    await cluster.create(SECRETS, {"metadata": {"name": "s"}, "data": {"k": base64.b64encode(b"t0p").decode()}})
    await cluster.create(CONFIG_MAPS, {"metadata": {"name": "settings"}, "data": {"MODE": "fast"}})


def parameters(cluster: SmallCluster, pod: Obj = POD, container: str = "") -> TriggerParameters:
    async def pod_spec() -> Obj:
        return pod

    return TriggerParameters(cluster.api, "default", pod_spec, container)


@virtual
async def test_the_environment_is_that_of_the_container(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await prepared(cluster)
        found = await parameters(cluster).environment(TRIGGER)
        assert found == {"A_MODE": "fast", "PLAIN": "p", "PASSWORD": "t0p"}
        assert await parameters(cluster, container="other").environment(TRIGGER) == {"PLAIN": "of the other"}
        assert await parameters(cluster, {}).environment(Trigger("redis")) == {}
        with pytest.raises(TriggerError, match="has no container none"):
            await parameters(cluster, container="none").environment(TRIGGER)
        with pytest.raises(TriggerError, match="has no template of pods"):
            await parameters(cluster, {}).environment(TRIGGER)


async def define(cluster: SmallCluster) -> None:
    for definition in definitions():
        if definition["spec"]["group"] == "keda.sh":
            await cluster.create(DEFINITIONS, definition)
    await cluster.until(lambda: has_kind(cluster))


async def has_kind(cluster: SmallCluster) -> bool:
    return any(one.kind == TRIGGER_AUTHENTICATIONS for one in await cluster.api.served())


async def authentication(cluster: SmallCluster, spec: Obj) -> dict[str, str]:
    for one in await cluster.all(TRIGGER_AUTHENTICATIONS):
        await cluster.delete(TRIGGER_AUTHENTICATIONS, one["metadata"]["name"])
    await cluster.create(TRIGGER_AUTHENTICATIONS, {"metadata": {"name": "auth"}, "spec": spec})
    return await parameters(cluster).authentication(WITH_AUTHENTICATION)


@virtual
async def test_an_authentication_takes_values_from_secrets_and_from_the_environment(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await prepared(cluster)
        await define(cluster)
        with pytest.raises(TriggerError, match="error getting TriggerAuthentication auth: it does not exist"):
            await parameters(cluster).authentication(WITH_AUTHENTICATION)
        spec: Obj = {
            "env": [
                {"parameter": "username", "name": "PLAIN", "containerName": "other"},
                {"parameter": "none", "name": "NODE"},
            ],
            "secretTargetRef": [{"parameter": "password", "name": "s", "key": "k"}],
            "configMapTargetRef": [{"parameter": "mode", "name": "settings", "key": "MODE"}],
        }
        found = await authentication(cluster, spec)
        assert found == {"username": "of the other", "none": "", "password": "t0p", "mode": "fast"}
        with pytest.raises(TriggerError, match="Secret default/s has no key n"):
            await authentication(cluster, {"secretTargetRef": [{"parameter": "p", "name": "s", "key": "n"}]})


@virtual
async def test_an_identity_of_a_cloud_is_refused_with_what_to_do_instead(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await define(cluster)
        assert await authentication(cluster, {"podIdentity": {"provider": "none"}}) == {}
        with pytest.raises(TriggerError, match="podIdentity provider aws is not supported; write the credentials"):
            await authentication(cluster, {"podIdentity": {"provider": "aws"}})
        vault: Obj = {"hashiCorpVault": {"address": "a", "authentication": "token", "secrets": []}}
        with pytest.raises(TriggerError, match="hashiCorpVault is not supported; write the credentials"):
            await authentication(cluster, vault)
