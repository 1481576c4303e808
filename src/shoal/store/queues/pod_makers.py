"""Who makes pods that wait in queues one by one or as groups: such makers have no switch of their own that would hold
their pods back, so each pod is held by a scheduling gate.

A pod is recognised by what its maker writes on it, the most particular maker first: the pods of a pipeline are those
of a workflow as well. Rejected: going by owners alone. Half of these makers put a ReplicaSet or a Knative revision
between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Unit = Literal["pod", "group", "group per replica"]


class PodMaker(msgspec.Struct, frozen=True):
    name: str
    """Of the kind, or of the project where pods are recognised by its labels."""
    framework: str
    """As Kueue's configuration calls what admits them."""
    unit: Unit
    """What is admitted as a whole."""
    labels: tuple[str, ...] = ()
    """Any of them on the pod."""
    owners: tuple[tuple[str, str], ...] = ()
    """API group and kind of the pod's controller."""
    queue_from: str = "pod"
    """Whose label names the queue."""

    def made(self, labels: Mapping[str, str], owner: tuple[str, str] | None) -> bool:
        return any(label in labels for label in self.labels) or owner in self.owners


MAKERS: tuple[PodMaker, ...] = (
    PodMaker(
        "Kubeflow pipeline",
        "pod",
        "pod",
        ("pipeline/runid", "pipelines.kubeflow.org/v2_component", "pipelines.kubeflow.org/pipelinename"),
    ),
    PodMaker("Argo Workflow", "pod", "pod", ("workflows.argoproj.io/workflow",), (("argoproj.io", "Workflow"),)),
    PodMaker("Tekton TaskRun", "pod", "pod", ("tekton.dev/taskRun",), (("tekton.dev", "TaskRun"),)),
    PodMaker("KServe InferenceService", "pod", "pod", ("serving.kserve.io/inferenceservice",)),
    PodMaker(
        "LeaderWorkerSet",
        "leaderworkerset.x-k8s.io/leaderworkerset",
        "group per replica",
        ("leaderworkerset.sigs.k8s.io/name",),
        queue_from="LeaderWorkerSet",
    ),
    PodMaker("pod group", "pod", "group", ("kueue.x-k8s.io/pod-group-name",)),
    PodMaker("StatefulSet", "statefulset", "group", (), (("apps", "StatefulSet"),), "StatefulSet"),
    PodMaker("Deployment", "deployment", "pod", ("pod-template-hash",), (), "Deployment"),
    PodMaker("ReplicaSet", "pod", "pod", (), (("apps", "ReplicaSet"),)),
)
PLAIN_POD = PodMaker("Pod", "pod", "pod")


def maker_of(labels: Mapping[str, str], owner: tuple[str, str] | None = None) -> PodMaker:
    """Of a pod; `owner` is its controller's API group and kind."""
    return next((maker for maker in MAKERS if maker.made(labels, owner)), PLAIN_POD)
