"""What a folder of queues is told that a cluster would be silent about, naming object and field."""

from __future__ import annotations

from typing import Any

import pytest

from build.manifests import Object, job, node, pod, thing, topology
from build.queue_manifests import (
    IN_Q,
    KUEUE,
    QUEUE,
    admission,
    cluster_queue,
    condition,
    configuration,
    flavor,
    local_queue,
    queues,
    workload,
    workloads,
    world,
)
from shoal.units.errors import UserError

OLD = "kueue.x-k8s.io/v1beta1"


def cohort(name: str, parent: str = "", **spec: Any) -> Object:
    return thing(KUEUE, "Cohort", name, spec={**({"parentName": parent} if parent else {}), **spec})


def document(number: int, obj: str, path: str) -> str:
    return f"w.json: document 1 ({obj}): {path}: "


def warnings(*objects: Object) -> list[str]:
    return world(*objects).warnings


def test_a_sound_folder_is_told_nothing() -> None:
    assert warnings(*queues(), job("t/a", 1, labels=IN_Q), node("n", labels={"x": "y"})) == []


def test_a_circle_of_cohorts_is_told_once_and_whole() -> None:
    found = warnings(*queues(), cohort("a", "b"), cohort("b", "c"), cohort("c", "a"), cohort("d", "a"))
    assert found == [
        document(1, "Cohort a", "spec.parentName")
        + "cohorts in a circle, a -> b -> c -> a: their cluster queues admit no workloads"
    ]


def test_a_workload_that_holds_quota_of_a_queue_that_is_not_there_is_told() -> None:
    status = {"admission": {**admission(), "clusterQueue": "ghost"}, "conditions": [condition("QuotaReserved")]}
    told = [line for line in warnings(*queues(), workload(status=status)) if "ghost" in line]
    assert [line.partition("status.")[2] for line in told] == [
        "admission.clusterQueue: ClusterQueue ghost not found: its usage is not counted"
    ]
    done = {**status, "conditions": [condition("Finished")]}
    assert not any("ghost" in line for line in warnings(*queues(), workload(status=done)))


def test_cohorts_without_end_are_refused() -> None:
    with pytest.raises(UserError, match="more than 64 cohorts above one another"):
        world(*(cohort(f"c{level}", f"c{level + 1}") for level in range(70)))


def test_a_tree_of_cohorts_is_no_circle() -> None:
    assert warnings(*queues(), cohort("a", "root"), cohort("b", "root"), cohort("root", "nowhere")) == []


NAMESAKE = (
    "w.json: document 1 (Queue cq): has the name of a ClusterQueue and nothing to do with it: quota given in both is "
    "counted twice, and only the ClusterQueue's is kept here (w.json: document 1 (ClusterQueue cq))"
)

MISSING: dict[str, tuple[list[Object], str]] = {
    "a local queue to nowhere": (
        [*queues(), local_queue("t/lost", "gone")],
        document(1, "LocalQueue t/lost", "spec.clusterQueue")
        + "ClusterQueue gone not found: its workloads are held back; there are cq",
    ),
    "a flavor that is not there": (
        [cluster_queue(), local_queue()],
        document(1, "ClusterQueue cq", "spec.resourceGroups[0].flavors[0].name")
        + "ResourceFlavor f not found: the cluster queue admits no workloads",
    ),
    "a topology that is not there": (
        [flavor(nodeLabels={"a": "b"}, topologyName="dc"), cluster_queue(), local_queue()],
        document(1, "ResourceFlavor f", "spec.topologyName") + "Topology dc not found",
    ),
    "a check that is not there": (
        [
            flavor(),
            cluster_queue(admissionChecksStrategy={"admissionChecks": [{"name": "budget"}]}),
            local_queue(),
        ],
        document(1, "ClusterQueue cq", "spec.admissionChecksStrategy.admissionChecks[0].name")
        + "AdmissionCheck budget not found: the cluster queue admits no workloads",
    ),
    "a namespace that may not use the queue": (
        [flavor(), cluster_queue(namespaceSelector={"matchLabels": {"team": "x"}}), local_queue()],
        document(1, "LocalQueue t/q", "spec.clusterQueue")
        + "ClusterQueue cq admits nothing from namespace t, by its namespaceSelector",
    ),
    "a flavor without nodes": (
        [flavor(nodeLabels={"gpu": "h100"}), cluster_queue(), local_queue(), node("n")],
        document(1, "ResourceFlavor f", "spec.nodeLabels") + "no node has these labels",
    ),
    "a workload to a queue that is not there": (
        [*queues(), workload("t/w", queueName="lost")],
        document(1, "Workload t/w", "spec.queueName") + "no LocalQueue lost in t: held back; there are q",
    ),
    "a job that names the cluster queue": (
        [*queues(), job("t/a", 1, labels={QUEUE: "cq"})],
        document(1, "Job t/a", f"metadata.labels[{QUEUE}]")
        + 'no LocalQueue cq in t: held back; "cq" is a ClusterQueue, and q its LocalQueue here',
    ),
    "quota that is given twice": (
        [*queues(), thing("scheduling.volcano.sh/v1beta1", "Queue", "cq")],
        NAMESAKE,
    ),
    "a second configuration": (
        [*queues(), configuration(), configuration() | {"metadata": {"name": "other"}}],
        "w.json: document 1 (Configuration other): a second configuration is not read",
    ),
    "a namespace selector that lets nobody in": (
        [flavor(), cluster_queue(namespaceSelector=None), local_queue()],
        document(1, "ClusterQueue cq", "spec.namespaceSelector")
        + "is absent, so no namespace may use the queue and all of its workloads wait; write {} to let every namespace "
        "in",
    ),
}


@pytest.mark.parametrize(("objects", "line"), MISSING.values(), ids=MISSING)
def test_the_writer_is_told_of(objects: list[Object], line: str) -> None:
    assert warnings(*objects) == [line]


def test_a_topology_that_is_there_is_not_missed() -> None:
    there = topology(KUEUE, "dc", "rack")
    assert warnings(flavor(nodeLabels={"a": "b"}, topologyName="dc"), there, cluster_queue(), local_queue()) == []


def test_nodes_that_keep_everybody_off_are_told_unless_the_flavor_knows() -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    tainted = node("n", labels={"gpu": "h100"}, spec={"taints": [taint]})
    rest = [cluster_queue(), local_queue(), tainted]
    labels = {"gpu": "h100"}
    (line,) = warnings(flavor(nodeLabels=labels), *rest)
    assert line.startswith("w.json: document 1 (ResourceFlavor f): spec.tolerations: all of its nodes are tainted")
    assert warnings(flavor(nodeLabels=labels, tolerations=[{"key": "gpu", "operator": "Exists"}]), *rest) == []
    assert warnings(flavor(nodeLabels=labels, nodeTaints=[taint]), *rest) == []
    assert warnings(flavor(nodeLabels=labels), *rest, node("free", labels=labels)) == []


def test_a_queue_that_many_miss_is_told_once() -> None:
    found = warnings(*queues(), *(job(f"t/j{number}", 1, labels={QUEUE: "lost"}) for number in range(4)))
    assert len(found) == 1
    assert found[0].endswith("; so are 3 more")


# -- a queue's name in the wrong place -----------------------------------------------------------------------


def test_an_annotation_that_names_a_queue_is_taken_for_a_label() -> None:
    written = job("t/a", 1, annotations={QUEUE: "q"})
    assert [facts.queue for facts in workloads(written).values()] == ["t/q"]
    assert warnings(*queues(), written) == [
        document(1, "Job t/a", f"metadata.annotations[{QUEUE}]")
        + '"q" is an annotation, where no cluster looks for it; taken for a label of the object itself'
    ]


def test_a_template_that_names_a_queue_is_taken_for_its_job() -> None:
    written = job("t/a", 1, template={"labels": {QUEUE: "q"}})
    assert list(workloads(written)) == ["t/job-a"]
    (line,) = warnings(*queues(), written)
    assert f"spec.template.metadata.labels[{QUEUE}]: " in line


def test_a_training_job_annotated_with_a_queue_of_another_namespace_is_held() -> None:
    template = {"metadata": {"annotations": {QUEUE: "research-queue"}}, "spec": pod("x/p", 8)["spec"]}
    specs = {"Master": {"replicas": 1, "template": template}}
    training = thing("kubeflow.org/v1", "PyTorchJob", "ml-training/llm", spec={"pytorchReplicaSpecs": specs})
    there = [
        flavor(),
        cluster_queue("research-queue", ("f",), "nvidia.com/gpu"),
        local_queue("ml-research/research-local", "research-queue"),
    ]
    found = world(*there, training)
    assert [(facts.key, facts.queue) for facts in found.workloads] == [
        ("ml-training/pytorchjob-llm", "ml-training/research-queue")
    ]
    (line,) = found.warnings
    assert line.endswith(f"annotations[{QUEUE}]: no LocalQueue research-queue in ml-training: held back")


def test_the_queue_of_an_old_priority_class_is_translated_and_told() -> None:
    found = warnings(*queues(), thing(OLD, "WorkloadPriorityClass", "high", spec={"value": 10}))
    assert len(found) == 1
    assert "WorkloadPriorityClass high): spec.value: " in found[0]
