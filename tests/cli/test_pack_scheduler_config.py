"""`shoal pack --scheduler-config`: what people configured kube-scheduler with, run beside our policies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shoal.cli.main import main

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/{version}
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: bin-packer
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources: [{{name: nvidia.com/gpu, weight: 5}}, {{name: cpu, weight: 1}}]
"""


@pytest.fixture
def trace(tmp_path: Path) -> list[str]:
    (tmp_path / "n.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn1,64000,65536,8,A100\nn2,64000,65536,8,A100\n")
    (tmp_path / "p.csv").write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np1,1000,1024,1,1000\np2,1000,1024,1,300\n"
    )
    return ["pack", "--nodes", str(tmp_path / "n.csv"), "--pods", str(tmp_path / "p.csv"), "--load", "0.9", "--json"]


def test_a_profile_is_compared_under_its_scheduler_name(
    trace: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(CONFIG.format(version="v1"))
    assert main([*trace, "--scheduler-config", str(config)]) == 0
    assert [each["policy"] for each in json.loads(capsys.readouterr().out)] == ["Shoal", "bin-packer"]


def test_the_retired_version_is_read_with_a_warning(
    trace: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(CONFIG.format(version="v1beta3"))
    assert main([*trace, "--scheduler-config", str(config)]) == 0
    assert "v1beta3 was removed in Kubernetes 1.29, read as" in capsys.readouterr().err


def test_a_profile_named_like_one_of_our_policies_is_refused(
    trace: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(CONFIG.format(version="v1").replace("bin-packer", "FGD"))
    assert main([*trace, "--scheduler-config", str(config)]) == 2
    assert "schedulerName FGD is the name of one of Shoal's policies" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(
            "kind: Namespace\napiVersion: v1\nmetadata: {name: x}\n",
            "contains no KubeSchedulerConfiguration",
            id="another kind",
        ),
        pytest.param(None, "cannot be read", id="no such file"),
    ],
)
def test_a_file_that_is_no_configuration_is_the_users_error(
    trace: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, words: str
) -> None:
    config = tmp_path / "scheduler.yaml"
    if text is not None:
        config.write_text(text)
    assert main([*trace, "--scheduler-config", str(config)]) == 2
    assert words in capsys.readouterr().err
