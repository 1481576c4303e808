"""Volumes for containers can be used by the users of the pod."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from shoal.agent.kubelet.cri.container_volumes import provide_for_containers
from shoal.agent.kubelet.mounts import unmount_below
from shoal.client.kubelet.environment import Surroundings
from shoal.client.kubelet.pod_fields import Addresses
from shoal.client.kubelet.references import Reference

Obj = dict[str, Any]
CONFIG: dict[Reference, dict[str, bytes] | None] = {Reference("configmap", "c"): {"a": b"1"}}
TOKEN = {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def volumes(folder: Path, volume: Obj, group: int | None = None) -> Path:
    metadata = {"name": "p", "namespace": "n", "uid": "u"}
    context = {} if group is None else {"fsGroup": group}
    pod = {"metadata": metadata, "spec": {"containers": [], "volumes": [volume], "securityContext": context}}
    around = Surroundings(Addresses("10.0.0.7", "10.0.0.7"), {}, CONFIG)
    return provide_for_containers(pod, folder, around, {("", 3600): "secret-token"})["v"]


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_every_user_may_write_to_an_empty_dir(tmp_path: Path) -> None:
    path = volumes(tmp_path, {"name": "v", "emptyDir": {}})

    assert mode(path) == 0o777


def test_an_empty_dir_keeps_the_mode_that_a_container_gave_it(tmp_path: Path) -> None:
    volumes(tmp_path, {"name": "v", "emptyDir": {}}).chmod(0o700)

    assert mode(volumes(tmp_path, {"name": "v", "emptyDir": {}})) == 0o700


def test_every_user_may_read_a_token(tmp_path: Path) -> None:
    assert mode(volumes(tmp_path, TOKEN) / "token") == 0o644


@as_root
def test_volumes_belong_to_the_group_of_the_pod(tmp_path: Path) -> None:
    path = volumes(tmp_path, {"name": "v", "configMap": {"name": "c", "defaultMode": 0o600}}, group=3000)

    assert (path.stat().st_gid, (path / "a").stat().st_gid) == (3000, 3000)
    assert mode(path / "a") == 0o660
    assert mode(path) & 0o2070 == 0o2070


@as_root
def test_a_volume_in_memory_has_its_size_and_is_unmounted(tmp_path: Path) -> None:
    volume = {"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "64Ki"}}
    path = volumes(tmp_path, volume)
    try:
        assert path.is_mount()
        assert os.statvfs(path).f_blocks * os.statvfs(path).f_frsize == 64 * 1024
        (path / "kept").touch()
        assert (volumes(tmp_path, volume) / "kept").exists()
    finally:
        unmount_below(tmp_path)
    assert not path.is_mount()
