"""Objects of a bundle may have any structure: no field of any type ends a diagnosis or the readiness check."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from build.diagnosed_clusters import GPU_TAINT, gpu_node, waiting
from build.manifests import Object, thing
from shoal.policy.diagnosis.cluster_facts import DiagnosedCluster
from shoal.policy.diagnosis.trees import diagnose
from shoal.policy.diagnosis.verdicts import Patient
from shoal.policy.readiness.checklist import needed_kinds, readiness
from shoal.policy.readiness.outcomes import ReadinessFacts

QUEUES = "kueue.x-k8s.io/v1beta2"
GROUP = {
    "coveredResources": ["nvidia.com/gpu"],
    "flavors": [{"name": "h100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8}]}],
}
SETS = [{"name": "main", "count": 1, "template": {"spec": {"containers": [{"resources": {"limits": {"a": 1}}}]}}}]
OBJECTS = [
    waiting(schedulingGates=[{"name": "gate"}], tolerations=[{"key": "a"}]),
    gpu_node("gpu-1", spec={"taints": [GPU_TAINT]}),
    gpu_node("gpu-2"),
    thing(QUEUES, "LocalQueue", "team/gpus", spec={"clusterQueue": "shared"}),
    thing(QUEUES, "ClusterQueue", "shared", spec={"namespaceSelector": {}, "resourceGroups": [GROUP]}),
    thing(QUEUES, "Workload", "team/w", spec={"queueName": "gpus", "podSets": SETS}),
]
ODD: tuple[Any, ...] = ([], 5, {"a": [5]})


def _places(value: Any, *path: str | int) -> Iterator[tuple[str | int, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, each in inner:
        yield (*path, step)
        yield from _places(each, *path, step)


def _changed(obj: Object, path: tuple[str | int, ...], odd: Any) -> Object:
    made: Any = copy.deepcopy(obj)
    holder = made
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = odd
    return made  # type: ignore[no-any-return]


@pytest.mark.parametrize("at", range(len(OBJECTS)), ids=[obj["kind"] for obj in OBJECTS])
def test_a_field_of_any_type_ends_neither_the_diagnosis_nor_the_check(at: int) -> None:
    places = [(part, *path) for part in ("spec", "status") for path in ((), *_places(OBJECTS[at].get(part)))]
    assert len(places) > 2
    for path in places:
        for odd in ODD:
            objects = [*OBJECTS[:at], _changed(OBJECTS[at], path, odd), *OBJECTS[at + 1 :]]
            facts = DiagnosedCluster(objects, needed_kinds())
            assert diagnose(facts, Patient("cluster")) is not None
            assert diagnose(facts, Patient("pod", "train", "team")) is not None
            assert readiness(ReadinessFacts(facts)).items
