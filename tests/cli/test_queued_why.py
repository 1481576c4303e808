"""What is told of jobs that stand in a queue of Kueue: by which it runs, and in which it waits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from build.gpu_queues import gpu_queue, gpu_workload, gpus
from build.manifests import Object, as_file, group, job, node, pod, thing
from build.queue_manifests import flavor
from shoal.cli.main import main

QUEUE = {"kueue.x-k8s.io/queue-name": "q"}


def owned(obj: Object, kind: str, name: str, version: str = "batch/v1") -> Object:
    reference = {"apiVersion": version, "kind": kind, "name": name, "uid": "1", "controller": True}
    obj["metadata"]["ownerReferences"] = [reference]
    return obj


def world() -> list[Object]:
    """One job runs on all eight GPUs of its queue, one waits for them."""
    runs = job("t/runs", 1, 8, labels=QUEUE, annotations={"shoal.dev/gang": "true"}, suspend=False)
    waits = job("t/waits", 2, 4, labels=QUEUE, annotations={"shoal.dev/gang": "true"}, suspend=True)
    return [
        node("n", 8),
        flavor(),
        *gpu_queue("t", gpus(8)),
        runs,
        waits,
        owned(gpu_workload("t/job-runs", 1, 8, on="f"), "Job", "runs"),
        owned(gpu_workload("t/job-waits", 2, 4), "Job", "waits"),
        owned(pod("t/runs-0", 8, on="n", status={"phase": "Running"}), "Job", "runs"),
    ]


def told(folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str, objects: list[Object]) -> str:
    assert main([*arguments, "-f", as_file(folder, *objects)]) == 0
    return capsys.readouterr().out


def test_a_running_job_names_its_workload_queue_and_flavor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = " ".join(told(tmp_path, capsys, "why", "job/runs", objects=world()).split())
    assert "queue workload t/job-runs of queue q, in t pods main: flavor f" in said


def test_work_that_grows_asks_for_what_it_wants_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elastic = {"kueue.x-k8s.io/elastic-job": "true"}
    for wanted, says in ((2, "2 x main on f"), (3, "4 more needed")):
        later = owned(gpu_workload("t/later", wanted, 4), "Job", "grows")
        later["metadata"]["annotations"] = {"kueue.x-k8s.io/workload-slice-replacement-for": "t/first"}
        objects = [
            *(node("n", 8), flavor(), *gpu_queue("t", gpus(8))),
            job("t/grows", wanted, 4, labels=QUEUE, annotations=elastic, suspend=False),
            owned(gpu_workload("t/first", 1, 4, on="f"), "Job", "grows"),
            later,
            owned(pod("t/grows-0", 4, on="n", status={"phase": "Running"}), "Job", "grows"),
        ]
        assert says in " ".join(told(tmp_path, capsys, "decide", objects=objects).split())
        assert "gang waiting" not in told(tmp_path, capsys, "decide", objects=objects)
        assert "t/first" not in told(tmp_path, capsys, "why", "workload/later", "-n", "t", objects=objects)


def test_a_job_that_runs_and_has_grown_says_what_the_rest_waits_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    later = owned(gpu_workload("t/a-later", 3, 4), "Job", "grows")
    later["metadata"]["annotations"] = {"kueue.x-k8s.io/workload-slice-replacement-for": "t/first"}
    message = "couldn't assign flavors to pod set main: insufficient unused quota"
    waits = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": message}
    later["status"] = {"conditions": [{**waits, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    objects = [
        *(node("n", 8), flavor(), *gpu_queue("t", gpus(8))),
        job("t/grows", 3, 4, labels=QUEUE, annotations={"kueue.x-k8s.io/elastic-job": "true"}, suspend=False),
        later,
        owned(gpu_workload("t/first", 1, 4, on="f"), "Job", "grows"),
        owned(pod("t/grows-0", 4, on="n", status={"phase": "Running"}), "Job", "grows"),
    ]
    said = " ".join(told(tmp_path, capsys, "why", "job/grows", "-n", "t", objects=objects).split())
    assert "queue workload t/first of queue q, in t" in said
    assert f"grows workload t/a-later asks for more QuotaReserved False: {message}" in said


def test_the_gang_of_a_suspended_job_is_listed_with_queue_and_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gangs = json.loads(told(tmp_path, capsys, "get", "gangs", "-o", "json", objects=world()))["items"]
    waits = next(each for each in gangs if each["gang"] == "t/waits")
    assert waits["state"] == "queued"
    assert waits["queue"] == "t/q"
    assert waits["code"] == "WaitingForQuota"
    assert "quota" in waits["message"]
    runs = next(each for each in gangs if each["gang"] == "t/runs")
    assert (runs["state"], runs["queue"]) == ("runs", "t/q")
    assert "queued" in told(tmp_path, capsys, "get", "gangs", objects=world())


def test_of_a_deactivated_workload_it_is_said_what_activates_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = world()
    objects[-2]["spec"]["active"] = False
    said = " ".join(told(tmp_path, capsys, "why", "job/waits", objects=objects).split())
    assert "set spec.active of Workload t/job-waits to true" in said.replace("Set", "set")


def gone_world() -> list[Object]:
    """A gang of two has quota; the node of one of its pods is gone, and the pod is not deleted yet."""
    pods = [
        owned(pod(f"t/tj-{at}", 4, on=on, status={"phase": "Running"}, meta={"uid": f"p{at}"}), "Job", "tj")
        for at, on in enumerate(("n", "gone"))
    ]
    gang = job("t/tj", 2, 4, labels=QUEUE, annotations={"shoal.dev/gang": "true"}, suspend=False)
    held = owned(gpu_workload("t/job-tj", 2, 4, on="f"), "Job", "tj")
    return [node("n", 8), flavor(), *gpu_queue("t", gpus(8)), gang, held, *pods]


def test_a_pod_whose_node_is_gone_is_placed_nowhere_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    decided = json.loads(told(tmp_path, capsys, "decide", "-o", "json", objects=gone_world()))
    assert [each["placed"] for each in decided["rounds"]] == [[]]
    of_job = " ".join(told(tmp_path, capsys, "why", "job/tj", objects=gone_world()).split())
    assert "runs with 1 of 2 pods" in of_job
    assert "n: t/tj-0" in of_job
    assert "t/tj-1 was on gone, which is gone" in of_job
    assert "t/tj-1 was on gone, which is gone" in told(tmp_path, capsys, "why", "pod/tj-1", objects=gone_world())


def test_a_job_without_a_gang_too_says_which_of_its_pods_lost_their_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = [each for each in gone_world() if each["kind"] in ("Node", "Job", "Pod")]
    objects[1]["metadata"] = {"name": "tj", "namespace": "t"}
    said = " ".join(told(tmp_path, capsys, "why", "job/tj", objects=objects).split())
    assert "pods: 1 runs, 1 lost its node" in said
    assert "tj-1 was on gone, which is gone" in said


def test_a_job_of_one_pod_in_a_queue_is_called_no_gang(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objects = world()
    objects[4]["metadata"].pop("annotations")
    assert told(tmp_path, capsys, "why", "job/runs", objects=objects).startswith("job t/runs runs with 1 pod\n")


def test_a_gang_that_cannot_be_is_not_told_of_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objects = [node("n", 8), job("t/nine", 2, 1, annotations={"shoal.dev/gang": "9"})]
    said = " ".join(told(tmp_path, capsys, "why", "job/nine", objects=objects).split())
    assert "raise parallelism, or lower the annotation to 2" in said
    assert "would take it" not in said


def living(obj: Object) -> Object:
    obj["metadata"]["uid"] = f"uid-{obj['metadata']['name']}"
    return obj


def admitted_world(count: int, *, is_gang: bool) -> list[Object]:
    """An admitted job on a cluster, whose pods wait for GPUs of a model that no node has."""
    annotations = {"shoal.dev/gang": "true"} if is_gang else {}
    made = living(job("t/lost", count, 4, labels=QUEUE, annotations=annotations, suspend=False))
    selector = {"nvidia.com/gpu.product": "NVIDIA-B200"}
    pods = [
        living(owned(pod(f"t/lost-{at}", 4, status={"phase": "Pending"}, nodeSelector=selector), "Job", "lost"))
        for at in range(count)
    ]
    workload = owned(gpu_workload("t/job-lost", count, 4, on="f"), "Job", "lost")
    only = living(node("n", 8))
    only["metadata"]["labels"] = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    return [only, flavor(), *gpu_queue("t", gpus(8)), made, workload, *pods]


@pytest.mark.parametrize(("count", "is_gang"), [(1, False), (2, False), (2, True)])
def test_an_admitted_job_says_why_its_pods_wait(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int, is_gang: bool
) -> None:
    objects = admitted_world(count, is_gang=is_gang)
    said = " ".join(told(tmp_path, capsys, "why", "job/lost", objects=objects).split())
    assert "waits" in said.partition(" asks ")[0]
    assert "No node has nvidia.com/gpu.product=NVIDIA-B200" in said
    assert "queue workload t/job-lost of queue q, in t pods main: flavor f" in said
    document = json.loads(told(tmp_path, capsys, "why", "job/lost", "-o", "json", objects=objects))
    assert document["code"] == ("GangDoesNotFit" if count > 1 else "NodeAffinityMismatch")


@pytest.mark.parametrize("name", ["job/lost", "pod/lost-0"])
def test_an_admitted_job_with_one_pod_waits_for_what_its_pod_waits_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """It has no other pods that it would have to start with."""
    objects = admitted_world(1, is_gang=False)
    said = " ".join(told(tmp_path, capsys, "why", name, objects=objects).split())
    assert "waits: NodeAffinityMismatch" in said
    assert "its gang" not in said
    assert "at once" not in said


def test_a_gang_of_one_pod_is_listed_with_the_cause_of_its_pod(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    member = {"scheduling.k8s.io/group-name": "vg"}
    group_ = group("scheduling.volcano.sh/v1beta1", "t/vg", minMember=1)
    objects = [node("n", 8, spec={"unschedulable": True}), group_, pod("t/v1", 8, annotations=member)]
    gangs = json.loads(told(tmp_path, capsys, "get", "gangs", "-o", "json", objects=objects))["items"]
    assert [(each["code"], each["message"]) for each in gangs] == [
        ("NodeUnschedulable", "0/1 nodes are available: 1 node(s) were unschedulable.")
    ]
    said = " ".join(told(tmp_path, capsys, "why", "gang/vg", objects=objects).split())
    assert said.startswith("gang t/vg waits: NodeUnschedulable")
    assert "kubectl uncordon n" in said or "Uncordon node n." in said
    decided = json.loads(told(tmp_path, capsys, "decide", "-o", "json", objects=objects))
    (refused,) = decided["rounds"][-1]["refused"]
    assert refused["reason"]["code"] == "NodeUnschedulable"
    assert "its rules about nodes, their taints, and cordons (1 node) leave none." in refused["reason"]["help"]


@pytest.mark.parametrize(("count", "words"), [(1, "is admitted; 1 pod waits"), (2, "is admitted; 2 pods wait")])
def test_an_admitted_workload_names_the_pods_that_wait(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int, words: str
) -> None:
    objects = admitted_world(count, is_gang=False)
    said = " ".join(told(tmp_path, capsys, "why", "workload/job-lost", objects=objects).split())
    assert words in said
    assert "see shoal why pod/lost-0 -n t" in said


def test_a_remedy_of_an_admitted_jobs_pods_is_told_of_the_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = admitted_world(1, is_gang=False)
    for obj in objects:
        obj.get("spec", {}).pop("nodeSelector", None)
    objects[0]["spec"] = {"unschedulable": True}
    said = " ".join(told(tmp_path, capsys, "why", "job/lost", objects=objects).split())
    assert "kubectl uncordon n" in said


def test_only_pods_that_exist_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Four pods of the queued job are not created yet."""
    waits = living(job("t/waits", 4, 4, labels=QUEUE, suspend=True))
    objects = [living(node("n", 8)), flavor(), *gpu_queue("t", gpus(8)), waits]
    objects += [owned(gpu_workload("t/job-waits", 4, 4), "Job", "waits"), living(pod("t/alone", 1, on="n"))]
    assert main(["why", "pod/nope", "-f", as_file(tmp_path, *objects)]) == 2
    assert 'pod "nope" not found; 1 pod exists\n' in capsys.readouterr().err


def test_the_pods_that_a_gang_needs_are_not_told_as_pods_that_exist(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    member = {"scheduling.k8s.io/group-name": "vg"}
    alone = living(pod("t/v1", 8, annotations=member, status={"phase": "Pending"}))
    objects = [living(node("n", 4)), group("scheduling.volcano.sh/v1beta1", "t/vg", minMember=3), alone]
    said = " ".join(told(tmp_path, capsys, "why", "pod/v1", objects=objects).split())
    assert "gang t/vg needs 3 pods; 1 waits, 0 run" in said


def test_pods_of_a_gang_that_are_not_created_do_not_wait(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = living(job("t/g", 3, 8, annotations={"shoal.dev/gang": "true"}))
    said = " ".join(told(tmp_path, capsys, "why", "job/g", objects=[living(node("n", 8)), made]).split())
    assert "needs 3 pods; 0 wait, 0 run, 3 not created yet" in said


def test_a_change_of_pods_that_was_not_tried_on_the_nodes_is_no_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without its selector the flavor suits the job; what the nodes say of such pods is not tried."""
    selector = {"team": "b"}
    waits = job("t/waits", 1, 4, labels=QUEUE, suspend=True)
    waits["spec"]["template"]["spec"]["nodeSelector"] = selector
    only = node("n", 8)
    only["metadata"]["labels"] = {"team": "a"}
    objects = [only, flavor(nodeLabels={"team": "a"}), *gpu_queue("t", gpus(8)), waits]
    document = json.loads(told(tmp_path, capsys, "why", "job/waits", "-o", "json", objects=objects))
    said = " ".join(told(tmp_path, capsys, "why", "job/waits", objects=objects).split())
    assert "queue alone Drop nodeSelector team=b of pod set main: flavor f then suits it." in said
    assert all("was not tried" not in remedy["words"] for remedy in document["remedies"])
    assert "was not tried" not in said.partition(" would help ")[2].partition(" queue alone ")[0]


@pytest.mark.parametrize(
    ("pods", "gpus_each", "quota", "limit"),
    [
        (2, 16, 64, "no node is large enough for its pods, even if it were empty."),
        (3, 8, 64, "2 of its 3 pods would fit, even if nothing else ran on the nodes."),
        (3, 8, 8, "2 of its 3 pods would fit, even if nothing else ran on the nodes."),
        (2, 8, 64, ""),
    ],
)
def test_a_job_that_empty_nodes_would_not_hold_is_not_told_to_wait_for_pods_to_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pods: int, gpus_each: int, quota: int, limit: str
) -> None:
    waits = job("t/waits", pods, gpus_each, labels=QUEUE, suspend=True)
    running = [pod(f"t/r{name}", 4, on=name, status={"phase": "Running"}) for name in "ab"]
    objects = [node("a", 8), node("b", 8), flavor(), *gpu_queue("t", gpus(quota)), *running, waits]
    said = " ".join(told(tmp_path, capsys, "why", "job/waits", objects=objects).split())
    assert ("outlook Waiting for pods to end does not help: " + limit in said) is bool(limit)
    assert ("outlook It is tried again when pods end or nodes come." in said) is (not limit)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("Job", "Let pod set main start with 2 pods (minCount) instead of 4."),
        ("PyTorchJob", "Ask for 2 pods instead of 4 in pod set main."),
    ],
)
def test_a_least_number_of_pods_is_proposed_only_to_kinds_that_can_state_one(
    kind: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    waits = owned(gpu_workload("t/w", 4, 2), kind, "w")
    said = told(
        tmp_path, capsys, "why", "workload/w", objects=[node("n", 8), flavor(), *gpu_queue("t", gpus(4)), waits]
    )
    assert words in " ".join(said.split())
    assert ("minCount) instead" in " ".join(said.split())) == (kind == "Job")


def test_where_a_limit_range_makes_pods_invalid_it_is_named_and_no_quota_is_proposed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A LimitRange's default request that is larger than the limit of the pods."""
    amounts: Object = {"nvidia.com/gpu": 8, "cpu": 4}
    item: Object = {"type": "Container", "defaultRequest": amounts}
    limits = thing("v1", "LimitRange", "t/lr", spec={"limits": [item]})
    other = thing("v1", "LimitRange", "u/other", spec={"limits": [item]})
    objects = [node("n", 8), flavor(), *gpu_queue("t", gpus(8)), job("t/j", 1, 6, labels=QUEUE, suspend=True)]
    said = " ".join(told(tmp_path, capsys, "why", "job/j", objects=[*objects, limits, other]).split())
    assert "requests must not exceed its limits" in said
    help_ = "would help Correct the requests and limits of its pods, or LimitRange t/lr, which sets those that the pods"
    assert f"{help_} leave out." in said
    assert "coveredResources" not in said
    del item["defaultRequest"]
    item["max"] = {**amounts, "nvidia.com/gpu": 4}
    said = " ".join(told(tmp_path, capsys, "why", "job/j", objects=[*objects, limits]).split())
    assert "didn't satisfy LimitRange constraints" in said
    assert "LimitRange t/lr" in said.partition("would help")[2]


H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}


def misspelled(quota: int = 8) -> list[Object]:
    waits = living(job("t/waits", 1, 4, labels=QUEUE, suspend=True))
    waits["spec"]["template"]["spec"]["nodeSelector"] = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM"}
    only = living(node("n", 8, labels=H100))
    return [only, flavor(nodeLabels=H100), *gpu_queue("t", gpus(quota)), waits]


def test_a_misspelled_label_value_of_a_queued_job_is_corrected_in_its_template(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = " ".join(told(tmp_path, capsys, "why", "job/waits", objects=misspelled()).split())
    assert (
        "would help No node has nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM; did you mean NVIDIA-H100-80GB-HBM3? "
        'In job t/waits, spec.template.spec.nodeSelector["nvidia.com/gpu.product"]: NVIDIA-H100-80GB-HBM3 instead of '
        "NVIDIA-H100-80GB-HBM. kubectl patch job waits -n t --type=json -p="
    ) in said
    assert "Drop nodeSelector" not in said


def test_a_label_value_with_which_a_queued_job_would_wait_as_well_is_no_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = " ".join(told(tmp_path, capsys, "why", "job/waits", objects=misspelled(quota=2)).split())
    assert "kubectl patch job" not in said
