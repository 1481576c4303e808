"""Counts the pods that a controller has yet to create, by its spec."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shoal.api.decode import Document
from shoal.api.pod import Pod
from shoal.api.workloads import Deployment, Job, ReplicaSet, StatefulSet


def missing_by_spec(controller: object, present: int) -> int:
    """Beyond the pods that are present and have not ended; none of a controller whose spec has no number of pods."""
    if isinstance(controller, Job):
        left = (controller.spec.completions or controller.spec.parallelism) - controller.status.succeeded
        wanted = 0 if controller.is_finished() else min(controller.pods_at_once(), max(left, 0))
    elif isinstance(controller, Deployment | ReplicaSet | StatefulSet):
        wanted = controller.spec.replicas
    else:
        return 0
    return max(wanted - present, 0)


def pod_of_template(controller: object) -> Pod | None:
    """A pod as the controller would create it."""
    if not isinstance(controller, Deployment | Job | ReplicaSet | StatefulSet):
        return None
    return Pod(metadata=controller.spec.template.metadata, spec=controller.spec.template.spec)


def replica_sets_of(documents: Iterable[Document], deployment: str) -> Iterator[str]:
    """The keys of its ReplicaSets, those without pods too: their Events tell why pods are refused."""
    for document in documents:
        value = document.value
        owner = value.metadata.controller() if isinstance(value, ReplicaSet) else None
        if isinstance(value, ReplicaSet) and owner is not None:
            namespace = value.metadata.namespace
            if (owner.kind, f"{namespace}/{owner.name}") == ("Deployment", deployment):
                yield value.metadata.key
