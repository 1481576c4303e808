"""What happens to a queued pod group while it runs: more pods, lost pods, its end, its preemption."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.fake_admission import condition
from build.queued_groups import QUEUE, QueuedGroups, group_cluster, member_object, resize_group
from build.virtual_time import in_virtual_time, virtual
from shoal.client.ecosystem_kinds import KAI_POD_GROUPS, WORKLOADS
from shoal.client.kind import PODS, PRIORITY_CLASSES
from shoal.client.port import Deletion
from shoal.controllers.gatekeeping.held_kinds import QUEUE_LABEL


def names(*indexes: int, group: str = "train") -> set[str]:
    return {f"{group}-{index}" for index in indexes}


async def started(groups: QueuedGroups, minimum: int, *indexes: int, group: str = "train") -> None:
    """A Volcano group with these pods."""
    await groups.group("volcano", group, minimum)
    for index in indexes:
        await groups.join("volcano", group, f"{group}-{index}")


async def is_finished(groups: QueuedGroups, name: str = "train") -> tuple[str, str]:
    """Reason and message of the condition, empty while there is none."""
    found = condition(await groups.cluster.get(WORKLOADS, name), "Finished")
    return found.get("reason", ""), found.get("message", "")


@virtual
async def test_a_group_starts_with_its_minimum_where_quota_is_short(tmp_path: Path) -> None:
    async with group_cluster(tmp_path, cpu="3") as groups:
        await started(groups, 2, *range(5))
        await groups.cluster.pass_time(20)
        assert len(await groups.bound()) == 3
        (pod_set,) = (await groups.cluster.get(WORKLOADS, "train"))["spec"]["podSets"]
        assert (pod_set["count"], pod_set["minCount"], await groups.used()) == (5, 2, "3")


@virtual
async def test_a_group_grows_into_quota_that_others_give_back(tmp_path: Path) -> None:
    async with group_cluster(tmp_path, cpu="5") as groups:
        await started(groups, 2, 0, 1, group="other")
        await groups.until_bound(*names(0, 1, group="other"))
        await started(groups, 2, *range(5))
        await groups.cluster.pass_time(20)
        first = await groups.bound() - names(0, 1, group="other")
        assert len(first) == 3
        before = {pod["metadata"]["uid"] for pod in await groups.cluster.pods() if pod["metadata"]["name"] in first}
        await groups.succeed(*names(0, 1, group="other"))
        await groups.until_bound(*names(*range(5)))
        after = {pod["metadata"]["uid"] for pod in await groups.cluster.pods()}
        assert before <= after
        await groups.cluster.pass_time(5)
        assert await groups.used() == "5"


@virtual
async def test_a_group_grows_by_as_many_pods_as_there_is_quota_for(tmp_path: Path) -> None:
    async with group_cluster(tmp_path, cpu="4") as groups:
        await started(groups, 2, 0, 1)
        await groups.until_bound(*names(0, 1))
        for index in range(2, 7):
            await groups.join("volcano", "train", f"train-{index}")
        await groups.cluster.pass_time(30)
        assert (len(await groups.bound()), await groups.used()) == (4, "4")


@virtual
async def test_pods_that_arrive_after_the_admission_are_admitted_too(tmp_path: Path) -> None:
    async with group_cluster(tmp_path, cpu="4") as groups:
        await started(groups, 2, 0, 1)
        await groups.until_bound(*names(0, 1))
        await groups.join("volcano", "train", "train-2")
        await groups.until_bound(*names(0, 1, 2))
        await groups.join("volcano", "train", "train-3")
        await groups.until_bound(*names(0, 1, 2, 3))
        await groups.cluster.pass_time(5)
        assert (await groups.used(), sum((await groups.admitted()).values())) == ("4", 4)


@virtual
async def test_pods_that_arrive_while_the_group_waits_are_counted(tmp_path: Path) -> None:
    async with group_cluster(tmp_path, cpu="3") as groups:
        await started(groups, 3, 0, 1, 2, group="other")
        await groups.until_bound(*names(0, 1, 2, group="other"))
        await started(groups, 2, 0, 1)
        await groups.cluster.pass_time(3)
        await groups.join("volcano", "train", "train-2")
        await groups.cluster.pass_time(3)
        (pod_set,) = (await groups.cluster.get(WORKLOADS, "train"))["spec"]["podSets"]
        assert (pod_set["count"], pod_set["minCount"]) == (3, 2)
        await groups.succeed(*names(0, 1, 2, group="other"))
        await groups.until_bound(*names(0, 1, 2))


@virtual
async def test_a_group_that_loses_pods_while_it_waits_gets_no_quota(tmp_path: Path) -> None:
    async with group_cluster(tmp_path, cpu="3") as groups:
        await started(groups, 3, 0, 1, 2, group="other")
        await groups.until_bound(*names(0, 1, 2, group="other"))
        await started(groups, 2, 0, 1)
        await groups.cluster.pass_time(3)
        await groups.cluster.delete(PODS, "train-0")
        await groups.cluster.pass_time(3)
        assert "train-0" not in await groups.names()
        assert [one["metadata"]["name"] for one in await groups.workloads()] == ["other"]
        await groups.succeed(*names(0, 1, 2, group="other"))
        await groups.cluster.pass_time(10)
        assert (await groups.bound(), await groups.admitted()) == (set(), {})
        await groups.join("volcano", "train", "train-0")
        await groups.until_bound(*names(0, 1))


@virtual
async def test_a_lost_member_is_replaced_by_a_pod_of_the_same_name_within_the_quota_of_its_group(
    tmp_path: Path,
) -> None:
    async with group_cluster(tmp_path, cpu="2") as groups:
        await started(groups, 2, 0, 1)
        await groups.until_bound(*names(0, 1))
        await groups.cluster.delete(PODS, "train-0")
        await groups.end_deleted()
        await groups.cluster.pass_time(2)
        assert "train-0" not in await groups.names()
        await started(groups, 1, 0, group="thief")
        await groups.cluster.pass_time(5)
        assert await groups.bound() == names(1)
        await groups.join("volcano", "train", "train-0")
        await groups.until_bound(*names(0, 1))


@virtual
async def test_a_group_has_finished_when_its_pods_succeeded(tmp_path: Path) -> None:
    async with group_cluster(tmp_path, cpu="3") as groups:
        await started(groups, 2, 0, 1, 2)
        await groups.until_bound(*names(0, 1, 2))
        await groups.succeed("train-0")
        await groups.cluster.pass_time(3)
        assert (await is_finished(groups), await groups.used()) == (("", ""), "2")
        await groups.succeed("train-1", "train-2")
        await groups.cluster.pass_time(5)
        assert await is_finished(groups) == ("Succeeded", "Pods succeeded: 3/3.")
        assert await groups.used() == "0"
        for name in names(0, 1, 2):
            await groups.cluster.delete(PODS, name, Deletion(grace_s=0))
        await groups.cluster.pass_time(3)
        assert await groups.names() == set()


@virtual
async def test_a_group_whose_pods_all_ended_without_enough_successes_has_failed_and_may_come_again(
    tmp_path: Path,
) -> None:
    async with group_cluster(tmp_path, cpu="2") as groups:
        await started(groups, 2, 0, 1)
        await groups.until_bound(*names(0, 1))
        await groups.phase("Failed", "train-0", "train-1")
        await groups.cluster.pass_time(5)
        assert await is_finished(groups) == ("Failed", "Pods succeeded: 0/2.")
        assert await groups.used() == "0"
        await groups.join("volcano", "train", "train-2")
        await groups.join("volcano", "train", "train-3")
        await groups.until_bound(*names(2, 3))


@virtual
async def test_pods_that_succeeded_take_no_place_of_a_group_that_grows(tmp_path: Path) -> None:
    async with group_cluster(tmp_path, cpu="4") as groups:
        await started(groups, 2, 0, 1, 2)
        await groups.until_bound(*names(0, 1, 2))
        await groups.succeed("train-0")
        await groups.cluster.pass_time(3)
        await groups.join("volcano", "train", "train-3")
        await groups.join("volcano", "train", "train-4")
        await groups.until_bound(*names(1, 2, 3, 4))
        await groups.cluster.pass_time(5)
        assert await groups.used() == "4"
        await groups.succeed("train-1")
        await groups.phase("Failed", "train-2", "train-3", "train-4")
        await groups.cluster.pass_time(5)
        (ended,) = {
            (condition(one, "Finished")["reason"], condition(one, "Finished")["message"])
            for one in await groups.workloads()
            if "Replaced" not in condition(one, "Finished")["message"]
        }
        # The group needs two pods that succeeded.
        assert ended == ("Succeeded", "Pods succeeded: 2/5.")
        assert await groups.used() == "0"


@virtual
async def test_a_deleted_group_gives_its_quota_back(tmp_path: Path) -> None:
    async with group_cluster(tmp_path, cpu="2") as groups:
        await started(groups, 2, 0, 1)
        await started(groups, 2, 0, 1, group="next")
        await groups.cluster.pass_time(10)
        (first, second) = ("train", "next") if "train-0" in await groups.bound() else ("next", "train")
        for name in names(0, 1, group=first):
            await groups.cluster.delete(PODS, name)
        await groups.end_deleted()
        await groups.until_bound(*names(0, 1, group=second))
        assert not names(0, 1, group=first) & await groups.names()


@virtual
async def test_preemption_stops_the_whole_group_and_it_runs_again_when_its_pods_come_back(tmp_path: Path) -> None:
    async with group_cluster(tmp_path, cpu="3", preemption={"withinClusterQueue": "LowerPriority"}) as groups:
        await started(groups, 2, 0, 1, 2)
        await groups.until_bound(*names(0, 1, 2))
        await groups.cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "urgent"}, "value": 100})
        await groups.group("volcano", "urgent", 2)
        for index in range(2):
            await groups.join("volcano", "urgent", f"urgent-{index}", priorityClassName="urgent")
        await groups.cluster.pass_time(10)
        assert await groups.ending() == names(0, 1, 2)
        await groups.end_deleted()
        await groups.until_bound(*names(0, 1, group="urgent"))
        await groups.cluster.pass_time(5)
        assert await groups.names() == names(0, 1, group="urgent")
        # The owner of the pods creates them again, one by one.
        await groups.join("volcano", "train", "train-0")
        await groups.succeed(*names(0, 1, group="urgent"))
        await groups.cluster.pass_time(10)
        assert (await groups.bound(), await groups.admitted()) == (set(), {})
        await groups.join("volcano", "train", "train-1")
        await groups.until_bound(*names(0, 1))


@virtual
async def test_a_preempted_group_of_which_one_pod_came_back_gets_no_quota(tmp_path: Path) -> None:
    async with group_cluster(tmp_path, cpu="2", preemption={"withinClusterQueue": "LowerPriority"}) as groups:
        await started(groups, 2, 0, 1)
        await groups.until_bound(*names(0, 1))
        await groups.cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "urgent"}, "value": 100})
        await groups.pod(
            "urgent", cpu="2", schedulerName="shoal", priorityClassName="urgent", labels={QUEUE_LABEL: QUEUE}
        )
        await groups.cluster.pass_time(5)
        assert await groups.ending() == names(0, 1)
        # One replacement is there before the stopped pods have ended.
        await groups.join("volcano", "train", "train-2")
        await groups.cluster.pass_time(2)
        await groups.end_deleted()
        await groups.until_bound("urgent")
        await groups.succeed("urgent")
        await groups.cluster.pass_time(20)
        assert (await groups.bound(), await groups.admitted(), await groups.held()) == (set(), {}, names(2))
        await groups.join("volcano", "train", "train-3")
        await groups.until_bound(*names(2, 3))


@virtual
async def test_members_that_a_role_needs_are_admitted_first(tmp_path: Path) -> None:
    async with group_cluster(tmp_path, cpu="3") as groups:
        await groups.group("volcano", "train", 2, minTaskMember={"master": 1, "worker": 1})
        for index in range(4):
            await groups.join("volcano", "train", f"w{index}", annotations={"volcano.sh/task-spec": "worker"})
        await groups.cluster.pass_time(5)
        assert await groups.workloads() == []
        (reason, message) = (await groups.pod_reasons("w0"))[0]
        assert (reason, message) == (
            "ErrWorkloadCompose",
            "role master of pod group default/train has 0 of the 1 pods that it needs: it is queued once 1 more exists",
        )
        await groups.cluster.pass_time(2)
        await groups.join("volcano", "train", "m", annotations={"volcano.sh/task-spec": "master"})
        await groups.cluster.pass_time(20)
        bound = await groups.bound()
        assert (len(bound), "m" in bound) == (3, True)


@virtual
async def test_the_subgroups_of_a_kai_group_are_one_decision(tmp_path: Path) -> None:
    async with group_cluster(tmp_path, cpu="4") as groups:
        spec = {
            "subGroups": [{"name": "leaders", "minMember": 1}, {"name": "workers", "minMember": 2}],
        }
        await groups.cluster.create(KAI_POD_GROUPS, {"metadata": {"name": "train"}, "spec": spec})
        for part, *members in (("workers", "w0", "w1", "w2"), ("leaders", "l0")):
            for name in members:
                labels = {"kai.scheduler/subgroup-name": part}
                await groups.join("kai", "train", name, labels=labels, cpu="2" if part == "leaders" else "1")
        await groups.cluster.pass_time(20)
        bound = await groups.bound()
        assert (len(bound), "l0" in bound, await groups.used()) == (3, True, "4")


@virtual
async def test_pods_of_a_shape_that_the_admitted_group_does_not_have_wait_with_the_reason(tmp_path: Path) -> None:
    async with group_cluster(tmp_path, cpu="4") as groups:
        await started(groups, 2, 0, 1)
        await groups.until_bound(*names(0, 1))
        await groups.join("volcano", "train", "big", cpu="2")
        await groups.cluster.pass_time(5)
        assert await groups.bound() == names(0, 1)
        message = (
            "pod group default/train is admitted without pods of this shape: the pod is queued with the group when the "
            "group has ended or is preempted"
        )
        assert ("ErrWorkloadCompose", message) in await groups.pod_reasons("big")


@virtual
async def test_a_larger_minimum_counts_for_a_group_that_waits(tmp_path: Path) -> None:
    async with group_cluster(tmp_path, cpu="3") as groups:
        await started(groups, 3, 0, 1, 2, group="other")
        await groups.until_bound(*names(0, 1, 2, group="other"))
        await started(groups, 2, 0, 1)
        await groups.cluster.pass_time(3)
        await resize_group(groups, "volcano", "train", 3)
        await groups.cluster.pass_time(3)
        assert [one["metadata"]["name"] for one in await groups.workloads()] == ["other"]
        await groups.succeed(*names(0, 1, 2, group="other"))
        await groups.join("volcano", "train", "train-2")
        await groups.until_bound(*names(0, 1, 2))


@pytest.mark.parametrize("after_s", [0.0, 0.005, 0.02, 0.1, 0.5])
def test_a_killed_scheduler_admits_the_group_once(tmp_path: Path, after_s: float) -> None:
    async def run() -> None:
        async with group_cluster(tmp_path, cpu="3") as groups:
            await started(groups, 2, 0, 1, 2)
            await groups.cluster.pass_time(after_s)
            await groups.process.kill()
            await groups.cluster.pass_time(3)
            groups.restart()
            await groups.until_bound(*names(0, 1, 2))
            await groups.cluster.pass_time(5)
            assert (await groups.used(), await groups.admitted()) == ("3", {"train": 3})

    in_virtual_time(run())


def test_the_pods_of_these_tests_have_equal_shapes() -> None:
    """A test about one pod set would mean nothing otherwise."""
    one, other = (member_object("volcano", "train", name)["spec"] for name in ("a", "b"))
    assert one == other
