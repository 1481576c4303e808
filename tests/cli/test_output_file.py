"""A file that is whole or absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.cli.output_file import OutFile
from shoal.units.errors import UserError


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_the_file_appears_with_its_whole_text(tmp_path: Path) -> None:
    OutFile(tmp_path / "a.svg", ".svg").write("<svg/>")
    assert (tmp_path / "a.svg").read_text() == "<svg/>"
    assert names(tmp_path) == ["a.svg"]


def test_asking_leaves_nothing_behind(tmp_path: Path) -> None:
    OutFile(tmp_path / "a.svg", ".svg")
    assert names(tmp_path) == []


def test_an_old_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    path.write_text("old")
    out = OutFile(path, ".svg")
    assert path.read_text() == "old"
    with pytest.raises(UnicodeEncodeError):
        out.write("\ud800")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.svg"]
    out.write("new")
    assert path.read_text() == "new"


def test_a_link_keeps_pointing_where_it_pointed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "a.svg"
    link.symlink_to(tmp_path / "there" / "b.svg")
    OutFile(link, ".svg").write("new")
    assert link.is_symlink()
    assert (tmp_path / "there" / "b.svg").read_text() == "new"


def test_the_file_has_the_rights_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    OutFile(tmp_path / "a.svg", ".svg").write("x")
    assert (tmp_path / "a.svg").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_folder_that_is_not_there_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none/a\.svg: cannot be written: No such file or directory"):
        OutFile(tmp_path / "none" / "a.svg", ".svg")


def test_a_folder_in_its_place_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.svg").mkdir()
    with pytest.raises(UserError, match="already exists and cannot be replaced"):
        OutFile(tmp_path / "a.svg", ".svg")


@pytest.mark.parametrize("name", ["a.png", "a", "svg", "a.svg.gz"])
def test_a_name_that_promises_another_format_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"must end in \.svg"):
        OutFile(tmp_path / name, ".svg")
