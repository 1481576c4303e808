"""`shoal agent cdi` writes a specification, and refuses names that no specification can have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shoal.cli.main import main


def test_the_specification_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agent", "cdi", "--fake", "dgx-h100", "--naming", "index"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [device["name"] for device in document["devices"]] == [*map(str, range(8)), "all"]


def test_a_second_run_leaves_the_file_unchanged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "nvidia.json"
    command = ["agent", "cdi", "--fake", "dgx-h100", "--out", str(path)]
    assert main(command) == 0
    assert capsys.readouterr().err == f"{path}: 25 devices\n"
    assert main(command) == 0
    assert capsys.readouterr().err == f"{path}: 25 devices, unchanged\n"


@pytest.mark.parametrize("kind", ["gpu", "nvidia.com/", "/gpu", "nvidia.com/gpu=0", "nvidia.com/a/b", "nvidia.com/é"])
def test_a_kind_that_runtimes_refuse_is_a_user_error(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agent", "cdi", "--fake", "dgx-h100", "--kind", kind]) == 2
    assert f"--kind: {kind} is no kind of CDI devices; such as nvidia.com/gpu" in capsys.readouterr().err


def test_an_unknown_form_of_names_is_a_user_error_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agent", "cdi", "--fake", "dgx-h100", "--naming", "indx"]) == 2
    assert "did you mean index" in capsys.readouterr().err
