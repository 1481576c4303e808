"""The socket of the container runtime is found, or the message says what to do."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from shoal.agent.kubelet.cri.endpoint import runtime_socket
from shoal.units.errors import UserError


def listening(path: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
    return path


def test_the_first_usual_socket_that_exists_is_used(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    there = listening(tmp_path / "b")

    assert runtime_socket("", (tmp_path / "a", there, tmp_path / "c")) == (there, "")


def test_without_a_socket_the_message_says_what_to_install(tmp_path: Path) -> None:
    path, problem = runtime_socket("", (tmp_path / "a",))

    assert path == tmp_path / "a"
    assert "no container runtime was found; install containerd or CRI-O" in problem


def test_containers_can_be_switched_off(tmp_path: Path) -> None:
    assert runtime_socket("none", (listening(tmp_path / "a"),))[1] == (
        "containers are switched off by --runtime-endpoint none"
    )


def test_a_chosen_socket_may_be_written_as_an_address(tmp_path: Path) -> None:
    there = listening(tmp_path / "a")

    assert runtime_socket(f"unix://{there}") == (there, "")


@pytest.mark.parametrize("name", ["file", "nothing"])
def test_a_choice_that_is_no_socket_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(UserError, match=f"--runtime-endpoint: {tmp_path / name}"):
        runtime_socket(str(tmp_path / name))
