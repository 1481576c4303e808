"""`shoal scale plan` and `shoal scale pools` on files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from shoal.cli.main import main

TYPES = [
    {
        "name": "gpu-8",
        "capacity": {"cpu": "96", "memory": "900Gi", "pods": "110", "nvidia.com/gpu": "8"},
        "offerings": [{"zone": "a", "capacityType": "on-demand", "price": 30}],
    },
    {
        "name": "gpu-1",
        "capacity": {"cpu": "12", "memory": "100Gi", "pods": "110", "nvidia.com/gpu": "1"},
        "offerings": [{"zone": "a", "capacityType": "on-demand", "price": 4}],
    },
]


def _pool(name: str = "gpu", **spec: Any) -> dict[str, Any]:
    spec = {"template": {"spec": {}}, **spec}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}


def _pod(name: str, gpus: int, node: str = "", **meta: Any) -> dict[str, Any]:
    resources = {"limits": {"nvidia.com/gpu": str(gpus), "cpu": "4"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team-a", **meta},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": resources}],
            **({"nodeName": node} if node else {}),
        },
    }


def _node(name: str, kind: str = "gpu-8", gpus: int = 8, **labels: str) -> dict[str, Any]:
    amounts = {"cpu": "96", "memory": "900Gi", "pods": "110"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "creationTimestamp": "2026-11-27T12:00:00Z",
            "labels": {
                "karpenter.sh/nodepool": "gpu",
                "karpenter.sh/capacity-type": "on-demand",
                "node.kubernetes.io/instance-type": kind,
                "topology.kubernetes.io/zone": "a",
                **labels,
            },
        },
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def _decided(tmp_path: Path, capsys: pytest.CaptureFixture[str], *objects: dict[str, Any]) -> dict[str, Any]:
    code, out, err = _run(tmp_path, capsys, objects, "plan", "-o", "json")
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def _run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], objects: tuple[dict[str, Any], ...], *words: str
) -> tuple[int, str, str]:
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(objects))
    (tmp_path / "types.yaml").write_text(yaml.safe_dump(TYPES))
    command, *options = words
    files = ["-f", str(tmp_path / "all.yaml"), "--instance-types", str(tmp_path / "types.yaml")]
    code = main(["scale", command, *files, *options])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_pod_without_a_node_gets_the_cheapest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = _decided(tmp_path, capsys, _pool(), _pod("p", 1))

    assert [(node["instanceType"], node["pods"]) for node in found["provision"]] == [("gpu-1", ["team-a/p"])]
    assert found["usdPerHour"] == 4


def test_a_pod_that_fits_on_a_node_of_the_cluster_needs_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not _decided(tmp_path, capsys, _pool(), _node("one"), _pod("p", 1)).get("provision")


def test_a_node_whose_device_plugin_starts_is_no_reason_for_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = _decided(tmp_path, capsys, _pool(), _node("one", gpus=0), _pod("p", 8))

    assert found["onExisting"] == {"team-a/p": "one"}
    assert not found.get("provision")


def test_a_gang_counts_with_the_pods_that_are_not_created_yet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "team-a"},
        "spec": {"minMember": 3},
    }
    member = _pod("p", 8, labels={"scheduling.x-k8s.io/pod-group": "g"})
    found = _decided(tmp_path, capsys, _pool(), group, member)
    limited = _decided(tmp_path, capsys, _pool(limits={"nvidia.com/gpu": "16"}), group, member)

    assert len(found["provision"]) == 3
    assert not limited.get("provision")


def test_a_pod_with_a_scheduling_gate_causes_no_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gated = _pod("p", 1)
    gated["spec"]["schedulingGates"] = [{"name": "quota"}]
    found = _decided(tmp_path, capsys, _pool(), gated)

    assert not found.get("provision")


def test_an_empty_node_is_removed_and_the_others_stay_with_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = _pool(disruption={"budgets": [{"nodes": "1"}]})
    code, out, _ = _run(tmp_path, capsys, (pool, _node("n1"), _node("n2"), _node("n3"), _pod("p", 8, "n1")), "plan")

    assert code == 0
    assert "Remove n2: no pod needs them; saves $30.00/h." in out
    assert "n3: the disruption budget of its pool is used up" in out


def _template(gpus: int) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]}
    meta = {"name": "t", "namespace": "team-a"}
    return {"apiVersion": "v1", "kind": "PodTemplate", "metadata": meta, "template": {"spec": spec}}


def _kept(kind: str, version: str, spec: dict[str, Any], **status: Any) -> dict[str, Any]:
    meta = {"name": "b", "namespace": "team-a", "uid": "1", "creationTimestamp": "2026-11-27T12:00:00Z"}
    head = {"apiVersion": f"autoscaling.x-k8s.io/{version}", "kind": kind}
    return {**head, "metadata": meta, "spec": spec, "status": status}


def _buffer(**spec: Any) -> dict[str, Any]:
    return _kept("CapacityBuffer", "v1beta1", {"podTemplateRef": {"name": "t"}, **spec})


def _request(kind: str, count: int, **status: Any) -> dict[str, Any]:
    sets = [{"podTemplateRef": {"name": "t"}, "count": count}]
    name = f"{kind}.autoscaling.x-k8s.io"
    return _kept("ProvisioningRequest", "v1", {"provisioningClassName": name, "podSets": sets}, **status)


_AT_ONCE = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"}


def test_a_node_with_room_for_a_buffer_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = (_pool(disruption=_AT_ONCE), _node("n1"), _template(8))
    found = _decided(tmp_path, capsys, *world, _buffer(replicas=1))

    assert _decided(tmp_path, capsys, *world)["remove"], "without the buffer the node is removed"
    assert (found["remove"], found["provision"]) == ([], [])
    assert found["kept"] == {"n1": "capacity is kept on it for CapacityBuffer team-a/b"}
    assert "not read and was skipped" not in _run(tmp_path, capsys, (*world, _buffer(replicas=1)), "plan")[2]


def test_nodes_are_provisioned_for_a_buffer_without_room(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = _decided(tmp_path, capsys, _pool(), _node("n1"), _pod("p", 8, "n1"), _template(8), _buffer(replicas=2))

    assert [node["pods"] for node in found["provision"]] == [["team-a/b-buffer-0"], ["team-a/b-buffer-1"]]


def test_a_buffer_without_its_template_keeps_no_room_and_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = _decided(tmp_path, capsys, _pool(disruption=_AT_ONCE), _node("n1"), _buffer(replicas=1))

    assert found["remove"]
    assert any("CapacityBuffer team-a/b" in note and "PodTemplate t not found" in note for note in found["notes"])


def test_a_provisioning_request_is_planned_as_a_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = (_pool(limits={"nvidia.com/gpu": "16"}), _template(8))
    fits = _decided(tmp_path, capsys, *world, _request("best-effort-atomic-scale-up", 2))
    exceeds = _decided(tmp_path, capsys, *world, _request("best-effort-atomic-scale-up", 3))

    assert [len(node["pods"]) for node in fits["provision"]] == [1, 1]
    assert exceeds["provision"] == []
    assert len(exceeds["pending"]) == 3


def test_a_request_that_checks_capacity_is_answered_and_keeps_its_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = (_pool(disruption=_AT_ONCE), _node("n1"), _node("n2"), _template(8))
    found = _decided(tmp_path, capsys, *world, _request("check-capacity", 1))
    lacking = _decided(tmp_path, capsys, *world, _request("check-capacity", 3))

    assert any("there is capacity for all pods" in note for note in found["notes"])
    assert [len(each["nodes"]) for each in found["remove"]] == [1]
    assert list(found["kept"].values()) == ["capacity is kept on it for ProvisioningRequest team-a/b"]
    assert any("there is no capacity for all pods" in note for note in lacking["notes"])


def test_capacity_that_was_provisioned_for_a_request_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = {"type": "Provisioned", "status": "True", "lastTransitionTime": "2026-11-27T12:00:00Z"}
    request = _request("best-effort-atomic-scale-up", 1, conditions=[done])
    found = _decided(tmp_path, capsys, _pool(disruption=_AT_ONCE), _node("n1"), _template(8), request)

    assert (found["remove"], found["provision"]) == ([], [])
    assert found["kept"] == {"n1": "capacity is kept on it for ProvisioningRequest team-a/b"}


def test_a_priority_class_states_the_capacity_type_of_new_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = {"karpenter.sh/capacity-type": "spot"}
    meta = {"name": "batch", "annotations": notes}
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": meta, "value": 1}
    classed = _pod("p", 8)
    classed["spec"]["priorityClassName"] = "batch"

    found = _decided(tmp_path, capsys, _pool(), kind, classed)
    assert (found["provision"], len(found["pending"])) == ([], 1), "there are only on-demand offerings"
    notes["shoal.dev/capacity-type-fallback"] = "true"
    assert len(_decided(tmp_path, capsys, _pool(), kind, classed)["provision"]) == 1


def test_no_removal_only_provisions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = _run(tmp_path, capsys, (_pool(), _node("n1")), "plan", "--no-removal")

    assert "No node has to be provisioned or removed." in out


def test_a_pool_that_cannot_be_read_is_named_and_the_others_are_planned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = _pool("wrong", disruption={"consolidationPolicy": "Sometimes"})
    _, out, err = _run(tmp_path, capsys, (wrong, _pool(), _pod("p", 1)), "plan", "-o", "json")

    assert "consolidationPolicy" in err
    assert len(json.loads(out)["provision"]) == 1


def test_pools_are_listed_with_what_is_left_of_their_limits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = _pool(limits={"nvidia.com/gpu": "24"}, weight=3)
    _, out, _ = _run(tmp_path, capsys, (pool, _node("n1"), _pod("p", 8, "n1")), "pools", "-o", "json")
    (item,) = json.loads(out)["items"]

    assert item["limits"] == {"nvidia.com/gpu": "16 of 24 left"}
    assert (item["nodes"], item["gpus"], item["usdPerHour"], item["cheapest"]) == (1, 8, 30, "gpu-1")


def test_an_unknown_instance_type_is_named_with_the_nearest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    requirement = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["gpu8"]}
    pool = _pool(template={"spec": {"requirements": [requirement]}})
    _, out, _ = _run(tmp_path, capsys, (pool,), "pools")

    assert "pool gpu can serve no pod: instance type gpu8 is not known; did you mean gpu-8?" in out


def test_limits_below_one_node_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    requirement = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["gpu-8"]}
    only_large = {"spec": {"requirements": [requirement]}}
    small = _pool(template=only_large, limits={"nvidia.com/gpu": "4"})
    cheap = _pool("cheap", template=only_large, limits={"shoal.dev/spend-per-hour": "29"})
    full = _pool("full", template=only_large, limits={"nvidia.com/gpu": "8"})
    held = _node("n1", "gpu-8", 8, **{"karpenter.sh/nodepool": "full"})
    _, out, _ = _run(tmp_path, capsys, (small, cheap, full, held), "pools", "-o", "json")
    faults = {item["name"]: item["fault"] for item in json.loads(out)["items"]}

    words = "are below one node of each of its instance types"
    assert faults["gpu"] == f"its limits (nvidia.com/gpu: 4) {words}; gpu-8 has nvidia.com/gpu: 8"
    assert faults["cheap"] == f"its limits (shoal.dev/spend-per-hour: 29) {words}"
    assert faults["full"] == "", "its limits allowed the node that it has"


def test_a_wrong_file_of_instance_types_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "all.yaml").write_text(yaml.safe_dump(_pool()))
    (tmp_path / "types.yaml").write_text("[{name: a, offerings: [{zone: a, capacityType: spot, price: free}]}]")
    code = main(["scale", "plan", "-f", str(tmp_path / "all.yaml"), "--instance-types", str(tmp_path / "types.yaml")])

    assert code == 2
    assert "[0].offerings[0].price" in capsys.readouterr().err


def _why(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, *objects: dict[str, Any]) -> str:
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(objects))
    assert main(["why", name, "-n", "team-a", "-f", str(tmp_path / "all.yaml")]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_why_names_the_pool_that_would_provide_a_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    requirement = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p5.48xlarge"]}
    pool = _pool(template={"spec": {"requirements": [requirement]}})

    assert "pool gpu would provide 1 x p5.48xlarge" in _why(tmp_path, capsys, "pod/p", pool, _pod("p", 8))


def test_why_names_the_reason_of_each_pool_that_cannot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tainted = _pool("tainted", template={"spec": {"taints": [{"key": "t", "effect": "NoSchedule"}]}})
    full = _pool("full", limits={"nodes": "0"})
    said = _why(tmp_path, capsys, "pod/p", tainted, full, _pod("p", 8))

    assert "pool tainted: the pod does not tolerate taint t:NoSchedule" in said
    assert "pool full: the limits of the pool are reached (nodes: 0 left)" in said


def test_why_says_nothing_of_pools_where_there_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "node pools" not in _why(tmp_path, capsys, "pod/p", _pod("p", 8))


def test_brackets_in_reasons_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pod = _pod("p", 1)
    pod["spec"]["nodeSelector"] = {"example.com/rack": "r1"}
    _, out, _ = _run(tmp_path, capsys, (_pool(), _pod("q", 1), {**pod, "spec": {**pod["spec"]}}), "plan")

    assert "pool gpu: the pool does not define label example.com/rack, which the pod wants in [r1]" in " ".join(
        out.split()
    )


def test_the_plan_preempts_as_the_configuration_of_the_cluster_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running = _pod("running", 8, node="n1", creationTimestamp="2026-11-27T11:00:00Z")
    running["status"] = {"phase": "Running", "startTime": "2026-11-27T11:00:00Z"}
    urgent = _pod("urgent", 8, creationTimestamp="2026-11-27T12:00:00Z")
    urgent["spec"]["priority"] = 1000
    configuration = {
        "apiVersion": "config.shoal.dev/v1alpha1",
        "kind": "ShoalConfiguration",
        "preemption": {"minRuntime": "24h"},
    }
    objects = (_pool(), _node("n1"), running, urgent)
    assert _decided(tmp_path, capsys, *objects)["provision"] == []
    code, out, err = _run(tmp_path, capsys, (*objects, configuration), "plan", "-o", "json")
    assert code == 0
    assert "ShoalConfiguration" not in err
    assert [node["pods"] for node in json.loads(out)["provision"]] == [["team-a/urgent"]]


def test_why_tells_how_long_nodes_have_been_starting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": "gpu-x",
            "creationTimestamp": "2026-11-27T11:56:48Z",
            "labels": {
                "karpenter.sh/nodepool": "gpu",
                "karpenter.sh/capacity-type": "on-demand",
                "node.kubernetes.io/instance-type": "p5.48xlarge",
                "topology.kubernetes.io/zone": "us-east-1a",
            },
            "annotations": {"shoal.dev/provisioned-for": "team-a/p", "shoal.dev/expected-start-seconds": "300"},
        },
        "spec": {},
        "status": {
            "capacity": {"cpu": "96", "memory": "900Gi", "pods": "110", "nvidia.com/gpu": "8"},
            "conditions": [{"type": "Launched", "status": "True"}],
        },
    }
    pod = _pod("p", 8, creationTimestamp="2026-11-27T12:00:00Z")
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all((_pool(), claim, pod)))
    assert main(["why", "pod/team-a/p", "-f", str(tmp_path / "all.yaml")]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert (
        "provisioning 1 x p5.48xlarge, started 3:12 ago, about 5:00 expected, pool gpu; 1 of 1 have not registered"
        in words
    )
