"""`shoal why -f` and `shoal top -f` about nodes whose GPUs are given to resource claims."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.claim_manifests import allocated, claim, claimer, device_class, gpu_slice
from build.manifests import Object, as_file, node, pod
from shoal.cli.main import main

LABELS = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "2"}


def told(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, *objects: Object) -> str:
    assert main(["why", name, "-f", as_file(tmp_path, *objects)]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_a_node_that_gives_its_gpus_to_claims_is_not_called_unhealthy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = [node("n", labels=LABELS), node("m", 1), device_class(), pod("t/p", 2)]
    assert "node n: its labels name GPUs, and it advertises none" in told(capsys, tmp_path, "t/p", *world)
    assert "advertises none" not in told(capsys, tmp_path, "t/p", *world, gpu_slice("n", 2))


def test_the_nearest_node_is_one_with_such_devices_though_all_are_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = [node("a"), node("n", labels=LABELS), device_class(), gpu_slice("n", 2)]
    words = told(capsys, tmp_path, "t/p", *world, claim("t/c", 3), claimer("t/p", "c"))
    assert "nearest The nearest node is n: " in words
    assert "it asks for 3 of class gpu.nvidia.com where 2 match and 2 can be had" in words
    taken = allocated(claim("t/taken", 2), "gpu-0", "gpu-1")
    words = told(capsys, tmp_path, "t/p", *world, taken, claim("t/c", 3), claimer("t/p", "c"))
    assert "The nearest node is n: " in words
    assert "where 2 match and 0 can be had" in words


def test_a_selector_is_quoted_with_the_value_that_it_compares(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expression = "device.attributes['gpu.nvidia.com'].productName == 'NVIDIA B200 192GB'"
    world = [node("n", labels=LABELS), device_class(), gpu_slice("n", 2)]
    words = told(capsys, tmp_path, "t/p", *world, claim("t/c", 1, expression), claimer("t/p", "c"))
    assert f"it asks for 1 of class gpu.nvidia.com and {expression} where 0 match" in words


def test_top_counts_gpus_that_claims_hold_apart_from_those_that_nodes_advertise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = allocated(claim("t/taken", 1), "gpu-0")
    world = [node("n", labels=LABELS), node("m", 1), device_class(), gpu_slice("n", 2), taken]
    assert main(["top", "-f", as_file(tmp_path, *world, name="top.json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2 nodes, 0 of 1 GPU held, 1 free, 1 of 2 devices held by claims"
    assert any(line.split()[:3] == ["n", "claims", "1/2"] for line in lines)


def test_the_values_that_devices_have_are_named_where_none_has_the_one_that_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expression = "device.attributes['gpu.nvidia.com'].productName == 'B200'"
    world = [node("n"), node("m"), device_class(), gpu_slice("n", 2), gpu_slice("m", 1, "A100")]
    words = told(capsys, tmp_path, "t/p", *world, claim("t/c", 1, expression), claimer("t/p", "c"))
    assert 'claims No device has productName "B200"; devices have "A100", "H100".' in words
    too_many = claim("t/c", 3, expression.replace("B200", "H100"))
    assert "No device has" not in told(capsys, tmp_path, "t/p", *world, too_many, claimer("t/p", "c"))


def test_the_devices_the_node_and_the_users_of_an_allocated_claim_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = allocated(claim("t/shared"), "gpu-0", pod="first")
    waits = claimer("t/p", "shared") | {"spec": claimer("t/p", "shared")["spec"] | {"nodeSelector": {"pool": "m"}}}
    world = [node("n"), node("m", labels={"pool": "m"}), device_class(), gpu_slice("n", 2), shared, waits]
    shared["status"]["allocation"]["nodeSelector"] = {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]
    }
    words = told(capsys, tmp_path, "t/p", *world)
    assert "claims Claim t/shared has gpu.nvidia.com/n/gpu-0 of node n, in use by pod first." in words
