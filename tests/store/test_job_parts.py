"""Which pods jobs of every kind are taken to bring, from manifests; errors name the field."""

from __future__ import annotations

from typing import Any

import pytest

from build.job_kind_cases import JOB_KIND_CASES, JobKindCase, template
from build.manifests import job, thing
from build.queue_manifests import IN_Q, only, queues, sizes, workloads, world
from shoal.client.item import Obj
from shoal.store.queues.job_parts import SHAPES, no_lookup, path_of
from shoal.units.errors import UserError, Where


def _written(kind: str, version: str, name: str, spec: Obj, **more: Any) -> Obj:
    made = thing(version, kind, f"t/{name}", spec=spec, **more)
    made["metadata"]["labels"] = IN_Q
    return made


@pytest.mark.parametrize("scene", JOB_KIND_CASES, ids=lambda scene: scene.name)
def test_a_folder_of_jobs_is_counted_as_a_cluster_would(scene: JobKindCase) -> None:
    kind = scene.kind
    facts = only(_written(kind.name, kind.api_version, "x", scene.spec))
    assert facts.key == f"t/{kind.name.lower()}-x"
    assert list(sizes(facts).items()) == list(scene.counts.items())


@pytest.mark.parametrize("scene", [one for one in JOB_KIND_CASES if one.ended], ids=lambda scene: scene.name)
def test_jobs_that_ended_ask_for_nothing(scene: JobKindCase) -> None:
    kind = scene.kind
    assert workloads(_written(kind.name, kind.api_version, "x", scene.spec, status=scene.ended)) == {}


def test_a_train_job_is_counted_by_its_runtime() -> None:
    node = {"name": "node", "template": {"spec": {"template": template()}}}
    runtime = thing(
        "trainer.kubeflow.org/v1alpha1",
        "ClusterTrainingRuntime",
        "torch",
        spec={"mlPolicy": {"numNodes": 3}, "template": {"spec": {"replicatedJobs": [node]}}},
    )
    runtime["metadata"].pop("namespace", None)
    train = _written("TrainJob", "trainer.kubeflow.org/v1alpha1", "tune", {"runtimeRef": {"name": "torch"}})
    assert sizes(only(runtime, train)) == {"node": 3}
    train["spec"]["trainer"] = {"numNodes": 5}
    assert sizes(only(runtime, train)) == {"node": 5}
    with pytest.raises(UserError, match=r"spec.runtimeRef.name.*ClusterTrainingRuntime torch not found"):
        world(*queues(), train)


def test_the_launcher_of_mpi_may_be_one_of_the_nodes() -> None:
    each = [{"name": name, "template": {"spec": {"template": template()}}} for name in ("launcher", "node")]
    policy = {"numNodes": 4, "mpi": {"runLauncherAsNode": True}}
    runtime = {"spec": {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": each}}}}
    shape = SHAPES["trainer.kubeflow.org", "TrainJob"]
    parts = shape.read({"metadata": {}, "spec": {"runtimeRef": {"name": "mpi"}}}, Where(), lambda *_: runtime)
    assert {part.name: part.count for part in parts} == {"launcher": 1, "node": 3}


MEMORY = {
    "4g of Java with a tenth more": ("Scala", {"memory": "4g"}, "4506Mi"),
    "at least 384 MiB more": ("Java", {"memory": "512m"}, "896Mi"),
    "beside the JVM four tenths more": ("Python", {"memory": "4g"}, "5735Mi"),
    "an overhead that is said": ("Python", {"memory": "4g", "memoryOverhead": "1g"}, "5120Mi"),
}


@pytest.mark.parametrize(("language", "said", "wanted"), MEMORY.values(), ids=MEMORY)
def test_what_a_role_of_spark_needs(language: str, said: Obj, wanted: str) -> None:
    executor = {"instances": 2, "cores": 3, "gpu": {"name": "nvidia.com/gpu", "quantity": 1}, **said}
    spec = {"type": language, "driver": {}, "executor": executor}
    _, part = SHAPES["sparkoperator.k8s.io", "SparkApplication"].read({"spec": spec}, Where(), no_lookup)
    (container,) = part.template["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "3", "memory": wanted, "nvidia.com/gpu": "1"},
        "limits": {"memory": wanted, "nvidia.com/gpu": "1"},
    }


def test_spark_that_grows_begins_with_what_it_says() -> None:
    grows = {"enabled": True, "initialExecutors": 4, "minExecutors": 2}
    spec = {"type": "Java", "executor": {"instances": 1}, "dynamicAllocation": grows}
    _, part = SHAPES["sparkoperator.k8s.io", "SparkApplication"].read({"spec": spec}, Where(), no_lookup)
    assert part.count == 4


def test_an_app_wrapper_brings_what_it_wraps() -> None:
    components: list[Obj] = [
        {"template": {"apiVersion": "v1", "kind": "Pod", **template()}},
        {"template": {**job("t/x", 3), "metadata": {"name": "x"}}},
        {
            "template": {"apiVersion": "x/v1", "kind": "Own", "spec": {"parts": [{"template": template()}]}},
            "podSets": [{"replicas": 4, "path": "template.spec.parts[0].template"}],
        },
    ]
    shape = SHAPES["workload.codeflare.dev", "AppWrapper"]
    parts = shape.read({"metadata": {"name": "w"}, "spec": {"components": components}}, Where(), no_lookup)
    assert {part.name: part.count for part in parts} == {"w-0": 1, "w-1": 3, "w-2": 4}
    assert [path_of(part.at) for part in parts] == [
        "spec.components[0].template",
        "spec.components[1].template.spec.template",
        "spec.components[2].template.spec.parts[0].template",
    ]
    components[2]["podSets"] = [{"path": "template.spec.nowhere"}]
    with pytest.raises(UserError, match=r"spec.components\[2\].podSets: no pod template at"):
        shape.read({"metadata": {"name": "w"}, "spec": {"components": components}}, Where(), no_lookup)


WRONG: dict[str, tuple[str, str, Obj, str]] = {
    "a group of workers without a name": (
        "ray.io",
        "RayCluster",
        {"headGroupSpec": {}, "workerGroupSpecs": [{"replicas": 1}]},
        r"spec.workerGroupSpecs\[0\]",
    ),
    "a number of tasks that is none": (
        "batch.volcano.sh",
        "Job",
        {"tasks": [{"replicas": "two"}]},
        r"spec.tasks\[0\].replicas",
    ),
    "memory in words": (
        "sparkoperator.k8s.io",
        "SparkApplication",
        {"type": "Java", "driver": {"memory": "much"}},
        "spec.driver.memory",
    ),
}


@pytest.mark.parametrize(("group", "kind", "spec", "where"), WRONG.values(), ids=WRONG)
def test_what_is_written_wrong_is_told_by_its_field(group: str, kind: str, spec: Obj, where: str) -> None:
    with pytest.raises(UserError, match=where):
        SHAPES[group, kind].read({"spec": spec}, Where(), no_lookup)
