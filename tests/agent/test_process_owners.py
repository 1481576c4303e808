"""The pod of a process is found by its control group, in the forms that the kubelet's drivers write."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.agent.exporter.job_files import read_jobs
from shoal.agent.exporter.process_owners import PodOfProcess, ProcessOwners

UID = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"


def write(folder: Path, pid: int, cgroup: str) -> None:
    (folder / "proc" / str(pid)).mkdir(parents=True)
    (folder / "proc" / str(pid) / "cgroup").write_text(cgroup)


@pytest.mark.parametrize(
    "cgroup",
    [
        f"0::/kubepods/burstable/pod{UID}/{'c' * 64}\n",
        f"0::/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/cri-containerd-{'c' * 64}.scope\n",
        f"12:cpuset:/kubepods/pod{UID}/{'c' * 64}\n11:memory:/kubepods/pod{UID}/{'c' * 64}\n",
    ],
)
def test_the_uid_in_the_control_group_names_the_pod(tmp_path: Path, cgroup: str) -> None:
    write(tmp_path, 77, cgroup)
    (tmp_path / "logs" / f"team_train-0_{UID}").mkdir(parents=True)
    owners = ProcessOwners(tmp_path / "proc", tmp_path / "logs")
    assert owners.pod_of(77) == PodOfProcess("team", "train-0", UID)


def test_a_process_outside_a_pod_and_one_that_has_ended_have_no_owner(tmp_path: Path) -> None:
    write(tmp_path, 77, "0::/user.slice/session-1.scope\n")
    owners = ProcessOwners(tmp_path / "proc", tmp_path / "logs")
    assert (owners.pod_of(77), owners.pod_of(78)) == (None, None)


def test_a_pod_without_logs_is_unknown_until_it_has_some(tmp_path: Path) -> None:
    write(tmp_path, 77, f"0::/kubepods/pod{UID}/c\n")
    owners = ProcessOwners(tmp_path / "proc", tmp_path / "logs")
    assert owners.pod_of(77) is None
    assert owners.uid_of("team", "train-0") == ""
    (tmp_path / "logs" / f"team_train-0_{UID}").mkdir(parents=True)
    assert owners.pod_of(77) == PodOfProcess("team", "train-0", UID)
    assert owners.uid_of("team", "train-0") == UID


def test_job_files_are_read_by_the_names_of_gpus_and_others_are_left_out(tmp_path: Path) -> None:
    for name, text in (("0", "one\n"), ("1.7", "two\nthree\n"), ("notes", "x")):
        (tmp_path / name).write_text(text)
    (tmp_path / "2").mkdir()
    assert read_jobs(tmp_path) == {"0": ("one",), "1.7": ("two", "three")}
    assert read_jobs(tmp_path / "none") == {}
