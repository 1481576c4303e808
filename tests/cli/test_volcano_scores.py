"""`shoal decide` places pods of Volcano's queues by the scores of the ConfigMap among the manifests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from build.manifests import Object, as_file, node, pod, thing
from build.other_queues import vgroup, volcano_queue
from shoal.cli.main import main

_GROUP = "scheduling.k8s.io/group-name"
_SPREAD = {"leastrequested.weight": 10, "mostrequested.weight": 0, "balancedresource.weight": 0}
_PACK = {"leastrequested.weight": 0, "mostrequested.weight": 10, "balancedresource.weight": 0}


def _config_map(node_order: dict[str, int]) -> Object:
    names = ("priority", "gang", "proportion", "predicates")
    plugins: list[dict[str, Any]] = [{"name": name} for name in names]
    plugins.append({"name": "nodeorder", "arguments": node_order})
    text = yaml.safe_dump({"actions": "enqueue, allocate, backfill", "tiers": [{"plugins": plugins}]})
    made = thing("v1", "ConfigMap", "volcano-system/volcano-scheduler-configmap")
    return {**made, "data": {"volcano-scheduler.conf": text}}


@pytest.mark.parametrize(("weights", "where"), [(_SPREAD, "n1"), (_PACK, "n2")], ids=["spread", "packed"])
def test_the_config_map_chooses_between_an_empty_and_a_loaded_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], weights: dict[str, int], where: str
) -> None:
    objects = [
        node("n1", 8),
        node("n2", 8),
        _config_map(weights),
        volcano_queue("research"),
        vgroup("t/g", 1, "research"),
        pod("t/old", 4, on="n2", limits={"cpu": "16"}),
        pod("t/a", 1, annotations={_GROUP: "g"}, limits={"cpu": "1"}),
    ]
    assert main(["decide", "-f", as_file(tmp_path, *objects), "--json"]) == 0
    out, err = capsys.readouterr()
    placed = [each for round_ in json.loads(out)["rounds"] for each in round_["placed"]]
    assert [(each["pod"], each["node"]) for each in placed] == [("t/a", where)]
    assert "ConfigMap" not in err
