"""`shoal why` of work that waits for a misspelled name, a stopped queue or a label of its namespace: the change that
helps, its command, and no command where the change does not help.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from build.followed_commands import followed
from build.gpu_queues import gpu_job, gpu_queue, gpu_workload, gpus
from build.manifests import Object, as_file, job, node, pod, thing, volcano_group
from build.queue_manifests import KUEUE, QUEUE, configuration, flavor
from build.why_answers import WhyAnswers
from shoal.api.decode import read
from shoal.api.runtime_classes import RuntimeClass
from shoal.cli.live_history import meant_runtime
from shoal.cli.main import main

GROUP = "scheduling.k8s.io/group-name"


@pytest.fixture
def why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> WhyAnswers:
    return WhyAnswers(tmp_path, capsys)


def living(name: str = "n", gpus_of_it: int = 8) -> Object:
    """A node of a cluster, on which commands can act."""
    made = node(name, gpus_of_it)
    made["metadata"]["uid"] = f"uid-{name}"
    return made


def stopped(kind: str) -> list[Object]:
    objects = gpu_queue("t", gpus(8))
    (one,) = [each for each in objects if each["kind"] == kind]
    one["spec"]["stopPolicy"] = "HoldAndDrain"
    return [living(), flavor(), *objects, gpu_job("t/j", 1, 4)]


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("ClusterQueue", 'kubectl patch clusterqueue t --type=merge -p=\'{"spec":{"stopPolicy":"None"}}\''),
        ("LocalQueue", 'kubectl patch localqueue q -n t --type=merge -p=\'{"spec":{"stopPolicy":"None"}}\''),
    ],
)
def test_a_stopped_queue_is_started_again(kind: str, command: str, why: WhyAnswers) -> None:
    assert why.commands("job/j", *stopped(kind)) == [command]
    assert "spec.stopPolicy: HoldAndDrain" in why.help("job/j", *stopped(kind))


def test_a_queue_that_is_stopped_twice_is_started_twice(why: WhyAnswers) -> None:
    objects = stopped("ClusterQueue")
    (local,) = [each for each in objects if each["kind"] == "LocalQueue"]
    local["spec"]["stopPolicy"] = "Hold"
    assert [command.split()[2] for command in why.commands("job/j", *objects)] == ["localqueue", "clusterqueue"]


def test_where_quota_is_lacking_as_well_both_changes_are_named(why: WhyAnswers) -> None:
    objects = [*stopped("ClusterQueue"), gpu_job("t/large", 1, 8)]
    (queue,) = [each for each in objects if each["kind"] == "ClusterQueue"]
    queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = 4
    commands = why.commands("job/large", *objects)
    assert [command.split()[:4] for command in commands] == [["kubectl", "patch", "clusterqueue", "t"]] * 2
    assert '"stopPolicy":"None"' in commands[0]
    assert "nominalQuota" in commands[1]


def test_a_queue_whose_start_does_not_help_has_no_command(why: WhyAnswers) -> None:
    objects = [each for each in stopped("ClusterQueue") if each["kind"] != "Job"]
    assert why.commands("job/j", *objects, gpu_job("t/j", 1, 16)) == []


def test_a_queue_without_a_namespace_selector_gets_one_that_allows_all(why: WhyAnswers) -> None:
    objects = [each for each in stopped("ClusterQueue") if each["kind"] != "ClusterQueue"]
    (queue,) = [each for each in gpu_queue("t", gpus(8)) if each["kind"] == "ClusterQueue"]
    del queue["spec"]["namespaceSelector"]
    command = 'kubectl patch clusterqueue t --type=merge -p=\'{"spec":{"namespaceSelector":{}}}\''
    assert why.commands("job/j", *objects, queue) == [command]
    # It would find no place.
    objects = [each for each in objects if each["kind"] != "Job"]
    assert why.commands("job/j", *objects, queue, gpu_job("t/j", 1, 16)) == []


def deactivated(gpus_each: int) -> Object:
    made = gpu_workload("t/w", 1, gpus_each)
    made["spec"]["active"] = False
    return made


def test_a_deactivated_workload_is_activated(why: WhyAnswers) -> None:
    objects = [each for each in stopped("ClusterQueue") if each["kind"] not in ("ClusterQueue", "Job")]
    (queue,) = [each for each in gpu_queue("t", gpus(8)) if each["kind"] == "ClusterQueue"]
    workload = deactivated(4)
    command = 'kubectl patch workload w -n t --type=merge -p=\'{"spec":{"active":true}}\''
    assert why.commands("workload/w", *objects, queue, workload) == [command]
    assert why.commands("workload/w", *objects, queue, deactivated(16)) == []


def selective(**selector: Any) -> list[Object]:
    return [
        living(),
        thing("v1", "Namespace", "t", spec={}),
        flavor(),
        *gpu_queue("t", gpus(8), namespaceSelector=selector),
        gpu_job("t/j", 1, 4),
    ]


@pytest.mark.parametrize(
    ("selector", "labels"),
    [
        ({"matchLabels": {"team": "a"}}, "team=a"),
        ({"matchExpressions": [{"key": "stage", "operator": "In", "values": ["dev", "test"]}]}, "stage=dev"),
        ({"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}, "gpu=true"),
        (
            {
                "matchLabels": {"team": "a"},
                "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "Exists"}],
            },
            "team=a",
        ),
    ],
)
def test_a_namespace_gets_the_labels_that_the_queue_admits(selector: Object, labels: str, why: WhyAnswers) -> None:
    assert why.commands("job/j", *selective(**selector)) == [f"kubectl label namespace t {labels} --overwrite"]


def test_a_label_that_the_queue_excludes_is_removed(why: WhyAnswers) -> None:
    objects = selective(matchExpressions=[{"key": "stage", "operator": "NotIn", "values": ["dev"]}])
    objects[1]["metadata"]["labels"] = {"stage": "dev"}
    assert why.commands("job/j", *objects) == ["kubectl label namespace t stage- --overwrite"]


def test_the_label_with_the_name_of_a_namespace_cannot_be_changed(why: WhyAnswers) -> None:
    assert why.commands("job/j", *selective(matchLabels={"kubernetes.io/metadata.name": "other"})) == []


def local(cluster_queue: str) -> Object:
    return thing(KUEUE, "LocalQueue", "t/q", spec={"clusterQueue": cluster_queue})


def without_local(objects: list[Object]) -> list[Object]:
    return [each for each in objects if each["kind"] != "LocalQueue"]


def test_a_misspelled_cluster_queue_is_corrected(why: WhyAnswers) -> None:
    objects = [living(), flavor(), *without_local(gpu_queue("small", gpus(8))), local("smal"), gpu_job("t/j", 1, 4)]
    assert 'ClusterQueue "smal", which does not exist; did you mean "small"?' in why.help("job/j", *objects)
    (command,) = why.commands("job/j", *objects)
    assert command.startswith("kubectl get localqueue q -n t -o yaml | kubectl patch -f - --local --type=merge ")
    assert '{"spec":{"clusterQueue":"small"}}' in command


def test_a_similar_cluster_queue_without_quota_is_named_and_not_proposed(why: WhyAnswers) -> None:
    objects = [living(), flavor(), *without_local(gpu_queue("small", gpus(8))), local("smal"), gpu_job("t/j", 1, 16)]
    assert why.commands("job/j", *objects) == []
    said = why.help("job/j", *objects)
    assert 'did you mean "small"?' in said
    assert "it would wait as well" in said


def test_without_a_similar_cluster_queue_it_is_to_be_created(why: WhyAnswers) -> None:
    objects = [living(), flavor(), *without_local(gpu_queue("research", gpus(8))), local("smal"), gpu_job("t/j", 1, 4)]
    assert why.help("job/j", *objects) == "ClusterQueue smal does not exist: create it."


def test_a_misspelled_flavor_is_corrected(why: WhyAnswers) -> None:
    objects = [living(), flavor("h100"), *gpu_queue("t", gpus(8, flavor="h1000")), gpu_job("t/j", 1, 4)]
    path = "/spec/resourceGroups/0/flavors/0/name"
    body = json.dumps([{"op": "replace", "path": path, "value": "h100"}], separators=(",", ":"))
    assert why.commands("job/j", *objects) == [f"kubectl patch clusterqueue t --type=json -p='{body}'"]
    assert 'names ResourceFlavor "h1000", which does not exist; did you mean "h100"?' in why.help("job/j", *objects)


def misspelled_topology(gpus_each: int = 4) -> list[Object]:
    """Of a flavor that two queues use."""
    rack = node("n", 8, labels={"rack": "r"})
    rack["metadata"]["uid"] = "uid-n"
    topology = thing(KUEUE, "Topology", "racks", spec={"levels": [{"nodeLabel": "rack"}]})
    racks = flavor(nodeLabels={"rack": "r"}, topologyName="rcks")
    queues = [*gpu_queue("t", gpus(8)), *gpu_queue("u", gpus(8))]
    return [rack, topology, racks, *queues, gpu_job("t/j", 1, gpus_each)]


def test_a_flavor_with_a_misspelled_topology_is_replaced_by_a_copy_with_the_nearest_one(why: WhyAnswers) -> None:
    objects = misspelled_topology()
    said = why.help("job/j", *objects)
    assert 'names Topology "rcks", which does not exist; did you mean "racks"?' in said
    assert "create ResourceFlavor f-racks like f with topologyName racks" in said
    assert "in ClusterQueue t, ClusterQueue u" in said
    commands = why.commands("job/j", *objects)
    for command in commands:
        objects = followed(objects, command)
    flavors = {each["metadata"]["name"]: each for each in objects if each["kind"] == "ResourceFlavor"}
    assert flavors["f-racks"]["spec"] == {"nodeLabels": {"rack": "r"}, "topologyName": "racks"}
    assert flavors["f"]["spec"]["topologyName"] == "rcks"
    assert why.document("job/j", *objects)["outcome"] == "waits: by now it would be admitted"


def test_a_flavor_with_a_misspelled_topology_has_no_command_where_its_job_would_wait_as_well(why: WhyAnswers) -> None:
    objects = misspelled_topology(16)
    assert 'did you mean "racks"?' in why.help("job/j", *objects)
    assert why.commands("job/j", *objects) == []


def test_a_flavor_that_an_admission_check_names_is_replaced_by_hand(why: WhyAnswers) -> None:
    objects = misspelled_topology()
    (queue,) = [each for each in objects if each["kind"] == "ClusterQueue" and each["metadata"]["name"] == "u"]
    rule = {"name": "c", "onFlavors": ["f"]}
    queue["spec"]["admissionChecksStrategy"] = {"admissionChecks": [rule]}
    assert 'did you mean "racks"?' in why.help("job/j", *objects)
    assert why.commands("job/j", *objects) == []


def test_a_misspelled_resource_of_a_pod_is_renamed(why: WhyAnswers) -> None:
    wrong = pod("t/p", limits={"nvidia.com/gpus": 1})
    assert "No node has the resource nvidia.com/gpus; did you mean nvidia.com/gpu?" in why.help(
        "pod/p", living(), wrong
    )
    (command,) = why.commands("pod/p", living(), wrong)
    assert command.startswith("kubectl get pod p -n t -o yaml | kubectl patch ")
    assert '"path":"/spec/containers/0/resources/limits/nvidia.com~1gpu","value":"1"' in command


def test_a_resource_whose_correction_does_not_help_has_no_command(why: WhyAnswers) -> None:
    wrong = pod("t/p", limits={"nvidia.com/gpus": 16})
    assert "did you mean nvidia.com/gpu?" in why.help("pod/p", living(), wrong)
    assert why.commands("pod/p", living(), wrong) == []


def test_a_resource_like_no_other_has_no_suggestion(why: WhyAnswers) -> None:
    assert "did you mean" not in why.help("pod/p", living(), pod("t/p", limits={"example.com/fpga": 1}))


@pytest.mark.parametrize(("amount", "is_renamed"), [(4, True), (16, False)])
def test_a_misspelled_resource_of_a_queued_job_is_renamed_if_its_pods_then_run(
    amount: int, is_renamed: bool, why: WhyAnswers
) -> None:
    queued = job("t/j", 1, labels={QUEUE: "q"}, suspend=True)
    (container,) = queued["spec"]["template"]["spec"]["containers"]
    container["resources"] = {"limits": {"nvidia.com/gpus": amount}, "requests": {"nvidia.com/gpus": amount}}
    objects = [living(), flavor(), *gpu_queue("t", gpus(32)), queued]
    assert "no quota of nvidia.com/gpus, and no node has it; did you mean nvidia.com/gpu?" in why.help(
        "job/j", *objects
    )
    commands = why.commands("job/j", *objects)
    assert [command.partition(" --type")[0] for command in commands] == ["kubectl patch job j -n t"] * is_renamed


def test_manifests_have_no_commands(why: WhyAnswers) -> None:
    objects = stopped("ClusterQueue")
    del objects[0]["metadata"]["uid"]
    assert why.commands("job/j", *objects) == []
    assert "set it to None" in why.help("job/j", *objects)


def test_a_misspelled_runtime_class_is_named() -> None:
    (found,) = read(json.dumps(thing("node.k8s.io/v1", "RuntimeClass", "nvidia", handler="nvidia")))
    assert isinstance(found.value, RuntimeClass)
    (asking,) = read(json.dumps(pod("t/p", 1, runtimeClassName="nvidai")))
    assert 'RuntimeClass "nvidia" exists; did you mean that' in meant_runtime(asking.value, [found])  # type: ignore[arg-type]
    (right,) = read(json.dumps(pod("t/p", 1, runtimeClassName="nvidia")))
    assert meant_runtime(right.value, [found]) == ""  # type: ignore[arg-type]


def test_the_quota_tree_and_the_warnings_name_similar_queues_and_flavors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = [node("n", 8), flavor("h100"), *without_local(gpu_queue("small", gpus(8, flavor="h1000"))), local("smal")]
    assert main(["queue", "-f", as_file(tmp_path, *objects)]) == 0
    out, err = (" ".join(text.split()) for text in capsys.readouterr())
    assert "its ClusterQueue smal does not exist; did you mean small?" in out
    assert "it uses ResourceFlavor h1000, which does not exist; did you mean h100?" in out
    assert "ClusterQueue smal not found: its workloads are held back; did you mean small?" in err
    assert "ResourceFlavor h1000 not found: the cluster queue admits no workloads; did you mean h100?" in err


def test_decide_warns_of_similar_resources_and_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objects = [
        node("n", 8),
        volcano_group("t/group", 1),
        pod("t/a", limits={"nvidia.com/gpus": 1}),
        pod("t/b", limits={"nvidia.com/gpus": 1}),
        pod("t/c", limits={"example.com/fpga": 1}),
        pod("t/d", 1, annotations={GROUP: "grop"}),
        pod("u/e", 1, annotations={GROUP: "grop"}),
    ]
    assert main(["decide", "-f", as_file(tmp_path, *objects)]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "did you mean" in line]
    assert [line.rpartition(": ")[2] for line in lines] == [
        "no node has nvidia.com/gpus; did you mean nvidia.com/gpu?",
        "PodGroup grop not found; did you mean group?",
    ]
    assert "(Pod t/a): spec.containers[0].resources.limits[nvidia.com/gpus]" in lines[0]
    assert f"(Pod t/d): metadata.annotations[{GROUP}]" in lines[1]


def test_a_job_may_start_with_fewer_pods_by_its_annotation(why: WhyAnswers) -> None:
    objects = [living(), flavor(), *gpu_queue("t", gpus(2)), gpu_job("t/j", 4, 1)]
    assert why.commands("job/j", *objects)[0] == (
        "kubectl annotate job j -n t kueue.x-k8s.io/job-min-parallelism=2 --overwrite"
    )


def test_a_job_without_partial_admission_asks_for_fewer_pods(why: WhyAnswers) -> None:
    gates = configuration(featureGates={"PartialAdmission": False})
    objects = [living(), gates, flavor(), *gpu_queue("t", gpus(2)), gpu_job("t/j", 4, 1)]
    body = '[{"op":"replace","path":"/spec/parallelism","value":2}]'
    assert why.commands("job/j", *objects)[0] == f"kubectl patch job j -n t --type=json -p='{body}'"
