"""A control plane from its first start to the next one."""

from __future__ import annotations

import asyncio
from pathlib import Path

from build.planes import Operations, config_map, operations
from shoal.embedded.apiserver.resource import Home, Obj, Ref
from shoal.embedded.apiserver.server.control_plane import open_plane
from shoal.embedded.apiserver.settings import Settings
from shoal.embedded.apiserver.storage.memory import MemoryStorage

_PATIENCE_S = 60
ROLES = Home("rbac.authorization.k8s.io", "clusterroles")
SLICES = Home("discovery.k8s.io", "endpointslices")
DEFINITION: Obj = {
    "kind": "CustomResourceDefinition",
    "apiVersion": "apiextensions.k8s.io/v1",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}},
        ],
    },
}


async def test_what_was_stored_is_there_after_the_next_start(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "state", tmp_path / "kubeconfig")
    first = await open_plane(settings, ("127.0.0.1", 1))
    made = await Operations(first).create("configmaps", config_map("kept", a="b"))
    await first.close()
    second = await open_plane(settings, ("127.0.0.1", 1))
    found = Operations(second).find("configmaps", "kept")
    assert found is not None
    assert found.obj() == made
    assert second.authority.root_certificate == first.authority.root_certificate
    await second.close()


async def test_the_endpoints_of_the_server_follow_its_port(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "state", tmp_path / "kubeconfig")
    ports = []
    for port in (1111, 2222):
        plane = await open_plane(settings, ("127.0.0.1", port))
        own = plane.context.state.get(Ref(SLICES, "default", "kubernetes"))
        assert own is not None
        ports.append(own.obj()["ports"][0]["port"])
        await plane.close()
    assert ports == [1111, 2222]


async def test_whom_aggregated_servers_are_to_believe_is_told_as_it_is_now(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "state", tmp_path / "kubeconfig")
    trust = Ref(Home("", "configmaps"), "kube-system", "extension-apiserver-authentication")
    first = await open_plane(settings, ("127.0.0.1", 1))
    authority = first.authority
    await first.close()
    for name in ("front-proxy-ca.crt", "front-proxy-ca.key"):
        (tmp_path / "state" / "keys" / name).unlink()
    second = await open_plane(settings, ("127.0.0.1", 1))
    told = second.context.state.get(trust)
    assert told is not None
    assert told.obj()["data"]["requestheader-client-ca-file"].encode() == second.authority.front_proxy_root.certificate
    assert told.obj()["data"]["client-ca-file"] == authority.root_certificate
    assert second.authority.front_proxy_root != authority.front_proxy_root
    await second.close()


async def test_a_role_that_gathers_others_shows_their_rules_once_they_are_written(tmp_path: Path) -> None:
    async with operations(tmp_path) as api:
        labels = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
        rule = {"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get"]}
        role = {"metadata": {"name": "see-widgets", "labels": labels}, "rules": [rule]}
        watch = api.state.watch(ROLES, None, api.state.revision, name="view")
        await api.create("clusterroles", role, group=ROLES.group)
        async with asyncio.timeout(_PATIENCE_S):
            events = await watch.next_batch()
            while rule not in events[-1].record.obj()["rules"]:
                events = await watch.next_batch()
        found = api.find("clusterroles", "view", ROLES.group)
        assert found is not None
        assert rule in found.obj()["rules"]


async def test_a_custom_resource_is_served_again_after_the_next_start(tmp_path: Path) -> None:
    storage = MemoryStorage()
    definitions = Home("apiextensions.k8s.io", "customresourcedefinitions")
    async with operations(tmp_path, storage) as api:
        watch = api.state.watch(definitions, None, api.state.revision)
        await api.create("customresourcedefinitions", DEFINITION, group=definitions.group)
        assert api.context.catalog.find("example.com", "v1", "widgets") is None
        async with asyncio.timeout(_PATIENCE_S):
            while api.context.catalog.find("example.com", "v1", "widgets") is None:
                await watch.next_batch()
    async with operations(tmp_path, storage) as api:
        assert api.context.catalog.find("example.com", "v1", "widgets") is not None
