"""How the pods of a group are queued: whatever the group is, the least that is admitted is enough for its gang."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.engine.gangs.teams import Roster
from shoal.engine.groups import GangSubgroup, GroupFacts
from shoal.engine.pod_identity import PodIdentity
from shoal.engine.queues.pod_groups import (
    MOST_SHAPES,
    GroupRefusal,
    GroupWorkload,
    QueuedMember,
    group_workload,
    is_complete,
    is_one_by_one,
)

_PARTS, _ROLES, _SHAPES = ("", "p", "q"), ("", "master", "worker"), ("small", "large")


def member(name: str, shape: str = "small", queue: str = "q", part: str = "", role: str = "") -> QueuedMember:
    return QueuedMember(name, queue, shape, PodIdentity(group="t/g", part=part, role=role))


def runs(facts: GroupFacts, pods: Sequence[QueuedMember]) -> bool:
    """Whether the gang has all that it needs when these pods run."""
    return Roster(facts, {}, {one.name: one.who for one in pods}).is_met


@st.composite
def groups(draw: st.DrawFn) -> tuple[GroupFacts, list[QueuedMember]]:
    chance = st.booleans()
    parts = [GangSubgroup(name, minimum=draw(st.integers(0, 3))) for name in _PARTS[1:] if draw(chance)]
    roles = [(role, draw(st.integers(1, 2))) for role in _ROLES[1:] if draw(chance)]
    has_least = draw(chance)
    least = draw(st.integers(0, len(parts))) if parts and has_least else None
    facts = GroupFacts("t/g", draw(st.integers(0, 5)), tuple(parts), least, tuple(roles))
    chosen = st.tuples(st.sampled_from(_SHAPES), st.sampled_from(_PARTS), st.sampled_from(_ROLES))
    members = [
        member(f"pod-{index}", shape, part=part, role=role)
        for index, (shape, part, role) in enumerate(draw(st.lists(chosen, min_size=1, max_size=9)))
    ]
    return facts, members


@settings(max_examples=examples(300), deadline=None)
@given(groups())
def test_the_least_that_is_admitted_is_enough_for_the_gang_and_too_few_pods_are_refused(
    group: tuple[GroupFacts, list[QueuedMember]],
) -> None:
    facts, members = group
    found = group_workload("t/g", facts, members)
    if isinstance(found, GroupRefusal):
        assert found.lacks_pods
        # A subgroup that is not needed starts whole or not at all, although a part of it would count for the gang.
        assert facts.parts_minimum is not None or not runs(facts, members)
        return
    by_name = {one.name: one for one in members}
    assert sorted(found.order) == sorted(by_name)
    assert {each.shape: each.count for each in found.pod_sets} == {
        shape: sum(one.shape == shape for one in members) for shape in {one.shape for one in members}
    }
    admitted: list[QueuedMember] = []
    for each in found.pod_sets:
        least = found.least_of(each.shape)
        count = each.count if least is None else least
        admitted += [by_name[name] for name in found.order if by_name[name].shape == each.shape][:count]
    assert runs(facts, admitted)
    assert sum(found.least_of(each.shape) is not None for each in found.pod_sets) <= 1


def test_a_group_that_needs_all_its_pods_has_no_elastic_ones() -> None:
    found = group_workload("t/g", GroupFacts("t/g", 2), [member("a"), member("b")])
    assert isinstance(found, GroupWorkload)
    assert (found.elastic, found.least_of("small")) == ("", None)


def test_the_pods_that_run_are_those_that_the_gang_needs() -> None:
    members = [member("old"), QueuedMember("new", "q", "small", PodIdentity(group="t/g"), runs=True)]
    found = group_workload("t/g", GroupFacts("t/g", 1), members)
    assert isinstance(found, GroupWorkload)
    assert found.order == ("new", "old")


REFUSALS = {
    "pods of two queues": (
        GroupFacts("t/g", 1),
        [member("a"), member("b", queue="other")],
        (
            "pods a and b of pod group t/g name different queues, q and other: give all pods of the group the same "
            "label kueue.x-k8s.io/queue-name"
        ),
    ),
    "a group that does not exist": (
        None,
        [member("a")],
        "pod group t/g not found: its pods are queued once it exists",
    ),
    "a group that cannot be read": (
        GroupFacts("t/g", unreadable="spec.minMember: is negative"),
        [member("a")],
        "pod group t/g cannot be read: spec.minMember: is negative",
    ),
    "subgroups that make no tree": (
        GroupFacts("t/g", parts=(GangSubgroup("p", "absent", 1),)),
        [member("a")],
        "pod group t/g cannot be read: part p is inside part absent, which does not exist",
    ),
    "a subgroup without enough pods": (
        GroupFacts("t/g", parts=(GangSubgroup("p", minimum=3),)),
        [member("a", part="p"), member("b")],
        "subgroup p of pod group t/g has 1 of the 3 pods that it needs: it is queued once 2 more exist",
    ),
    "more shapes than a Workload has pod sets": (
        GroupFacts("t/g", 1),
        [member(f"pod-{index}", str(index)) for index in range(MOST_SHAPES + 1)],
        (
            "the pods of pod group t/g have 19 shapes, and a Workload has at most 18 pod sets: give more of them equal "
            "requests and constraints"
        ),
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_it_is_refused_for(case: str) -> None:
    facts, members, message = REFUSALS[case]
    found = group_workload("t/g", facts, members)
    assert isinstance(found, GroupRefusal)
    assert found.message == message


@pytest.mark.parametrize(
    ("facts", "one_by_one", "complete"),
    [
        (GroupFacts("t/g", 0), True, True),
        (GroupFacts("t/g", 1), True, False),
        (GroupFacts("t/g", 2), False, False),
        (GroupFacts("t/g", 0, roles=(("master", 1),)), False, False),
        (GroupFacts("t/g", 0, parts=(GangSubgroup("p", minimum=0),)), False, True),
        (GroupFacts("t/g", 0, parts=(GangSubgroup("p", minimum=1),)), False, False),
        (GroupFacts("t/g", 0, parts=(GangSubgroup("p", minimum=1), GangSubgroup("c", "p", 0))), False, True),
        (GroupFacts("t/g", 0, unreadable="no"), False, True),
    ],
)
def test_what_a_minimum_ties_together_and_when_it_is_met(
    facts: GroupFacts, *, one_by_one: bool, complete: bool
) -> None:
    assert (is_one_by_one(facts), is_complete(facts)) == (one_by_one, complete)
