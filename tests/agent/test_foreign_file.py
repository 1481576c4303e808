"""What containers put in place of a file neither blocks the agent nor leads it elsewhere nor fills its memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shoal.agent.foreign_file import read_foreign


def test_the_beginning_or_the_end_of_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"0123456789")
    assert (read_foreign(file, 4), read_foreign(file, 4, is_end=True)) == (b"0123", b"6789")
    assert read_foreign(file, 40, is_end=True) == b"0123456789"


def test_of_a_huge_file_only_a_part_is_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with file.open("wb") as opened:
        opened.truncate(1 << 40)
    assert read_foreign(file, 3, is_end=True) == b"\0\0\0"


@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "device", "nothing"])
def test_what_is_no_plain_file_is_an_error(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "file"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "link":
        (tmp_path / "other").write_text("secret")
        file.symlink_to(tmp_path / "other")
    elif kind == "folder":
        file.mkdir()
    elif kind == "device":
        file = Path("/dev/zero")
    with pytest.raises(OSError, match=r"plain file|Too many levels|No such file"):
        read_foreign(file, 10)
