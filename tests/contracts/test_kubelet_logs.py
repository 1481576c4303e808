"""Logs of simulated containers: lines by annotation, of this run and of the one before."""

from __future__ import annotations

import asyncio

import pytest

from build.cluster_api import PATIENCE_S, Api
from build.contract_objects import eventually
from build.simulated_pods import container, place, pod, statuses, until_phase, until_pod

pytestmark = pytest.mark.needs("kubelet", "doors")
LINES = "one\ntwo\nthree"


def at(api: Api) -> str:
    return api.core("pods", "pod", "log")


async def over(api: Api) -> None:
    """A pod that has said all its lines."""
    await place(api, pod(says={"log": LINES, "run-for": "4s"}, restartPolicy="Never"))
    await until_phase(api, "Running")
    await eventually(lambda: api.get(at(api)), lambda answer: answer.raw.decode().count("\n") >= 3)


async def test_a_log_can_be_read_whole_or_in_part(api: Api) -> None:
    await over(api)
    text = (await api.get(at(api))).raw.decode()
    assert text.splitlines()[:3] == ["one", "two", "three"]
    tail = (await api.get(at(api), tailLines=1)).raw.decode()
    assert tail == text.splitlines(keepends=True)[-1]
    assert (await api.get(at(api), tailLines=0)).raw == b""
    assert (await api.get(at(api), limitBytes=5)).raw == b"one\nt"
    stamped = (await api.get(at(api), timestamps=True)).raw.decode().splitlines()
    assert stamped[0].endswith("Z one")
    assert stamped[0][:2] == "20"
    assert (await api.get(at(api), sinceSeconds=3600)).raw.decode() == text


async def test_the_run_before_has_a_log_of_its_own(api: Api) -> None:
    await place(api, pod(says={"log": "hello", "run-for": "300ms", "exit-code": "1"}))
    await until_pod(api, lambda one: statuses(one).get("main", {}).get("restartCount", 0) >= 1)
    assert (await api.get(at(api), previous=True)).raw == b"hello\n"


async def test_there_is_no_run_before_the_first(api: Api) -> None:
    await place(api, pod(says={"log": "hello"}))
    await until_phase(api, "Running")
    answer = await api.get(at(api), previous=True)
    words = 'previous terminated container "main" in pod "pod" not found'
    assert answer.refused(400, "BadRequest") == words


async def test_a_log_is_followed_until_the_program_ends(api: Api) -> None:
    await place(api, pod(says={"log": "one\ntwo", "run-for": "2s"}, restartPolicy="Never"))
    await until_phase(api, "Running")
    async with api.lines(at(api), follow=True) as log, asyncio.timeout(PATIENCE_S):
        assert await log.readline() == b"one\n"
        assert await log.readline() == b"two\n"
        await log.read()
    await until_phase(api, "Succeeded")


async def test_a_pod_of_two_has_two_logs(api: Api) -> None:
    containers = [container("a"), container("b")]
    await place(api, pod("pod", *containers, says={"log.a": "of a", "log.b": "of b"}))
    await until_phase(api, "Running")
    answer = await api.get(at(api))
    assert answer.refused(400, "BadRequest") == ("a container name must be specified for pod pod, choose one of: [a b]")
    for name in ("a", "b"):
        found = await eventually(lambda name=name: api.get(at(api), container=name), lambda said: bool(said.raw))  # type: ignore[misc]
        assert found.raw == f"of {name}\n".encode()
    answer = await api.get(at(api), container="c")
    assert answer.refused(400, "BadRequest") == "container c is not valid for pod pod"


async def test_a_container_that_has_not_started_has_no_log(api: Api) -> None:
    await place(api, pod(says={"init-for": "1h"}, initContainers=[container("first")]))
    await until_pod(api, lambda one: statuses(one))
    answer = await api.get(at(api), container="main")
    words = 'container "main" in pod "pod" is waiting to start: PodInitializing'
    assert answer.refused(400, "BadRequest") == words


async def test_a_command_that_is_not_there_ends_with_a_code(api: Api) -> None:
    await place(api, pod())
    await until_phase(api, "Running")
    _, outcome = await api.run(api.core("pods", "pod", "exec"), "no-such-program")
    assert (outcome["status"], outcome["reason"]) == ("Failure", "NonZeroExitCode")
    (cause,) = outcome["details"]["causes"]
    assert (cause["reason"], cause["message"]) == ("ExitCode", "127")
