"""One server at a time in a folder that is Shoal's; everything else is one clear line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from shoal.embedded.apiserver.security.state_folder import Running, check_form, claim, holder, is_claimed, running
from shoal.units.errors import UserError

READY = Running(1, "https://127.0.0.1:6443", "/k", "1.36")


def test_a_claimed_folder_is_private_marked_and_tells_who_runs(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with claim(folder) as claimed:
        assert running(folder) is None
        claimed.announce(READY)
        assert running(folder) == READY
        assert folder.stat().st_mode & 0o777 == 0o700
    assert running(folder) is None
    assert holder(folder) is None
    check_form(folder)


def test_a_second_server_is_refused_and_the_first_keeps_its_word(tmp_path: Path) -> None:
    with claim(tmp_path) as claimed:
        claimed.announce(READY)
        with pytest.raises(UserError, match=r"a cluster is running here already \(pid 1, https"), claim(tmp_path):
            pass
        assert running(tmp_path) == READY


def test_a_server_that_was_killed_leaves_a_folder_that_is_taken_over(tmp_path: Path) -> None:
    story = (
        "import os, sys; from pathlib import Path; from shoal.embedded.apiserver.security.state_folder import *\n"
        "with claim(Path(sys.argv[1])) as c:\n"
        "    c.announce(Running(os.getpid(), 'u', 'k', '1.36')); os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", story, str(tmp_path)], check=False, timeout=120)
    assert (tmp_path / "running.json").exists()
    assert running(tmp_path) is None
    assert not is_claimed(tmp_path)
    with claim(tmp_path):
        assert holder(tmp_path) is not None
        assert not (tmp_path / "running.json").exists()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("thesis.tex", "x", "holds other files"),
        ("shoal.json", "{", "is broken"),
        ("shoal.json", '{"format":99}', "another version of Shoal"),
    ],
)
def test_a_folder_that_is_not_ours_is_left_alone(tmp_path: Path, name: str, content: str, words: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=words) as caught, claim(tmp_path):
        pass
    assert "\n" not in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_a_file_in_place_of_the_folder_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(UserError, match="not a folder"), claim(tmp_path / "f"):
        pass
    with pytest.raises(UserError, match=r"cannot be used|not a folder"), claim(tmp_path / "f" / "deeper"):
        pass
