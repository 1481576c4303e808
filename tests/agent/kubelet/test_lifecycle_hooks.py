"""Hooks run after the start and before the stop of a container, within its grace period."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from build.kubelet_on_cri import WITH_LONG_COMMANDS, KubeletOnCri, kubelet_on_cri
from shoal.client.kind import PODS
from shoal.client.port import Deletion

pytestmark = pytest.mark.slow
Obj = dict[str, Any]
GOOD, BAD = {"exec": {"command": ["true"]}}, {"exec": {"command": ["false"]}}


def hooks(**found: Obj) -> Obj:
    return {"lifecycle": found}


async def event_reasons(machine: KubeletOnCri, name: str) -> list[str]:
    return [one["reason"] for one in await machine.cluster.events(name)]


async def test_a_container_runs_only_when_its_post_start_hook_has_ended(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path, WITH_LONG_COMMANDS) as machine:
        machine.cri.holds_commands = True
        uid = await machine.create("held", "serve", container=hooks(postStart={"exec": {"command": ["true"]}}))
        await machine.until(lambda: machine.cri.commands == [("true",)])

        assert machine.cri.running(uid, "main")
        assert "running" not in await machine.state("held")

        machine.cri.holds_commands = False
        await machine.until_ready("held")


async def test_the_next_container_waits_for_the_post_start_hook_of_the_one_before(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path, WITH_LONG_COMMANDS) as machine:
        machine.cri.holds_commands = True
        first = {"name": "first", "image": "app:1", "command": ["serve"], **hooks(postStart=GOOD)}
        second = {"name": "second", "image": "app:1", "command": ["serve"]}
        uid = await machine.create_all("ordered", [first, second])
        await machine.until(lambda: machine.cri.commands)

        assert not machine.cri.running(uid, "second")

        machine.cri.holds_commands = False
        await machine.until(lambda: machine.cri.running(uid, "second"))


async def test_a_container_whose_post_start_hook_fails_is_stopped_and_restarted(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        uid = await machine.create("bad", "serve", container=hooks(postStart=BAD))
        await machine.until(lambda: machine.cri.starts[(uid, "main", 1)])

        messages = {one["reason"]: one["message"] for one in await machine.cluster.events("bad")}
        assert messages["FailedPostStartHook"] == "PostStartHook failed"
        assert messages["Killing"] == "FailedPostStartHook"


async def test_a_deletion_does_not_wait_for_a_post_start_hook(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path, WITH_LONG_COMMANDS) as machine:
        machine.cri.holds_commands = True
        await machine.create("held", "serve", container=hooks(postStart=GOOD))
        await machine.until(lambda: machine.cri.commands)

        await machine.cluster.delete(PODS, "held", Deletion(grace_s=5))

        await machine.until_gone("held")


async def test_a_pre_stop_hook_comes_before_the_stop_and_takes_of_its_grace_period(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        await machine.create("slow", "serve", container=hooks(preStop={"sleep": {"seconds": 20}}))
        await machine.until_ready("slow")

        await machine.cluster.delete(PODS, "slow", Deletion(grace_s=100))
        await machine.until_gone("slow")

        assert machine.cri.graces[0] <= 80


async def test_a_pre_stop_hook_is_ended_with_the_grace_period(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        hook = {"sleep": {"seconds": 90_000}}
        await machine.create("long", "serve", container=hooks(preStop=hook), terminationGracePeriodSeconds=100_000)
        await machine.until_ready("long")

        await machine.cluster.delete(PODS, "long", Deletion(grace_s=30))
        await machine.until_gone("long")

        assert machine.cri.graces[0] <= 2


async def test_a_pre_stop_hook_that_fails_is_an_event(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        await machine.create("bad", "serve", container=hooks(preStop=BAD))
        await machine.until_ready("bad")

        await machine.cluster.delete(PODS, "bad", Deletion(grace_s=30))
        await machine.until_gone("bad")

        assert machine.cri.commands == [("false",)]
        assert "FailedPreStopHook" in await event_reasons(machine, "bad")


async def test_a_pod_that_is_deleted_at_once_has_no_pre_stop_hook(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        await machine.create("now", "serve", container=hooks(preStop=GOOD))
        await machine.until_ready("now")

        await machine.cluster.delete(PODS, "now", Deletion(grace_s=0))
        await machine.until(lambda: not machine.cri.sandboxes)

        assert not machine.cri.commands


async def test_a_container_that_a_liveness_probe_stops_has_its_pre_stop_hook(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        probe = {"exec": {"command": ["probe"]}, "periodSeconds": 1, "failureThreshold": 1}
        more = {**hooks(preStop=GOOD), "livenessProbe": probe}
        uid = await machine.create("sick", "serve", container=more)

        await machine.until(lambda: machine.cri.starts[(uid, "main", 1)])

        assert machine.cri.commands[:2] == [("probe",), ("true",)]


async def test_any_answer_to_an_http_hook_is_good(tmp_path: Path) -> None:
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 500 No\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, kubelet_on_cri(tmp_path) as machine:
        get = {"httpGet": {"host": "127.0.0.1", "port": port, "path": "/begin"}}
        await machine.create("web", "serve", container=hooks(postStart=get))
        await machine.until_ready("web")

    assert heads[0].startswith(b"GET /begin HTTP/1.1")
    assert b"User-Agent: kube-lifecycle/" in heads[0]
