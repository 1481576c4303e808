"""Shoal's process of a split cluster is killed while it binds a gang; its successor completes what it left."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from build.api_objects import ready_for_pods
from build.cluster_api import Api, Obj
from build.cluster_server import ServerProcess
from build.live_waits import until_items
from build.living_cluster import job, living

GANG, GPUS = 96, 8
CHOSEN = "shoal.dev/devices"


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[tuple[Api, ServerProcess]]:
    with living(tmp_path, f"{GANG // GPUS}xp5.48xlarge", "--memory", "--processes") as server:
        async with Api.open(server.kubeconfig) as client:
            await client.make_namespace()
            yield client, server


def scheduling(server: ServerProcess) -> int:
    """The child that decides."""
    listed = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(server.process.pid)], capture_output=True, text=True, check=True
    )
    (found,) = [line.split()[0] for line in listed.stdout.splitlines() if " shoal run " in line]
    return int(found)


def node_of(pod: Obj) -> str:
    found: str = pod["spec"].get("nodeName", "")
    return found


async def kill_while_it_binds(api: Api, process: int) -> int:
    """How many had a node when it was over."""
    async with api.watch(api.core("pods")) as lines:
        while not node_of((await lines.next_of("ADDED", "MODIFIED"))["object"]):
            pass
        os.kill(process, signal.SIGKILL)
    return sum(bool(node_of(one)) for one in (await api.get(api.core("pods"))).ok()["items"])


@pytest.mark.slow
async def test_a_gang_is_whole_after_its_scheduler_was_killed_within_it(api: tuple[Api, ServerProcess]) -> None:
    client, server = api
    await ready_for_pods(client)
    jobs = client.group("batch/v1", "jobs")
    for attempt in range(10):
        made = job(f"gang-{attempt}", {"run-for": "1h"}, gpus=1, parallelism=GANG, completions=GANG)
        made["metadata"]["annotations"] = {"shoal.dev/gang": "true"}
        first = scheduling(server)
        (await client.post(jobs, made)).ok(201)
        left = await kill_while_it_binds(client, first)
        pods = await until_items(
            client,
            client.core("pods"),
            lambda found: len(found) == GANG and all(one["status"].get("phase") == "Running" for one in found),
        )
        assert scheduling(server) != first
        held = Counter((node_of(one), one["metadata"]["annotations"][CHOSEN]) for one in pods)
        assert (len(held), set(held.values())) == (GANG, {1})
        # Nobody was started twice: what was bound before the end stayed, and what was not was bound after it.
        assert all(one["status"]["containerStatuses"][0]["restartCount"] == 0 for one in pods)
        (await client.delete(f"{jobs}/gang-{attempt}", propagationPolicy="Foreground")).ok()
        await until_items(client, client.core("pods"), lambda found: not found)
        if left < GANG:
            return
    pytest.fail("it was never killed within a gang")
