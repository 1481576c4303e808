"""Remedies of `shoal why` that were tried: on files, without a cluster."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from build.manifests import Object, as_file, job, node, pod, replicas, thing, volcano_group
from shoal.cli.main import main
from shoal.data.gpus import PRODUCT_LABEL

GROUP = "scheduling.k8s.io/group-name"
H100 = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.count": "8",
    "nvidia.com/mig.capable": "true",
    "nvidia.com/mig.strategy": "mixed",
}
SLICE = "nvidia.com/mig-3g.40gb"
TAINT = {"key": "dedicated", "value": "research", "effect": "NoSchedule"}


class Told:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys

    def __call__(self, name: str, *objects: Object) -> str:
        return " ".join(self.text(name, *objects).split())

    def text(self, name: str, *objects: Object) -> str:
        assert main(["why", "-f", as_file(self._folder, *objects), name]) == 0
        return self._capsys.readouterr().out

    def document(self, name: str, *objects: Object) -> dict[str, Any]:
        assert main(["why", "-f", as_file(self._folder, *objects), name, "-o", "json"]) == 0
        found: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        return found


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Told:
    return Told(tmp_path, capsys)


def of_cluster(obj: Object) -> Object:
    """As it would be read from a cluster, so that commands can act on it."""
    obj["metadata"]["uid"] = f"uid-{obj['metadata']['name']}"
    return obj


def owned(obj: Object, kind: str, name: str) -> Object:
    reference = {"apiVersion": "batch/v1", "kind": kind, "name": name, "uid": "1", "controller": True}
    obj["metadata"]["ownerReferences"] = [reference]
    return obj


# -- unhealthy GPUs -----------------------------------------------------------------------------------------------


def with_faults(name: str, healthy: int, faults: str = "") -> Object:
    made = node(name, healthy)
    made["status"]["capacity"] = {**made["status"]["allocatable"], "nvidia.com/gpu": 8}
    if faults:
        made["metadata"]["annotations"] = {"shoal.dev/gpu-faults": faults}
    return of_cluster(made)


def test_a_dead_gpu_is_named_with_its_xid_and_the_command_that_heals_it(told: Told) -> None:
    text = told("pod/whole", with_faults("n", 7, '{"3": 79}'), pod("t/whole", 8))
    assert "unhealthy node n: 1 of 8 GPUs is unhealthy (GPU 3: XID 79)" in text
    assert "Repair or replace GPU 3 (XID 79) of node n. shoal cluster heal n --gpu 3" in text


def test_a_real_node_with_fewer_gpus_than_it_has_is_named_without_a_command(told: Told) -> None:
    text = told("pod/whole", with_faults("n", 6), pod("t/whole", 8))
    assert "unhealthy node n: 2 of 8 GPUs are unhealthy" in text
    assert "Repair or replace 2 GPUs of node n." in text
    assert "shoal cluster heal" not in text


def test_a_repair_that_does_not_help_is_no_remedy(told: Told) -> None:
    text = told("pod/whole", with_faults("n", 7, '{"3": 79}'), pod("t/other", 2, on="n"), pod("t/whole", 16))
    assert "1 of 8 GPUs is unhealthy" in text
    assert "Repair" not in text


# -- nodes that are not ready -------------------------------------------------------------------------------------

SILENT: dict[str, Any] = {
    "taints": [{"key": "node.kubernetes.io/unreachable", "effect": effect} for effect in ("NoSchedule", "NoExecute")]
}


def silent(name: str, faults: str = "") -> Object:
    """A node whose kubelet has ended."""
    made = of_cluster(node(name, 8, spec=SILENT))
    message = "Kubelet stopped posting node status."
    made["status"]["conditions"] = [{"type": "Ready", "status": "Unknown", "message": message}]
    if faults:
        made["metadata"]["annotations"] = {"shoal.dev/fault": faults}
    return made


def test_a_node_that_is_not_ready_is_named_and_has_to_be_repaired(told: Told) -> None:
    text = told("pod/a", silent("n"), pod("t/a", 8))
    assert "unhealthy node n is not ready: Kubelet stopped posting node status." in text
    assert "would help Repair node n, which is not ready." in text
    assert "nearest The nearest node is n: with the change below, it takes the pod." in text
    assert "Tolerate" not in text
    assert "shoal cluster heal" not in text


def test_a_simulated_node_that_is_not_ready_has_the_command_that_heals_it(told: Told) -> None:
    (remedy,) = told.document("pod/a", silent("n", '{"kind":"down"}'), pod("t/a", 8))["remedies"]
    assert remedy == {"words": "Repair node n, which is not ready.", "commands": ["shoal cluster heal n"]}


def test_a_node_that_is_not_ready_and_would_not_suffice_is_no_remedy(told: Told) -> None:
    text = told("pod/a", silent("n"), pod("t/a", 16))
    assert "unhealthy node n is not ready" in text
    assert "Repair" not in text


def test_a_node_that_is_not_ready_and_that_the_pod_excludes_is_not_named(told: Told) -> None:
    assert "not ready" not in told("pod/a", silent("n"), pod("t/a", 8, nodeSelector={"disk": "ssd"}))


# -- pods in the way ---------------------------------------------------------------------------------------------


def test_pods_of_the_same_job_are_never_proposed_to_end(told: Told) -> None:
    siblings = [owned(pod(f"t/training-{at}", 4, on="n"), "Job", "training") for at in range(2)]
    waits = owned(pod("t/training-2", 4), "Job", "training")
    objects = [node("n", 8), job("t/training", 3, 4), *siblings, waits]
    assert "would help" not in told("pod/training-2", *objects)
    assert "Free 4 GPUs on n (t/other)." in told("pod/training-2", *objects[:-2], pod("t/other", 4, on="n"), waits)


def test_capacity_that_others_in_line_would_take_is_no_remedy(told: Told) -> None:
    objects = [node("n", 8), pod("t/old", 8, on="n"), pod("t/first", 8), pod("t/second", 8)]
    assert "would help Free 8 GPUs on n (t/old)." in told("pod/first", *objects)
    text = told("pod/second", *objects)
    assert "To free capacity on n does not help: t/first, before it in line, takes it." in text
    assert "Free 8 GPUs" not in text


def test_a_pod_that_is_created_again_with_higher_priority_is_no_remedy(told: Told) -> None:
    high = owned(pod("t/web-0", 8, on="n", priority=10), "ReplicaSet", "web")
    objects = [node("n", 8), replicas("ReplicaSet", "t/web", 1, 8), high, pod("t/low", 8)]
    assert "Free 8 GPUs" not in told("pod/low", *objects)
    high["spec"]["priority"] = 0
    assert "t/web-0 is created again and then waits behind it." in told("pod/low", *objects)


def test_a_member_of_a_group_without_a_controller_is_not_created_again(told: Told) -> None:
    group = volcano_group("t/g", 1) | {"status": {"phase": "Running"}}
    member = pod("t/g-0", 8, on="n", annotations={GROUP: "g"})
    waits = pod("t/first", 8, priority=10, preemptionPolicy="Never")
    text = told("pod/first", node("n", 8), group, member, waits)
    assert "Free 8 GPUs on n (t/g-0)." in text
    assert "created again" not in text


# -- labels, taints, cordons -------------------------------------------------------------------------------------


def racks() -> list[Object]:
    return [of_cluster(node(name, 8, labels={"example.com/rack": "a"})) for name in "ab"]


def test_a_topology_level_that_no_node_has_is_named_with_the_nearest(told: Told) -> None:
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


def test_a_misspelled_value_of_a_node_selector_is_corrected_by_a_command(told: Told) -> None:
    waits = pod("t/a", 1, nodeSelector={"example.com/rack": "rack-on"})
    racked = of_cluster(node("n", 8, labels={"example.com/rack": "rack-one"}))
    assert "did you mean rack-one?" in told("pod/a", racked, waits)
    (remedy,) = told.document("pod/a", racked, waits)["remedies"]
    assert "rack-one" in remedy["commands"][0]


def test_a_spread_over_a_label_that_no_node_has_is_named(told: Told) -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": "example.com/rakc",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {},
    }
    text = told("pod/a", *racks(), pod("t/a", 1, topologySpreadConstraints=[spread]))
    assert "No node has a label example.com/rakc; did you mean example.com/rack?" in text
    assert "spec.topologySpreadConstraints[0].topologyKey: example.com/rack instead of example.com/rakc" in text


def test_a_selector_of_a_deployment_is_patched(told: Told) -> None:
    deployment = replicas("Deployment", "t/web", 1, 1)
    deployment["spec"]["template"]["spec"]["nodeSelector"] = {"example.com/rackk": "a"}
    (remedy,) = told.document("deployment/web", *racks(), deployment)["remedies"]
    path = "/spec/template/spec/nodeSelector/example.com~1rack"
    patch = f'[{{"op":"remove","path":"{path}k"}},{{"op":"add","path":"{path}","value":"a"}}]'
    assert remedy["commands"] == [f"kubectl patch deployment web -n t --type=json -p='{patch}'"]


def test_a_taint_is_told_only_where_the_toleration_suffices(told: Told) -> None:
    tainted = node("n", 8, spec={"taints": [TAINT]})
    assert "Tolerate dedicated=research:NoSchedule (1 node)." in told("pod/a", tainted, pod("t/a", 8))
    text = told("pod/a", tainted, pod("t/old", 4, on="n"), pod("t/a", 8))
    assert "Two changes are needed. First: Tolerate dedicated=research:NoSchedule (1 node)." in text
    assert "Then: Free 4 GPUs on n (t/old)." in text


def test_a_toleration_is_told_to_a_pod_without_gpus(told: Told) -> None:
    tainted = node("n", 8, spec={"taints": [TAINT]})
    small = pod("t/a", limits={"cpu": "8"})
    assert "Tolerate dedicated=research:NoSchedule (1 node)." in told("pod/a", tainted, small)
    # Of 64 cores: where no core is free, the toleration alone does not help.
    busy = told("pod/a", tainted, pod("t/old", on="n", limits={"cpu": "60"}), small)
    assert "Two changes are needed. First: Tolerate dedicated=research:NoSchedule (1 node)." in busy
    assert "Tolerate" not in told("pod/a", tainted, pod("t/a", limits={"cpu": "65"}))


def test_a_cordon_is_lifted_only_where_that_suffices(told: Told) -> None:
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


def test_a_cordon_is_lifted_together_with_the_taint_that_it_brings(told: Told) -> None:
    nodes = [of_cluster(node(name, 8, spec=CORDON)) for name in "ab"]
    text = told("pod/a", *nodes, pod("t/a", 1))
    assert "would help Uncordon node a. kubectl uncordon a" in text
    assert "Tolerate" not in text
    assert "Uncordon" not in told("pod/a", *nodes, pod("t/a", 16))


def test_a_cordon_is_lifted_rather_than_a_taint_tolerated_or_a_pod_ended(told: Told) -> None:
    cordoned, tainted = of_cluster(node("c", 8, spec=CORDON)), of_cluster(node("n", 8, spec={"taints": [TAINT]}))
    busy = of_cluster(node("b", 8))
    held = pod("t/held", 8, "b", priority=1000)
    document = told.document("pod/a", cordoned, tainted, busy, held, pod("t/a", 8))
    assert document["remedies"][0] == {"words": "Uncordon node c.", "commands": ["kubectl uncordon c"]}
    # Where the tainted node is full, one change still suffices.
    full = pod("t/full", 8, "n")
    document = told.document("pod/a", cordoned, tainted, busy, held, full, pod("t/a", 8))
    assert document["remedies"][0]["commands"] == ["kubectl uncordon c"]


def test_a_gang_gets_as_many_nodes_uncordoned_as_it_needs(told: Told) -> None:
    nodes = [of_cluster(node(name, 8, spec={"unschedulable": True})) for name in "abc"]
    members = [pod(f"t/g-{at}", 8, annotations={GROUP: "g"}) for at in range(2)]
    text = told("gang/g", *nodes, volcano_group("t/g", 2), *members)
    assert "Uncordon nodes a, b. kubectl uncordon a kubectl uncordon b" in text


def test_the_pod_that_no_node_can_take_is_named_of_a_gang_and_corrected(told: Told) -> None:
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


# -- MIG ---------------------------------------------------------------------------------------------------------


def asks_slice() -> Object:
    return pod("t/slice", limits={SLICE: 1})


def test_the_mig_layout_that_satisfies_a_request_is_named_with_its_label(told: Told) -> None:
    text = told("pod/slice", of_cluster(node("n", 8, labels=H100)), asks_slice())
    assert "asks 1 x MIG 3g.40gb nodes" in text.replace("turn priority 0; 1 of 1 in line ", "")
    assert "kubectl label node n nvidia.com/mig.config=all-3g.40gb --overwrite" in text
    assert "no pod uses its GPUs" in text


def test_pods_that_another_layout_would_disturb_are_named(told: Told) -> None:
    text = told("pod/slice", of_cluster(node("n", 8, labels=H100)), pod("t/busy", 1, on="n"), asks_slice())
    assert "End the pods on the GPUs of n (t/busy), then change its MIG layout to all-3g.40gb." in text


def test_a_model_without_the_profile_gets_no_layout(told: Told) -> None:
    labels = {**H100, "nvidia.com/gpu.product": "NVIDIA-L40S", "nvidia.com/mig.capable": "false"}
    assert "mig.config" not in told("pod/slice", of_cluster(node("n", 8, labels=labels)), asks_slice())


def test_whole_gpus_come_back_where_all_are_divided(told: Told) -> None:
    divided = node("n", 0, labels={**H100, "nvidia.com/mig.config": "all-1g.10gb"})
    divided["status"]["allocatable"]["nvidia.com/mig-1g.10gb"] = 56
    text = told("pod/whole", of_cluster(divided), pod("t/whole", 8))
    assert "kubectl label node n nvidia.com/mig.config=all-disabled --overwrite" in text


def test_strategy_single_has_another_resource_name(told: Told) -> None:
    single = {
        **H100,
        "nvidia.com/mig.strategy": "single",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-3g.40gb",
    }
    text = told("pod/slice", node("n", 16, labels=single), asks_slice())
    assert "Node n has MIG strategy single" in text.replace("node n has", "Node n has")
    assert "Request nvidia.com/gpu: 1 instead of nvidia.com/mig-3g.40gb" in text
    assert "nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3-MIG-3g.40gb" in text


# -- work in queues ----------------------------------------------------------------------------------------------


def queued(gpus: int, level: str = "") -> list[Object]:
    """A job of two pods with four GPUs each in a queue with some quota, on nodes of one rack."""
    version = "kueue.x-k8s.io/v1beta2"
    resources = [{"name": "nvidia.com/gpu", "nominalQuota": gpus}]
    groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "f", "resources": resources}]}]
    levels = [{"nodeLabel": "example.com/rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
    annotations = {"annotations": {"kueue.x-k8s.io/podset-required-topology": level}} if level else {}
    labels = {"kueue.x-k8s.io/queue-name": "q"}
    flavor = {"nodeLabels": {"example.com/rack": "a"}, **({"topologyName": "racks"} if level else {})}
    return [
        of_cluster(node("n", 8, labels={"example.com/rack": "a", "kubernetes.io/hostname": "n"})),
        thing(version, "Topology", "racks", spec={"levels": levels}),
        thing(version, "ResourceFlavor", "f", spec=flavor),
        thing(version, "ClusterQueue", "team", spec={"namespaceSelector": {}, "resourceGroups": groups}),
        thing(version, "LocalQueue", "t/q", spec={"clusterQueue": "team"}),
        job("t/train", 2, 4, labels=labels, template=annotations, suspend=True, completions=2),
    ]


def test_a_level_that_no_node_has_is_corrected_in_a_queued_job(told: Told) -> None:
    text = told("job/train", *queued(8, "example.com/rackk"))
    assert "No node has a label example.com/rackk; did you mean example.com/rack?" in text
    assert "kubectl patch job train -n t --type=json" in text
    # With the correct level quota would be lacking, so that the patch alone is no remedy.
    assert "kubectl patch job" not in told("job/train", *queued(4, "example.com/rackk"))


def test_a_misspelled_gpu_product_is_corrected_by_a_command(told: Told) -> None:
    waits = pod("t/a", 1, nodeSelector={PRODUCT_LABEL: "NVIDIA-A100-SXM4-80G"})
    nodes = of_cluster(node("n", 8, labels={PRODUCT_LABEL: "NVIDIA-A100-SXM4-80GB"}))
    assert "did you mean NVIDIA-A100-SXM4-80GB?" in told("pod/a", nodes, waits)
    (remedy,) = told.document("pod/a", nodes, waits)["remedies"]
    assert "NVIDIA-A100-SXM4-80GB" in remedy["commands"][0]


def test_a_level_is_corrected_only_where_the_flavor_has_a_topology(told: Told) -> None:
    objects = queued(8, "example.com/rackk")
    flavor = next(each for each in objects if each["kind"] == "ResourceFlavor")
    del flavor["spec"]["topologyName"]
    text = told("job/train", *objects)
    assert "No node has a label example.com/rackk." in text
    assert "ResourceFlavor f has no spec.topologyName" in text
    assert "did you mean" not in text
    assert "set spec.topologyName of a flavor that its queue covers" in text
    assert "Look at its node selector" not in text


def test_quota_has_a_command_and_is_raised_only_where_the_pods_then_run(told: Told) -> None:
    path = "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota"
    patch = f'[{{"op":"add","path":"{path}","value":"8"}}]'
    assert f"kubectl patch clusterqueue team --type=json -p='{patch}'" in told("job/train", *queued(4))
    full = told("job/train", *queued(4), pod("t/notebook", 2, on="n"))
    assert "nodes 1 of 1 would take it; not all of its 2 pods fit at once" in full
    assert "Two changes are needed. First: Free 2 GPUs on n (t/notebook). Then: Raise nominalQuota" in full
    text = told("job/train", *queued(4), pod("t/other", 8, on="n", priority=100))
    assert "would help Raise" not in text


# -- quotas of the namespace -------------------------------------------------------------------------------------


def quota(gpus: int) -> Object:
    return thing("v1", "ResourceQuota", "t/gpus", spec={"hard": {"requests.nvidia.com/gpu": gpus}})


def test_pods_that_a_quota_refuses_are_told_with_its_figures(told: Told) -> None:
    text = told("job/over", node("n", 8), quota(4), job("t/over", 2, 4))
    assert "waits: its pods are not created: ExceededQuota" in text
    assert (
        "ResourceQuota gpus would be exceeded: 4 of 4 requests.nvidia.com/gpu used, a pod requests 4, 4 missing" in text
    )
    assert "Raise requests.nvidia.com/gpu from 4 to 8 in ResourceQuota gpus." in text
    assert "waits: it is not created" in told("pod/over-1", node("n", 8), quota(4), job("t/over", 2, 4))


def test_quota_is_not_raised_for_pods_that_the_nodes_cannot_take(told: Told) -> None:
    text = told("job/over", node("n", 4), quota(4), job("t/over", 2, 4))
    assert "would be exceeded" in text
    assert "Raise" not in text


def quotas(**hard: dict[str, Any]) -> list[Object]:
    return [of_cluster(thing("v1", "ResourceQuota", f"t/{name}", spec={"hard": each})) for name, each in hard.items()]


def hard_after(commands: list[str], found: list[Object]) -> list[Object]:
    """The quotas after the commands."""
    found = copy.deepcopy(found)
    for command in commands:
        name = command.split()[3]
        (raised,) = [each for each in found if each["metadata"]["name"] == name]
        raised["spec"]["hard"] |= json.loads(command.partition("-p='")[2].rstrip("'"))["spec"]["hard"]
    return found


GPUS = "requests.nvidia.com/gpu"
REFUSING = {
    "two quotas": (quotas(qa={GPUS: 4}, qb={GPUS: 2}), ["qa", "qb"]),
    "three quotas in turn": (quotas(qa={GPUS: 1}, qb={GPUS: 2}, qc={"pods": 1}), ["qa", "qb", "qc"]),
    "the controller and its pods": (quotas(qa={GPUS: 1, "count/jobs.batch": 0}), ["qa"]),
    "the controller by another quota": (quotas(qa={"count/jobs.batch": 0}, qb={GPUS: 1}), ["qa", "qb"]),
}


@pytest.mark.parametrize(("found", "names"), REFUSING.values(), ids=REFUSING)
def test_the_pods_are_admitted_after_all_quotas_are_raised_as_told(
    told: Told, found: list[Object], names: list[str]
) -> None:
    objects = [of_cluster(node("n", 8)), job("t/over", 2, 4)]
    (remedy,) = told.document("job/over", *objects, *found)["remedies"]
    assert sorted(command.split()[3] for command in remedy["commands"]) == names
    after = told("job/over", *objects, *hard_after(remedy["commands"], found))
    assert "ExceededQuota" not in after
    assert "ResourceQuota" not in after


def test_a_quota_on_controllers_is_told_with_the_controller_that_it_refuses(told: Told) -> None:
    text = told("job/over", node("n", 8), job("t/over", 2, 4), *quotas(qa={"count/jobs.batch": 0}))
    assert "0 of 0 count/jobs.batch used, jobs.batch over requests 1, 1 missing" in text
    assert "Raise count/jobs.batch from 0 to 1 in ResourceQuota qa." in text


def test_quota_that_other_pods_take_first_is_raised_for_these_too(told: Told) -> None:
    objects = [of_cluster(node("n", 12)), *quotas(qa={GPUS: 4}), job("t/over", 3, 4)]
    text = told("pod/over-2", *objects)
    assert "4 of 4 requests.nvidia.com/gpu used, a pod requests 4, 8 missing, those of pods that come first" in text
    assert "Raise requests.nvidia.com/gpu from 4 to 12 in ResourceQuota qa." in text


def test_quota_is_no_remedy_for_pods_that_are_refused_for_another_reason_too(told: Told) -> None:
    limits = thing("v1", "LimitRange", "t/lr", spec={"limits": [{"type": "Pod", "max": {"nvidia.com/gpu": 2}}]})
    text = told("job/over", node("n", 8), job("t/over", 2, 4), limits, *quotas(qa={"count/jobs.batch": 0}))
    assert "With this quota, the API server would still refuse them: pods" in text
    assert "maximum nvidia.com/gpu usage per Pod is 2" in text
    assert "Raise" not in text


# -- the form ----------------------------------------------------------------------------------------------------


def test_no_line_ends_in_blanks_and_commands_are_not_folded(told: Told) -> None:
    text = told.text("pod/a", of_cluster(node("n", 8, spec={"taints": [TAINT]})), pod("t/a", 8))
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    (command,) = [line.strip() for line in text.splitlines() if "kubectl" in line]
    assert command.startswith("kubectl patch pod a -n t --type=json -p='")
    assert command.endswith("'")
    assert max(len(line) for line in text.splitlines() if "kubectl" not in line) <= 80


def test_the_document_has_the_remedies_with_their_commands(told: Told) -> None:
    document = told.document("pod/a", of_cluster(node("n", 8, spec={"unschedulable": True})), pod("t/a", 8))
    assert document["remedies"] == [{"words": "Uncordon node n.", "commands": ["kubectl uncordon n"]}]


# -- MIG profiles that no model offers ---------------------------------------------------------------------------

A100 = {**H100, "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
OFFERED = "offers 1g.10gb, 1g.10gb.me, 1g.20gb, 2g.20gb, 3g.40gb, 4g.40gb, 7g.80gb"


def asks(profile: str, name: str = "t/wrong", **spec: Any) -> Object:
    return pod(name, limits={f"nvidia.com/mig-{profile}": 1}, **spec)


@pytest.mark.parametrize("profile", ["3g.40g", "3g40gb", "3g.40GB", "3G.40gb", "3g40", "3g-40gb"])
def test_a_text_that_is_almost_a_profile_is_named_with_the_profile_that_it_resembles(told: Told, profile: str) -> None:
    text = told("pod/wrong", of_cluster(node("n", 8, labels=A100)), asks(profile))
    assert f"offers the MIG profile {profile}; did you mean 3g.40gb?" in text
    assert f"rename nvidia.com/mig-{profile} to nvidia.com/mig-3g.40gb" in text


@pytest.mark.parametrize("profile", ["3g.30gb", "3g.20gb"])
def test_a_profile_that_no_model_offers_is_named_with_the_nearest_of_as_many_slices(told: Told, profile: str) -> None:
    waits = asks(profile)
    text = told("pod/wrong", of_cluster(node("n", 8, labels=A100)), waits)
    assert f"offers the MIG profile {profile}; did you mean 3g.40gb? NVIDIA-A100-SXM4-80GB {OFFERED}" in text
    assert "The nearest node is n: with the change below, it takes the pod." in text
    assert f"rename nvidia.com/mig-{profile} to nvidia.com/mig-3g.40gb" in text
    assert "Then: Change the MIG layout of node n to all-3g.40gb: no pod uses its GPUs." in text
    (remedy,) = told.document("pod/wrong", of_cluster(node("n", 8, labels=A100)), waits)["remedies"]
    replace, relabel = remedy["commands"]
    assert replace.startswith("kubectl get pod wrong -n t -o yaml | kubectl patch -f -")
    assert f"nvidia.com~1mig-{profile}" in replace
    assert relabel == "kubectl label node n nvidia.com/mig.config=all-3g.40gb --overwrite"


def test_the_corrected_profile_alone_is_enough_where_nodes_have_it(told: Told) -> None:
    divided = of_cluster(node("n", 0, labels={**A100, "nvidia.com/mig.config": "all-3g.40gb"}))
    divided["status"]["allocatable"][SLICE] = 2
    whole = of_cluster(node("a", 8, labels={**A100, "nvidia.com/mig.capable": "false"}))
    text = told("pod/wrong", whole, divided, asks("3g.30gb"))
    assert "would help In pod t/wrong" in text
    assert "The nearest node is n: with the change below, it takes the pod." in text
    assert "Two changes" not in text


def test_only_models_of_nodes_that_may_take_the_pod_count_and_all_are_listed(told: Told) -> None:
    other = {**H100, "nvidia.com/gpu.product": "NVIDIA-H200"}
    nodes = [of_cluster(node("a", 8, labels=A100)), of_cluster(node("b", 8, labels=other))]
    on_a100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
    text = told("pod/wrong", *nodes, asks("3g.71gb", nodeSelector=on_a100))
    assert "did you mean 3g.40gb?" in text
    assert "NVIDIA-H200 offers" in text
    assert "The nearest node is a:" in text
    assert "did you mean" not in told("pod/wrong", *nodes, asks("3g.71gb"))


def test_a_corrected_profile_without_a_place_is_named_and_no_remedy(told: Told) -> None:
    full = of_cluster(node("n", 8, labels={**A100, "nvidia.com/mig.capable": "false"}))
    text = told("pod/wrong", full, asks("3g.30gb"))
    assert "the MIG profile 3g.30gb; with 3g.40gb instead it would wait as well" in text
    assert "did you mean" not in text
    assert "would help" not in text
    assert "did you mean" not in told("pod/wrong", full, asks("9g.30gb"))
