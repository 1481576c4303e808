"""Who made a pod that waits in a queue, from what stands on it."""

from __future__ import annotations

import pytest

from shoal.store.queues.pod_makers import maker_of

_ARGO = {"workflows.argoproj.io/workflow": "w"}
_SET = ("apps", "ReplicaSet")
POD = {
    "a step of a workflow": (_ARGO, ("argoproj.io", "Workflow"), "Argo Workflow"),
    "a step of a pipeline, which is a workflow": (_ARGO | {"pipeline/runid": "r"}, None, "Kubeflow pipeline"),
    "a task": ({"tekton.dev/taskRun": "t"}, ("tekton.dev", "TaskRun"), "Tekton TaskRun"),
    "a model that is served, by a deployment": (
        {"serving.kserve.io/inferenceservice": "m", "pod-template-hash": "h"},
        _SET,
        "KServe InferenceService",
    ),
    "a worker of a group": (
        {"leaderworkerset.sigs.k8s.io/name": "l"},
        ("apps", "StatefulSet"),
        "LeaderWorkerSet",
    ),
    "a replica of a deployment": ({"pod-template-hash": "h"}, _SET, "Deployment"),
    "a replica of a set of its own": ({}, _SET, "ReplicaSet"),
    "a member of a stateful set": ({}, ("apps", "StatefulSet"), "StatefulSet"),
    "a member of a group": ({"kueue.x-k8s.io/pod-group-name": "g"}, None, "pod group"),
    "nobody's": ({}, None, "Pod"),
}


@pytest.mark.parametrize(("labels", "owner", "name"), POD.values(), ids=POD)
def test_a_pod_is_recognised_by_its_most_particular_maker(
    labels: dict[str, str], owner: tuple[str, str] | None, name: str
) -> None:
    assert maker_of(labels, owner).name == name
