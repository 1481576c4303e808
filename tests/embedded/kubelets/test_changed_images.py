"""A running container whose image is changed is started again with the new one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.fleets import FleetRun, fleet_cluster, pod, statuses
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import PODS
from shoal.client.port import Patch

FULL = "docker.io/library/nginx:2"
CHANGED = "Container main definition changed, will be restarted"


async def change_image(run: FleetRun) -> None:
    """As a client does that patches the list by its keys."""
    how = Patch("strategic", {"spec": {"containers": [{"name": "main", "image": "nginx:2"}]}})
    await run.cluster.api.patch(PODS, "default", "pod", how)


async def until_restarts(run: FleetRun, count: int) -> Obj:
    async def is_so() -> bool:
        status = statuses(await run.cluster.get(PODS, "pod")).get("main", {})
        return bool(status.get("restartCount") == count and "running" in status["state"])

    await run.cluster.until(is_so, 60.0)
    return await run.cluster.get(PODS, "pod")


async def killings(run: FleetRun) -> list[Any]:
    return [event["message"] for event in await run.cluster.events("pod") if event["reason"] == "Killing"]


@virtual
async def test_a_running_container_is_stopped_and_started_with_its_new_image(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        await run.cluster.create(PODS, pod(stop_after="5s"))
        before = statuses(await run.until_phase("pod", "Running"))["main"]
        await change_image(run)
        await run.cluster.pass_time(3)
        stopping = statuses(await run.cluster.get(PODS, "pod"))["main"]
        assert (stopping["image"], stopping["ready"], stopping["restartCount"]) == (before["image"], False, 0)
        after = await until_restarts(run, 1)
        main = statuses(after)["main"]
        assert main["image"] == FULL
        assert main["imageID"] != before["imageID"]
        assert main["lastState"]["terminated"]["exitCode"] == 143
        assert main["lastState"]["terminated"]["containerID"] == before["containerID"]
        assert after["status"]["phase"] == "Running"
        assert await killings(run) == [CHANGED]


@virtual
async def test_the_restart_policy_has_no_say_in_it(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        await run.cluster.create(PODS, pod(restartPolicy="Never", run_for="1h"))
        await run.until_phase("pod", "Running")
        await change_image(run)
        assert (await until_restarts(run, 1))["status"]["phase"] == "Running"


@virtual
async def test_a_container_that_has_ended_for_good_stays_so(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        await run.cluster.create(PODS, pod(restartPolicy="Never", run_for="1s"))
        await run.until_phase("pod", "Succeeded")
        await change_image(run)
        await run.cluster.pass_time(30)
        assert statuses(await run.cluster.get(PODS, "pod"))["main"]["restartCount"] == 0
        assert await killings(run) == []


@virtual
async def test_a_new_image_does_not_wait_for_the_back_off_of_the_old_one(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        await run.cluster.create(PODS, pod(run_for="1s", exit_code=1))
        await run.until_phase("pod", "Running")
        await run.cluster.pass_time(120)
        crashed = statuses(await run.cluster.get(PODS, "pod"))["main"]
        assert crashed["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        await change_image(run)
        await run.cluster.pass_time(1)
        now = statuses(await run.cluster.get(PODS, "pod"))["main"]
        assert (now["restartCount"], now["image"]) == (crashed["restartCount"] + 1, FULL)


@virtual
async def test_a_change_while_the_kubelet_was_away_is_found_when_it_is_back(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        await run.cluster.create(PODS, pod())
        await run.until_phase("pod", "Running")
        await run.kill()
        await change_image(run)
        run.start()
        assert statuses(await until_restarts(run, 1))["main"]["image"] == FULL


@virtual
async def test_a_kubelet_that_is_started_again_changes_nothing_of_what_did_not_change(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        await run.cluster.create(PODS, pod())
        await run.until_phase("pod", "Running")
        await run.kill()
        run.start()
        await run.cluster.pass_time(30)
        assert statuses(await run.cluster.get(PODS, "pod"))["main"]["restartCount"] == 0
