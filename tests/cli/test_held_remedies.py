"""What helps pods that a queue of Volcano or KAI holds: each printed change was tried, and the true cause is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from build.manifests import Object, as_file, kai_group, node, pod, thing, volcano_group
from shoal.cli.main import main

GROUP = "scheduling.k8s.io/group-name"
KAI_QUEUE = "kai.scheduler/queue"
ALONE = "The group alone requests more than the capability of queue small: waiting does not help."


class Told:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys

    def __call__(self, name: str, *objects: Object) -> str:
        assert main(["why", "-f", as_file(self._folder, *objects), name]) == 0
        return " ".join(self._capsys.readouterr().out.split())

    def remedies(self, name: str, *objects: Object) -> list[dict[str, Any]]:
        assert main(["why", "-f", as_file(self._folder, *objects), name, "-o", "json"]) == 0
        found: list[dict[str, Any]] = json.loads(self._capsys.readouterr().out)["remedies"]
        return found


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Told:
    return Told(tmp_path, capsys)


def living(*objects: Object) -> list[Object]:
    """Only objects of a cluster have uids, and only on a cluster can commands act."""
    return [{**each, "metadata": {**each["metadata"], "uid": f"uid-{each['metadata']['name']}"}} for each in objects]


# -- Volcano -----------------------------------------------------------------------------------------------------


def volcano_queue(name: str, gpus: int, **spec: Any) -> Object:
    limit = {"capability": {"nvidia.com/gpu": gpus}}
    return thing("scheduling.volcano.sh/v1beta1", "Queue", name, spec={"weight": 1, **limit, **spec})


def gang(name: str, pods: int, queue: str, gpus: int = 4, phase: str = "Pending", **spec: Any) -> list[Object]:
    least = {"minResources": {"nvidia.com/gpu": pods * gpus}} if phase == "Pending" else {}
    group = volcano_group(f"t/{name}", pods, queue=queue, **least, **spec) | {"status": {"phase": phase}}
    return [group, *(pod(f"t/{name}-{at}", gpus, annotations={GROUP: name}) for at in range(pods))]


@pytest.mark.parametrize("phase", ["Pending", "Inqueue"])
def test_a_gang_larger_than_the_capability_is_told_that_waiting_does_not_help(told: Told, phase: str) -> None:
    world = living(node("n", 8), volcano_queue("small", 4), *gang("big", 2, "small", phase=phase))
    text = told("gang/big", *world)
    assert "requested 8 nvidia.com/gpu, used 0, capability 4 of queue small" in text
    assert ALONE in text
    assert "continues when" not in text
    (remedy,) = told.remedies("pod/big-0", *world)
    assert remedy["words"] == 'Raise spec.capability["nvidia.com/gpu"] of queue small from 4 to 8.'
    patch = "kubectl patch queues.scheduling.volcano.sh small --type=merge"
    assert remedy["commands"] == [f"""{patch} -p='{{"spec":{{"capability":{{"nvidia.com/gpu":"8"}}}}}}'"""]


def test_a_gang_below_the_capability_waits_for_others_or_for_more(told: Told) -> None:
    first = [volcano_group("t/a", 1, queue="small") | {"status": {"phase": "Running"}}]
    first.append(pod("t/a-0", 6, on="n", annotations={GROUP: "a"}, status={"phase": "Running"}))
    text = told("gang/b", node("n", 8), node("m", 8), volcano_queue("small", 8), *first, *gang("b", 2, "small"))
    assert "requested 8 nvidia.com/gpu, used 6, capability 8 of queue small" in text
    assert "The group continues when other groups of the queue finish, or with more capability." in text
    assert "from 8 to 14." in text
    assert "kubectl" not in text


def test_the_capability_of_the_parent_is_raised_too(told: Told) -> None:
    queues = [volcano_queue("dept", 4), volcano_queue("small", 4, parent="dept")]
    (remedy,) = told.remedies("gang/big", node("n", 8), *queues, *gang("big", 2, "small"))
    assert remedy["words"].count("from 4 to 8") == 2
    assert "queue dept" in remedy["words"]


def test_groups_that_come_first_are_counted_in_the_raise(told: Told) -> None:
    world = [node("n", 8), node("m", 8), volcano_queue("small", 4)]
    first, second = gang("a", 2, "small"), gang("b", 2, "small")
    (remedy,) = told.remedies("gang/b", *world, *first, *second)
    assert "from 4 to 16" in remedy["words"]


def test_a_group_behind_very_many_others_is_told_that_they_come_first(told: Told) -> None:
    others = [each for at in range(20) for each in gang(f"a{at:02}", 2, "small")]
    world = [*(node(f"n{at}", 8) for at in range(22)), volcano_queue("small", 8), *others, *gang("z", 2, "small")]
    assert told.remedies("gang/z", *world) == []
    assert "Others come before it, and take what a raise of the queue adds." in told("gang/z", *world)


def test_capability_without_places_on_the_nodes_is_no_remedy(told: Told) -> None:
    world = [node("n", 4), volcano_queue("small", 4), *gang("big", 2, "small")]
    assert told.remedies("gang/big", *world) == []
    assert "All nodes together offer 4 nvidia.com/gpu: waiting and other quotas do not help." in told(
        "gang/big", *world
    )
    scattered = [node("n", 6), node("m", 2), volcano_queue("small", 4)]
    wide = gang("wide", 1, "small", 8)
    assert told.remedies("gang/wide", *scattered, *wide) == []
    assert "A change of the queue alone does not help: its pods find no places on the nodes." in told(
        "gang/wide", *scattered, *wide
    )
    cordoned = node("m", 8, spec={"unschedulable": True})
    (remedy,) = told.remedies("gang/big", cordoned, volcano_queue("small", 4), *gang("big", 2, "small"))
    assert remedy["words"].startswith("Two changes are needed. First: Raise spec.capability")
    assert remedy["words"].endswith("Then: Uncordon node m.")


def test_of_a_group_without_pods_the_change_of_the_queue_is_no_remedy(told: Told) -> None:
    """Whether its pods would find places on the nodes cannot be tried."""
    group = volcano_group("t/big", 2, queue="small", minResources={"nvidia.com/gpu": 8})
    world = [node("n", 8), volcano_queue("small", 4), group]
    assert told.remedies("gang/big", *world) == []
    said = told("gang/big", *world)
    assert "would help" not in said
    words = 'queue alone Raise spec.capability["nvidia.com/gpu"] of queue small from 4 to 8. Its pods do not exist yet:'
    assert f"{words} whether they find places on the nodes was not tried." in said


def test_a_misspelled_volcano_queue_is_corrected_in_the_group(told: Told) -> None:
    world = living(node("n", 8), volcano_queue("small", 8), *gang("big", 2, "smal"))
    text = told("gang/big", *world)
    assert 'Did you mean "small"?' in text
    assert "In podgroup t/big, spec.queue: small instead of smal." in text
    command = "kubectl patch podgroups.scheduling.volcano.sh big -n t --type=merge"
    assert f'{command} -p=\'{{"spec":{{"queue":"small"}}}}\'' in text
    assert told.remedies("gang/big", node("n", 8), volcano_queue("small", 4), *gang("big", 2, "smal")) != []


def test_of_a_volcano_job_the_queue_is_corrected_in_the_job_which_sets_that_of_its_group(told: Told) -> None:
    """A change of the group alone is undone by the controller of jobs."""
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "big", "uid": "u", "controller": True}
    group = volcano_group("t/big-u", 2, queue="smal", minResources={"nvidia.com/gpu": 8})
    group["metadata"]["ownerReferences"] = [owner]
    job = thing("batch.volcano.sh/v1alpha1", "Job", "t/big", spec={"queue": "smal", "minAvailable": 2})
    text = told("gang/big-u", *living(node("n", 8), volcano_queue("small", 8), job, group))
    assert "In job t/big, spec.queue: small instead of smal: a job is created again for another queue." in text
    command = """-p='{"spec":{"queue":"small"}}' -o yaml | kubectl replace --force -f -"""
    assert (
        f"kubectl get jobs.batch.volcano.sh big -n t -o yaml | kubectl patch -f - --local --type=merge {command}"
        in text
    )
    assert "podgroups" not in text


def test_what_only_the_queues_were_asked_has_its_command_too(told: Told) -> None:
    group = volcano_group("t/big", 2, queue="small", minResources={"nvidia.com/gpu": 8})
    text = told("gang/big", *living(node("n", 8), volcano_queue("small", 4), group))
    patch = "kubectl patch queues.scheduling.volcano.sh small --type=merge"
    assert f"""was not tried. {patch} -p='{{"spec":{{"capability":{{"nvidia.com/gpu":"8"}}}}}}'""" in text


def test_a_queue_does_not_get_what_another_is_guaranteed(told: Told) -> None:
    """The guarantee of the other queue is not lent, although its GPUs are free."""
    kept = {"resource": {"nvidia.com/gpu": 6}}
    queues = [
        volcano_queue("a", 8, deserved={"nvidia.com/gpu": 2}),
        volcano_queue("b", 8, deserved={"nvidia.com/gpu": 6}, guarantee=kept),
    ]
    world = [node("n", 8), *queues, *gang("x", 1, "a", 4, "Inqueue")]
    assert "The group continues when other groups finish, or when the queue deserves more." in told("gang/x", *world)
    assert told.remedies("gang/x", *world) == []


# -- KAI ---------------------------------------------------------------------------------------------------------


def kai_queue(name: str, parent: str = "", quota: float = -1, limit: float = -1, weight: float | None = None) -> Object:
    share = {"quota": quota, "limit": limit} | ({} if weight is None else {"overQuotaWeight": weight})
    endless = {"quota": -1, "limit": -1}
    spec = {"parentQueue": parent, "resources": {"gpu": share, "cpu": endless, "memory": endless}}
    return thing("scheduling.run.ai/v2", "Queue", name, spec=spec)


def project(**own: Any) -> list[Object]:
    return living(node("n", 8), kai_queue("dept", quota=8), kai_queue("proj", "dept", **own))


@pytest.mark.parametrize("weight", [None, 0])
def test_a_project_without_weight_goes_beyond_its_quota_where_there_is_room(told: Told, weight: float | None) -> None:
    """The weight decides who yields, and not who starts."""
    text = told("pod/k", *project(quota=1, weight=weight), pod("t/k", 2, labels={KAI_QUEUE: "proj"}))
    assert "pods n: t/k" in text


def test_a_project_at_its_limit_is_told_the_limit_that_suffices(told: Told) -> None:
    held = pod("t/a", 2, on="n", labels={KAI_QUEUE: "proj"}, status={"phase": "Running"})
    world = [*project(quota=1, limit=2, weight=1), held, pod("t/k", 2, labels={KAI_QUEUE: "proj"})]
    assert [each["words"] for each in told.remedies("pod/k", *world)] == [
        "Raise spec.resources.gpu.limit of queue proj from 2 to 4."
    ]
    alone = [*project(quota=1, limit=2, weight=1), pod("t/k", 4, labels={KAI_QUEUE: "proj"})]
    assert "The workload alone requests more than the limit: waiting does not help." in told("pod/k", *alone)


def test_a_waiting_pod_that_fits_on_no_node_takes_no_quota_from_others(told: Told) -> None:
    huge = pod("t/a-huge", 9, labels={KAI_QUEUE: "proj"}, schedulerName="kai-scheduler")
    late = pod("t/late", 4, labels={KAI_QUEUE: "proj"}, schedulerName="kai-scheduler")
    world = [*project(quota=8, limit=10), *living(huge, late)]
    assert "OverLimit" not in told("pod/late", *world)
    assert "waits: NoDeviceFits" in told("pod/a-huge", *world)


def test_only_pods_on_nodes_are_called_allocated_where_they_alone_explain_the_limit(told: Told) -> None:
    first = pod("t/a-first", 1, labels={KAI_QUEUE: "proj"}, schedulerName="kai-scheduler")
    late = pod("t/late", 4, labels={KAI_QUEUE: "proj"}, schedulerName="kai-scheduler")
    world = [*project(quota=2, limit=3), *living(first, late)]
    assert "Limit is 3 GPUs, currently 0 GPUs allocated and workload requested 4 GPUs" in told("pod/late", *world)
    (remedy,) = told.remedies("pod/late", *world)
    assert "from 3 to 5" in remedy["words"]


def test_work_of_a_queue_above_its_share_yields_and_is_named(told: Told) -> None:
    world = living(node("n", 8), kai_queue("a", quota=4, weight=1), kai_queue("b", quota=4, weight=1))
    taker = pod("t/taker", 8, on="n", labels={KAI_QUEUE: "b"}, status={"phase": "Running"})
    text = told("pod/k", *world, taker, pod("t/k", 4, labels={KAI_QUEUE: "a"}))
    assert "n: t/k preempted t/taker" in text


def test_a_kai_group_whose_queue_does_not_exist_is_told_the_nearest(told: Told) -> None:
    members = [pod(f"t/g-{at}", 1, annotations={"pod-group-name": "g"}) for at in range(2)]
    world = [*project(quota=4), *living(kai_group("t/g", 2, queue="prj")), *members]
    text = told("gang/g", *world)
    assert "QueueDoesNotExist" in text
    assert 'Did you mean "proj"?' in text
    assert "In podgroup t/g, spec.queue: proj instead of prj." in text
    assert "kubectl patch podgroups.scheduling.run.ai g -n t --type=merge" in text


def test_a_kai_pod_whose_queue_does_not_exist_is_told_the_label(told: Told) -> None:
    text = told("pod/k", *project(quota=4), pod("t/k", 1, labels={KAI_QUEUE: "prj"}))
    assert f'In pod t/k, metadata.labels["{KAI_QUEUE}"]: proj instead of prj.' in text
    assert f"kubectl label pod k -n t {KAI_QUEUE}=proj --overwrite" in text
    other = told("pod/k", *project(quota=4), pod("t/k", 1, labels={KAI_QUEUE: "zzzzz"}))
    assert "Those that exist: proj." in other
    assert "kubectl" not in other


def test_a_kai_queue_with_child_queues_names_these(told: Told) -> None:
    text = told("pod/k", *project(quota=4), pod("t/k", 1, labels={KAI_QUEUE: "dept"}))
    assert "Its child queues: proj." in text
    assert "proj instead of dept." in text
