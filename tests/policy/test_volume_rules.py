"""Claims that several pods share, shared memory of data loaders, and privileged pods in files."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.policy.advice import Obj
from shoal.policy.object_set import ObjectSet
from shoal.policy.rules.gpu_bypasses import privileged_in_files
from shoal.policy.rules.omissions import usual_omissions
from shoal.policy.rules.volumes import shared_claims


def claim(*modes: str) -> Obj:
    spec = {"accessModes": list(modes)}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "n"},
        "spec": spec,
    }


def template(**spec: Any) -> Obj:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    return {"spec": {"containers": [{"name": "main", "image": "a:1"}], "volumes": volumes, **spec}}


def made(kind: str, version: str, **spec: Any) -> Obj:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x", "namespace": "n"}, "spec": spec}


def shared(obj: Obj, *modes: str) -> list[str]:
    return [each.what for each in shared_claims(obj, ObjectSet((obj, claim(*(modes or ("ReadWriteOnce",))))))]


JOB = made("Job", "batch/v1", parallelism=4, completions=4, template=template())


@pytest.mark.parametrize(
    ("obj", "pods"),
    [
        (JOB, 4),
        (made("Deployment", "apps/v1", replicas=2, template=template()), 2),
        (
            made(
                "PyTorchJob",
                "kubeflow.org/v1",
                pytorchReplicaSpecs={
                    "Master": {"replicas": 1, "template": template()},
                    "Worker": {"replicas": 3, "template": template()},
                },
            ),
            4,
        ),
        (
            made(
                "JobSet",
                "jobset.x-k8s.io/v1alpha2",
                replicatedJobs=[
                    {"name": "a", "replicas": 2, "template": {"spec": {"parallelism": 3, "template": template()}}}
                ],
            ),
            6,
        ),
    ],
)
def test_pods_that_share_a_claim_of_one_node_are_counted(obj: Obj, pods: int) -> None:
    (what,) = shared(obj)
    assert f"one node mounts it, and {pods} pods share it" in what


def test_one_pod_or_a_claim_of_many_nodes_is_right() -> None:
    assert shared(made("Deployment", "apps/v1", template=template())) == []
    assert shared(JOB, "ReadWriteOnce", "ReadWriteMany") == []
    assert list(shared_claims(JOB, ObjectSet((JOB,)))) == [], "the claim is not known"
    once = made("Job", "batch/v1", parallelism=4, completions=1, template=template())
    assert shared(once) == [], "a Job never runs more pods than it has completions"
    assert "one pod mounts it" in shared(JOB, "ReadWriteOncePod")[0]


def test_pods_that_are_kept_on_one_node_may_share_it() -> None:
    term = {"topologyKey": "kubernetes.io/hostname"}
    together = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    assert shared(made("Deployment", "apps/v1", replicas=2, template=template(affinity=together))) == []
    selector = {"kubernetes.io/hostname": "a"}
    assert shared(made("Deployment", "apps/v1", replicas=2, template=template(nodeSelector=selector))) == []


@pytest.mark.parametrize("selector", [5, ["kubernetes.io/hostname"], "kubernetes.io/hostname", {1: "a"}])
def test_a_selector_of_another_type_selects_no_node(selector: Any) -> None:
    assert len(shared(made("Deployment", "apps/v1", replicas=2, template=template(nodeSelector=selector)))) == 1


@pytest.mark.parametrize(
    ("args", "gpus", "is_found"),
    [
        (["--num_workers=8"], 1, True),
        (["--num-workers", "8"], 1, True),
        (["-c", "DataLoader(data, num_workers=8)"], 1, True),
        (["--num_workers=0"], 1, False),
        (["train.py"], 1, False),
        (["--num_workers=8"], 0, False),
    ],
)
def test_workers_of_a_data_loader_need_shared_memory(args: list[str], gpus: int, is_found: bool) -> None:
    limits = {"nvidia.com/gpu": gpus} if gpus else {}
    container = {"name": "main", "image": "a:1", "args": args, "resources": {"limits": limits}}
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [container]}}
    found = {each.reason for each in usual_omissions(obj, ObjectSet((obj,)))}
    assert ("SmallSharedMemory" in found) is is_found


@pytest.mark.parametrize(
    ("kind", "version", "namespace", "image", "gpus", "count"),
    [
        ("Pod", "v1", "team", "train:1", 1, 1),
        ("Pod", "v1", "kube-system", "train:1", 1, 0),
        ("Pod", "v1", "team", "nvcr.io/nvidia/k8s/dcgm-exporter:3", 1, 0),
        ("DaemonSet", "apps/v1", "team", "train:1", 1, 0),
        ("Pod", "v1", "ci", "docker:27-dind", 0, 0),
        ("Deployment", "apps/v1", "longhorn", "csi:1", 0, 0),
    ],
)
def test_a_privileged_pod_with_gpus_is_named_unless_it_belongs_to_the_node(
    kind: str, version: str, namespace: str, image: str, gpus: int, count: int
) -> None:
    obj = privileged(kind, version, namespace, image, gpus)
    assert len(list(privileged_in_files(obj, ObjectSet((obj,))))) == count


def test_a_privileged_pod_that_selects_nodes_with_gpus_is_named() -> None:
    obj = privileged("Pod", "v1", "team", "train:1", 0)
    obj["spec"]["nodeSelector"] = {"nvidia.com/gpu.present": "true"}
    assert len(list(privileged_in_files(obj, ObjectSet((obj,))))) == 1
    obj["spec"]["nodeSelector"] = {"cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice"}
    assert not list(privileged_in_files(obj, ObjectSet((obj,))))


def privileged(kind: str, version: str, namespace: str, image: str, gpus: int) -> Obj:
    limits = {"limits": {"nvidia.com/gpu": gpus}} if gpus else {}
    container = {"name": "main", "image": image, "securityContext": {"privileged": True}, "resources": limits}
    spec: Obj = {"containers": [container]}
    obj = made(kind, version, **(spec if kind == "Pod" else {"template": {"spec": spec}}))
    obj["metadata"]["namespace"] = namespace
    return obj
