"""What leaves a cluster in a picture of it, and what stays behind."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from build.manifests import Object, job, node, pod, thing
from shoal.store.snapshot.redaction import redacted

HIDDEN = "hunter2"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def telling_container() -> Object:
    return {
        "name": "c",
        "image": "registry.example.com/train:1",
        "command": ["python", f"--password={HIDDEN}"],
        "args": [HIDDEN],
        "env": [{"name": "TOKEN", "value": HIDDEN}],
        "envFrom": [{"secretRef": {"name": HIDDEN}}],
        "resources": {"limits": {"nvidia.com/gpu": 2}},
        "lifecycle": {"preStop": {"exec": {"command": [HIDDEN]}}},
        "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": HIDDEN}]}},
        "volumeMounts": [{"name": HIDDEN, "mountPath": "/x"}],
    }


def telling_spec() -> Object:
    return {
        "containers": [telling_container()],
        "initContainers": [telling_container()],
        "ephemeralContainers": [telling_container()],
        "imagePullSecrets": [{"name": HIDDEN}],
        "hostAliases": [{"ip": "10.0.0.1", "hostnames": [HIDDEN]}],
        "nodeSelector": {"zone": "a"},
        "volumes": [
            {"name": "s", "secret": {"secretName": HIDDEN}},
            {"name": "n", "nfs": {"server": HIDDEN, "path": "/"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        ],
    }


def telling_meta(name: str) -> Object:
    return {
        "name": name,
        "namespace": "t",
        "labels": {"app": "x"},
        "annotations": {LAST_APPLIED: HIDDEN, "example.com/token": HIDDEN, "shoal.dev/expected-duration": "2h"},
        "managedFields": [{"manager": HIDDEN}],
        "selfLink": HIDDEN,
    }


OBJECTS: dict[str, Object] = {
    "a workload whose check wants something of its pods": {
        "kind": "Workload",
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "metadata": telling_meta("w"),
        "spec": {"queueName": "q", "podSets": [{"name": "main", "count": 1, "template": {"spec": telling_spec()}}]},
        "status": {
            "admissionChecks": [
                {
                    "name": "prov",
                    "state": "Ready",
                    "podSetUpdates": [{"name": "main", "annotations": {"example.com/token": HIDDEN}}],
                }
            ]
        },
    },
    "a pod": {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": telling_meta("p"),
        "spec": telling_spec(),
        "status": {"phase": "Running", "podIP": "10.1.1.1", "containerStatuses": [{"state": {"message": HIDDEN}}]},
    },
    "a job's template": {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": telling_meta("j"),
        "spec": {"template": {"metadata": telling_meta("j"), "spec": telling_spec()}},
    },
    "a deployment's template": {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": telling_meta("d"),
        "spec": {"selector": {}, "template": {"metadata": telling_meta("d"), "spec": telling_spec()}},
    },
    "a workload's pod sets": {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": telling_meta("w"),
        "spec": {"podSets": [{"name": "main", "count": 1, "template": {"spec": telling_spec()}}]},
    },
    "a job of a kind without a type": {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": telling_meta("t"),
        "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": telling_spec()}}}},
    },
    "a cluster that Ray starts": {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": telling_meta("r"),
        "spec": {
            "headGroupSpec": {"rayStartParams": {"redis-password": HIDDEN}, "template": {"spec": telling_spec()}},
            "entrypoint": HIDDEN,
            "somethingNew": {"deeper": [{"text": HIDDEN}, HIDDEN]},
        },
    },
    "an application of Spark": {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": telling_meta("s"),
        "spec": {"arguments": [HIDDEN], "sparkConf": {"a": HIDDEN}, "driver": {"env": [{"value": HIDDEN}], "cores": 1}},
    },
    "parameters of a device's driver": {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": telling_meta("c"),
        "spec": {
            "devices": {
                "config": [{"requests": [], "opaque": {"driver": "d.example.com", "parameters": {"k": HIDDEN}}}]
            }
        },
        "status": {"devices": [{"driver": "d.example.com", "data": {"k": HIDDEN}}]},
    },
    "where the bytes of a volume lie": {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v"},
        "spec": {"csi": {"volumeAttributes": {"key": HIDDEN}}, "capacity": {"storage": "1Gi"}},
    },
    "parameters of a storage class": {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": "x",
        "parameters": {"key": HIDDEN},
    },
}


@pytest.mark.parametrize("obj", OBJECTS.values(), ids=OBJECTS)
def test_nothing_that_people_hide_leaves(obj: Object) -> None:
    assert HIDDEN in json.dumps(obj)
    assert HIDDEN not in json.dumps(redacted(obj))


@pytest.mark.parametrize("obj", OBJECTS.values(), ids=OBJECTS)
def test_redacting_twice_is_redacting_once_and_leaves_the_object_alone(obj: Object) -> None:
    before = copy.deepcopy(obj)
    once = redacted(obj)
    assert obj == before
    assert redacted(copy.deepcopy(once)) == once


def kept(obj: Object, *path: Any) -> Any:
    found: Any = redacted(obj)
    for step in path:
        found = found[step]
    return found


def test_images_resources_and_claims_of_volumes_stay() -> None:
    found = OBJECTS["a pod"]
    container = kept(found, "spec", "containers", 0)
    assert container == {
        "name": "c",
        "image": "registry.example.com/train:1",
        "resources": {"limits": {"nvidia.com/gpu": 2}},
    }
    assert kept(found, "spec", "volumes") == [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    assert kept(found, "spec", "nodeSelector") == {"zone": "a"}


def test_annotations_of_schedulers_stay() -> None:
    assert kept(OBJECTS["a pod"], "metadata", "annotations") == {"shoal.dev/expected-duration": "2h"}
    own = {"gpu-fraction": "0.5", "pod-group.scheduling.sigs.k8s.io/x": "1", "kueue.x-k8s.io/workload": "w"}
    assert kept(pod("t/p", annotations=dict(own)), "metadata", "annotations") == own


def test_what_the_scheduler_said_of_a_pod_stays() -> None:
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available"}
    waiting = pod("t/p", status={"phase": "Pending", "conditions": [said]})
    assert kept(waiting, "status") == {"phase": "Pending", "conditions": [said]}


def test_a_heartbeat_of_a_node_changes_nothing() -> None:
    def beating(at: str) -> Object:
        made = node("n", 8)
        ready = {
            "type": "Ready",
            "status": "True",
            "lastHeartbeatTime": at,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        made["status"] |= {"conditions": [ready], "images": [{"names": ["x"]}]}
        made["metadata"]["resourceVersion"] = at
        return made

    assert redacted(beating("2026-01-01T00:00:00Z")) == redacted(beating("2026-01-02T00:00:00Z"))


def test_roles_of_a_job_without_a_type_keep_their_number_and_what_they_ask() -> None:
    role = kept(OBJECTS["a job of a kind without a type"], "spec", "pytorchReplicaSpecs", "Worker")
    assert role["replicas"] == 2
    assert role["template"]["spec"]["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": 2}}


def test_quota_stays_as_it_is() -> None:
    queue = thing("kueue.x-k8s.io/v1beta2", "ClusterQueue", "q", spec={"cohortName": "c", "namespaceSelector": {}})
    assert redacted(queue) == queue


def test_a_job_keeps_how_many_pods_it_wants() -> None:
    assert kept(job("t/j", 3, 1), "spec", "parallelism") == 3
