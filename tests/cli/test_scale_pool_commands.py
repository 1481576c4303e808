"""`shoal scale import`, `mode` and `iam`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from shoal.autoscale.nodes.pool_modes import MODES
from shoal.cli.main import main
from shoal.cli.scale_pool_commands import ScalingMode
from shoal.cloud.ec2_policy import READS, WRITES


def test_a_command_after_two_dashes_is_converted(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["eksctl", "create", "nodegroup", "--name", "gpu", "--node-type", "p5.48xlarge", "--nodes-max", "8"]
    assert main(["scale", "import", "--", *words]) == 0
    pool = yaml.safe_load(capsys.readouterr().out)
    assert (pool["kind"], pool["metadata"]["name"]) == ("NodePool", "gpu")


def test_a_script_and_a_cluster_config_are_converted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script, config = tmp_path / "pools.sh", tmp_path / "cluster.yaml"
    script.write_text("gcloud container node-pools create a3 --machine-type a3-highgpu-8g --num-nodes 2\n")
    groups = [{"name": "gpu", "instanceType": "p5.48xlarge", "maxSize": 4}]
    config.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "ClusterConfig", "managedNodeGroups": groups}))
    assert main(["scale", "import", "-f", str(script), "-f", str(config)]) == 0
    said = capsys.readouterr()
    assert [pool["metadata"]["name"] for pool in yaml.safe_load_all(said.out)] == ["a3", "gpu"]
    assert "shoal: warning: node group a3: a NodePool has no minimum" in said.err


def test_nothing_to_import_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scale", "import"]) == 2
    assert "give -f FILE, or a command after --" in capsys.readouterr().err


def test_the_policy_allows_what_is_used_and_ends_own_instances_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scale", "iam", "train", "--region", "us-east-1", "--node-role", "nodes"]) == 0
    policy = json.loads(capsys.readouterr().out)
    actions: set[str] = set()
    for statement in policy["Statement"]:
        listed = statement["Action"]
        actions |= {listed} if isinstance(listed, str) else set(listed)
    assert actions == {*(f"ec2:{name}" for name in (*READS, *WRITES)), "iam:PassRole"}
    ending = next(each for each in policy["Statement"] if each["Action"] == "ec2:TerminateInstances")
    assert ending["Condition"] == {"StringEquals": {"aws:ResourceTag/shoal.dev/cluster": "train"}}
    assert "*" not in actions


def test_the_modes_of_the_command_line_are_those_of_pools() -> None:
    assert tuple(mode.value for mode in ScalingMode) == MODES
