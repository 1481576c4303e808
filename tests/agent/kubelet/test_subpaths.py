"""A part of a volume is mounted, and no link leads out of the volume."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.agent.kubelet.mounts import mounted_below, unmount_below
from shoal.agent.kubelet.runtime import StartRefused
from shoal.agent.kubelet.subpaths import SubPath, sub_path_of

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    found = tmp_path / "volume"
    (found / "in").mkdir(parents=True)
    (found / "in" / "file").write_text("content")
    yield found
    unmount_below(tmp_path)


def part(volume: Path, path: str) -> SubPath:
    return SubPath(volume, path, "v", "main")


def test_an_expression_needs_a_value_for_each_variable() -> None:
    environment = {"POD": "p-1", "EMPTY": ""}

    assert sub_path_of({"subPathExpr": "logs/$(POD)"}, environment) == "logs/p-1"
    assert sub_path_of({"subPath": "$(POD)"}, environment) == "$(POD)"
    assert sub_path_of({}, environment) == ""
    with pytest.raises(StartRefused, match="missing value for EMPTY, OTHER") as refused:
        sub_path_of({"subPathExpr": "$(OTHER)/$(EMPTY)"}, environment)
    assert refused.value.reason == "CreateContainerConfigError"


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc"])
def test_a_path_may_not_leave_the_volume(path: str) -> None:
    with pytest.raises(StartRefused, match="SubPath"):
        sub_path_of({"subPathExpr": "$(X)"}, {"X": path})


def test_a_path_that_does_not_exist_becomes_a_folder_with_the_mode_of_the_volume(volume: Path) -> None:
    volume.chmod(0o777)

    assert part(volume, "new/inner").place() == volume / "new" / "inner"
    assert (volume / "new" / "inner").stat().st_mode & 0o777 == 0o777


def test_a_link_that_leads_out_of_the_volume_is_refused_without_its_target(volume: Path) -> None:
    (volume / "out").symlink_to("/etc")
    (volume / "back").symlink_to("in")

    with pytest.raises(StartRefused, match=r'^failed to prepare subPath for volumeMount "v" of container "main"$'):
        part(volume, "out/hosts").place()
    assert part(volume, "back/file").place() == volume / "in" / "file"


def test_a_copy_stays_as_it_was(volume: Path, tmp_path: Path) -> None:
    copy = part(volume, "in/file").copy_to(tmp_path / "parts" / "0")
    (volume / "in" / "file").write_text("other")

    assert copy.read_text() == "content"
    assert (part(volume, "in").copy_to(tmp_path / "parts" / "1") / "file").read_text() == "other"
    assert part(volume, "in/file").copy_to(tmp_path / "parts" / "1").read_text() == "other"


@as_root
def test_a_part_is_mounted_again_at_each_start(volume: Path, tmp_path: Path) -> None:
    target = tmp_path / "parts" / "0"
    for path in ("in/file", "in", "in/file"):
        part(volume, path).bind_at(target)
    assert target.read_text() == "content"
    assert mounted_below(tmp_path) == [target]

    unmount_below(tmp_path)

    assert target.read_text() == ""
    assert (volume / "in" / "file").read_text() == "content"
