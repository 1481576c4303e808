"""A pod's priority is what its PriorityClass says."""

from __future__ import annotations

import pytest

from build.cluster_reader import FakeReader, Obj, creating, named, pod, updating, world
from shoal.embedded.apiserver.admission.chain import builtin_plugins
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.status import ApiError


def admitted(reader: FakeReader, write: AdmissionAttributes) -> Obj:
    plugins = builtin_plugins(reader, suffix=lambda: "abcde")
    plugins.mutate(write)
    plugins.validate(write)
    assert write.obj is not None
    return write.obj


def refusal(reader: FakeReader, write: AdmissionAttributes) -> ApiError:
    with pytest.raises(ApiError) as caught:
        admitted(reader, write)
    return caught.value


def test_a_class_gives_a_pod_its_priority() -> None:
    reader = world(named("PriorityClass", "high", value=1000, preemptionPolicy="Never"))
    spec = admitted(reader, creating(pod("x", priorityClassName="high")))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")


def test_a_pod_without_a_class_has_priority_zero_or_the_default_classs() -> None:
    reader = world()
    plain = admitted(reader, creating(pod()))["spec"]
    assert (plain["priority"], plain["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert "priorityClassName" not in plain
    reader.put(named("PriorityClass", "usual", value=7, globalDefault=True, preemptionPolicy="PreemptLowerPriority"))
    spec = admitted(reader, creating(pod()))["spec"]
    assert (spec["priorityClassName"], spec["priority"]) == ("usual", 7)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"priorityClassName": "nope"}, "no PriorityClass with name nope was found"),
        (
            {"priorityClassName": "high", "priority": 5},
            (
                "the integer value of priority (5) must not be provided in pod spec; priority admission controller "
                "computed 1000 from the given PriorityClass name"
            ),
        ),
        (
            {"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"},
            (
                "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; "
                "priority admission controller computed Never from the given PriorityClass name"
            ),
        ),
    ],
)
def test_a_priority_that_no_class_gives_is_refused(spec: Obj, words: str) -> None:
    reader = world(named("PriorityClass", "high", value=1000, preemptionPolicy="Never"))
    assert refusal(reader, creating(pod("x", **spec))).message == f'pods "x" is forbidden: {words}'


def test_an_update_that_leaves_the_priority_out_keeps_it() -> None:
    old = admitted(world(), creating(pod()))
    new = pod()
    assert admitted(world(), updating(old, new))["spec"]["priority"] == 0


def test_only_one_class_may_be_everybodys_default() -> None:
    reader = world(named("PriorityClass", "usual", value=1, globalDefault=True))
    second = creating(named("PriorityClass", "other", value=2, globalDefault=True))
    assert refusal(reader, second).message == (
        'priorityclasses.scheduling.k8s.io "other" is forbidden: PriorityClass usual is already marked as default. '
        "Only one default can exist"
    )
    usual = named("PriorityClass", "usual", value=1, globalDefault=True)
    admitted(reader, updating(usual, usual))


def test_of_two_default_classes_the_lower_one_counts() -> None:
    reader = world(
        named("PriorityClass", "b", value=9, globalDefault=True),
        named("PriorityClass", "a", value=5, globalDefault=True),
    )
    assert admitted(reader, creating(pod()))["spec"]["priorityClassName"] == "a"
