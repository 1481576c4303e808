"""Builds the pods of a job from its template."""

from __future__ import annotations

from copy import deepcopy

from shoal.embedded.controllers.jobs.claims import owner_reference
from shoal.embedded.controllers.jobs.job import BatchJob, Obj
from shoal.embedded.controllers.jobs.names import (
    INDEX,
    INDEX_FAILURES,
    INDEX_IGNORED_FAILURES,
    INDEX_VARIABLE,
    TRACKING,
)
from shoal.embedded.controllers.jobs.pods import JobPod
from shoal.embedded.controllers.jobs.policies import decide_failure

_LONGEST_PREFIX = 58
"""The API server appends five letters to a prefix, and the name must be a valid host name."""


def new_pod(job: BatchJob, index: int | None, replaces: JobPod | None) -> Obj:
    """`replaces`: the last failed pod of the index, for a job with a backoff limit per index."""
    template = job.spec.template
    given = template.get("metadata") or {}
    metadata: Obj = {
        "namespace": job.metadata.namespace,
        "generateName": f"{job.metadata.name}-",
        "labels": dict(given.get("labels") or {}),
        "annotations": dict(given.get("annotations") or {}),
        "finalizers": [*dict.fromkeys([*(given.get("finalizers") or ()), TRACKING])],
        "ownerReferences": [owner_reference(job)],
    }
    spec: Obj = deepcopy(template["spec"])
    if index is not None:
        ending = f"-{index}-"
        metadata["generateName"] = job.metadata.name[: _LONGEST_PREFIX - len(ending)] + ending
        metadata["annotations"][INDEX] = metadata["labels"][INDEX] = str(index)
        spec["hostname"] = f"{job.metadata.name}-{index}"
        for key in ("initContainers", "containers"):
            for container in spec.get(key) or ():
                _tell_index(container)
        if job.spec.backoff_limit_per_index is not None:
            metadata["annotations"] |= _failure_counts(job, replaces)
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec}


def _tell_index(container: Obj) -> None:
    variables = container.setdefault("env", [])
    if all(one["name"] != INDEX_VARIABLE for one in variables):
        path = f"metadata.labels['{INDEX}']"
        variables.append({"name": INDEX_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": path}}})


def _failure_counts(job: BatchJob, replaces: JobPod | None) -> dict[str, str]:
    if replaces is None:
        return {INDEX_FAILURES: "0"}
    counts = decide_failure(job.spec.pod_failure_policy, replaces, has_limit_per_index=True).counts
    failures, ignored = replaces.index_failures + counts, replaces.index_ignored + (not counts)
    written = {INDEX_FAILURES: str(failures)}
    return written | ({INDEX_IGNORED_FAILURES: str(ignored)} if ignored else {})
