"""An upgrade, and a way back, that are killed before or after any write: the next command completes or reverts them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from build.depth import examples
from build.killed_writes import KilledApi, KilledError
from build.small_clusters import ADMIN, SmallCluster, small_cluster
from build.upgraded_releases import with_older_definitions
from build.virtual_time import virtual
from build.whole_clusters import whole_cluster
from shoal.client.kind import DEPLOYMENTS, Kind
from shoal.client.port import Api
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.embedded.controllers.namespaces.controller import namespace_controller
from shoal.install.inventory import DEPLOYED
from shoal.install.release import FIELD_MANAGER, Release
from shoal.install.values.reading import ValuesText, read_values
from shoal.wiring.installation.applying import Installer, Patience
from shoal.wiring.installation.cluster_writer import ClusterWriter
from shoal.wiring.installation.preparing import InstallRequest, prepare
from shoal.wiring.installation.release_store import find_record, installed_record
from shoal.wiring.installation.removal import RemovalRequest, Remover

pytestmark = pytest.mark.slow
OLD, NEW = Release("prod", "gpu-operator", "0.1.4"), Release("prod", "gpu-operator", "0.2.0")
VALUES = "crds.projects={kueue},controllers={scheduler},operator.enabled=false,networkPolicies.enabled=false"
FLAVORS = Kind("kueue.x-k8s.io", "v1beta1", "resourceflavors", "ResourceFlavor", is_namespaced=False)
Act = Callable[[SmallCluster, Api], Awaitable[None]]


def _as_installer(cluster: SmallCluster) -> Api:
    return InsideApi(cluster.plane, ADMIN, FIELD_MANAGER)


def _installer(cluster: SmallCluster, api: Api) -> tuple[ClusterWriter, Installer]:
    writer = ClusterWriter(api, cluster.clock)
    return writer, Installer(writer, lambda _: None, Patience(waits=False))


async def _install_old(cluster: SmallCluster) -> None:
    writer, installer = _installer(cluster, _as_installer(cluster))
    request = InstallRequest(OLD, read_values([ValuesText("--set", VALUES)]), "v1.36.0")
    await installer.apply(with_older_definitions(await prepare(writer, request)))
    await cluster.create(FLAVORS, {"metadata": {"name": "a100"}, "spec": {"nodeLabels": {"gpu": "a100"}}})


async def _upgrade(cluster: SmallCluster, api: Api) -> None:
    writer, installer = _installer(cluster, api)
    record = await installed_record(writer)
    values = read_values([ValuesText("--set", "replicas=1")], record.current.values)
    prepared = await prepare(writer, InstallRequest(NEW, values, "v1.36.0"))
    assert prepared.errors == []
    await installer.upgrade(prepared, rolls_back=True)


async def _roll_back(cluster: SmallCluster, api: Api) -> None:
    writer, installer = _installer(cluster, api)
    await installer.roll_back(await installed_record(writer))


async def _remove(cluster: SmallCluster, api: Api) -> None:
    remover = Remover(ClusterWriter(api, cluster.clock), lambda _: None)
    removal = RemovalRequest(NEW, deletes_objects=lambda _name, _number: True)
    await remover.remove(removal, await remover.plan(NEW))


async def _finished(folder: Path, *acts: Act) -> tuple[int, dict[str, Any]]:
    """The writes of the last one, and the cluster after it."""
    async with small_cluster(folder, [namespace_controller]) as cluster:
        await _install_old(cluster)
        for act in acts:
            counted = KilledApi(_as_installer(cluster))
            await act(cluster, counted)
        return counted.writes, await whole_cluster(cluster.api)


def _some(writes: int, *, is_done: bool, step: int = 3) -> range:
    """Some writes; all of them with SHOAL_DEEP=3."""
    step = step if examples(1) < 3 else 1
    return range(1 + (is_done and step > 1), writes + 1, step)


@virtual
@pytest.mark.parametrize("is_done", [False, True])
async def test_an_upgrade_killed_at_any_write_is_completed_by_the_next(tmp_path: Path, is_done: bool) -> None:
    writes, expected = await _finished(tmp_path, _upgrade)
    assert writes > 30
    for at in _some(writes, is_done=is_done):
        async with small_cluster(tmp_path, [namespace_controller]) as cluster:
            await _install_old(cluster)
            with pytest.raises(KilledError):
                await _upgrade(cluster, KilledApi(_as_installer(cluster), at, is_done=is_done))
            await _upgrade(cluster, _as_installer(cluster))
            assert await whole_cluster(cluster.api) == expected, f"killed at write {at}"


@virtual
async def test_an_upgrade_killed_at_any_write_can_be_reverted(tmp_path: Path) -> None:
    writes, _ = await _finished(tmp_path, _upgrade)
    # The first two writes are the namespace and the record, without which nothing was begun.
    for at in (one for one in _some(writes, is_done=True, step=9) if one > 2):
        async with small_cluster(tmp_path, [namespace_controller]) as cluster:
            await _install_old(cluster)
            with pytest.raises(KilledError):
                await _upgrade(cluster, KilledApi(_as_installer(cluster), at))
            await _roll_back(cluster, _as_installer(cluster))
            record = await find_record(ClusterWriter(cluster.api, cluster.clock), OLD.name, OLD.namespace)
            assert record is not None, f"killed at write {at}"
            assert (record.state, record.current.version, "replicas" in record.current.values) == (
                DEPLOYED,
                "0.1.4",
                False,
            )
            spec = (await cluster.get(DEPLOYMENTS, "shoal", OLD.namespace))["spec"]
            assert (spec["replicas"], spec["template"]["spec"]["containers"][0]["image"]) == (2, "shoal:0.1.4")


@virtual
async def test_a_way_back_killed_at_any_write_is_completed_by_the_next(tmp_path: Path) -> None:
    writes, _ = await _finished(tmp_path, _upgrade, _roll_back)
    # After the last write, the way back is complete, and the next one would turn round.
    for at in _some(writes - 1, is_done=True, step=9):
        async with small_cluster(tmp_path, [namespace_controller]) as cluster:
            await _install_old(cluster)
            await _upgrade(cluster, _as_installer(cluster))
            with pytest.raises(KilledError):
                await _roll_back(cluster, KilledApi(_as_installer(cluster), at, is_done=True))
            await _roll_back(cluster, _as_installer(cluster))
            record = await find_record(ClusterWriter(cluster.api, cluster.clock), OLD.name, OLD.namespace)
            assert record is not None
            assert (record.state, record.current.version) == (DEPLOYED, "0.1.4"), f"killed at write {at}"


@virtual
async def test_a_half_upgraded_release_is_removed_completely(tmp_path: Path) -> None:
    writes, expected = await _finished(tmp_path, _remove)
    upgrade_writes, _ = await _finished(tmp_path, _upgrade)
    assert writes > 20
    for at in _some(upgrade_writes, is_done=True, step=9):
        async with small_cluster(tmp_path, [namespace_controller]) as cluster:
            await _install_old(cluster)
            with pytest.raises(KilledError):
                await _upgrade(cluster, KilledApi(_as_installer(cluster), at))
            await _remove(cluster, _as_installer(cluster))
            assert await whole_cluster(cluster.api) == expected, f"killed at write {at}"
