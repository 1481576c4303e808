"""Pods that run in containers stay with the runtime that runs them."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from shoal.units.errors import UserError
from shoal.wiring.container_runtime import chosen_socket

POD = "pod default/runs"


def listening(path: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
    return path


def test_the_runtime_of_stored_pods_is_used_again_also_while_it_is_down(tmp_path: Path) -> None:
    first, recorded = listening(tmp_path / "first"), tmp_path / "recorded"
    assert chosen_socket(str(first), recorded, "") == (first, "")
    first.unlink()

    assert chosen_socket("", recorded, POD) == (first, "")


def test_another_runtime_is_refused_while_pods_run(tmp_path: Path) -> None:
    first, recorded = listening(tmp_path / "first"), tmp_path / "recorded"
    other = listening(tmp_path / "other")
    chosen_socket(str(first), recorded, "")

    for choice in (str(other), "none"):
        with pytest.raises(UserError, match=f"{POD} runs in a container at {first}"):
            chosen_socket(choice, recorded, POD)
    assert chosen_socket(f"unix://{first}", recorded, POD) == (first, "")


def test_another_runtime_is_chosen_when_no_pod_runs(tmp_path: Path) -> None:
    first, recorded = listening(tmp_path / "first"), tmp_path / "recorded"
    other = listening(tmp_path / "other")
    chosen_socket(str(first), recorded, "")

    assert chosen_socket(str(other), recorded, "") == (other, "")
    assert chosen_socket("", recorded, POD) == (other, "")
