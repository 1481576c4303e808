"""`shoal agent check` prints the GPUs of a machine, and says what is missing on a machine without a driver."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shoal.cli.main import app, main

RUN = CliRunner().invoke


def test_each_gpu_of_the_simulated_machine_is_a_line_with_its_name_and_uuid() -> None:
    found = RUN(app, ["agent", "check", "--fake", "dgx-h100"])
    lines = found.stdout.splitlines()
    assert found.exit_code == 0
    assert [line.split(":")[0] for line in lines[1:]] == [f"GPU {index}" for index in range(8)]
    assert all("NVIDIA H100 80GB HBM3 GPU-" in line for line in lines[1:])


def test_mig_instances_are_below_their_gpu() -> None:
    lines = RUN(app, ["agent", "check", "--fake", "dgx-h100[mig=all-1g.10gb]"]).stdout.splitlines()
    assert lines[1].startswith("GPU 0")
    assert lines[2].startswith("  MIG 1g.10gb MIG-")
    assert len(lines) == 1 + 8 * (1 + 7)


def test_the_json_document_has_the_readings() -> None:
    document = json.loads(RUN(app, ["agent", "check", "--fake", "dgx-h100", "-o", "json"]).stdout)
    assert len(document["gpus"]) == 8
    assert document["gpus"][0]["readings"]["memory_mib"] == document["gpus"][0]["gpu"]["memory_mib"]


def test_a_description_of_two_machines_is_a_user_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agent", "check", "--fake", "2xdgx-h100"]) == 2
    assert "--fake describes 2 machines" in capsys.readouterr().err


def test_a_machine_that_does_not_exist_is_an_error_of_the_option_that_named_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["agent", "check", "--fake", "dgx-h1000"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("shoal: --fake dgx-h1000: ")
    assert "--nodes" not in error


def test_the_xids_of_the_kernel_log_come_with_advice(tmp_path: Path) -> None:
    log = tmp_path / "kern.log"
    log.write_text("[1.0] NVRM: Xid (PCI:0000:10:00): 48, pid=1\n" * 2)
    lines = RUN(app, ["agent", "check", "--fake", "g6.12xlarge", "--kernel-log", str(log)]).stdout.splitlines()
    assert lines[1].startswith("GPU 0")
    assert lines[2].startswith("  in the kernel log: Xid 48 (2 times): Double Bit ECC Error: move its pods away")
    assert lines[3].startswith("GPU 1")


def test_a_log_that_cannot_be_read_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agent", "check", "--fake", "dgx-h100", "--kernel-log", str(tmp_path / "absent")]) == 0
    assert "absent: the kernel log was not read: No such file or directory" in capsys.readouterr().err
