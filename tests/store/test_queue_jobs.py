"""The workloads that Kueue would make of jobs and of pods, and what is written beside a job."""

from __future__ import annotations

import pytest

from build.manifests import job, pod, priority_class, replicas, thing
from build.queue_manifests import (
    IN_GROUP,
    IN_Q,
    KUEUE,
    TOTAL,
    cluster_queue,
    configuration,
    flavor,
    local_queue,
    only,
    owned_by,
    queues,
    sizes,
    workload,
    workloads,
    world,
)
from shoal.units.errors import UserError

# -- jobs ----------------------------------------------------------------------------------------------------


def test_a_job_with_a_queue_is_a_workload_whether_it_is_suspended_or_not() -> None:
    for suspend in (True, False):
        facts = only(job("t/train", 4, 1, labels=IN_Q, suspend=suspend))
        assert (facts.key, facts.queue, sizes(facts)) == ("t/job-train", "t/q", {"main": 4})
        assert facts.pod_sets[0].requests == {"nvidia.com/gpu": 1}


def test_a_job_without_a_queue_is_none_of_our_business() -> None:
    assert workloads(job("t/free", 1)) == {}


def test_without_queues_a_name_of_a_queue_means_nothing() -> None:
    found = world(job("t/train", 4, labels=IN_Q), flavor())
    assert found.is_empty
    assert found.warnings == []


def test_no_more_pods_are_counted_than_are_to_be_completed() -> None:
    assert sizes(only(job("t/train", 4, labels=IN_Q, completions=3))) == {"main": 3}


def test_a_job_may_be_started_smaller() -> None:
    least = {"kueue.x-k8s.io/job-min-parallelism": "2"}
    (pod_set_found,) = only(job("t/train", 4, labels=IN_Q, annotations=least)).pod_sets
    assert pod_set_found.min_count == 2


def test_a_job_that_ended_asks_for_nothing() -> None:
    done = job("t/train", 4, labels=IN_Q) | {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    assert workloads(done) == {}


def test_a_job_that_runs_without_an_admission_is_left_alone_and_named() -> None:
    runs = pod("t/train-x", on="n", meta=owned_by("Job", "train"))
    found = world(*queues(), job("t/train", 1, labels=IN_Q), runs)
    assert found.workloads == []
    (line,) = found.warnings
    assert line.startswith("w.json: document 1 (Job t/train): runs without an admission")


def test_a_suspended_job_waits_though_its_last_pods_are_still_there() -> None:
    ends = pod("t/train-x", on="n", meta=owned_by("Job", "train"))
    assert only(job("t/train", 1, labels=IN_Q, suspend=True), ends).key == "t/job-train"


def test_a_job_without_a_label_goes_to_the_queue_named_default() -> None:
    found = world(flavor(), cluster_queue(), local_queue("t/default"), job("t/train", 1), job("u/train", 1))
    assert [(facts.key, facts.queue) for facts in found.workloads] == [("t/job-train", "t/default")]


def test_jobs_of_namespaces_that_are_not_managed_are_left_alone() -> None:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "u"}}
    written = configuration(managedJobsNamespaceSelector=selector)
    assert workloads(written, job("t/train", 1, labels=IN_Q)) == {}
    system = [local_queue("kube-system/q"), job("kube-system/train", 1, labels=IN_Q)]
    assert workloads(*system) == {}


def test_where_every_job_is_queued_one_without_a_queue_is_held_back() -> None:
    facts = only(configuration(manageJobsWithoutQueueName=True), job("t/free", 1))
    assert (facts.key, facts.queue) == ("t/job-free", "")


def test_the_jobs_of_a_job_set_are_not_counted_twice() -> None:
    inner = {"replicas": 2, "name": "w", "template": {"spec": job("t/x", 3)["spec"]}}
    job_set = thing("jobset.x-k8s.io/v1alpha2", "JobSet", "t/set", spec={"replicatedJobs": [inner]})
    job_set["metadata"]["labels"] = IN_Q
    child = job("t/set-w-0", 3, labels=IN_Q)
    child["metadata"] |= owned_by("JobSet", "set")
    facts = only(job_set, child)
    assert (facts.key, sizes(facts)) == ("t/jobset-set", {"w": 6})


def test_whoever_leads_a_training_job_comes_first() -> None:
    template = {"spec": pod("t/p", 1)["spec"]}
    specs = {"Worker": {"replicas": 3, "template": template}, "Master": {"template": template}}
    training = thing("kubeflow.org/v1", "PyTorchJob", "t/net", spec={"pytorchReplicaSpecs": specs})
    training["metadata"]["labels"] = IN_Q
    facts = only(training)
    assert (facts.key, list(sizes(facts).items())) == ("t/pytorchjob-net", [("master", 1), ("worker", 3)])


def test_a_training_job_written_wrong_is_told_by_its_field() -> None:
    specs = {"Worker": {"replicas": "many"}}
    training = thing("kubeflow.org/v1", "PyTorchJob", "t/net", spec={"pytorchReplicaSpecs": specs})
    with pytest.raises(UserError, match=r"PyTorchJob t/net\): spec.pytorchReplicaSpecs.Worker.replicas: expected"):
        world(*queues(), training)


# -- what is written beside a job ----------------------------------------------------------------------------


def test_priority_is_the_workloads_class_before_the_pods() -> None:
    classes = [thing(KUEUE, "WorkloadPriorityClass", "high", value=100), priority_class("low", 5)]
    labelled = job("t/a", 1, labels={**IN_Q, "kueue.x-k8s.io/priority-class": "high"})
    plain = job("t/b", 1, labels=IN_Q)
    for each in (labelled, plain):
        each["spec"]["template"]["spec"]["priorityClassName"] = "low"
    found = workloads(*classes, labelled, plain)
    assert {key: facts.priority for key, facts in found.items()} == {"t/job-a": 100, "t/job-b": 5}


def test_a_class_that_is_not_there_is_the_writers_mistake() -> None:
    classes = [thing(KUEUE, "WorkloadPriorityClass", "high", value=100)]
    with pytest.raises(
        UserError, match=r"Job t/a\): metadata.labels.*WorkloadPriorityClass .* not found.*did you mean high"
    ):
        workloads(*classes, job("t/a", 1, labels={**IN_Q, "kueue.x-k8s.io/priority-class": "hihg"}))


LENGTHS = {"2h": 7200.0, "90m": 5400.0, "3600": 3600.0, "1d": 86400.0, "1d12h": 129600.0, "1h30m5s": 5405.0}


@pytest.mark.parametrize(("text", "length_s"), LENGTHS.items())
def test_how_long_it_is_expected_to_run(text: str, length_s: float) -> None:
    said = {"shoal.dev/expected-duration": text}
    assert only(job("t/a", 1, labels=IN_Q, annotations=said)).duration_s == length_s
    assert only(job("t/a", 1, labels=IN_Q, template={"annotations": said})).duration_s == length_s


@pytest.mark.parametrize("text", ["soon", "0", "-1h", "", "1d-2h", "9" * 40])
def test_a_length_that_is_none_is_told_by_its_field(text: str) -> None:
    said = {"shoal.dev/expected-duration": text}
    with pytest.raises(UserError, match=r"Job t/a\): metadata.annotations.*expected-duration"):
        workloads(job("t/a", 1, labels=IN_Q, annotations=said))


def test_nobody_is_expected_to_run_beyond_its_own_deadline() -> None:
    said = {"shoal.dev/expected-duration": "2h"}
    assert only(job("t/a", 1, labels=IN_Q, annotations=said, activeDeadlineSeconds=600)).duration_s == 600.0
    assert only(workload()).duration_s is None


def test_how_long_it_may_run_is_read_with_what_of_it_is_used_up() -> None:
    facts = only(workload(status={"accumulatedPastExecutionTimeSeconds": 45}, maximumExecutionTimeSeconds=60))
    assert (facts.longest_s, facts.ran_before_s, facts.left_s, facts.duration_s) == (60.0, 45.0, 15.0, None)
    for label, longest_s in (("60", 60.0), ("0", None)):
        labels = {**IN_Q, "kueue.x-k8s.io/max-exec-time-seconds": label}
        made = only(job("t/a", 1, labels=labels, activeDeadlineSeconds=600))
        assert (made.longest_s, made.duration_s) == (longest_s, 600.0)


def test_whoever_has_to_agree_first_is_named_on_the_job() -> None:
    gates = {"kueue.x-k8s.io/admission-gated-by": "acme/budget, acme/legal"}
    assert only(job("t/a", 1, labels=IN_Q, annotations=gates)).closed_gates == ("acme/budget", "acme/legal")


# -- pods ----------------------------------------------------------------------------------------------------


def test_a_pod_with_a_queue_is_its_own_workload() -> None:
    found = world(*queues(), pod("t/a", labels=IN_Q, limits={"cpu": 1}))
    assert [facts.key for facts in found.workloads] == ["t/pod-a"]
    assert found.pods == {"t/pod-a": ("t/a",)}


def test_every_pod_of_a_deployment_with_a_queue_is_a_workload() -> None:
    found = world(*queues(), replicas("Deployment", "t/web", 2, labels=IN_Q))
    assert [(facts.key, facts.queue) for facts in found.workloads] == [("t/pod-web-0", "t/q"), ("t/pod-web-1", "t/q")]
    assert found.pods == {"t/pod-web-0": ("t/web-0",), "t/pod-web-1": ("t/web-1",)}


def test_a_stateful_set_with_a_queue_is_one_workload() -> None:
    found = world(*queues(), replicas("StatefulSet", "t/db", 3, labels=IN_Q))
    assert [(facts.key, sizes(facts)) for facts in found.workloads] == [("t/statefulset-db", {"main": 3})]
    assert found.pods == {"t/statefulset-db": ("t/db-0", "t/db-1", "t/db-2")}


def test_the_queue_of_a_replica_set_is_not_handed_on() -> None:
    assert workloads(replicas("ReplicaSet", "t/web", 2, labels=IN_Q)) == {}


def test_pods_of_a_group_are_one_workload_by_shape() -> None:
    many = {TOTAL: "3"}
    members = [pod(f"t/{name}", labels=IN_GROUP, annotations=many, limits={"cpu": 1}) for name in ("b", "c")]
    leader = pod("t/a", labels=IN_GROUP, annotations=many, limits={"cpu": 4})
    found = world(*queues(), *members, leader)
    (facts,) = found.workloads
    assert (facts.key, sizes(facts)) == ("t/g", {"main-0": 1, "main-1": 2})
    assert found.pods == {"t/g": ("t/a", "t/b", "t/c")}


def test_a_group_is_held_back_until_all_are_there_unless_it_is_admitted_fast() -> None:
    early = pod("t/a", labels=IN_GROUP, annotations={TOTAL: "3"})
    found = world(*queues(), early)
    assert found.workloads == []
    assert "pod group t/g waits for 3 pods, and only 1 exist: held back" in found.warnings[0]
    fast = pod("t/a", labels=IN_GROUP, annotations={TOTAL: "3", "kueue.x-k8s.io/pod-group-fast-admission": "true"})
    assert sizes(only(fast)) == {"main": 3}


def test_a_group_that_does_not_say_how_many_it_is_waits_and_is_told() -> None:
    found = world(*queues(), pod("t/a", labels=IN_GROUP))
    assert found.workloads == []
    assert TOTAL in found.warnings[0]


def test_pods_beyond_the_groups_size_are_not_of_it() -> None:
    late = {"creationTimestamp": "2026-01-02T00:00:00Z"}
    first = [pod(f"t/{name}", labels=IN_GROUP, annotations={TOTAL: "2"}) for name in ("b", "c")]
    found = world(*queues(), pod("t/a", labels=IN_GROUP, annotations={TOTAL: "2"}, meta=late), *first)
    assert found.pods == {"t/g": ("t/b", "t/c")}
