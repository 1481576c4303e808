"""What `shoal why` proposes for labels that no node has, taints, and cordons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.manifests import Object, job, node, pod, replicas, volcano_group
from build.why_answers import GROUP, TAINT, WhyAnswers, of_cluster


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> WhyAnswers:
    return WhyAnswers(tmp_path, capsys)


def racks() -> list[Object]:
    return [of_cluster(node(name, 8, labels={"example.com/rack": "a"})) for name in "ab"]


def test_a_topology_level_that_no_node_has_is_named_with_the_nearest(told: WhyAnswers) -> None:
    level = {"kueue.x-k8s.io/podset-required-topology": "example.com/rackk"}
    gang = job("t/train", 2, 8, annotations={"shoal.dev/gang": "true"}, template={"annotations": level})
    text = told("job/train", *racks(), gang)
    assert "No node has a label example.com/rackk; did you mean example.com/rack?" in text
    assert (
        'spec.template.metadata.annotations["kueue.x-k8s.io/podset-required-topology"]: example.com/rack instead of '
        "example.com/rackk." in text
    )
    tainted = told(
        "job/train",
        *racks()[:1],
        of_cluster(node("b", 8, labels={"example.com/rack": "a"}, spec={"taints": [TAINT]})),
        gang,
    )
    # The toleration alone would not help.
    assert "Two changes are needed. First: In job t/train" in tainted
    assert "Then: Tolerate dedicated=research:NoSchedule (1 node)." in tainted


def test_a_misspelled_value_of_a_node_selector_is_corrected_by_a_command(told: WhyAnswers) -> None:
    waits = pod("t/a", 1, nodeSelector={"example.com/rack": "rack-on"})
    racked = of_cluster(node("n", 8, labels={"example.com/rack": "rack-one"}))
    assert "did you mean rack-one?" in told("pod/a", racked, waits)
    (remedy,) = told.document("pod/a", racked, waits)["remedies"]
    assert "rack-one" in remedy["commands"][0]


def test_a_spread_over_a_label_that_no_node_has_is_named(told: WhyAnswers) -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": "example.com/rakc",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {},
    }
    text = told("pod/a", *racks(), pod("t/a", 1, topologySpreadConstraints=[spread]))
    assert "No node has a label example.com/rakc; did you mean example.com/rack?" in text
    assert "spec.topologySpreadConstraints[0].topologyKey: example.com/rack instead of example.com/rakc" in text


def test_a_selector_of_a_deployment_is_patched(told: WhyAnswers) -> None:
    deployment = replicas("Deployment", "t/web", 1, 1)
    deployment["spec"]["template"]["spec"]["nodeSelector"] = {"example.com/rackk": "a"}
    (remedy,) = told.document("deployment/web", *racks(), deployment)["remedies"]
    path = "/spec/template/spec/nodeSelector/example.com~1rack"
    patch = f'[{{"op":"remove","path":"{path}k"}},{{"op":"add","path":"{path}","value":"a"}}]'
    assert remedy["commands"] == [f"kubectl patch deployment web -n t --type=json -p='{patch}'"]


def test_a_taint_is_told_only_where_the_toleration_suffices(told: WhyAnswers) -> None:
    tainted = node("n", 8, spec={"taints": [TAINT]})
    assert "Tolerate dedicated=research:NoSchedule (1 node)." in told("pod/a", tainted, pod("t/a", 8))
    text = told("pod/a", tainted, pod("t/old", 4, on="n"), pod("t/a", 8))
    assert "Two changes are needed. First: Tolerate dedicated=research:NoSchedule (1 node)." in text
    assert "Then: Free 4 GPUs on n (t/old)." in text


def test_a_toleration_is_told_to_a_pod_without_gpus(told: WhyAnswers) -> None:
    tainted = node("n", 8, spec={"taints": [TAINT]})
    small = pod("t/a", limits={"cpu": "8"})
    assert "Tolerate dedicated=research:NoSchedule (1 node)." in told("pod/a", tainted, small)
    # Of 64 cores: where no core is free, the toleration alone does not help.
    busy = told("pod/a", tainted, pod("t/old", on="n", limits={"cpu": "60"}), small)
    assert "Two changes are needed. First: Tolerate dedicated=research:NoSchedule (1 node)." in busy
    assert "Tolerate" not in told("pod/a", tainted, pod("t/a", limits={"cpu": "65"}))


def test_a_cordon_is_lifted_only_where_that_suffices(told: WhyAnswers) -> None:
    cordoned = of_cluster(node("n", 8, spec={"unschedulable": True}))
    assert "Uncordon node n. kubectl uncordon n" in told("pod/a", cordoned, pod("t/a", 8))
    assert "Uncordon" not in told("pod/a", cordoned, pod("t/a", 16))


CORDON: dict[str, Any] = {
    "unschedulable": True,
    "taints": [
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": "2026-11-27T00:00:00Z"}
    ],
}
"""As the node lifecycle controller completes what `kubectl cordon` writes."""


def test_a_cordon_is_lifted_together_with_the_taint_that_it_brings(told: WhyAnswers) -> None:
    nodes = [of_cluster(node(name, 8, spec=CORDON)) for name in "ab"]
    text = told("pod/a", *nodes, pod("t/a", 1))
    assert "would help Uncordon node a. kubectl uncordon a" in text
    assert "Tolerate" not in text
    assert "Uncordon" not in told("pod/a", *nodes, pod("t/a", 16))


def test_a_cordon_is_lifted_rather_than_a_taint_tolerated_or_a_pod_ended(told: WhyAnswers) -> None:
    cordoned, tainted = of_cluster(node("c", 8, spec=CORDON)), of_cluster(node("n", 8, spec={"taints": [TAINT]}))
    busy = of_cluster(node("b", 8))
    held = pod("t/held", 8, "b", priority=1000)
    document = told.document("pod/a", cordoned, tainted, busy, held, pod("t/a", 8))
    assert document["remedies"][0] == {"words": "Uncordon node c.", "commands": ["kubectl uncordon c"]}
    # Where the tainted node is full, one change still suffices.
    full = pod("t/full", 8, "n")
    document = told.document("pod/a", cordoned, tainted, busy, held, full, pod("t/a", 8))
    assert document["remedies"][0]["commands"] == ["kubectl uncordon c"]


def test_a_gang_gets_as_many_nodes_uncordoned_as_it_needs(told: WhyAnswers) -> None:
    nodes = [of_cluster(node(name, 8, spec={"unschedulable": True})) for name in "abc"]
    members = [pod(f"t/g-{at}", 8, annotations={GROUP: "g"}) for at in range(2)]
    text = told("gang/g", *nodes, volcano_group("t/g", 2), *members)
    assert "Uncordon nodes a, b. kubectl uncordon a kubectl uncordon b" in text


def test_the_pod_that_no_node_can_take_is_named_of_a_gang_and_corrected(told: WhyAnswers) -> None:
    racked = of_cluster(node("n", 8, labels={"example.com/rack": "rack-one"}))
    members = [
        pod("t/g-0", 1, annotations={GROUP: "g"}, nodeSelector={"example.com/rack": "rack-one"}),
        pod("t/g-1", 1, annotations={GROUP: "g"}, nodeSelector={"example.com/rack": "rack-on"}),
    ]
    text = told("gang/g", racked, volcano_group("t/g", 2), *members)
    assert "asks 1 GPU (a pod like t/g-1; other pods of the gang differ)" in text
    assert "No node has example.com/rack=rack-on; did you mean rack-one?" in text
    assert 'In pod t/g-1, spec.nodeSelector["example.com/rack"]: rack-one instead of rack-on.' in text
    assert "kubectl get pod g-1 -n t -o yaml" in text
    assert "kubectl get pod g-0" not in text
