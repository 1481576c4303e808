"""Running pods see new ConfigMaps, Secrets, labels and tokens in their volumes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.kubelet_on_cri import KubeletOnCri, kubelet_on_cri
from shoal.client.kind import CONFIG_MAPS, PODS, SECRETS

pytestmark = pytest.mark.slow
Obj = dict[str, Any]
MOUNT = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}


def read(path: str) -> str:
    return Path(path).read_text()


def names_in(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir() if not one.name.startswith(".."))


async def started(machine: KubeletOnCri, volume: Obj) -> Path:
    """The folder of the volume of a running pod."""
    uid = await machine.create("reads", "serve", container=MOUNT, volumes=[{"name": "v", **volume}])
    await machine.until_ready("reads")
    return machine.folder / "pods" / uid / "volumes" / "v"


async def test_a_changed_config_map_is_seen(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        await machine.cluster.create(CONFIG_MAPS, {"metadata": {"name": "c"}, "data": {"a": "1", "b": "1"}})
        folder = await started(machine, {"configMap": {"name": "c"}})

        await machine.cluster.patch(CONFIG_MAPS, "c", {"data": {"a": "2", "b": None, "c": "2"}})
        await machine.until(lambda: names_in(folder) == ["a", "c"])

        assert read(str(folder / "a")) == "2"


async def test_a_changed_secret_is_seen_by_all_its_pods_for_one_request(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        await machine.cluster.create(SECRETS, {"metadata": {"name": "s"}, "stringData": {"a": "1"}})
        volume = {"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}
        uids = [await machine.create(f"p-{at}", "serve", container=MOUNT, volumes=[volume]) for at in (1, 2)]
        await machine.until_ready("p-1")
        await machine.until_ready("p-2")

        await machine.cluster.patch(SECRETS, "s", {"stringData": {"a": "2"}})

        for uid in uids:
            file = machine.folder / "pods" / uid / "volumes" / "v" / "a"
            await machine.until(lambda file=file: file.read_text() == "2")


async def test_changed_labels_are_seen_at_once(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        item = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
        folder = await started(machine, {"downwardAPI": {"items": [item]}})

        await machine.cluster.patch(PODS, "reads", {"metadata": {"labels": {"app": "new"}}})

        await machine.cluster.until(lambda: (folder / "labels").read_text() == 'app="new"', within_s=30)


async def test_a_token_is_replaced_before_it_expires(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        source = {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}}
        folder = await started(machine, {"projected": {"sources": [source]}})
        first = (folder / "token").read_text()

        await machine.until(lambda: (folder / "token").read_text() != first)


async def test_a_deleted_config_map_is_one_event_and_the_files_stay(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        await machine.cluster.create(CONFIG_MAPS, {"metadata": {"name": "c"}, "data": {"a": "1"}})
        folder = await started(machine, {"configMap": {"name": "c"}})

        await machine.cluster.delete(CONFIG_MAPS, "c")

        async def is_told() -> bool:
            return any(one["reason"] == "FailedMount" for one in await machine.cluster.events("reads"))

        await machine.until(is_told)
        assert (folder / "a").read_text() == "1"


async def test_a_part_of_a_config_map_is_not_changed(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        await machine.cluster.create(CONFIG_MAPS, {"metadata": {"name": "c"}, "data": {"a": "1"}})
        mounts = [{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/a", "subPath": "a"}]
        volume = {"name": "v", "configMap": {"name": "c"}}
        uid = await machine.create("reads", "serve", container={"volumeMounts": mounts}, volumes=[volume])
        await machine.until_ready("reads")

        await machine.cluster.patch(CONFIG_MAPS, "c", {"data": {"a": "2"}})
        whole = machine.folder / "pods" / uid / "volumes" / "v" / "a"
        await machine.until(lambda: whole.read_text() == "2")

        config = next(iter(machine.cri.configs.values()))
        parts = [one.host_path for one in config.mounts if one.container_path == "/a"]
        assert [read(one) for one in parts] == ["1"]
