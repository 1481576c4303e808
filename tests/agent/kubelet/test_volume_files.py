"""The files of a volume change all at once, and only those that were there for its objects."""

from __future__ import annotations

from pathlib import Path

from shoal.agent.kubelet.volume_files import VolumeFile, replace_files


def files(**found: str) -> list[VolumeFile]:
    return [VolumeFile(name.replace("_", "/"), text.encode(), 0o644) for name, text in found.items()]


def test_a_link_through_one_folder_changes_all_files_together(tmp_path: Path) -> None:
    replace_files(tmp_path, files(a="1", b="1"))
    former = (tmp_path / "..data").resolve()

    replace_files(tmp_path, files(a="2", b="2"))

    assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()) == ("2", "2")
    assert (tmp_path / "a").readlink() == Path("..data/a")
    assert not former.exists()


def test_equal_files_are_not_written_again(tmp_path: Path) -> None:
    replace_files(tmp_path, files(a="1", x_y="1"))
    data = (tmp_path / "..data").resolve()

    replace_files(tmp_path, files(a="1", x_y="1"))

    assert (tmp_path / "..data").resolve() == data
    replace_files(tmp_path, [VolumeFile("a", b"1", 0o600), VolumeFile("x/y", b"1", 0o644)])
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600


def test_a_key_that_is_gone_has_no_file_and_other_files_stay(tmp_path: Path) -> None:
    replace_files(tmp_path, files(a="1", x_y="1"))
    (tmp_path / "made-by-a-sub-path").mkdir()

    replace_files(tmp_path, files(a="1"))

    assert sorted(one.name for one in tmp_path.iterdir() if not one.name.startswith("..")) == [
        "a",
        "made-by-a-sub-path",
    ]


def test_an_opened_file_keeps_its_content(tmp_path: Path) -> None:
    replace_files(tmp_path, files(a="1"))
    with (tmp_path / "a").open() as opened:
        replace_files(tmp_path, files(a="2"))

        assert opened.read() == "1"


def test_files_of_an_earlier_version_are_replaced_by_links(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "y").write_text("old")

    replace_files(tmp_path, files(a="1", x_y="2"))

    assert ((tmp_path / "a").read_text(), (tmp_path / "x" / "y").read_text()) == ("1", "2")


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    replace_files(tmp_path, files(a="1"))
    (tmp_path / "..left").mkdir()
    (tmp_path / "..data_new").symlink_to("..left")

    replace_files(tmp_path, files(a="2"))

    assert (tmp_path / "a").read_text() == "2"
    assert not (tmp_path / "..left").exists()
