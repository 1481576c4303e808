"""`shoal top`: who holds which GPUs, what is free, and how much of that is of use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from build.gpu_queues import gpu_job, gpu_queue, gpu_workload, gpus
from build.manifests import Object, as_file, node, pod
from build.queue_manifests import flavor
from shoal.cli.main import main

H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
NOT_READY = {"type": "Ready", "status": "False"}


class Top:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys

    def text(self, *objects: Object, options: tuple[str, ...] = ()) -> str:
        assert main(["top", "-f", as_file(self._folder, *objects), *options]) == 0
        return self._capsys.readouterr().out

    def json(self, *objects: Object) -> Any:
        return json.loads(self.text(*objects, options=("-o", "json")))


@pytest.fixture
def top(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Top:
    # Whoever runs the tests may say how wide his terminal is.
    monkeypatch.delenv("COLUMNS", raising=False)
    return Top(tmp_path, capsys)


def owned(name: str, owner: str, gpus: int, on: str) -> Object:
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": "u", "controller": True}
    return pod(name, gpus, on, meta={"ownerReferences": [reference]})


def fleet() -> list[Object]:
    """Eight GPUs with six held by two owners, four of which half of one is held, and two on a node in trouble."""
    sick = node("sick", 2, labels=H100)
    sick["status"]["conditions"] = [NOT_READY]
    return [
        node("a", 8, labels=H100),
        node("b", 4, labels=H100),
        sick,
        owned("t/train-0", "train", 3, "a"),
        owned("t/train-1", "train", 2, "a"),
        pod("u/alone", 1, "a"),
        pod("u/half", on="b", annotations={"gpu-fraction": "0.5"}),
        pod("u/late", 6),
    ]


def test_the_first_line_says_how_much_is_held_and_who_waits(top: Top) -> None:
    first = top.text(*fleet()).splitlines()[0]
    assert first == "3 nodes, 6.5 of 14 GPUs held, 7.5 free, 1 not ready; 1 pod waits for 6 GPUs"


def test_a_gpu_that_does_not_work_is_neither_held_nor_free(top: Top) -> None:
    gpus = [{"index": index, "uuid": f"GPU-{index}"} for index in range(4)]
    gpus[1]["unhealthy"] = True
    named = node("a", 3, labels=H100 | {"nvidia.com/gpu.count": "4"})
    named["metadata"]["annotations"] = {"shoal.dev/topology": json.dumps({"gpus": gpus})}
    counted = node("b", 7, labels=H100)
    counted["status"]["capacity"] = counted["status"]["allocatable"] | {"nvidia.com/gpu": "8"}
    text = top.text(named, counted, pod("u/alone", 1, "b"))
    assert text.splitlines()[0] == "2 nodes, 1 of 12 GPUs held, 9 free, 2 unhealthy"
    lines = {line.split()[0]: line.split()[1] for line in text.splitlines() if line.startswith(("a ", "b "))}
    assert lines["a"] == "·X··"
    assert sorted(lines["b"]) == sorted("█······X")
    assert lines["b"].endswith("X")


def test_workloads_that_wait_in_queues_are_counted_apart_from_pods(top: Top) -> None:
    world = [node("n", 8), flavor(), *gpu_queue("t", gpus(8)), gpu_workload("t/held", 1, 8, "f"), gpu_job("t/j", 2, 4)]
    assert top.text(*world).splitlines()[0].endswith("; 1 workload waits in queues")


def test_those_who_hold_most_come_first_and_pods_of_one_job_are_one(top: Top) -> None:
    holders = top.json(*fleet())["holders"]
    assert [(each["name"], each["gpus"], each["pods"], each["nodes"]) for each in holders] == [
        ("t/train", 5, 2, 1),
        ("u/alone", 1, 1, 1),
        ("u/half", 0.5, 1, 1),
    ]


def test_nodes_in_trouble_come_first_then_those_with_most_gpus(top: Top) -> None:
    nodes = top.json(*fleet())["nodes"]
    assert [(each["name"], each["state"], each["free"]) for each in nodes] == [
        ("sick", "not ready", 2),
        ("a", "ready", 2),
        ("b", "ready", 3.5),
    ]
    assert sorted(nodes[2]["devices"]) == [0.5, 1, 1, 1]
    assert nodes[1]["holders"] == ["t/train", "u/alone"]


def test_the_most_that_one_node_can_give_is_on_nodes_that_take_pods(top: Top) -> None:
    (model,) = top.json(node("a", 2, labels=H100), node("b", 8, labels=H100, spec={"unschedulable": True}))["models"]
    assert (model["gpus"], model["empty"], model["mostOnOne"]) == (10, 10, 2)


def test_gpus_too_few_for_what_is_asked_are_fragments(top: Top) -> None:
    world = [node("a", 8, labels=H100), node("b", 8, labels=H100)]
    world += [pod("t/a", 6, "a"), pod("t/b", 6, "b"), pod("t/new", 6)]
    (model,) = top.json(*world)["models"]
    assert (model["free"], model["fragmented"]) == (4, 4)
    assert "fragments: 4 of the 4 free GPUs (100%) are of no use to the pods that wait" in top.text(*world)


def test_small_pods_that_run_do_not_hide_that_the_free_gpus_are_too_few_for_the_pod_that_waits(top: Top) -> None:
    world = [node("a", 8, labels=H100), node("b", 8, labels=H100)]
    world += [pod(f"t/{on}-{at}", 1, on) for on in "ab" for at in range(4)]
    assert top.json(*world)["models"][0]["fragmented"] == 0
    assert top.json(*world, pod("t/new", 8))["models"][0]["fragmented"] == 8
    full = [node("c", 1, labels=H100), pod("t/half", on="c", annotations={"gpu-fraction": "0.5"})]
    full += [pod(f"t/whole-{at}", 1, "a") for at in range(3)]
    assert "(7%) are of no use to pods like those that run" in top.text(*world[:1], *full)


def test_empty_nodes_are_no_fragments_though_somebody_wants_another_model(top: Top) -> None:
    other = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
    world = [node("a", 8, labels=H100), pod("t/new", 4, nodeSelector=other), pod("t/no-gpu", limits={"cpu": 1})]
    assert top.json(*world)["models"][0]["fragmented"] == 0
    assert "fragments:" not in top.text(*world)


def test_fixed_mig_instances_are_told_by_profile(top: Top) -> None:
    cut = node("m", labels={"nvidia.com/gpu.count": "2"})
    cut["status"]["allocatable"] |= {"nvidia.com/mig-1g.10gb": 14}
    world = [cut, pod("t/a", on="m", limits={"nvidia.com/mig-1g.10gb": 3})]
    found = top.json(*world)
    assert found["nodes"][0]["slices"] == {"1g.10gb": {"held": 3, "total": 14}}
    assert found["holders"][0]["slices"] == 3
    assert "3 of 14 MIG instances held" in top.text(*world)


def test_a_row_has_a_block_for_each_gpu(top: Top) -> None:
    row = next(line for line in top.text(*fleet()).splitlines() if line.startswith("b "))
    assert row.count("▄") == 1
    assert "▄···" in row


def test_a_screen_has_twenty_nodes_and_says_how_many_more(top: Top) -> None:
    world = [node(f"n{at:03}", 8, labels=H100) for at in range(50)]
    shown = top.text(*world)
    assert len(shown.splitlines()) < 40
    assert "and 30 more; -o wide or -o json has them all" in shown
    assert "n049" in top.text(*world, options=("-o", "wide"))


def test_wide_says_model_zone_and_holders(top: Top) -> None:
    wide = top.text(*fleet(), options=("-o", "wide"))
    row = next(line for line in wide.splitlines() if line.startswith("a "))
    assert "NVIDIA-H100-80GB-HBM3" in row
    assert "t/train, u/alone" in row


def test_yaml_says_what_json_says(top: Top) -> None:
    assert msgspec.yaml.decode(top.text(*fleet(), options=("-o", "yaml"))) == top.json(*fleet())


def test_a_cluster_without_anything_is_told_in_a_line(top: Top) -> None:
    assert top.text(pod("t/a", 1)) == "0 nodes; 1 pod waits for 1 GPU\n"


def test_a_narrow_terminal_breaks_no_line_and_says_what_it_has_no_room_for(
    top: Top, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    found = top.text(*fleet()).splitlines()
    assert max(map(len, found)) <= 60
    assert any(line.startswith("no room for: ") and "GiB free" in line for line in found)
    monkeypatch.setenv("COLUMNS", "120")
    assert "no room for" not in top.text(*fleet())


def test_holders_of_one_namespace(top: Top) -> None:
    found = json.loads(top.text(*fleet(), options=("-n", "u", "-o", "json")))
    assert [each["name"] for each in found["holders"]] == ["u/alone", "u/half"]
    assert len(found["nodes"]) == 3
    assert json.loads(top.text(*fleet(), options=("-n", "u", "-A", "-o", "json"))) == top.json(*fleet())


def test_names_and_templates_are_printed_and_headings_can_be_left_out(
    top: Top, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert top.text(*fleet(), options=("-o", "name")) == "node/sick\nnode/a\nnode/b\n"
    assert top.text(*fleet(), options=("-o", "jsonpath={.models[*].gpus}")) == "14"
    queues = [node("n", 8), flavor(), *gpu_queue("t", gpus(8))]
    files = {"top": as_file(tmp_path, *fleet(), name="top.json"), "queue": as_file(tmp_path, *queues, name="q.json")}
    assert main(["queue", "-f", files["queue"], "-o", "name"]) == 0
    assert "localqueue/t/q" in capsys.readouterr().out.split()
    assert main(["queue", "-f", files["queue"], "-o", "jsonpath={.roots[*].kind}"]) == 0
    assert capsys.readouterr().out == "clusterQueue"
    for command, listed, headings in (("top", "nodes", ("model", "node", "held")), ("queue", "queues", ("queue",))):
        assert main([command, "-f", files[command]]) == 0
        with_headings = capsys.readouterr().out.splitlines()
        assert main([command, "-f", files[command], "--no-headers"]) == 0
        without = capsys.readouterr().out.splitlines()
        assert {line.split()[0] for line in with_headings if line} - {line.split()[0] for line in without if line} == {
            *headings
        }
        assert main([command, "-f", files[command], "-o", "custom-columns=A:.b"]) == 2
        assert f"use `shoal get {listed} -o custom-columns=...`" in capsys.readouterr().err


def test_nodes_are_selected_by_labels_with_their_holders(top: Top) -> None:
    world = [*fleet(), node("other", 4, labels={"pool": "b"}), pod("v/other", 1, "other")]
    found = json.loads(top.text(*world, options=("-l", "pool=b", "-o", "json")))
    assert [each["name"] for each in found["nodes"]] == ["other"]
    assert [each["name"] for each in found["holders"]] == ["v/other"]
    assert top.text(*world, options=("-l", "pool=b")).splitlines()[0].startswith("1 node, 1 of 4 GPUs held, 3 free")
    assert top.text(*world, options=("-l", "pool!=b", "-o", "name")).split() == ["node/sick", "node/a", "node/b"]


@pytest.mark.parametrize(
    ("resource", "names"),
    [
        ("gpu", ["gpus", "cores", "memory"]),
        ("cpu", ["cores", "memory", "gpus"]),
        ("memory", ["memory", "cores", "gpus"]),
    ],
)
def test_nodes_are_sorted_by_what_is_used(resource: str, names: list[str], top: Top) -> None:
    pods = [
        pod("gpus", 2, "gpus"),
        pod("cores", 1, "cores", limits={"cpu": "8", "memory": "1Gi"}),
        pod("memory", 0, "memory", limits={"cpu": "1", "memory": "64Gi"}),
    ]
    nodes = [node(name, 4) for name in ("cores", "gpus", "memory")]
    found = top.text(*nodes, *pods, options=("--sort-by", resource, "-o", "name"))
    assert found.split() == [f"node/{name}" for name in names]
