"""Node groups of eksctl, gcloud and Cluster Autoscaler become NodePools that Shoal reads."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from shoal.autoscale.nodes.pool_reading import pool_of
from shoal.autoscale.pool_import.sources import command_lines, pools_of
from shoal.units.errors import UserError

TYPE, ZONE, CAPACITY = "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone", "karpenter.sh/capacity-type"


def _imported(command: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    found = pools_of([shlex.split(command)], [])
    (pool,) = found.pools
    return pool, found.warnings


def _values(pool: dict[str, Any], key: str) -> list[str]:
    listed = pool["spec"]["template"]["spec"]["requirements"]
    return next((each["values"] for each in listed if each["key"] == key), [])


def test_a_group_of_eksctl() -> None:
    pool, warnings = _imported(
        "eksctl create nodegroup --cluster train --name gpu --node-type p5.48xlarge --nodes-min 0 --nodes-max 8 "
        "--node-zones us-east-1a,us-east-1b --spot --node-labels team=vision,tier=gpu"
    )
    assert pool["metadata"]["name"] == "gpu"
    assert _values(pool, TYPE) == ["p5.48xlarge"]
    assert _values(pool, ZONE) == ["us-east-1a", "us-east-1b"]
    assert _values(pool, CAPACITY) == ["spot"]
    assert pool["spec"]["limits"] == {"nodes": "8"}
    assert pool["spec"]["template"]["metadata"]["labels"] == {"team": "vision", "tier": "gpu"}
    assert warnings == ()


def test_a_pool_of_gcloud_counts_its_nodes_in_each_zone() -> None:
    pool, warnings = _imported(
        "gcloud container node-pools create a3 --cluster=train --machine-type=a3-highgpu-8g --enable-autoscaling "
        "--min-nodes=1 --max-nodes=4 --node-locations=us-central1-a,us-central1-c "
        "--accelerator=type=nvidia-h100-80gb,count=8 --node-taints=nvidia.com/gpu=present:NoSchedule"
    )
    assert _values(pool, TYPE) == ["a3-highgpu-8g"]
    assert _values(pool, CAPACITY) == ["on-demand"]
    assert pool["spec"]["limits"] == {"nodes": "8"}
    assert pool["spec"]["template"]["spec"]["nodeClassRef"]["kind"] == "GCENodeClass"
    assert pool["spec"]["template"]["spec"]["taints"] == [
        {"key": "nvidia.com/gpu", "effect": "NoSchedule", "value": "present"}
    ]
    assert warnings == ("node group a3: a NodePool has no minimum: the 2 nodes that are always there are not kept",)


def test_the_bounds_of_all_zones_are_not_multiplied() -> None:
    pool, _ = _imported(
        "gcloud container node-pools create a3 --machine-type a3-highgpu-8g --enable-autoscaling --total-max-nodes 4 "
        "--node-locations us-central1-a,us-central1-c"
    )
    assert pool["spec"]["limits"] == {"nodes": "4"}


def test_groups_of_cluster_autoscaler_get_its_times() -> None:
    words = shlex.split(
        "./cluster-autoscaler --nodes=0:8:gpu-asg --nodes=1:3:https://compute/zones/us-central1-a/instanceGroups/Grp_2 "
        "--scale-down-unneeded-time=20m --expander=priority"
    )
    found = pools_of([words], [])
    assert [pool["metadata"]["name"] for pool in found.pools] == ["gpu-asg", "grp-2"]
    assert [pool["spec"]["limits"] for pool in found.pools] == [{"nodes": "8"}, {"nodes": "3"}]
    assert found.pools[0]["spec"]["disruption"] == {"consolidateAfter": "20m"}
    assert any("--expander=priority: give the ConfigMap" in each for each in found.warnings)
    assert any("the instance type is not known" in each for each in found.warnings)


def test_flags_of_cluster_autoscaler_without_an_equivalent_are_named() -> None:
    _, warnings = _imported(
        "cluster-autoscaler --v=4 --cloud-provider=aws --nodes=0:20:h100 --skip-nodes-with-system-pods=false "
        "--balance-similar-node-groups=true --scale-down-delay-after-add=10m --scale-down-enabled=true"
    )
    left = [each.split()[0] for each in warnings if "no equivalent" in each]
    assert left == ["--balance-similar-node-groups", "--scale-down-delay-after-add", "--skip-nodes-with-system-pods"]


def test_taints_of_eksctl_are_kept() -> None:
    pool, _ = _imported("eksctl create nodegroup --name g --node-taints nvidia.com/gpu=present:NoSchedule")
    assert pool["spec"]["template"]["spec"]["taints"] == [
        {"key": "nvidia.com/gpu", "effect": "NoSchedule", "value": "present"}
    ]


def _weights(priorities: str, expander: str = "priority") -> tuple[list[int | None], list[str]]:
    names = ("spot-a", "on-demand-a", "other")
    words = ["cluster-autoscaler", f"--expander={expander}", *(f"--nodes=0:8:{name}" for name in names)]
    meta = {"name": "cluster-autoscaler-priority-expander", "namespace": "kube-system"}
    found = pools_of([words], [{"kind": "ConfigMap", "metadata": meta, "data": {"priorities": priorities}}])
    for raw in found.pools:
        pool_of(raw, warnings=[])
    left = [each for each in found.warnings if "expander" in each]
    return [pool["spec"].get("weight") for pool in found.pools], left


def test_the_priorities_of_the_expander_become_weights() -> None:
    assert _weights("10: [on-demand.*]\n50: [spot.*]") == ([50, 10, None], [])


def test_priorities_that_are_no_weights_keep_their_order() -> None:
    assert _weights("0: [on-demand.*]\n5000: [spot.*]")[0] == [2, 1, None]


def test_the_expanders_after_the_priorities_are_named() -> None:
    weights, left = _weights("10: [spot.*]", "priority,least-waste")
    assert weights == [10, None, None]
    assert left == ["--expander=least-waste has no equivalent in a NodePool and is left out"]
    assert _weights("10: [spot.*]", "price")[0] == [None, None, None], "the ConfigMap is not used by other expanders"


def test_priorities_that_cannot_be_read_are_an_error_with_their_place() -> None:
    with pytest.raises(UserError, match="whole number") as caught:
        _weights("high: [spot.*]")
    assert caught.value.where.path == "data.priorities"


def test_the_deployment_of_cluster_autoscaler_is_read() -> None:
    container = {"name": "ca", "command": ["./cluster-autoscaler", "--nodes=0:5:gpu", "--scale-down-enabled=false"]}
    deployment = {"kind": "Deployment", "spec": {"template": {"spec": {"containers": [container]}}}}
    (pool,) = pools_of([], [deployment]).pools
    assert pool["spec"]["disruption"] == {"consolidateAfter": "Never"}


def test_a_cluster_config_of_eksctl_is_read() -> None:
    config = {
        "apiVersion": "eksctl.io/v1alpha5",
        "kind": "ClusterConfig",
        "managedNodeGroups": [
            {
                "name": "gpu",
                "instanceTypes": ["p4d.24xlarge", "p4de.24xlarge"],
                "maxSize": 4,
                "spot": True,
                "taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}],
                "availabilityZones": ["us-east-1a"],
            }
        ],
        "nodeGroups": [{"name": "one", "instanceType": "g5.xlarge", "desiredCapacity": 2}],
    }
    first, second = pools_of([], [config]).pools
    assert _values(first, TYPE) == ["p4d.24xlarge", "p4de.24xlarge"]
    assert _values(first, CAPACITY) == ["spot"]
    assert second["spec"]["limits"] == {"nodes": "2"}


def test_every_result_is_a_pool_that_shoal_reads() -> None:
    script = """
    # two groups
    eksctl create nodegroup --name a --node-type p5.48xlarge \\
        --nodes-max 2
    gcloud container node-pools create b --machine-type a3-highgpu-8g --num-nodes 1
    """
    for raw in pools_of(command_lines(script), []).pools:
        warnings: list[str] = []
        assert pool_of(raw, warnings=warnings).name in ("a", "b")
        assert warnings == []


WRONG = {
    "a minimum above the maximum": ("eksctl create nodegroup --name g --nodes-min 4 --nodes-max 2", "minimum of 4"),
    "no number": ("eksctl create nodegroup --name g --nodes-max many", "no number"),
    "another command": ("kubectl get nodes", "creates no node group"),
    "a group without a name": ("cluster-autoscaler --nodes=1:2", "min:max:name"),
    "a taint without an effect": ("gcloud container node-pools create g --node-taints a=b", "is not a taint"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_command_is_refused(case: tuple[str, str]) -> None:
    command, words = case
    with pytest.raises(UserError, match=words):
        _imported(command)


def test_a_misspelled_instance_type_is_named_with_the_nearest() -> None:
    _, warnings = _imported("eksctl create nodegroup --name g --node-type p5.48xlage --nodes-max 1")
    assert warnings == (
        "node group g: instance type p5.48xlage is not in the table of machines with GPUs; did you mean p5.48xlarge?",
    )


def test_two_groups_of_one_name_are_refused() -> None:
    command = shlex.split("eksctl create nodegroup --name g --nodes-max 1")
    with pytest.raises(UserError, match="two node groups are called g"):
        pools_of([command, command], [])
