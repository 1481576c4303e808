"""What drains stop: gangs, the work since the last checkpoint, and the mates of pods that leave."""

from __future__ import annotations

import pytest

from shoal.controllers.driver_upgrades.running_work import RunningWork
from shoal.engine.asks import Ask
from shoal.engine.events import GroupGone, GroupSeen, PodBound, PodGone
from shoal.engine.groups import GangSubgroup, GroupFacts
from shoal.engine.pod_identity import PodIdentity

NOW_S = 10_000.0


def bound(key: str, node: str = "n1", group: str = "", **more: object) -> PodBound:
    who = PodIdentity(group=group, since_s=NOW_S - 600)
    return PodBound(key, Ask(), node, who=who, **more)  # type: ignore[arg-type]


def work(*events: object) -> RunningWork:
    found = RunningWork()
    found.apply(events)  # type: ignore[arg-type]
    return found


def gang(minimum: int, **more: object) -> GroupSeen:
    return GroupSeen(GroupFacts("d/g", minimum=minimum, **more))  # type: ignore[arg-type]


PODS = [bound(f"d/{number}", f"n{number}", "d/g") for number in range(1, 4)]


@pytest.mark.parametrize(
    ("group", "leaving", "mates"),
    [
        pytest.param(gang(3), ["d/1"], ["d/2", "d/3"], id="a gang without spare members stops as a whole"),
        pytest.param(gang(2), ["d/1"], [], id="a spare member may leave alone"),
        pytest.param(gang(2), ["d/1", "d/2"], ["d/3"], id="more than the spare members stop the gang"),
        pytest.param(gang(1), ["d/1"], [], id="a group with a minimum of one pod is no gang"),
        pytest.param(
            gang(1, parts=(GangSubgroup("a", minimum=1),)), ["d/1"], ["d/2", "d/3"], id="a gang with parts spares none"
        ),
        pytest.param(gang(3), ["d/other"], [], id="a pod that is not known has no mates"),
    ],
)
def test_the_mates_of_leaving_pods_are_those_of_gangs_that_stop(
    group: GroupSeen, leaving: list[str], mates: list[str]
) -> None:
    assert work(group, *PODS).mates(leaving) == mates


def test_a_group_that_is_gone_and_a_pod_that_has_ended_count_no_longer() -> None:
    assert work(gang(3), *PODS, GroupGone("d/g")).mates(["d/1"]) == []
    assert work(gang(3), *PODS, PodGone("d/3")).mates(["d/1"]) == ["d/2"]


def test_the_work_of_nodes_has_spare_members_and_leaves_out_pods_that_stay_or_leave_anyway() -> None:
    found = work(
        gang(2),
        *PODS,
        bound("d/daemon", daemon_set="d/ds"),
        bound("d/leaving", terminating=True),
        bound("d/alone", priority=7),
    ).node_work(NOW_S)
    assert [pod.name for pod in found.pods] == ["d/1", "d/2", "d/3", "d/alone"]
    assert found.spare_members == {"d/g": 1}
    assert {pod.saved_s for pod in found.pods} == {NOW_S - 600}
    assert (found.pods[-1].gang, found.pods[-1].priority) == ("", 7)
