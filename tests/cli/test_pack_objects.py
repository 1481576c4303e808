"""`shoal pack -f`: the pods of manifests or of a snapshot placed anew, beside the present placement."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from build.manifests import Object, as_file, node, pod
from shoal.cli.main import main

Pack = Callable[..., tuple[int, str, str]]
P5 = {"node.kubernetes.io/instance-type": "p5.48xlarge"}


@pytest.fixture
def pack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Pack:
    def run(*objects: Object, options: tuple[str, ...] = ()) -> tuple[int, str, str]:
        code = main(["pack", "-f", as_file(tmp_path, *objects), *options])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def document(pack: Pack, *objects: Object, options: tuple[str, ...] = ()) -> Any:
    code, out, err = pack(*objects, options=("--json", *options))
    assert code == 0, err
    return json.loads(out)


def scattered() -> list[Object]:
    """Four pods of two GPUs, each on a node of its own."""
    return [
        *(node(f"n{number}", 8, labels=P5) for number in range(4)),
        *(pod(f"t/p{number}", 2, on=f"n{number}") for number in range(4)),
    ]


def test_the_first_row_is_the_present_placement_and_every_policy_follows(pack: Pack) -> None:
    found = document(pack, *scattered())
    names = [row["policy"] for row in found["rows"]]
    assert names == [
        "as placed now",
        *("Shoal", "Shoal+Power", "Random", "DotProd", "GpuClustering", "GpuPacking", "BestFit", "FGD"),
    ]
    assert (found["pods"], found["clones"]) == (4, 0)
    now, shoal = found["rows"][:2]
    assert (now["placed"], now["gpusHeld"], now["nodesUsed"]) == (4, 8, 4)
    assert (shoal["placed"], shoal["gpusHeld"], shoal["nodesUsed"]) == (4, 8, 1)
    assert shoal["usdPerHour"] == pytest.approx(now["usdPerHour"] / 4)


def test_the_conclusion_says_how_many_nodes_could_be_freed_and_what_they_cost(pack: Pack) -> None:
    code, out, _ = pack(*scattered(), options=("--policy", "Shoal"))
    assert code == 0
    text = " ".join(out.split())
    assert text.startswith("4 nodes with 32 GPUs, 4 pods placed anew on them policy placed waiting GPUs held")
    assert "Shoal places 4 pods with 8 GPUs on 1 of 4 nodes; now it is 4 pods with 8 GPUs on 4." in text
    assert "3 nodes could be freed: $165.12 of $220.16 per hour." in text
    assert "Prices: on demand, price list aws of 2026-07-20." in text


def test_large_amounts_have_separators(pack: Pack) -> None:
    out = pack(pod("t/a", 8), options=("--nodes", "200xp5.48xlarge", "--policy", "Shoal"))[1]
    assert "8/1,600" in out
    assert out.startswith("200 nodes with 1,600 GPUs, 1 pod placed anew on them\n")


def test_no_difference_is_said(pack: Pack) -> None:
    found = document(pack, node("n", 8), pod("t/p", 8, on="n"))
    assert found["conclusion"] == [
        "No difference on this fleet: every policy places 1 pod with 8 GPUs on 1 of 1 node, as now.",
        "No node could be freed.",
        "1 node is without a price: no known node.kubernetes.io/instance-type.",
    ]


def test_waiting_pods_are_placed_and_counted(pack: Pack) -> None:
    objects = [node("a", 8), node("b", 8), pod("t/x", 4, on="a"), pod("t/y", 4, on="b"), pod("t/whole", 8)]
    found = document(pack, *objects, options=("--policy", "Shoal"))
    now, shoal = found["rows"]
    assert (now["placed"], now["waiting"]) == (2, 1)
    assert (shoal["placed"], shoal["waiting"]) == (3, 0)
    assert "1 pod with 8 GPUs that waits now would run." in found["conclusion"]


def test_mig_instances_and_fractions_are_placed_anew(pack: Pack) -> None:
    amounts = {"nvidia.com/mig-1g.10gb": 7, "cpu": 64, "memory": "512Gi", "pods": 110}
    labels = {"nvidia.com/gpu.count": "1"}
    cut = [node(name, labels=labels) for name in ("m0", "m1")]
    for each in cut:
        each["status"]["allocatable"] = amounts
    sliced = [pod(f"t/m{number}", on=f"m{number}", limits={"nvidia.com/mig-1g.10gb": 3}) for number in range(2)]
    halves = [pod(f"t/h{number}", on="n", annotations={"gpu-fraction": "0.5"}) for number in range(2)]
    found = document(pack, *cut, node("n", 2), *sliced, *halves, options=("--policy", "Shoal"))
    now, shoal = found["rows"]
    assert (now["slicesHeld"], now["slices"]) == (6, 14)
    assert (shoal["slicesHeld"], shoal["gpusHeld"], shoal["placed"]) == (6, 1, 4)


def test_pods_of_daemon_sets_stay_and_do_not_keep_a_node(pack: Pack) -> None:
    owner = [{"kind": "DaemonSet", "name": "d", "apiVersion": "apps/v1", "uid": "1", "controller": True}]
    daemons = [pod(f"t/d{number}", on=f"n{number}", meta={"ownerReferences": owner}) for number in range(4)]
    shoal = document(pack, *scattered(), *daemons, options=("--policy", "Shoal"))["rows"][1]
    assert (shoal["placed"], shoal["nodesUsed"]) == (4, 1)


def test_pods_are_cloned_only_where_a_load_is_asked_for(pack: Pack) -> None:
    found = document(pack, *scattered(), options=("--policy", "Shoal", "--load", "1"))
    assert (found["pods"], found["clones"]) == (4, 12)
    assert [row["placed"] for row in found["rows"]] == [4, 16]
    code, out, _ = pack(*scattered(), options=("--load", "1"))
    assert (code, out.splitlines()[0]) == (0, "4 nodes with 32 GPUs, 4 pods and 12 clones placed anew on them")


def test_machines_of_the_command_line_are_the_fleet(pack: Pack) -> None:
    found = document(pack, pod("t/a", 8), pod("t/b", 8), options=("--nodes", "2xp5.48xlarge", "--policy", "Shoal"))
    assert [(row["placed"], row["nodesUsed"]) for row in found["rows"]] == [(0, 0), (2, 2)]


WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "a list of pods": (("--pods", "p.csv"), "--pods: is not used with -f or --live; leave it out"),
    "a picture": (("--plot", "p.svg"), "--plot: is not used with -f or --live; leave it out"),
    "a load of nothing": (("--load", "0"), "--load: a load of 0 is outside 0.01 to 10"),
    "both sources": (("--live",), "--live: is not used with -f; give one of them"),
}


@pytest.mark.parametrize(("options", "words"), WRONG.values(), ids=WRONG)
def test_one_line_about(pack: Pack, options: tuple[str, ...], words: str) -> None:
    assert pack(*scattered(), options=options) == (2, "", f"shoal: {words}\n")


def test_without_nodes_or_pods_there_is_nothing_to_place(pack: Pack) -> None:
    assert pack(pod("t/a", 1))[2].endswith(
        "shoal: no nodes; add the nodes of a cluster, or name machines, for example --nodes 8xp5.48xlarge\n"
    )
    assert pack(node("n", 1)) == (2, "", "shoal: no pods to place\n")
