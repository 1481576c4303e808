"""Volumes are folders with the content of their objects, and paths cannot lead out of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from shoal.agent.kubelet.volumes import Tokens, VolumeFault, provide, tokens_of
from shoal.client.kubelet.environment import Surroundings
from shoal.client.kubelet.pod_fields import Addresses
from shoal.client.kubelet.references import Reference

Obj = dict[str, Any]
CONFIG: dict[Reference, dict[str, bytes] | None] = {Reference("configmap", "c"): {"a": b"1", "b": b"2"}}


def volumes(folder: Path, *found: Obj, tokens: Tokens | None = None) -> dict[str, Path]:
    metadata = {"name": "p", "namespace": "n", "uid": "u", "labels": {"app": 'x"y'}}
    pod = {"metadata": metadata, "spec": {"containers": [], "volumes": list(found)}}
    return provide(pod, folder, Surroundings(Addresses("10.0.0.7", "10.0.0.7"), {}, CONFIG), tokens or {})


def content(folder: Path) -> dict[str, str]:
    """What programs see, without the folder behind `..data`."""
    found = {}
    for root, _, names in os.walk(folder, followlinks=True):
        for path in (Path(root, name) for name in names):
            if not str(path.relative_to(folder)).startswith(".."):
                found[str(path.relative_to(folder))] = path.read_text()
    return found


def test_a_config_map_has_a_file_for_each_key(tmp_path: Path) -> None:
    found = volumes(tmp_path, {"name": "v", "configMap": {"name": "c", "defaultMode": 0o600}})

    assert content(found["v"]) == {"a": "1", "b": "2"}
    assert (found["v"] / "a").stat().st_mode & 0o777 == 0o600


def test_items_choose_keys_and_paths(tmp_path: Path) -> None:
    items = [{"key": "a", "path": "x/y"}]

    assert content(volumes(tmp_path, {"name": "v", "configMap": {"name": "c", "items": items}})["v"]) == {"x/y": "1"}


def test_a_path_may_not_leave_the_volume(tmp_path: Path) -> None:
    with pytest.raises(VolumeFault, match="invalid path"):
        volumes(tmp_path, {"name": "v", "configMap": {"name": "c", "items": [{"key": "a", "path": "../out"}]}})


def test_a_missing_object_is_named(tmp_path: Path) -> None:
    with pytest.raises(VolumeFault, match=r'MountVolume\.SetUp failed for volume "v" : secret "s" not found'):
        volumes(tmp_path, {"name": "v", "secret": {"secretName": "s"}})


def test_a_projected_volume_joins_its_sources(tmp_path: Path) -> None:
    sources: list[Obj] = [
        {"configMap": {"name": "c", "items": [{"key": "a", "path": "a"}]}},
        {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}},
    ]
    volume = {"name": "v", "projected": {"sources": sources}}

    found = volumes(tmp_path, volume, tokens={("", 600): "secret-token"})

    assert content(found["v"]) == {"a": "1", "labels": 'app="x\\"y"', "token": "secret-token"}
    assert tokens_of({"spec": {"volumes": [volume]}}) == [("", 600)]


def test_tokens_of_one_audience_differ_by_their_life(tmp_path: Path) -> None:
    sources = [
        {"serviceAccountToken": {"path": path, "audience": "a", "expirationSeconds": life_s}}
        for path, life_s in (("short", 600), ("long", 7200))
    ]
    tokens = {("a", 600): "one", ("a", 7200): "other"}

    found = volumes(tmp_path, {"name": "v", "projected": {"sources": sources}}, tokens=tokens)

    assert content(found["v"]) == {"short": "one", "long": "other"}


def test_an_empty_dir_keeps_its_files(tmp_path: Path) -> None:
    (volumes(tmp_path, {"name": "v", "emptyDir": {}})["v"] / "f").write_text("kept")

    assert content(volumes(tmp_path, {"name": "v", "emptyDir": {}})["v"]) == {"f": "kept"}


def test_a_host_path_is_the_path_itself_and_its_type_is_checked(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert volumes(tmp_path, {"name": "v", "hostPath": {"path": str(tmp_path)}})["v"] == tmp_path
    with pytest.raises(VolumeFault, match="is not a directory"):
        volumes(tmp_path, {"name": "v", "hostPath": {"path": str(tmp_path / "file"), "type": "Directory"}})
    with pytest.raises(VolumeFault, match="does not exist"):
        volumes(tmp_path, {"name": "v", "hostPath": {"path": str(tmp_path / "none")}})
