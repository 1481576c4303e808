"""Volcano's queues share a cluster: by what they deserve, by weight; and what is guaranteed is there when wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.live_schedulers import add_node
from build.virtual_time import in_virtual_time, virtual
from build.volcano_scenes import VolcanoScene, volcano_scene
from shoal.client.ecosystem_kinds import VOLCANO_POD_GROUPS

GPU = "nvidia.com/gpu"


def gpus(count: int) -> dict[str, Any]:
    return {GPU: str(count)}


async def gang(scene: VolcanoScene, name: str, queue: str, count: int, **more: Any) -> None:
    """Of pods with a GPU each."""
    await scene.group(name, minMember=count, queue=queue, **more)
    for at in range(count):
        await scene.pod(f"{name}-{at}", name, gpus=1)


async def singles(scene: VolcanoScene, queue: str, count: int, prefix: str = "", **more: Any) -> None:
    """Groups of one pod each."""
    for at in range(count):
        await gang(scene, f"{prefix or queue}{at}", queue, 1, **more)
        await scene.cluster.pass_time(0.5)


async def held_by(scene: VolcanoScene, prefix: str) -> int:
    """Bound pods whose names begin so, and that are not on their way out."""
    found = await scene.pods()
    return sum(
        name.startswith(prefix) and bool(pod["spec"].get("nodeName")) and "deletionTimestamp" not in pod["metadata"]
        for name, pod in found.items()
    )


@virtual
async def test_what_one_deserves_is_lent_while_it_is_not_wanted_and_given_back_when_it_is(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await scene.queue("a", deserved=gpus(4))
        await scene.queue("b", deserved=gpus(4))
        await singles(scene, "a", 8)
        await scene.cluster.pass_time(2)
        assert await held_by(scene, "a") == 8
        await singles(scene, "b", 4)
        await scene.cluster.pass_time(10)
        assert (await held_by(scene, "a"), await held_by(scene, "b")) == (4, 4)
        told = [message for at in range(8) for reason, message in await scene.said(f"a{at}-0") if reason == "Preempted"]
        assert len(told) == 4
        assert all(one.startswith("Preempted by pod group default/b") for one in told)
        # And nobody takes back what is deserved.
        await singles(scene, "a", 2, "again")
        await scene.cluster.pass_time(60)
        assert (await held_by(scene, "a"), await held_by(scene, "b")) == (4, 4)


@pytest.mark.parametrize("reclaimable", [True, False])
def test_a_queue_that_is_not_reclaimable_keeps_what_it_has(tmp_path: Path, *, reclaimable: bool) -> None:
    async def story() -> None:
        async with volcano_scene(tmp_path) as scene:
            await scene.queue("a", deserved=gpus(2), reclaimable=reclaimable)
            await scene.queue("b", deserved=gpus(6))
            await singles(scene, "a", 8)
            await scene.cluster.pass_time(2)
            await singles(scene, "b", 6)
            await scene.cluster.pass_time(20)
            assert await held_by(scene, "b") == (6 if reclaimable else 0)

    in_virtual_time(story())


@virtual
async def test_a_gang_is_helped_whole_and_yields_whole(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await scene.queue("a", deserved=gpus(2))
        await scene.queue("b", deserved=gpus(6))
        await gang(scene, "wide", "a", 4)
        await gang(scene, "small", "a", 2)
        await scene.cluster.until(lambda: scene.bound_are(*(f"wide-{at}" for at in range(4)), "small-0", "small-1"))
        await gang(scene, "mine", "b", 5)
        await scene.cluster.pass_time(15)
        assert await held_by(scene, "mine") == 5
        assert (await held_by(scene, "wide"), await held_by(scene, "small")) == (0, 2)


@virtual
async def test_nobody_borrows_what_is_guaranteed_to_others(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await scene.queue("a", deserved=gpus(2))
        await scene.queue("b", deserved=gpus(4), guarantee={"resource": gpus(3)})
        await singles(scene, "a", 8)
        await scene.cluster.pass_time(5)
        assert await held_by(scene, "a") == 5
        await singles(scene, "b", 3)
        await scene.cluster.until(lambda: scene.phase_is("b2", "Running"), 3)
        assert await held_by(scene, "a") == 5


@virtual
async def test_a_capability_holds_whatever_is_left(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await scene.queue("top", deserved=gpus(4), capability=gpus(5))
        await scene.queue("a", parent="top", deserved=gpus(2), capability=gpus(4))
        await scene.queue("b", parent="top", deserved=gpus(2))
        await singles(scene, "a", 6)
        await scene.cluster.pass_time(5)
        assert await held_by(scene, "a") == 4
        await singles(scene, "b", 4)
        await scene.cluster.pass_time(15)
        # Nothing is reclaimed for what would exceed the capability of an ancestor.
        assert (await held_by(scene, "a"), await held_by(scene, "b")) == (4, 1)


@virtual
async def test_weights_divide_what_all_want_and_take_nothing_from_a_queue_that_is_not_reclaimable(
    tmp_path: Path,
) -> None:
    async with volcano_scene(tmp_path, gpus=4) as scene:
        await scene.queue("a", weight=1, reclaimable=False)
        await scene.queue("b", weight=3)
        await singles(scene, "a", 4)
        await scene.cluster.pass_time(2)
        assert await held_by(scene, "a") == 4
        for queue in "ab":
            await singles(scene, queue, 8, f"more-{queue}")
        await scene.cluster.pass_time(15)
        assert await held_by(scene, "a") == 4
        await add_node(scene.cluster, "n2", gpus=4, cpu="64")
        await scene.cluster.pass_time(15)
        assert await held_by(scene, "more-b") == 4
        assert await held_by(scene, "more-a") == 0


@virtual
async def test_weights_take_back_from_who_says_that_it_may_be_reclaimed(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await scene.queue("a", weight=1, reclaimable=True)
        await scene.queue("b", weight=3)
        await singles(scene, "a", 8)
        await scene.cluster.pass_time(2)
        assert await held_by(scene, "a") == 8
        await singles(scene, "b", 8)
        await scene.cluster.pass_time(20)
        assert await held_by(scene, "b") >= 4
        assert await held_by(scene, "a") >= 1


@virtual
async def test_who_has_quota_and_no_room_is_told_what_nodes_lack_and_starts_when_they_have_it(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await scene.queue("a", deserved=gpus(8))
        await scene.pod("foreign", gpus=2, schedulerName="other", nodeName="n1")
        await gang(scene, "wide", "a", 7)
        await scene.cluster.pass_time(10)
        assert await held_by(scene, "wide") == 0
        conditions = (await scene.pods())["wide-0"]["status"]["conditions"]
        (words,) = [one["message"] for one in conditions if one["type"] == "PodScheduled"]
        assert words.startswith("0/1 nodes are available")
        await scene.end("foreign")
        await scene.cluster.until(lambda: scene.phase_is("wide", "Running"), 10)


@virtual
async def test_pods_beyond_the_minimum_yield_before_the_gang_does(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await scene.queue("a", deserved=gpus(2))
        await scene.queue("b", deserved=gpus(4))
        await scene.group("elastic", minMember=2, queue="a")
        for at in range(8):
            await scene.pod(f"elastic-{at}", "elastic", gpus=1)
        await scene.cluster.pass_time(5)
        assert await held_by(scene, "elastic") == 8
        await gang(scene, "mine", "b", 4)
        await scene.cluster.pass_time(15)
        assert (await held_by(scene, "elastic"), await held_by(scene, "mine")) == (4, 4)
        assert (await scene.status(VOLCANO_POD_GROUPS, "elastic"))["phase"] == "Running"


@virtual
async def test_whoever_decides_next_knows_who_has_what(tmp_path: Path) -> None:
    async with volcano_scene(tmp_path) as scene:
        await scene.queue("a", deserved=gpus(4))
        await scene.queue("b", deserved=gpus(4))
        await singles(scene, "a", 8)
        await scene.cluster.pass_time(2)
        second = scene.start_scheduler()
        await scene.cluster.pass_time(2)
        await singles(scene, "b", 4)
        await scene.cluster.pass_time(15)
        assert (await held_by(scene, "a"), await held_by(scene, "b")) == (4, 4)
        assert second.loop.rounds > 0
