"""A pod that uses more of the disk than its limits allow is evicted with the kubelet's reason and message."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from build.kubelet_on_cri import KubeletOnCri, kubelet_on_cri
from shoal.agent.kubelet.disk_use import disk_use, files_use
from shoal.agent.kubelet.mounts import mount_memory, no_mounts, unmount
from shoal.client.kind import PODS

Obj = dict[str, Any]
MIB = 1 << 20


def filled(path: Path, size: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    return path


def test_files_count_by_their_blocks_in_all_folders_below(tmp_path: Path) -> None:
    before = disk_use(tmp_path)
    filled(tmp_path / "a/b/c", MIB)
    filled(tmp_path / "d", 1)

    assert MIB < disk_use(tmp_path) - before < MIB + 64 * 1024
    assert files_use([tmp_path / "d", tmp_path / "none"]) == (tmp_path / "d").stat().st_blocks * 512


def test_a_file_with_two_names_counts_once(tmp_path: Path) -> None:
    os.link(filled(tmp_path / "a", MIB), tmp_path / "b")

    assert disk_use(tmp_path) < 2 * MIB


def test_files_behind_links_do_not_count(tmp_path: Path) -> None:
    outside = filled(tmp_path / "outside/file", MIB).parent
    own = tmp_path / "own"
    own.mkdir()
    (own / "folder").symlink_to(outside)
    (own / "file").symlink_to(outside / "file")

    assert disk_use(own) < MIB
    assert disk_use(tmp_path / "none") == 0


def test_a_sparse_file_counts_what_it_takes(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 30)

    assert disk_use(tmp_path) < MIB


@pytest.mark.skipif(bool(no_mounts()), reason="needs the right to mount")
def test_other_file_systems_in_a_folder_do_not_count(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    mount_memory(inner, "mode=0777")
    try:
        filled(inner / "file", MIB)
        assert disk_use(tmp_path) < MIB
        assert disk_use(inner) >= MIB
    finally:
        unmount(inner)


def test_the_right_to_mount_is_a_capability(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tx\nCapEff:\t0000000000200000\n")
    assert no_mounts(status) == ""

    status.write_text("Name:\tx\nCapEff:\t00000000a80425fb\n")
    assert "needs " in no_mounts(status)
    assert "needs " in no_mounts(tmp_path / "none")


async def is_failed(machine: KubeletOnCri, name: str) -> bool:
    return bool((await machine.cluster.get(PODS, name)).get("status", {}).get("phase") == "Failed")


@pytest.mark.slow
async def test_a_pod_with_a_full_empty_dir_is_evicted(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        volumes = [{"name": "cache", "emptyDir": {"sizeLimit": "1Mi"}}]
        mounts = {"volumeMounts": [{"name": "cache", "mountPath": "/cache"}]}
        uid = await machine.create("full", "serve", volumes=volumes, container=mounts)
        calm = await machine.create("calm", "serve", volumes=volumes, container=mounts)
        for name in ("full", "calm"):
            await machine.until_ready(name)
        filled(tmp_path / "pods" / calm / "volumes/cache/file", MIB // 2)
        filled(tmp_path / "pods" / uid / "volumes/cache/file", 2 * MIB)

        await machine.until(lambda: is_failed(machine, "full"))

        status = (await machine.cluster.get(PODS, "full"))["status"]
        message = 'Usage of EmptyDir volume "cache" exceeds the limit "1Mi". '
        assert (status["reason"], status["message"]) == ("Evicted", message)
        [event] = [one for one in await machine.cluster.events("full") if one["reason"] == "Evicted"]
        assert (event["type"], event["message"]) == ("Warning", message)
        assert machine.cri.graces[-1] <= 1
        assert not machine.cri.running(uid, "main")
        assert machine.cri.running(calm, "main")


@pytest.mark.slow
async def test_a_container_is_evicted_for_what_it_wrote_to_its_own_file_system(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        limited = {"resources": {"limits": {"ephemeral-storage": "1Mi"}}}
        uid = await machine.create("writer", "serve", container=limited)
        await machine.until_ready("writer")
        id_ = next(iter(machine.cri.containers))
        machine.cri.used, machine.cri.written = {id_: (1, 1, 1)}, {id_: 2 * MIB}

        await machine.until(lambda: is_failed(machine, "writer"))

        status = (await machine.cluster.get(PODS, "writer"))["status"]
        assert status["reason"] == "Evicted"
        assert status["message"] == "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. "
        assert machine.cri.starts[(uid, "main", 0)] == 1
        assert not machine.cri.starts[(uid, "main", 1)]


@pytest.mark.slow
async def test_a_container_above_its_own_limit_is_named_though_the_pod_is_within_the_sum(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        limits = {"writer": "1Mi", "calm": "1Gi"}
        containers = [
            {
                "name": name,
                "image": "app:1",
                "command": ["serve"],
                "resources": {"limits": {"ephemeral-storage": limit}},
            }
            for name, limit in limits.items()
        ]
        await machine.create_all("two", containers)
        await machine.until(lambda: len(machine.cri.containers) == 2)
        id_ = next(one.id for one in machine.cri.containers.values() if one.metadata.name == "writer")
        machine.cri.used, machine.cri.written = {id_: (1, 1, 1)}, {id_: 2 * MIB}

        await machine.until(lambda: is_failed(machine, "two"))

        status = (await machine.cluster.get(PODS, "two"))["status"]
        assert status["message"] == 'Container writer exceeded its local ephemeral storage limit "1Mi". '


@pytest.mark.slow
async def test_a_pod_that_is_evicted_stays_so_after_the_kubelet_was_killed(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        volumes = [{"name": "cache", "emptyDir": {"sizeLimit": "1Mi"}}]
        mounts = {"volumeMounts": [{"name": "cache", "mountPath": "/cache"}]}
        uid = await machine.create("full", "serve", volumes=volumes, container=mounts)
        await machine.until_ready("full")
        machine.kubelet.evict(uid, "too large")
        await machine.kill()

        later = KubeletOnCri(machine.cluster, machine.cri, tmp_path)
        try:
            await later.until(lambda: is_failed(later, "full"))
            status = (await machine.cluster.get(PODS, "full"))["status"]
            assert (status["reason"], status["message"]) == ("Evicted", "too large")
            assert machine.cri.starts[(uid, "main", 0)] == 1
            assert not machine.cri.running(uid, "main")
        finally:
            await later.kill()


@pytest.mark.slow
async def test_a_pod_that_requests_more_of_the_disk_than_is_allocatable_is_refused(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        wanted = {"resources": {"requests": {"ephemeral-storage": "60Gi"}}}
        await machine.create("first", "serve", container=wanted)
        await machine.until_ready("first")
        await machine.create("second", "serve", container=wanted)

        await machine.until(lambda: is_failed(machine, "second"))

        status = (await machine.cluster.get(PODS, "second"))["status"]
        assert status["reason"] == "OutOfephemeral-storage"
