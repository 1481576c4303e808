"""What a history keeps of new pods for the admission rules, and the report by rule and namespace."""

from __future__ import annotations

from typing import Any

import pytest

from build.ruled_pods import container, pod
from shoal.policy.admission_rules.modes import MAXIMUM_LABEL, MODE_LABEL, RuleModes
from shoal.policy.admission_rules.past import CreatedPods, PastLine, broken_rules, past_preview
from shoal.policy.object_set import ObjectSet

Obj = dict[str, Any]
PINNED = "registry.example/train:1"
SIZED = {"limits": {"nvidia.com/gpu": "1", "memory": "1Gi"}}


def broken(made: Obj, **labels: str) -> tuple[str, ...]:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": labels}}
    return broken_rules(made, ObjectSet([namespace]))


@pytest.mark.parametrize(
    ("made", "ids"),
    [
        (pod(container(image=PINNED, resources=SIZED)), ()),
        (pod(container(image=PINNED, resources=SIZED), tolerations=[]), ("SHL-352",)),
        (pod(container(image=PINNED)), ("SHL-322",)),
        (pod(container(0, image=PINNED, securityContext={"privileged": True}), nodeSelector={}), ("SHL-354",)),
        (pod(container(1, "nvidia.com/gpus", image=PINNED)), ("SHL-210",)),
    ],
)
def test_the_rules_that_a_pod_breaks_are_named_by_their_ids(made: Obj, ids: tuple[str, ...]) -> None:
    assert broken(made) == ids


def test_the_chosen_node_of_a_pod_is_no_selection_of_its_author() -> None:
    bound = pod(container(image=PINNED, resources=SIZED), nodeSelector={}, nodeName="gpu-1")
    assert broken(bound) == ("SHL-353",)
    assert bound["spec"]["nodeName"] == "gpu-1"


def test_the_modes_that_a_namespace_has_now_do_not_matter_and_its_maximum_does() -> None:
    made = pod(container(4, image=PINNED, resources={"limits": {"nvidia.com/gpu": "4", "memory": "1Gi"}}))
    assert broken(made, **{MODE_LABEL: "off", MAXIMUM_LABEL: "2"}) == ("SHL-355",)


CREATED = [
    CreatedPods("red", "Job", "a", 0, 1, 8, ("SHL-352",)),
    CreatedPods("red", "Job", "a", 10, 11, 2, ("SHL-352", "SHL-353")),
    CreatedPods("red", "Pod", "b", 0, 1, 1, ("SHL-321",)),
    CreatedPods("blue", "Job", "c", 0, 1, 3, ("SHL-352",)),
    CreatedPods("blue", "Job", "d", 0, 1, 5, ()),
    CreatedPods("kube-system", "DaemonSet", "e", 0, 1, 9, ("SHL-354",)),
]


def test_the_report_counts_pods_and_workloads_by_rule_and_namespace() -> None:
    found = past_preview(CREATED, RuleModes(default="enforce"))
    assert (found.pods, found.refused, found.warned) == (28, 13, 1)
    assert found.lines == [
        PastLine("SHL-352", "NoGpuToleration", "red", "enforce", 10, 1, "Job a"),
        PastLine("SHL-352", "NoGpuToleration", "blue", "enforce", 3, 1, "Job c"),
        PastLine("SHL-353", "NoGpuNodeAffinity", "red", "enforce", 2, 1, "Job a"),
        PastLine("SHL-321", "SmallSharedMemory", "red", "warn", 1, 1, "Pod b"),
    ]


def test_a_rule_that_is_off_or_that_there_is_no_more_refuses_nothing() -> None:
    modes = RuleModes(default="off", rules={"NoGpuNodeAffinity": "warn"})
    found = past_preview([*CREATED, CreatedPods("red", "Job", "z", 0, 1, 1, ("SHL-999",))], modes)
    assert (found.pods, found.refused, found.warned) == (29, 0, 2)
    assert [line.rule for line in found.lines] == ["NoGpuNodeAffinity"]
