"""The number of processes of a pod in containers is limited with both versions of cgroups."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.agent.kubelet.cri.pod_cgroups import PodCgroups


def test_version_1_limits_the_group_of_the_pod(tmp_path: Path) -> None:
    (tmp_path / "pids").mkdir()
    groups = PodCgroups(100, tmp_path)

    assert groups.make("u") == "/shoal-pods/u"
    assert (tmp_path / "pids/shoal-pods/u/pids.max").read_text() == "100"
    assert not groups.values()


def test_version_1_without_the_controller_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="pids"):
        PodCgroups(100, tmp_path).make("u")


def test_version_2_limits_each_container(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").touch()
    groups = PodCgroups(100, tmp_path)

    assert groups.make("u") == ""
    assert groups.values() == {"pids.max": "100"}


def test_the_groups_of_a_pod_are_removed_in_every_hierarchy(tmp_path: Path) -> None:
    for name in ("pids", "cpu"):
        (tmp_path / name / "shoal-pods/u").mkdir(parents=True)

    PodCgroups(100, tmp_path).remove("u")

    assert not [*tmp_path.glob("*/shoal-pods/u")]
