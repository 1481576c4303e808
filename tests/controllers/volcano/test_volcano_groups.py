"""Queues and pod groups on a whole control plane: who is let in, what starts, and what is said of it."""

from __future__ import annotations

from pathlib import Path

from build.virtual_time import virtual
from build.volcano_scenes import volcano_scene
from shoal.client.ecosystem_kinds import VOLCANO_POD_GROUPS, VOLCANO_QUEUES
from shoal.client.kind import PODS


@virtual
async def test_the_queues_that_everybody_relies_on_are_made_and_open(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await scene.cluster.pass_time(3)
        for name in ("default", "root"):
            status = await scene.status(VOLCANO_QUEUES, name)
            assert status["state"] == "Open"
            assert status["allocated"] == {"cpu": "0", "memory": "0"}
        assert (await scene.cluster.get(VOLCANO_QUEUES, "default"))["spec"]["reclaimable"] is True
        assert (await scene.cluster.get(VOLCANO_QUEUES, "root"))["spec"]["reclaimable"] is False


@virtual
async def test_a_gang_of_three_waits_for_its_third_member_and_then_runs_to_its_end(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await scene.group("g", minMember=3, minResources={"nvidia.com/gpu": 3})
        for name in "ab":
            await scene.pod(name, "g", gpus=1)
        await scene.cluster.until(lambda: scene.phase_is("g", "Inqueue"))
        await scene.cluster.pass_time(5)
        assert await scene.bound() == set()
        words = "Not enough valid tasks for gang-scheduling, valid: 2, min: 3"
        assert await scene.condition("g") == ("True", "NotEnoughTasks", words)
        await scene.pod("c", "g", gpus=1)
        await scene.cluster.until(lambda: scene.phase_is("g", "Running"))
        await scene.cluster.pass_time(2)
        status = await scene.status(VOLCANO_POD_GROUPS, "g")
        assert (status["running"], status["succeeded"], status["failed"]) == (3, 0, 0)
        assert (await scene.condition("g", "Scheduled"))[:2] == ("True", "tasks in gang are ready to be scheduled")
        assert (await scene.condition("g"))[0] == "False"
        queue = await scene.status(VOLCANO_QUEUES, "default")
        assert queue["running"] == 1
        assert queue["allocated"]["nvidia.com/gpu"] == "3"
        for name in "abc":
            await scene.end(name)
        await scene.cluster.until(lambda: scene.phase_is("g", "Completed"))
        await scene.cluster.pass_time(1)
        queue = await scene.status(VOLCANO_QUEUES, "default")
        assert (queue["running"], queue["completed"]) == (0, 1)
        assert "nvidia.com/gpu" not in queue["allocated"]


@virtual
async def test_a_group_beyond_its_queues_capability_waits_and_starts_when_there_is_room(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await scene.queue("research", capability={"nvidia.com/gpu": 4})
        await scene.group("first", minMember=1, minResources={"nvidia.com/gpu": 3}, queue="research")
        await scene.pod("a", "first", gpus=3)
        await scene.cluster.until(lambda: scene.phase_is("first", "Running"))
        await scene.group("second", minMember=1, minResources={"nvidia.com/gpu": 2}, queue="research")
        await scene.pod("b", "second", gpus=2)
        await scene.cluster.pass_time(5)
        assert await scene.phase_is("second", "Pending")
        assert await scene.bound_are("a")
        lack = "queue resource quota insufficient: insufficient nvidia.com/gpu"
        status, reason, message = await scene.condition("second")
        assert (status, reason) == ("True", "NotEnoughResources")
        assert message == (
            "1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable;"
            f" Pending: 1 Undetermined; {lack}"
        )
        assert ("Unschedulable", lack) in await scene.said("second")
        await scene.end("a")
        await scene.cluster.until(lambda: scene.phase_is("second", "Running"))


@virtual
async def test_groups_that_name_no_least_are_let_in_and_still_held_to_the_capability(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await scene.queue("research", capability={"nvidia.com/gpu": 4})
        for name in "abc":
            await scene.group(name, minMember=1, queue="research")
            await scene.pod(name, name, gpus=2)
        await scene.cluster.pass_time(5)
        assert len(await scene.bound()) == 2
        left = ({"a", "b", "c"} - await scene.bound()).pop()
        assert await scene.phase_is(left, "Inqueue")
        await scene.end((await scene.bound()).pop())
        await scene.cluster.until(lambda: scene.phase_is(left, "Running"))


@virtual
async def test_a_group_that_finds_no_node_does_not_keep_the_room_of_its_queue_for_ever(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path, gpus=4) as scene:
        await scene.queue("research", capability={"nvidia.com/gpu": 8})
        await scene.group("huge", minMember=1, queue="research")
        await scene.pod("huge", "huge", gpus=8)
        await scene.cluster.pass_time(2)
        await scene.group("small", minMember=1, queue="research")
        await scene.pod("small", "small", gpus=1)
        await scene.cluster.until(lambda: scene.bound_are("small"))


@virtual
async def test_nothing_of_an_unknown_queue_starts_and_the_group_says_so(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await scene.group("g", minMember=1, queue="nowhere")
        await scene.pod("a", "g")
        await scene.cluster.pass_time(5)
        words = 'unable to find queue: queues.scheduling.volcano.sh "nowhere" not found'
        assert await scene.condition("g") == ("True", "QueueNotFound", words)
        assert ("Unschedulable", words) in await scene.said("g")
        assert await scene.bound() == set()
        await scene.queue("nowhere")
        await scene.cluster.until(lambda: scene.phase_is("g", "Running"))


@virtual
async def test_a_closed_queue_lets_nothing_new_in_and_goes_from_closing_to_closed(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await scene.queue("team")
        await scene.group("old", minMember=1, queue="team")
        await scene.pod("a", "old")
        await scene.cluster.until(lambda: scene.phase_is("old", "Running"))
        await scene.command("CloseQueue", VOLCANO_QUEUES, "team")
        await scene.cluster.pass_time(3)
        assert (await scene.status(VOLCANO_QUEUES, "team"))["state"] == "Closing"
        assert ("CloseQueue", "Close queue succeed") in await scene.said("team")
        await scene.group("new", minMember=1, queue="team")
        await scene.pod("b", "new")
        await scene.cluster.pass_time(3)
        assert await scene.bound_are("a")
        words = "can only submit PodGroup to queue with state `Open`, queue `team` status is `Closing`"
        assert await scene.condition("new") == ("True", "QueueClosed", words)
        for name in ("old", "new"):
            await scene.cluster.delete(VOLCANO_POD_GROUPS, name)
        await scene.cluster.pass_time(3)
        assert (await scene.status(VOLCANO_QUEUES, "team"))["state"] == "Closed"
        await scene.command("OpenQueue", VOLCANO_QUEUES, "team")
        await scene.cluster.pass_time(3)
        assert (await scene.status(VOLCANO_QUEUES, "team"))["state"] == "Open"


@virtual
async def test_queues_below_a_closed_one_close_and_open_with_it(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await scene.queue("above")
        await scene.queue("below", parent="above")
        await scene.cluster.pass_time(2)
        await scene.command("CloseQueue", VOLCANO_QUEUES, "above")
        await scene.cluster.pass_time(2)
        assert (await scene.status(VOLCANO_QUEUES, "below"))["state"] == "Closed"
        await scene.command("OpenQueue", VOLCANO_QUEUES, "below")
        await scene.cluster.pass_time(2)
        assert (await scene.status(VOLCANO_QUEUES, "below"))["state"] == "Closed"
        await scene.command("OpenQueue", VOLCANO_QUEUES, "above")
        await scene.cluster.pass_time(2)
        assert (await scene.status(VOLCANO_QUEUES, "below"))["state"] == "Open"


@virtual
async def test_what_a_queue_above_may_take_holds_for_all_below_it(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await scene.queue("above", capability={"nvidia.com/gpu": 3})
        for name in ("left", "right"):
            await scene.queue(name, parent="above")
            await scene.group(name, minMember=1, minResources={"nvidia.com/gpu": 2}, queue=name)
            await scene.pod(name, name, gpus=2)
        await scene.cluster.pass_time(5)
        assert len(await scene.bound()) == 1
        assert (await scene.status(VOLCANO_QUEUES, "above"))["allocated"]["nvidia.com/gpu"] == "2"


@virtual
async def test_a_plain_pod_gets_a_group_of_its_own_and_pods_of_one_owner_share_theirs(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        made = await scene.pod("alone", gpus=1)
        name = "podgroup-" + made["metadata"]["uid"]
        await scene.cluster.until(lambda: scene.bound_are("alone"))
        group = await scene.cluster.get(VOLCANO_POD_GROUPS, name)
        assert group["spec"]["minMember"] == 1
        assert group["spec"]["minResources"]["nvidia.com/gpu"] == "1"
        assert group["metadata"]["ownerReferences"][0]["kind"] == "Pod"
        pod = await scene.cluster.get(PODS, "alone")
        assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == name


@virtual
async def test_a_priority_class_that_is_not_there_is_told_and_keeps_nothing_from_running(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await scene.group("g", minMember=1, priorityClassName="high-priority")
        await scene.pod("a", "g")
        await scene.cluster.until(lambda: scene.phase_is("g", "Running"))
        assert "PriorityClassNotFound" in {reason for reason, _ in await scene.said("g")}


@virtual
async def test_a_group_whose_gang_is_broken_is_unknown(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await scene.group("g", minMember=2)
        for name in "ab":
            await scene.pod(name, "g")
        await scene.cluster.until(lambda: scene.phase_is("g", "Running"))
        await scene.cluster.pass_time(2)
        await scene.end("a", "Failed", 1)
        await scene.cluster.until(lambda: scene.phase_is("g", "Running"))
        await scene.cluster.delete(PODS, "a")
        await scene.cluster.until(lambda: scene.phase_is("g", "Unknown"))
        await scene.pod("a", "g")
        await scene.cluster.until(lambda: scene.phase_is("g", "Running"))


@virtual
async def test_nothing_is_written_while_nothing_happens(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await scene.queue("none", capability={"nvidia.com/gpu": 0})
        await scene.group("waits", minMember=1, minResources={"nvidia.com/gpu": 1}, queue="none")
        await scene.group("runs", minMember=1)
        await scene.pod("a", "waits", gpus=1)
        await scene.pod("b", "runs")
        await scene.cluster.until(lambda: scene.phase_is("runs", "Running"))
        await scene.cluster.pass_time(5)
        before = {kind: await scene.cluster.all(kind) for kind in (VOLCANO_POD_GROUPS, VOLCANO_QUEUES, PODS)}
        await scene.cluster.pass_time(120)
        assert {kind: await scene.cluster.all(kind) for kind in before} == before


@virtual
async def test_pods_that_name_a_group_that_is_not_there_say_so(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await scene.pod("by-volcano", "none-such")
        await scene.cluster.pass_time(40)
        (condition,) = (await scene.cluster.get(PODS, "by-volcano"))["status"]["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == (
            "PodScheduled",
            "False",
            "Unschedulable",
        )
        assert "names a group that does not exist" in condition["message"]
        assert ("FailedScheduling", condition["message"]) in await scene.said("by-volcano")
