"""Fields, parts of pods and references: one mistake in an otherwise correct object, and objects without a mistake."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from shoal.policy.checks import warnings
from shoal.policy.object_set import ObjectSet

Obj = dict[str, Any]
GPU = "nvidia.com/gpu"

DEPLOYMENT: Obj = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "ml", "labels": {"app": "web"}},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [
                    {
                        "name": "serve",
                        "image": "registry.example/serve:1",
                        "ports": [{"name": "http", "containerPort": 8000}],
                        "env": [{"name": "MODEL", "value": "m"}],
                        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
                        "resources": {"limits": {"memory": "2Gi", GPU: 1}, "requests": {"cpu": "1", "memory": "1Gi"}},
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    }
                ],
                "volumes": [{"name": "data", "emptyDir": {}}],
            },
        },
    },
}
SERVICE: Obj = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "ml"},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]},
}
BUDGET: Obj = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web", "namespace": "ml"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
}
SCALER: Obj = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "ml"},
    "spec": {
        "maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "metrics": [
            {"type": "Pods", "pods": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "1"}}}
        ],
    },
}
JOB_SET: Obj = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": "train", "namespace": "ml"},
    "spec": {"replicatedJobs": [{"name": "w", "template": {"spec": {"template": DEPLOYMENT["spec"]["template"]}}}]},
}
Change = Callable[[Obj], object]


def spec(obj: Obj) -> Obj:
    found: Obj = obj["spec"]["template"]["spec"]
    return found


def container(obj: Obj) -> Obj:
    found: Obj = spec(obj)["containers"][0]
    return found


def limits(obj: Obj, **amounts: object) -> Obj:
    container(obj)["resources"]["limits"] = {"memory": "2Gi", **amounts}
    return obj


MISTAKES: dict[str, tuple[Obj, Change, str, str, str]] = {
    "a misspelled field": (
        DEPLOYMENT,
        lambda o: container(o).update(imagePullPolcy="Always"),
        "UnknownKubernetesField",
        "spec.template.spec.containers[0].imagePullPolcy",
        "did you mean imagePullPolicy?",
    ),
    "a field of the pod in a container": (
        DEPLOYMENT,
        lambda o: container(o).update(nodeSelector={}),
        "UnknownKubernetesField",
        "spec.template.spec.containers[0].nodeSelector",
        "belongs to an outer level",
    ),
    "a field of an inner level": (
        DEPLOYMENT,
        lambda o: container(o).update(limits={}),
        "UnknownKubernetesField",
        "spec.template.spec.containers[0].limits",
        "limits belongs into resources",
    ),
    "a field of a pod in another project's object": (
        JOB_SET,
        lambda o: o["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"].update(toleration=[]),
        "UnknownKubernetesField",
        "spec.replicatedJobs[0].template.spec.template.spec.toleration",
        "did you mean tolerations?",
    ),
    "text for a number": (
        DEPLOYMENT,
        lambda o: o["spec"].update(replicas="2"),
        "WrongType",
        "spec.replicas",
        "remove the quotes",
    ),
    "a number for text": (
        DEPLOYMENT,
        lambda o: o["metadata"]["labels"].update(v=1),
        "WrongType",
        "metadata.labels.v",
        "put it in quotes",
    ),
    "a map for a list": (
        DEPLOYMENT,
        lambda o: spec(o).update(tolerations={"key": "a"}),
        "WrongType",
        "spec.template.spec.tolerations",
        "with a dash",
    ),
    "text for a map": (
        DEPLOYMENT,
        lambda o: o["spec"].update(selector="app"),
        "WrongType",
        "spec.selector",
        "correct the value",
    ),
    "a port without a number": (
        DEPLOYMENT,
        lambda o: container(o)["ports"].append({"name": "x"}),
        "MissingField",
        "spec.template.spec.containers[0].ports[1].containerPort",
        "set containerPort",
    ),
    "a misspelled kind": (
        DEPLOYMENT,
        lambda o: o.update(kind="Deploymnet"),
        "UnknownKind",
        "kind",
        "did you mean Deployment?",
    ),
    "a removed version": (
        DEPLOYMENT,
        lambda o: o.update(apiVersion="extensions/v1beta1"),
        "UnknownKind",
        "apiVersion",
        "write apps/v1",
    ),
    "an old version": (
        DEPLOYMENT,
        lambda o: o.update(apiVersion="apps/v1beta2"),
        "UnknownKind",
        "apiVersion",
        "write apps/v1",
    ),
    "a version of another group": (
        DEPLOYMENT,
        lambda o: o.update(apiVersion="batch/v1"),
        "UnknownKind",
        "apiVersion",
        "write apps/v1",
    ),
    "a name with a capital letter": (
        DEPLOYMENT,
        lambda o: o["metadata"].update(name="Web"),
        "InvalidName",
        "metadata.name",
        "choose another name",
    ),
    "a mount without a volume": (
        DEPLOYMENT,
        lambda o: container(o)["volumeMounts"].append({"name": "dta", "mountPath": "/x"}),
        "NoSuchVolume",
        "spec.template.spec.containers[0].volumeMounts[1].name",
        "did you mean data?",
    ),
    "a probe of a port that is not there": (
        DEPLOYMENT,
        lambda o: container(o)["readinessProbe"]["httpGet"].update(port="htpp"),
        "NoSuchPort",
        "spec.template.spec.containers[0].readinessProbe.httpGet.port",
        "did you mean http?",
    ),
    "a variable that is given twice": (
        DEPLOYMENT,
        lambda o: container(o)["env"].append({"name": "MODEL", "value": "n"}),
        "GivenTwice",
        "spec.template.spec.containers[0].env[1].name",
        "keep one of them",
    ),
    "a container without an image": (
        DEPLOYMENT,
        lambda o: container(o).pop("image"),
        "NoImage",
        "spec.template.spec.containers[0].image",
        "name an image",
    ),
    "a plural": (
        DEPLOYMENT,
        lambda o: limits(o, **{"nvidia.com/gpus": 1}),
        "UnknownGpuName",
        "spec.template.spec.containers[0].resources.limits[nvidia.com/gpus]",
        "did you mean nvidia.com/gpu?",
    ),
    "a misspelled vendor": (
        DEPLOYMENT,
        lambda o: limits(o, **{"nvida.com/gpu": 1}),
        "UnknownGpuName",
        "spec.template.spec.containers[0].resources.limits[nvida.com/gpu]",
        "did you mean nvidia.com/gpu?",
    ),
    "a profile that no GPU has": (
        DEPLOYMENT,
        lambda o: limits(o, **{"nvidia.com/mig-1g.15gb": 1}),
        "UnknownMigProfile",
        "spec.template.spec.containers[0].resources.limits[nvidia.com/mig-1g.15gb]",
        "did you mean nvidia.com/mig-1g",
    ),
    "GPUs and instances": (
        DEPLOYMENT,
        lambda o: limits(o, **{GPU: 1, "nvidia.com/mig-1g.10gb": 1}),
        "MixedGpuNames",
        "spec.template.spec.containers[0].resources.limits",
        "request one of them",
    ),
    "more GPUs than a machine has": (
        DEPLOYMENT,
        lambda o: limits(o, **{GPU: 32}),
        "TooManyGpus",
        "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]",
        "several pods",
    ),
    "devices of the host": (
        DEPLOYMENT,
        lambda o: spec(o)["volumes"].append({"name": "n", "hostPath": {"path": "/dev/nvidia0"}}),
        "GpuWithoutRequest",
        "spec.template.spec.volumes[1]",
        "request nvidia.com/gpu",
    ),
    "the runtime class without a GPU": (
        DEPLOYMENT,
        lambda o: (spec(o).update(runtimeClassName="nvidia"), limits(o)),
        "GpuWithoutRequest",
        "spec.template.spec.runtimeClassName",
        "NVIDIA_VISIBLE_DEVICES to none",
    ),
    "a toleration of everything": (
        DEPLOYMENT,
        lambda o: spec(o).update(tolerations=[{"operator": "Exists"}]),
        "ToleratesAll",
        "spec.template.spec.tolerations[0]",
        "name the taint",
    ),
    "several processes without shared memory": (
        DEPLOYMENT,
        lambda o: (limits(o, **{GPU: 8}), container(o).update(command=["torchrun", "train.py"])),
        "SmallSharedMemory",
        "spec.template.spec.containers[0].volumeMounts",
        "emptyDir with medium: Memory",
    ),
    "no memory": (
        DEPLOYMENT,
        lambda o: container(o).update(resources={"limits": {GPU: 1}}),
        "NoMemoryRequest",
        "spec.template.spec.containers[0].resources",
        "request memory",
    ),
    "the latest image": (
        DEPLOYMENT,
        lambda o: container(o).update(image="registry.example:5000/serve"),
        "UnpinnedImage",
        "spec.template.spec.containers[0].image",
        "a version or a digest",
    ),
    "a selector of nothing": (
        SERVICE,
        lambda o: o["spec"]["selector"].update(app="wbe"),
        "SelectsNothing",
        "spec.selector",
        "labels of the pod template",
    ),
    "a port of nothing": (
        SERVICE,
        lambda o: o["spec"]["ports"][0].update(targetPort="htpp"),
        "NoSuchTargetPort",
        "spec.ports[0].targetPort",
        "a port of the container",
    ),
    "a budget of nothing": (
        BUDGET,
        lambda o: o["spec"]["selector"]["matchLabels"].update(app="x"),
        "SelectsNothing",
        "spec.selector",
        "labels",
    ),
    "a target that is not there": (
        SCALER,
        lambda o: o["spec"]["scaleTargetRef"].update(name="wbe"),
        "NoSuchScaleTarget",
        "spec.scaleTargetRef.name",
        "an existing workload",
    ),
}
"""Object, change, and the rule, field and correction that it is to have."""


def found_in(obj: Obj) -> list[tuple[str, str, str]]:
    reported = {rule for _, _, rule, _, _ in MISTAKES.values()}
    others = [copy.deepcopy(each) for each in (DEPLOYMENT, SERVICE, BUDGET, SCALER) if each["kind"] != obj["kind"]]
    context = ObjectSet([*others, obj])
    return [(each.rule, each.field, each.fix) for each in warnings([("", obj)], context, reported, of_files=True)]


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found_with_its_field_and_its_correction(name: str) -> None:
    original, change, rule, field, fix = MISTAKES[name]
    obj = copy.deepcopy(original)
    change(obj)
    found = found_in(obj)
    assert [(each[0], each[1]) for each in found] == [(rule, field)]
    assert fix in found[0][2]


@pytest.mark.parametrize("obj", [DEPLOYMENT, SERVICE, BUDGET, SCALER, JOB_SET], ids=lambda obj: str(obj["kind"]))
def test_an_object_without_a_mistake_has_no_finding(obj: Obj) -> None:
    assert found_in(copy.deepcopy(obj)) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda o: spec(o).update(
            volumes=[{"name": "data", "hostPath": {"path": "/dev/nvidia0"}}],
            containers=[{**container(o), "image": "nvcr.io/nvidia/k8s-device-plugin:v0.17.0"}],
        ),
        lambda o: (
            spec(o).update(runtimeClassName="nvidia"),
            limits(o),
            container(o)["env"].append({"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"}),
        ),
        lambda o: spec(o).update(tolerations=[{"operator": "Exists", "effect": "NoSchedule"}]),
        lambda o: limits(o, **{"nvidia.com/mig-1g.10gb": 1}),
        lambda o: limits(o, **{"amd.com/gpu": 1}),
        lambda o: container(o).update(image="registry.example/a@sha256:" + "0" * 64),
        lambda o: container(o)["readinessProbe"]["httpGet"].update(port="8000"),
    ],
    ids=["component", "hidden", "one effect", "profile", "amd", "digest", "port number"],
)
def test_what_looks_like_a_mistake_and_is_none_has_no_finding(change: Change) -> None:
    obj = copy.deepcopy(DEPLOYMENT)
    change(obj)
    assert found_in(obj) == []


def test_objects_without_a_namespace_are_compared_in_the_default_one() -> None:
    objects = [copy.deepcopy(each) for each in (DEPLOYMENT, SERVICE)]
    for obj in objects:
        del obj["metadata"]["namespace"]
    objects[1]["spec"]["selector"] = {"app": "nothing"}
    found = warnings([("", objects[1])], ObjectSet(objects), ["SelectsNothing"], of_files=True)
    assert [each.rule for each in found] == ["SelectsNothing"]
