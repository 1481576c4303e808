"""ContainerLimits are written to cgroups of version 1 and 2; a controller that is not allowed limits nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.agent.kubelet.process.cgroups import Cgroups
from shoal.agent.kubelet.runtime import ContainerLimits


class Tree(Cgroups):
    """Version 2 on a file tree, where a plain file has only the last write: the kernel's has all that it granted."""

    def allowed(self) -> frozenset[str]:
        return frozenset({"pids", "memory"})


@pytest.fixture
def unified(tmp_path: Path) -> Path:
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    (tmp_path / "cgroup.subtree_control").touch()
    (tmp_path / "shoal").mkdir()
    (tmp_path / "shoal" / "cgroup.subtree_control").touch()
    return tmp_path


@pytest.fixture
def separate(tmp_path: Path) -> Path:
    for controller in ("pids", "memory", "cpu"):
        (tmp_path / controller).mkdir()
        (tmp_path / controller / "cgroup.procs").touch()
    return tmp_path


def test_version_1_has_a_group_in_each_hierarchy(separate: Path) -> None:
    cgroups = Cgroups(separate)

    groups = cgroups.make("run", ContainerLimits(cpu_milli=500, memory_bytes=1024), 100)

    assert groups == [str(separate / one / "shoal" / "run") for one in ("pids", "memory", "cpu")]
    assert (separate / "pids/shoal/run/pids.max").read_text() == "100"
    assert (separate / "memory/shoal/run/memory.limit_in_bytes").read_text() == "1024"
    assert (separate / "cpu/shoal/run/cpu.cfs_quota_us").read_text() == "50000"


def test_a_hierarchy_that_is_not_mounted_is_not_allowed(separate: Path) -> None:
    (separate / "cpu" / "cgroup.procs").unlink()

    assert Cgroups(separate).allowed() == {"pids", "memory"}


def test_no_cgroups_are_allowed_without_a_hierarchy(tmp_path: Path) -> None:
    cgroups = Cgroups(tmp_path)

    assert cgroups.allowed() == frozenset()
    assert cgroups.make("run", ContainerLimits(memory_bytes=1), 100) == []


def test_version_2_requests_each_controller_and_allows_what_is_granted(unified: Path) -> None:
    # A plain file keeps the last request only, with its sign; the kernel shows all that it granted, without one.
    assert Cgroups(unified).allowed() == frozenset()
    assert (unified / "shoal" / "cgroup.subtree_control").read_text() == "+cpu"
    assert (unified / "cgroup.subtree_control").read_text() == "+cpu"


def test_version_2_has_one_group_with_all_limits(unified: Path) -> None:
    groups = Tree(unified).make("run", ContainerLimits(cpu_milli=500, memory_bytes=1024), 100)

    assert groups == [str(unified / "shoal" / "run")]
    assert (unified / "shoal/run/pids.max").read_text() == "100"
    assert (unified / "shoal/run/memory.max").read_text() == "1024"
    assert not (unified / "shoal/run/cpu.max").exists()


def test_version_2_reports_processes_killed_for_memory(unified: Path) -> None:
    tree = Tree(unified)
    tree.make("run", ContainerLimits(), 100)
    (unified / "shoal/run/memory.events").write_text("max 4\noom_kill 1\n")

    assert tree.was_out_of_memory("run")


@pytest.mark.parametrize(("text", "is_killed"), [("oom_kill 0\n", False), ("low 3\noom_kill 2\n", True)])
def test_version_1_reports_processes_killed_for_memory(separate: Path, text: str, is_killed: bool) -> None:
    cgroups = Cgroups(separate)
    cgroups.make("run", ContainerLimits(), 100)
    (separate / "memory/shoal/run/memory.oom_control").write_text(text)

    assert cgroups.was_out_of_memory("run") is is_killed


def test_version_2_counts_what_a_run_uses(unified: Path) -> None:
    group = unified / "shoal" / "run"
    group.mkdir()
    (group / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    (group / "memory.current").write_text("5000\n")
    (group / "memory.stat").write_text("anon 1\ninactive_file 1000\n")
    (group / "cgroup.procs").write_text("7\n8\n")

    class All(Cgroups):
        def allowed(self) -> frozenset[str]:
            return frozenset({"pids", "memory", "cpu"})

    cgroups = All(unified)
    assert (cgroups.cpu_s("run"), cgroups.memory_bytes("run"), cgroups.processes("run")) == (2.5, 4000, {7, 8})
    assert (Tree(unified).cpu_s("run"), cgroups.memory_bytes("other")) == (None, None)


def test_version_1_counts_processors_only_where_their_controller_does(separate: Path) -> None:
    for controller in ("cpu", "memory"):
        (separate / controller / "shoal" / "run").mkdir(parents=True)
    memory = separate / "memory" / "shoal" / "run"
    (memory / "memory.usage_in_bytes").write_text("5000\n")
    (memory / "memory.stat").write_text("cache 1\ntotal_inactive_file 6000\n")
    cgroups = Cgroups(separate)

    assert (cgroups.cpu_s("run"), cgroups.memory_bytes("run")) == (None, 0)
    (separate / "cpu" / "shoal" / "run" / "cpuacct.usage").write_text("1500000000\n")
    assert cgroups.cpu_s("run") == 1.5
