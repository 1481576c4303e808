"""The generated policies of the admission rules: what a server refuses or warns of, and in which namespaces."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from build.cluster_api import Answer, Api
from build.contract_objects import eventually
from build.ruled_pods import GPU, TOLERATION, container, cron_job, deployment, pod
from shoal.policy.admission_rules.modes import LABEL_PREFIX, MAXIMUM_LABEL, MODE_LABEL, RuleModes
from shoal.policy.admission_rules.mutations import PRESETS, mutating_policies
from shoal.policy.admission_rules.policies import AdmissionPolicy, validating_policies

Obj = dict[str, Any]
GROUP = "/apis/admissionregistration.k8s.io/v1"
FIELD = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}
PRESENT = {"key": "nvidia.com/gpu.present", "operator": "In", "values": ["true"]}
TAINT = "GPU pods must tolerate nvidia.com/gpu taint"
AFFINITY = "GPU pods must specify nodeAffinity for GPU nodes"


def _of_test(made: AdmissionPolicy, run: str) -> list[tuple[str, Obj]]:
    """The objects of a policy under names of this test, with their paths."""
    objects = []
    for obj in (made.policy, *made.bindings):
        plural = f"{obj['kind'].lower()}s".replace("policys", "policies")
        spec = {**obj["spec"], **({"policyName": f"{obj['spec']['policyName']}-{run}"} if obj in made.bindings else {})}
        meta = {**obj["metadata"], "name": f"{obj['metadata']['name']}-{run}"}
        objects.append((f"{GROUP}/{plural}", {**obj, "metadata": meta, "spec": spec}))
    return objects


@asynccontextmanager
async def _in_force(api: Api, policies: Sequence[AdmissionPolicy]) -> AsyncIterator[None]:
    run = uuid.uuid4().hex[:8]
    objects = [each for made in policies for each in _of_test(made, run)]
    try:
        for path, obj in objects:
            (await api.post(path, obj)).ok(201)
        yield
    finally:
        for path, obj in reversed(objects):
            await api.delete(f"{path}/{obj['metadata']['name']}")


async def _label(api: Api, labels: Mapping[str, str]) -> None:
    (await api.patch(f"/api/v1/namespaces/{api.namespace}", {"metadata": {"labels": dict(labels)}})).ok(200)


async def _tried(api: Api, obj: Obj) -> Answer:
    plurals = {"Pod": "pods", "Deployment": "deployments", "CronJob": "cronjobs"}
    named = {**obj, "metadata": {**obj["metadata"], "namespace": api.namespace}}
    path = api.core("pods") if obj["kind"] == "Pod" else api.group(obj["apiVersion"], plurals[obj["kind"]])
    return await api.post(path, named, dryRun="All")


def _whole(made: Obj) -> Obj:
    """With the fields that a server wants beside those of the rules."""
    labels = {"app": "d"}
    if made["kind"] == "Deployment":
        template = {**made["spec"]["template"], "metadata": {"labels": labels}}
        return {**made, "spec": {"selector": {"matchLabels": labels}, "template": template}}
    inner = made["spec"]["jobTemplate"]["spec"]["template"]
    template = {"metadata": {}, "spec": {**inner["spec"], "restartPolicy": "Never"}}
    return {**made, "spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": template}}}}


async def test_a_server_refuses_what_breaks_an_enforced_rule_and_warns_of_others(api: Api) -> None:
    labels = {MODE_LABEL: "enforce", f"{LABEL_PREFIX}NoGpuNodeAffinity": "warn", MAXIMUM_LABEL: "2"}
    await _label(api, labels)
    runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"}}
    await api.post("/apis/node.k8s.io/v1/runtimeclasses", {**runtime, "handler": "nvidia"})
    async with _in_force(api, validating_policies(RuleModes(default="off"))):
        bare = await eventually(lambda: _tried(api, pod(nodeSelector={})), lambda answer: bool(answer.warnings))
        assert bare.code == 201
        assert any(AFFINITY in each for each in bare.warnings)
        for bad, words in (
            (pod(tolerations=[]), TAINT),
            (pod(container(1, "nvidia.com/mig-1g.10gb"), tolerations=[]), TAINT),
            (pod(container(0), initContainers=[{**container(), "name": "first"}], tolerations=[]), TAINT),
            (_whole(deployment(pod(tolerations=[]))), TAINT),
            (_whole(cron_job(pod(tolerations=[]))), TAINT),
            (pod(container(3)), "pods of this namespace must not request more than 2 GPUs"),
            (pod(container(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}])), "NVIDIA_VISIBLE_DEVICES"),
            (pod(volumes=[{"name": "v", "hostPath": {"path": "/dev/nvidia0"}}]), "device files of the host"),
            (pod(container(0), runtimeClassName="nvidia"), "the runtime class nvidia without a request"),
            (pod(container(securityContext={"privileged": True})), "privileged containers have access"),
        ):
            await eventually(partial(_tried, api, bad), lambda answer: answer.code == 403)
            assert words in (await _tried(api, bad)).refused(403)
        (await _tried(api, pod())).ok(201)
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
        named = {**config, "data": {"NVIDIA_VISIBLE_DEVICES": "all"}}
        assert "by envFrom" in (await api.post(api.core("configmaps"), named, dryRun="All")).refused(403)
        (await api.post(api.core("configmaps"), {**config, "data": {"A": "b"}}, dryRun="All")).ok(201)
        many = pod(*({**container(0), "name": f"c{at}", "env": _variables()} for at in range(100)))
        (await _tried(api, many)).ok(201)


def _variables() -> list[Obj]:
    return [{"name": f"V{at}", "value": "x"} for at in range(100)]


async def test_unequal_requests_of_pods_are_refused_by_the_server_itself(api: Api) -> None:
    unequal = pod({"name": "main", "image": "i", "resources": {"requests": {GPU: "1"}, "limits": {GPU: "2"}}})
    assert f"must be equal to {GPU} limit of 2" in (await _tried(api, unequal)).refused(422)


async def test_a_server_adds_to_pods_with_gpus_what_their_namespace_asks_for(api: Api) -> None:
    name = f"gpu-{api.namespace}"
    meta = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
    (await api.post("/apis/scheduling.k8s.io/v1/priorityclasses", {**meta, "value": 1000})).ok(201)
    additions = {"toleration": "true", "node-affinity": "true", "shm": "true", "nccl": "ethernet"}
    labels = {**additions, "priority-class": name, "queue": "team"}
    async with _in_force(api, mutating_policies(RuleModes())):
        bare = pod(tolerations=[], nodeSelector={})
        assert (await _tried(api, bare)).ok(201)["metadata"].get("labels") is None
        await _label(api, {f"{LABEL_PREFIX}add-{each}": value for each, value in labels.items()})
        words = ("shoal-shm", TOLERATION["key"], "gpu.present", name, "NCCL_")
        # A server begins with one policy after the other.
        await eventually(lambda: _tried(api, bare), lambda answer: all(word in answer.raw.decode() for word in words))
        changed = (await _tried(api, bare)).ok(201)
        spec = changed["spec"]
        assert TOLERATION in spec["tolerations"]
        assert _terms(spec) == [{"matchExpressions": [PRESENT]}]
        assert (spec["priorityClassName"], spec["priority"]) == (name, 1000)
        assert {"name": "shoal-shm", "emptyDir": {"medium": "Memory"}} in spec["volumes"]
        assert {"name": "shoal-shm", "mountPath": "/dev/shm"} in spec["containers"][0]["volumeMounts"]  # noqa: S108
        assert {each["name"] for each in spec["containers"][0]["env"]} == set(PRESETS["ethernet"])
        without = (await _tried(api, pod(container(0), tolerations=[], nodeSelector={}))).ok(201)
        assert without["spec"].get("affinity") is None
        assert "env" not in without["spec"]["containers"][0]
        job = await eventually(
            lambda: api.post(api.group("batch/v1", "jobs"), _job(), dryRun="All"),
            lambda answer: "kueue.x-k8s.io/queue-name" in answer.raw.decode(),
        )
        assert job.ok(201)["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team"
        assert job.body["spec"]["suspend"] is True
    await api.delete(f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}")


async def test_additions_keep_what_a_user_has_written(api: Api) -> None:
    labels = {f"{LABEL_PREFIX}add-{each}": "true" for each in ("toleration", "node-affinity", "shm")}
    await _label(api, {**labels, f"{LABEL_PREFIX}add-nccl": "debug", f"{LABEL_PREFIX}add-queue": "team"})
    zones = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [each]}]} for each in "ab"]
    fields = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*zones, fields]}}
    env = [{"name": "NCCL_DEBUG", "value": "TRACE"}, {"name": "POD", "valueFrom": FIELD}]
    mounts = [{"name": "own", "mountPath": "/dev/shm"}]  # noqa: S108
    own = container(env=env, volumeMounts=mounts)
    written = pod(own, {**container(0), "name": "side"}, volumes=[{"name": "own", "emptyDir": {}}], nodeSelector={})
    written["spec"]["affinity"] = {"nodeAffinity": required}
    async with _in_force(api, mutating_policies(RuleModes())):
        await eventually(lambda: _tried(api, written), lambda answer: "NCCL_DEBUG_SUBSYS" in answer.raw.decode())
        await eventually(lambda: _tried(api, written), lambda answer: "gpu.present" in answer.raw.decode())
        changed = (await _tried(api, written)).ok(201)
        labelled = _job(labels={"kueue.x-k8s.io/queue-name": "mine"})
        job = await api.post(api.group("batch/v1", "jobs"), labelled, dryRun="All")
    spec = changed["spec"]
    assert job.ok(201)["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "mine"
    assert [each["name"] for each in spec["volumes"] if "emptyDir" in each] == ["own"]
    assert [one for one in spec["tolerations"] if one.get("key") == GPU] == [TOLERATION]
    both = [{"matchExpressions": [*zone["matchExpressions"], PRESENT]} for zone in zones]
    assert _terms(spec) == [*both, {**fields, "matchExpressions": [PRESENT]}]
    found = spec["containers"][0]["env"]
    assert {"name": "NCCL_DEBUG", "value": "TRACE"} in found
    assert [one["name"] for one in found] == ["NCCL_DEBUG_SUBSYS", "NCCL_DEBUG", "POD"]
    assert "env" not in spec["containers"][1]


def _job(**metadata: Any) -> Obj:
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [container(0)]}}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", **metadata}, "spec": spec}


def _terms(spec: Obj) -> Any:
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return required["nodeSelectorTerms"]
