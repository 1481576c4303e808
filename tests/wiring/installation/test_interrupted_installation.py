"""An installation and a removal that are killed before or after any write: another run completes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.depth import examples
from build.killed_writes import KilledApi, KilledError
from build.small_clusters import ADMIN, SmallCluster, small_cluster
from build.virtual_time import virtual
from build.whole_clusters import whole_cluster
from shoal.client.port import Api
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.embedded.controllers.namespaces.controller import namespace_controller
from shoal.install.inventory import DEPLOYED
from shoal.install.release import FIELD_MANAGER, Release
from shoal.install.values.reading import ValuesText, read_values
from shoal.wiring.installation.applying import Installer, Patience
from shoal.wiring.installation.cluster_writer import ClusterWriter
from shoal.wiring.installation.preparing import InstallRequest, prepare
from shoal.wiring.installation.release_store import find_record
from shoal.wiring.installation.removal import RemovalRequest, Remover

pytestmark = pytest.mark.slow
RELEASE = Release("prod", "gpu-operator", "0.2.0")
VALUES = read_values([ValuesText("--set", "crds.projects={gpu-operator},controllers={scheduler}")])
REQUEST = InstallRequest(RELEASE, VALUES, "v1.36.0")


def _writer(cluster: SmallCluster, api: Api) -> ClusterWriter:
    return ClusterWriter(api, cluster.clock)


def _as_installer(cluster: SmallCluster) -> Api:
    return InsideApi(cluster.plane, ADMIN, FIELD_MANAGER)


async def _install(cluster: SmallCluster, api: Api) -> None:
    writer = _writer(cluster, api)
    prepared = await prepare(writer, REQUEST)
    assert prepared.errors == []
    await Installer(writer, lambda _: None, Patience(waits=False)).apply(prepared)


async def _remove(cluster: SmallCluster, api: Api) -> None:
    remover = Remover(_writer(cluster, api), lambda _: None)
    await remover.remove(RemovalRequest(RELEASE), await remover.plan(RELEASE))


async def _number_of_writes(folder: Path, *, removes: bool) -> tuple[int, dict[str, Any]]:
    async with small_cluster(folder, [namespace_controller]) as cluster:
        await _install(cluster, _as_installer(cluster))
        counted = KilledApi(_as_installer(cluster))
        if removes:
            await _remove(cluster, counted)
            return counted.writes, await whole_cluster(cluster.api)
        again = KilledApi(_as_installer(cluster))
        await _install(cluster, again)
        return again.writes, await whole_cluster(cluster.api)


def _some(writes: int, *, is_done: bool) -> range:
    """Every third write; all of them with SHOAL_DEEP=3."""
    step = max(1, 3 // examples(1))
    return range(1 + (is_done and step > 1), writes + 1, step)


@virtual
@pytest.mark.parametrize("is_done", [False, True])
async def test_an_installation_killed_at_any_write_is_completed_by_the_next(tmp_path: Path, is_done: bool) -> None:
    writes, expected = await _number_of_writes(tmp_path, removes=False)
    assert writes > 30
    for at in _some(writes, is_done=is_done):
        async with small_cluster(tmp_path, [namespace_controller]) as cluster:
            with pytest.raises(KilledError):
                await _install(cluster, KilledApi(_as_installer(cluster), at, is_done=is_done))
            await _install(cluster, _as_installer(cluster))
            assert await whole_cluster(cluster.api) == expected, f"killed at write {at}"
            record = await find_record(_writer(cluster, cluster.api), RELEASE.name, RELEASE.namespace)
            assert record is not None
            assert (record.state, record.current.number) == (DEPLOYED, 1)


@virtual
@pytest.mark.parametrize("is_done", [False, True])
async def test_a_half_installed_release_is_removed_completely(tmp_path: Path, is_done: bool) -> None:
    writes, _ = await _number_of_writes(tmp_path, removes=False)
    for at in _some(writes, is_done=is_done):
        async with small_cluster(tmp_path, [namespace_controller]) as cluster:
            before = await whole_cluster(cluster.api)
            with pytest.raises(KilledError):
                await _install(cluster, KilledApi(_as_installer(cluster), at, is_done=is_done))
            await _remove(cluster, _as_installer(cluster))
            assert await whole_cluster(cluster.api) == before, f"killed at write {at}"


@virtual
async def test_completing_a_removal_says_that_it_was_interrupted(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [namespace_controller]) as cluster:
        await _install(cluster, _as_installer(cluster))
        with pytest.raises(KilledError):
            await _remove(cluster, KilledApi(_as_installer(cluster), 6))
        told: list[str] = []
        remover = Remover(_writer(cluster, _as_installer(cluster)), told.append)
        await remover.remove(RemovalRequest(RELEASE), await remover.plan(RELEASE))
        assert told[:2] == [
            "release prod: its removal was interrupted and is completed now",
            "GPU stack: nothing is left",
        ]


@virtual
@pytest.mark.parametrize("is_done", [False, True])
async def test_a_removal_killed_at_any_write_is_completed_by_the_next(tmp_path: Path, is_done: bool) -> None:
    writes, expected = await _number_of_writes(tmp_path, removes=True)
    assert writes > 30
    for at in _some(writes, is_done=is_done):
        async with small_cluster(tmp_path, [namespace_controller]) as cluster:
            await _install(cluster, _as_installer(cluster))
            with pytest.raises(KilledError):
                await _remove(cluster, KilledApi(_as_installer(cluster), at, is_done=is_done))
            await _remove(cluster, _as_installer(cluster))
            assert await whole_cluster(cluster.api) == expected, f"killed at write {at}"
