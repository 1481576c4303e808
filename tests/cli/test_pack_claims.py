"""`shoal pack -f` about nodes whose GPUs are given to resource claims."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from build.claim_manifests import allocated, claim, claimer, device_class, gpu_slice
from build.manifests import Object, as_file, node
from shoal.cli.main import main

P5 = {"node.kubernetes.io/instance-type": "p5.48xlarge"}


def scattered() -> list[Object]:
    """Two nodes whose driver publishes eight GPUs each, with a pod on each that claims two, and a CPU node."""
    objects: list[Object] = [node("cpu-0"), device_class()]
    for name in ("d0", "d1"):
        taken = allocated(claim(f"t/c-{name}", 2), "gpu-0", "gpu-1", pool=name, pod=f"p-{name}")
        objects += [node(name, labels=P5), gpu_slice(name, 8), taken, claimer(f"t/p-{name}", f"c-{name}", on=name)]
    return objects


def document(tmp_path: Path, capsys: pytest.CaptureFixture[str], *objects: Object) -> Any:
    assert main(["pack", "-f", as_file(tmp_path, *objects), "--policy", "Shoal", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_nodes_count_whose_gpus_are_given_to_claims(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    now = document(tmp_path, capsys, *scattered())["rows"][0]
    assert (now["nodes"], now["nodesUsed"], now["placed"]) == (2, 2, 2)
    assert (now["devicesHeld"], now["devices"], now["gpus"]) == (4, 16, 0)
    assert now["usdPerHour"] == pytest.approx(110.08)


def test_pods_with_allocated_claims_are_placed_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(tmp_path, capsys, *scattered())
    shoal = found["rows"][1]
    assert (shoal["placed"], shoal["devicesHeld"], shoal["nodesUsed"]) == (2, 4, 1)
    assert found["conclusion"][:2] == [
        "Shoal places 2 pods with 4 claimed devices on 1 of 2 nodes; now it is 2 pods with 4 claimed devices on 2.",
        "1 node could be freed: $55.04 of $110.08 per hour.",
    ]


def test_a_claim_without_a_pod_keeps_its_devices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = allocated(claim("t/kept", 7), *(f"gpu-{at}" for at in range(7)), pool="d0")
    world = [node("d0"), gpu_slice("d0", 8), device_class(), kept, claim("t/c", 2), claimer("t/p", "c")]
    now, shoal = document(tmp_path, capsys, *world)["rows"]
    assert (now["devicesHeld"], now["waiting"]) == (7, 1)
    assert (shoal["devicesHeld"], shoal["waiting"]) == (7, 1)


def test_a_waiting_pod_with_a_claim_would_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = [*scattered(), claim("t/c", 7), claimer("t/p", "c")]
    assert "1 pod with 7 claimed devices that waits now would run." in document(tmp_path, capsys, *world)["conclusion"]


def test_the_first_line_and_the_table_name_the_devices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", "-f", as_file(tmp_path, *scattered()), "--policy", "Shoal"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2 nodes with 16 devices for claims, 2 pods placed anew on them"
    assert lines[1].split() == ["policy", "placed", "waiting", "GPUs", "held", "claims", "nodes", "used", "$/h", "frag"]
    assert lines[2].split() == ["as", "placed", "now", "2", "0", "0/0", "4/16", "2/2", "110.08", "0.00"]
