"""What a name means to `shoal why`: kinds before a slash, namespaces, jobs and deployments with their pods."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from build.gpu_queues import gpu_job, gpu_queue, gpu_workload, gpus
from build.manifests import Object, as_file, job, node, pod, priority_class, replicas, thing, volcano_group
from build.queue_manifests import condition, flavor
from shoal.cli.main import main

GROUP = "scheduling.k8s.io/group-name"
CaptureFixture = pytest.CaptureFixture[str]
PENDING = {"phase": "Pending"}


class Why:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys

    def told(self, name: str, *objects: Object, options: tuple[str, ...] = ()) -> str:
        assert main(["why", name, "-f", as_file(self._folder, *objects), *options]) == 0
        return " ".join(self._capsys.readouterr().out.split())

    def refused(self, name: str, *objects: Object, options: tuple[str, ...] = ()) -> str:
        assert main(["why", name, "-f", as_file(self._folder, *objects), *options]) == 2
        return self._capsys.readouterr().err


@pytest.fixture
def why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Why:
    return Why(tmp_path, capsys)


@pytest.mark.parametrize("name", ["pod/a", "pods/a", "po/a", "Pod/t/a", "t/a", "a"])
def test_a_pod_goes_by_the_words_that_kubectl_takes(name: str, why: Why) -> None:
    assert why.told(name, node("n", 4), pod("t/a", 2)).startswith("t/a runs on n")


@pytest.mark.parametrize("name", ["gang/g", "podgroup/g", "pg/t/g", "podgroups.scheduling.volcano.sh/g", "g"])
def test_a_gang_too(name: str, why: Why) -> None:
    world = [node("n", 4), volcano_group("t/g", 2), *(pod(f"t/g-{n}", 3, annotations={GROUP: "g"}) for n in range(2))]
    assert why.told(name, *world).startswith("gang t/g waits: GangDoesNotFit")


def queues() -> list[Object]:
    return [node("n", 8), flavor(), *gpu_queue("t", gpus(8))]


@pytest.mark.parametrize("name", ["workload/job-late", "wl/t/job-late", "job/late", "jobs.batch/late"])
def test_a_job_in_a_queue_is_told_of_by_its_workload(name: str, why: Why) -> None:
    told = why.told(name, *queues(), gpu_workload("t/held", 1, 8, "f"), gpu_job("t/late", 2, 4))
    assert "waits: WaitingForQuota queue t/q asks 2 x main" in told


def test_a_workload_that_has_finished_says_why(why: Why) -> None:
    done = gpu_workload("t/done", 1, 8, "f")
    ended = {**condition("Finished", reason="JobFinished"), "message": "Job finished successfully"}
    done["status"]["conditions"].append(ended)
    assert why.told("wl/done", *queues(), done) == (
        "workload t/done has finished: JobFinished because Job finished successfully"
    )


def living_node() -> Object:
    """Only a cluster gives uids."""
    return {**node("n", 8), "metadata": {"name": "n", "uid": "1"}}


def test_a_workload_of_a_living_cluster_is_not_admitted_because_it_would_be(why: Why) -> None:
    world = [living_node(), flavor(), *gpu_queue("t", gpus(8))]
    told = why.told("job/j", *world, gpu_job("t/j", 1, 4))
    assert told.startswith("job t/j, queued as workload t/job-j, waits: by now it would be admitted")
    assert "status it has not been considered yet; are the queue controllers running?" in told
    assert "would hold 1 x main of f in t" in told
    said = {**condition("QuotaReserved", "False", reason="Pending"), "message": "couldn't assign flavors"}
    waiting = gpu_workload("t/w", 1, 4) | {"status": {"conditions": [said]}}
    assert "status QuotaReserved False: couldn't assign flavors" in why.told("wl/w", *world, waiting)


def test_a_pod_of_a_living_cluster_that_has_to_preempt_another_one_does_not_fit_by_now(why: Why) -> None:
    low, high = pod("t/low", 8, "n", status={"phase": "Running"}), pod("t/high", 8, priorityClassName="high")
    high["status"] = {"phase": "Pending"}
    told = why.told("t/high", living_node(), priority_class("high", 100), low, high)
    assert told.startswith(
        "t/high waits: it fits on n, GPU 0, 1, 2, 3, 4, 5, 6, 7, once pods of lower priority are preempted"
    )
    assert "has to preempt t/low" in told
    assert "would take it" not in told


def test_the_pods_of_an_admitted_workload_are_not_proposed_to_be_deleted(why: Why) -> None:
    admitted = {"annotations": {"kueue.x-k8s.io/workload": "w"}}
    waiting = pod("t/p", 8, status={"phase": "Pending"})
    plain = pod("t/held", 8, "n", status={"phase": "Running"})
    assert "Free 8 GPUs on n (t/held)" in why.told("t/p", living_node(), plain, waiting)
    queued = pod("t/held", 8, "n", status={"phase": "Running"}, meta=admitted)
    assert "t/held" not in why.told("t/p", living_node(), queued, waiting)


def test_an_admitted_workload_of_a_living_cluster_does_not_run_before_its_pods_exist(why: Why) -> None:
    held = gpu_workload("t/w", 2, 4, "f")
    held["status"]["conditions"] = [condition("QuotaReserved"), condition("Admitted")]
    world = [living_node(), flavor(), *gpu_queue("t", gpus(8)), held]
    told = why.told("wl/w", *world)
    assert told.startswith(
        "workload t/w is admitted and waits: its controller has not created 2 pods yet; it would run on"
    )
    assert "pods n: 2 pods not created yet" in told
    assert "t/w-main" not in told
    assert why.told("gang/t/w", *world).startswith("gang t/w waits: its controller has not created 2 pods yet")


def test_a_pod_that_does_not_exist_yet_is_not_named_on_a_cluster(why: Why) -> None:
    """A Job has no pods in the moment between two of them."""
    held = gpu_workload("t/job-j", 1, 4, "f")
    held["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "1", "controller": True}
    ]
    held["status"]["conditions"] = [condition("QuotaReserved"), condition("Admitted")]
    started = gpu_job("t/j", 1, 4)
    started["spec"]["suspend"] = False
    told = why.told("job/j", living_node(), flavor(), *gpu_queue("t", gpus(8)), started, held)
    assert "is admitted and waits: its controller has not created 1 pod yet" in told
    assert "1 pod not created yet" in told
    assert "t/j-0" not in told
    told = why.told("job/k", living_node(), pod("t/x", 8, "n", status={"phase": "Running"}), job("t/k", 2, 8))
    assert told.startswith("job t/k: waits: NoDeviceFits pods 2 wait those that wait: 2 pods not created yet")
    assert "t/k-" not in told


def test_a_refused_pod_names_the_field_to_set_and_its_object(why: Why) -> None:
    quota = thing("v1", "ResourceQuota", "t/q", spec={"hard": {"requests.cpu": "4", "memory": "1Gi"}})
    silent = job("t/j", 1, 1)
    told = why.told("job/j", living_node(), quota, silent)
    assert told.startswith("job t/j: waits: its pods are not created (failed quota: q: must specify ")
    containers = "spec.template.spec.containers[0].resources.requests"
    assert f"In job t/j, set {containers}.memory, {containers}.cpu: ResourceQuota t/q requires them." in told
    assert "delete it and create it again. Or set defaults in a LimitRange of namespace t." in told
    assert "j-0" not in told
    of_pod = why.told("pod/a", node("n", 8), quota, pod("t/a", 1))
    assert "In pod t/a, set spec.containers[0].resources.requests.memory" in of_pod
    made = replicas("ReplicaSet", "t/web-1", 1)
    made["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1", "controller": True}
    ]
    of_web = why.told("deploy/web", node("n", 8), quota, replicas("Deployment", "t/web", 1), made)
    assert "In deployment t/web, set spec.template.spec.containers[0].resources.requests.memory" in of_web


def test_a_workload_that_is_admitted_and_preempted_in_one_round_is_explained(
    why: Why, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = [*queues(), priority_class("high", 100), gpu_workload("t/held", 1, 2, "f")]
    world.append(pod("t/high", 8, priorityClassName="high"))
    assert why.told("t/high", *world).startswith("t/high ")
    assert main(["decide", "--json", "-f", as_file(tmp_path, *world)]) == 0
    assert "t/held-main-0" in capsys.readouterr().out


def test_a_namespace_that_is_named_is_searched_first(why: Why) -> None:
    world = [node("n", 4), pod("t/a", 2), pod("u/a", 2)]
    assert why.told("a", *world, options=("-n", "u")).startswith("u/a runs")
    assert why.told("pod/a", *world, options=("-n", "t")).startswith("t/a runs")


def test_a_name_of_another_namespace_is_not_found_in_the_one_that_is_named(why: Why) -> None:
    world = [node("n", 4), pod("t/a", 2), replicas("Deployment", "t/web", 1)]
    assert why.refused("deploy/web", *world, options=("-n", "u")) == (
        'shoal: deployment "web" not found in namespace u; deployment/web exists in namespace t: use -n t\n'
    )
    assert "a exists in namespace t: use -n t" in why.refused("a", *world, options=("-n", "u"))
    assert why.told("deploy/web", *world, options=("-n", "t")).startswith("deployment t/web")
    assert why.told("deploy/web", *world, options=("-n", "u", "-A")).startswith("deployment t/web")
    assert why.told("pod/t/a", *world, options=("-n", "u")).startswith("t/a runs")


def test_two_kinds_of_one_name_are_told_apart(why: Why) -> None:
    world = [node("n", 4), pod("t/a", 1), replicas("Deployment", "t/a", 1)]
    assert '"t/a" is a pod and a deployment; say pod/a or deployment/a' in why.refused("a", *world)
    assert why.told("pod/a", *world).startswith("t/a runs")


def test_a_kind_before_the_name_narrows_what_comes_near(why: Why) -> None:
    world = [node("n", 4), pod("t/train", 1), job("t/train-job", 1)]
    assert why.refused("job/trian-job", *world) == 'shoal: job "trian-job" not found; did you mean job/t/train-job?\n'


def owned(name: str, at: int, on: str, phase: str, gpus_asked: int = 1) -> Object:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": "u", "controller": True}
    return pod(f"t/{name}-{at}", gpus_asked, on, status={"phase": phase}, meta={"ownerReferences": [owner]})


def test_a_job_tells_how_its_pods_are_and_why_the_first_that_waits_does(why: Why) -> None:
    pods = [owned("j", 0, "n", "Running"), owned("j", 1, "n", "Succeeded"), owned("j", 2, "", "Pending", 8)]
    told = why.told("job/j", node("n", 4), job("t/j", 3, 1), *pods)
    assert told.startswith("job t/j: t/j-2 waits: NoDeviceFits pods 1 runs, 1 waits, 1 succeeded")
    assert "those that wait: t/j-2" in told


def test_a_job_whose_pods_all_run_says_where(why: Why) -> None:
    pods = [owned("j", at, "n", "Running") for at in range(2)]
    assert why.told("job/j", node("n", 4), job("t/j", 2, 1), *pods) == "job t/j: pods: 2 run pods n: j-0, j-1"


def test_a_job_without_pods_says_what_became_of_it(why: Why) -> None:
    ended = job("t/j", 1) | {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    assert why.told("job/j", node("n"), ended) == "job t/j: has ended: Complete"
    assert why.told("job/j", node("n"), job("t/j", 1, suspend=True)).startswith(
        "job t/j: is suspended and has no pods would help"
    )
    none = replicas("Deployment", "t/d", 0)
    assert why.told("deploy/d", node("n"), none) == "deployment t/d: has no pods: it asks for 0 replicas"


def test_a_pod_that_has_ended_says_how(why: Why) -> None:
    failed = pod("t/a", 1, "n", status={"phase": "Failed", "reason": "Evicted"})
    assert why.told("t/a", node("n", 4), failed) == "pod t/a has ended: Failed because Evicted ran on n"


def test_who_is_ending_still_holds_its_room(why: Why) -> None:
    meta = {"deletionTimestamp": "2026-01-01T10:20:30Z"}
    ending = pod("t/slow", 4, "n", status={"phase": "Running"}, meta=meta)
    told = why.told("t/a", node("n", 4), ending, pod("t/a", 2, status=PENDING))
    assert told.startswith("t/a waits for capacity on n, GPU 0, 1: other pods are ending there")
    assert "ending t/slow, until 10:20:30 UTC at the latest" in told


def test_a_pod_of_a_living_cluster_has_not_run_because_it_would_fit(why: Why) -> None:
    waiting = pod("t/a", 2, status=PENDING)
    told = why.told("t/a", node("n", 4), waiting)
    assert told.startswith("t/a waits: by now it fits, on n, GPU 0, 1")
    assert "default-scheduler has said nothing of it yet; does it run?" in told


def test_a_pod_that_ends_says_so(why: Why) -> None:
    ending = pod("t/a", 2, "n", status={"phase": "Running"}, meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert why.told("t/a", node("n", 4), ending) == "t/a is ending on n"


def lasting(name: str, length: str) -> Object:
    status = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
    annotations = {"shoal.dev/expected-duration": length}
    created = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    return pod(name, 2, "n", annotations=annotations, status=status, meta=created)


def test_the_earliest_start_is_when_enough_of_those_that_run_have_ended(why: Why) -> None:
    world = [node("n", 4), lasting("t/long", "5h"), lasting("t/short", "30m")]
    assert "earliest in about 30 min (2026-01-01 00:30 UTC), when t/short has ended" in why.told(
        "t/new", *world, pod("t/new", 2)
    )
    assert "earliest in about 5 h (2026-01-01 05:00 UTC), when t/long has ended" in why.told(
        "t/new", *world, pod("t/new", 4)
    )
    assert "earliest" not in why.told("t/new", *world, pod("t/new", 8))


def test_the_earliest_start_of_a_gang_is_when_all_of_it_fits(why: Why) -> None:
    world = [node("n", 4), lasting("t/long", "5h"), lasting("t/short", "30m"), volcano_group("t/g", 2)]
    gang = [pod(f"t/g-{at}", 2, annotations={GROUP: "g"}) for at in range(2)]
    assert "earliest in about 5 h" in why.told("gang/g", *world, *gang)


def test_the_earliest_start_of_a_workload_is_when_the_queue_has_let_it_in(why: Why) -> None:
    held = gpu_workload("t/held", 1, 8, "f")
    held["metadata"]["annotations"] = {"shoal.dev/expected-duration": "2h"}
    told = why.told("wl/job-late", *queues(), held, gpu_job("t/late", 1, 8))
    assert "earliest in about 2 h (2026-01-01 02:00 UTC), if those before it take as long as expected" in told


def test_a_document_has_every_chapter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = as_file(tmp_path, node("n", 4), pod("t/a", 8))
    assert main(["why", "a", "-f", world, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["name"], found["outcome"], found["code"]) == ("t/a", "waits", "NoDeviceFits")
    assert [chapter["heading"] for chapter in found["chapters"]][:2] == ["asks", "turn"]
    assert found["chapters"][0]["lines"] == ["8 GPUs"]


def test_a_format_that_does_not_exist_is_refused_before_any_work(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "a", "-o", "jsn"]) == 2
    assert '--output: format "jsn" not found; did you mean json?' in capsys.readouterr().err


def test_a_training_job_written_by_hand_is_told_of_by_the_pods_that_its_operator_would_make(why: Why) -> None:
    role = {"replicas": 2, "template": {"spec": pod("x", 4)["spec"]}}
    torch = thing("kubeflow.org/v1", "PyTorchJob", "t/llm", spec={"pytorchReplicaSpecs": {"Worker": role}})
    assert "runs on n" in why.told("pytorchjob/llm", node("n", 8), torch)
    torch["metadata"]["annotations"] = {"shoal.dev/gang": "true"}
    assert why.told("pytorchjob/llm", node("n", 8), torch).startswith("pytorchjob t/llm, a gang, runs with 2 pods")
    assert "GangDoesNotFit" in why.told("pytorchjob/llm", node("n", 4), torch)


TAINT = {"key": "dedicated", "value": "research", "effect": "NoSchedule"}


def test_a_taint_is_told_once_with_its_remedy(why: Why) -> None:
    """Shoal's scheduler writes the nearest node and the toleration into the condition of the pod as well."""
    message = (
        "0/1 nodes are available: 1 node(s) had untolerated taint(s). no new claims to deallocate, preemption: 0/1 "
        "nodes are available: 1 Preemption is not helpful for scheduling. No node may take this pod, however empty: "
        "its rules about nodes, or their taints, leave none. Tolerate dedicated=research:NoSchedule (1 node)."
    )
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    waiting = pod("t/a", 1, status={**PENDING, "conditions": [said]})
    told = why.told("t/a", node("n", 4, spec={"taints": [TAINT]}), waiting)
    assert "Preemption is not helpful for scheduling. turn" in told
    assert told.count("Tolerate dedicated=research:NoSchedule") == 1
    assert told.count("however empty") == 1
    members = [pod(f"t/g-{at}", 1, annotations={GROUP: "g"}) for at in range(2)]
    gang = why.told("gang/g", node("n", 4, spec={"taints": [TAINT]}), volcano_group("t/g", 2), *members)
    assert "short the gang needs 2 pods at once. nodes" in gang
    assert gang.count("untolerated taint") == 1


def test_what_a_scheduler_says_of_its_own_is_kept(why: Why) -> None:
    said = {"type": "PodScheduled", "status": "False", "reason": "X", "message": "It is late. The queue is long."}
    waiting = pod("t/a", 8, status={**PENDING, "conditions": [said]})
    assert "default-scheduler says: It is late. The queue is long." in why.told("t/a", node("n", 4), waiting)


@pytest.mark.parametrize("words", [("pod", "a"), ("po", "t/a"), ("pod/a",)], ids=" ".join)
def test_type_and_name_may_be_two_words(words: tuple[str, ...], tmp_path: Path, capsys: CaptureFixture) -> None:
    world = as_file(tmp_path, node("n", 4), pod("t/a", 2))
    assert main(["why", *words, "-f", world]) == 0
    assert capsys.readouterr().out.startswith("t/a runs on n")


def test_one_object_is_explained_at_a_time(tmp_path: Path, capsys: CaptureFixture) -> None:
    world = as_file(tmp_path, node("n", 4), pod("t/a", 2))
    for words in (("pod", "a", "b"), ("pod/a", "pod/b")):
        assert main(["why", *words, "-f", world]) == 2
        assert "one object is explained at a time: TYPE/NAME, or TYPE NAME" in capsys.readouterr().err


def test_a_misspelled_type_gets_the_nearest_one(why: Why, tmp_path: Path, capsys: CaptureFixture) -> None:
    world = [node("n", 4), pod("t/a", 2), pod("u/b", 1)]
    assert why.refused("pdo/a", *world) == 'shoal: type "pdo" not found; did you mean pod/a?\n'
    assert why.refused("pods/c", *world).startswith('shoal: pod "c" not found')
    assert "type" not in why.refused("t/b", *world)
    assert main(["why", "jbo", "a", "-f", as_file(tmp_path, *world, job("t/a", 1, 1))]) == 2
    assert 'type "jbo" not found; did you mean job/a?' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("svc/kubernetes", 'type "svc" cannot be explained; shoal why explains pods, gangs, workloads and what'),
        ("node/n", 'type "node" cannot be explained; see shoal get nodes n'),
        ("cronjob/nightly", 'type "cronjob" cannot be explained; its Jobs can: shoal why job/NAME'),
        ("clusterqueue/cq", 'type "clusterqueue" cannot be explained; see shoal queue cq'),
    ],
)
def test_a_type_that_cannot_be_explained_is_named(why: Why, name: str, message: str) -> None:
    assert why.refused(name, node("n", 4), pod("t/a", 2)).startswith(f"shoal: {message}")


def test_a_namespace_with_the_name_of_a_type_is_a_namespace(why: Why) -> None:
    assert why.refused("node/b", node("n", 4), pod("node/a", 2)).startswith('shoal: pod or gang "node/b" not found')


def test_a_gang_without_pods_is_no_pod(why: Why) -> None:
    queue = thing("scheduling.volcano.sh/v1beta1", "Queue", "q", spec={"capability": {"nvidia.com/gpu": 4}})
    world = [node("n", 8), queue, volcano_group("t/g", 2, queue="q", minResources={"nvidia.com/gpu": 8}), pod("t/a", 1)]
    assert why.refused("pod/g", *world).endswith('shoal: pod "g" not found; 1 pod exists\n')
    assert why.told("t/g", *world).startswith("gang t/g")


def test_a_type_that_the_cluster_has_no_object_of_is_a_type_all_the_same(why: Why) -> None:
    assert why.refused("job/train", node("n", 8)) == 'shoal: job "train" not found; 0 jobs exist\n'
    assert why.refused("deploy/a", node("n", 8)) == 'shoal: deployment "a" not found; 0 deployments exist\n'


def test_a_misspelled_type_is_named_also_where_no_object_has_the_name(why: Why) -> None:
    found = why.refused("pdo/x", node("n", 8), pod("t/a", 1))
    assert found == 'shoal: "pdo" is no type, and no namespace with pods; did you mean pod?\n'
    found = why.refused("team-x/zebra", node("n", 8), pod("t/a", 1))
    assert found.startswith('shoal: "team-x" is no type, and no namespace with pods; ')
    assert "did you mean" not in found
    assert why.refused("tt/a", node("n", 8), pod("t/a", 1)).endswith("did you mean t/a?\n")


def test_a_suspended_job_that_no_queue_holds_is_resumed_where_its_pods_fit(why: Why) -> None:
    waits = job("t/j", 2, 4, suspend=True)
    fact = "spec.suspend is true, and the job has no label kueue.x-k8s.io/queue-name: no queue resumes it."
    assert f"would help {fact} Set spec.suspend of job t/j to false." in why.told("job/j", node("n", 8), waits)
    told = why.told("job/j", node("n", 4), waits)
    assert fact in told
    assert "Set spec.suspend" not in told
    ended = job("t/j", 2, 4, suspend=True, labels={"kueue.x-k8s.io/queue-name": "q"})
    assert "resumes it" not in why.told("job/j", node("n", 8), ended)
