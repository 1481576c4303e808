"""Which release a command means, and what a removal leaves: other namespaces, records of others, objects of users."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from build.small_clusters import ADMIN, SmallCluster, small_cluster
from build.virtual_time import virtual
from build.whole_clusters import whole_cluster
from shoal.client.ecosystem_kinds import NVIDIA_DRIVERS
from shoal.client.kind import CONFIG_MAPS, NAMESPACES
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.embedded.controllers.namespaces.controller import namespace_controller
from shoal.install.inventory import ReleaseRecord, to_api
from shoal.install.release import FIELD_MANAGER, Release
from shoal.install.values.reading import ValuesText, read_values
from shoal.units.errors import UserError
from shoal.wiring.installation.applying import Installer, Patience
from shoal.wiring.installation.cluster_writer import ClusterWriter
from shoal.wiring.installation.preparing import InstallRequest, prepare
from shoal.wiring.installation.release_store import installed_record, record_address, release_to_remove
from shoal.wiring.installation.removal import RemovalRequest, Remover

RELEASE = Release("shoal", "gpu-operator", "0.2.0")
VALUES = read_values([ValuesText("--set", "crds.projects={gpu-operator},controllers={scheduler}")])


@asynccontextmanager
async def installed(folder: Path) -> AsyncIterator[tuple[SmallCluster, ClusterWriter]]:
    async with small_cluster(folder, [namespace_controller]) as cluster:
        await cluster.create(NAMESPACES, {"metadata": {"name": "team"}})
        writer = ClusterWriter(InsideApi(cluster.plane, ADMIN, FIELD_MANAGER), cluster.clock)
        prepared = await prepare(writer, InstallRequest(RELEASE, VALUES, "v1.36.0"))
        await Installer(writer, lambda _: None, Patience(waits=False)).apply(prepared)
        yield cluster, writer


async def _write_record(cluster: SmallCluster, name: str, *, is_damaged: bool = False) -> None:
    obj = to_api(ReleaseRecord(name, "team"))
    if is_damaged:
        obj["data"] = {}
    await cluster.create(CONFIG_MAPS, obj, "team")


@virtual
@pytest.mark.parametrize("has_record", [True, False])
async def test_another_namespace_leads_to_no_release(tmp_path: Path, has_record: bool) -> None:
    async with installed(tmp_path) as (_, writer):
        if not has_record:
            await writer.delete(record_address(RELEASE.name, RELEASE.namespace))
        for name in ("", RELEASE.name):
            with pytest.raises(UserError, match="not found in the namespace default"):
                await release_to_remove(writer, name, "default")


@virtual
async def test_a_removal_in_another_namespace_is_refused_before_it_begins(tmp_path: Path) -> None:
    async with installed(tmp_path) as (cluster, writer):
        before = await whole_cluster(cluster.api)
        with pytest.raises(UserError, match="is in the namespace gpu-operator and not in default"):
            await Remover(writer, lambda _: None).plan(Release(RELEASE.name, "default"))
        assert await whole_cluster(cluster.api) == before


@virtual
async def test_a_release_without_a_record_is_found_by_its_labels(tmp_path: Path) -> None:
    async with installed(tmp_path) as (_, writer):
        await writer.delete(record_address(RELEASE.name, RELEASE.namespace))
        found = await release_to_remove(writer)
        assert (found.name, found.namespace) == (RELEASE.name, RELEASE.namespace)


@virtual
@pytest.mark.parametrize("is_damaged", [True, False])
async def test_a_record_that_a_user_of_another_namespace_writes_is_not_taken(tmp_path: Path, is_damaged: bool) -> None:
    async with installed(tmp_path) as (cluster, writer):
        await _write_record(cluster, RELEASE.name, is_damaged=is_damaged)
        await _write_record(cluster, "other", is_damaged=is_damaged)
        assert (await installed_record(writer)).namespace == RELEASE.namespace
        assert (await release_to_remove(writer)).namespace == RELEASE.namespace
        with pytest.raises(UserError, match="release other not found"):
            await installed_record(writer, "other")


@virtual
async def test_a_record_that_a_user_of_another_namespace_writes_blocks_no_installation(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [namespace_controller]) as cluster:
        await cluster.create(NAMESPACES, {"metadata": {"name": "team"}})
        await _write_record(cluster, "other")
        writer = ClusterWriter(InsideApi(cluster.plane, ADMIN, FIELD_MANAGER), cluster.clock)
        request = InstallRequest(RELEASE, VALUES, "v1.36.0")
        assert [one.what for one in (await prepare(writer, request)).errors] == []
        there = InstallRequest(Release("shoal", "team", "0.2.0"), VALUES, "v1.36.0")
        errors = (await prepare(writer, there)).errors
        assert [one.what for one in errors] == ["Shoal is installed already, as release other in the namespace team"]


@virtual
async def test_the_permissions_of_a_release_keep_a_second_one_from_being_installed(tmp_path: Path) -> None:
    async with installed(tmp_path) as (_, writer):
        request = InstallRequest(Release("second", "team", "0.2.0"), VALUES, "v1.36.0")
        whats = [one.what for one in (await prepare(writer, request)).errors]
        assert "Shoal is installed already, as release shoal in the namespace gpu-operator" in whats


@virtual
async def test_a_record_without_permissions_is_taken_only_in_a_namespace_that_the_user_names(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [namespace_controller]) as cluster:
        await cluster.create(NAMESPACES, {"metadata": {"name": "team"}})
        await _write_record(cluster, RELEASE.name)
        writer = ClusterWriter(InsideApi(cluster.plane, ADMIN, FIELD_MANAGER), cluster.clock)
        for name in ("", RELEASE.name):
            with pytest.raises(UserError, match="name the release: shoal -n team"):
                await installed_record(writer, name)
            with pytest.raises(UserError, match="name it: -n team"):
                await release_to_remove(writer, name)
            assert (await installed_record(writer, name, "team")).namespace == "team"
            assert (await release_to_remove(writer, name, "team")).namespace == "team"


@virtual
async def test_the_definition_of_objects_that_users_wrote_is_kept_without_a_question(tmp_path: Path) -> None:
    async with installed(tmp_path) as (cluster, writer):
        await cluster.create(NVIDIA_DRIVERS, {"metadata": {"name": "mine"}, "spec": {}})
        remover = Remover(writer, lambda _: None)
        planned = await remover.plan(RELEASE)
        assert [(one.name, number) for one, number in planned.with_objects] == [("nvidiadrivers.nvidia.com", 1)]
        kept = await remover.remove(RemovalRequest(RELEASE), planned)
        assert [one.name for one in kept] == ["nvidiadrivers.nvidia.com"]
        assert (await cluster.get(NVIDIA_DRIVERS, "mine"))["metadata"]["name"] == "mine"
