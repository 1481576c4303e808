"""The adapter for the Container Runtime Interface runs containers by a real containerd and runc."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from build.containerd import PAUSE, TOOLS, Containerd, may_run
from shoal.agent.kubelet.container_settings import ContainerMount, ContainerSettings, PodSettings
from shoal.agent.kubelet.cri.calls import RuntimeCalls
from shoal.agent.kubelet.cri.image_collection import CollectionRules, DiskSpace, ImageCollection
from shoal.agent.kubelet.cri.runtime import CriRuntime, Owner
from shoal.agent.kubelet.log_lines import log_lines
from shoal.agent.kubelet.runtime import Command, ContainerLimits, Launch, RunKey
from shoal.client.clock import WallClock

pytestmark = [
    pytest.mark.external("containerd", "ctr", "runc", "busybox"),
    pytest.mark.slow,
    pytest.mark.skipif(not may_run(), reason="only root starts containers"),
]


@pytest.fixture(scope="module")
def containerd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containerd]:
    started = Containerd(tmp_path_factory.mktemp("containerd"))
    started.import_image(PAUSE, "/bin/busybox", "sleep", "100000")
    started.import_image(TOOLS, "/bin/busybox", "sh")
    yield started
    started.stop()


@pytest.fixture
async def runtime(containerd: Containerd, tmp_path: Path) -> AsyncIterator[CriRuntime]:
    found = runtime_of(containerd, tmp_path)
    yield found
    await found.remove(tmp_path.name)
    await found.close()


@pytest.fixture
def key(tmp_path: Path) -> RunKey:
    return RunKey(tmp_path.name, "main", 0)


def runtime_of(containerd: Containerd, folder: Path) -> CriRuntime:
    return CriRuntime(RuntimeCalls(containerd.socket), Owner("test", folder), WallClock())


def shell(key: RunKey, *command: str, limits: ContainerLimits | None = None, **more: Any) -> Launch:
    settings = ContainerSettings(PodSettings(key.pod, "p", "n", "p", is_host_network=True), **more)
    words = command if len(command) > 1 else ("/bin/sh", "-c", *command)
    return Launch(words, {"OWN": "value"}, Path("/"), limits or ContainerLimits(), TOOLS, container=settings)


async def test_a_container_prints_and_ends(runtime: CriRuntime, key: RunKey) -> None:
    await runtime.start(key, shell(key, "echo out $OWN; exit 3"))
    ended = await runtime.wait(key)

    assert (ended.code, ended.reason) == (3, "")
    assert [text for _, text in log_lines(runtime.log_files(key))] == ["out value"]


async def test_unused_images_are_removed_and_those_of_containers_and_sandboxes_are_not(
    runtime: CriRuntime, key: RunKey, containerd: Containerd
) -> None:
    unused = "localhost/unused:1"
    containerd.import_image(unused, "/bin/busybox", "unused")
    await runtime.start(key, shell(key, "sleep 1000"))
    calls, told, spaces = RuntimeCalls(containerd.socket), list[str](), [DiskSpace(100, 100), DiskSpace(100, 0)]
    rules = CollectionRules(least_age_s=0.0)
    collection = ImageCollection(calls, WallClock(), rules, lambda _: spaces.pop(0))
    try:
        await collection.collect(lambda reason, _: told.append(reason))
        await collection.collect(lambda reason, _: told.append(reason))

        assert {tag for image in await calls.images() for tag in image.repo_tags} == {PAUSE, TOOLS}
        assert not told
    finally:
        await calls.close()


async def test_what_a_container_uses_is_measured(runtime: CriRuntime, key: RunKey) -> None:
    await runtime.start(key, shell(key, "while :; do :; done"))

    used = (await runtime.consumption([key]))[key]

    assert used.at_s > 0
    assert used.memory_bytes > 0
    assert await runtime.consumption([RunKey("other", "main", 0)]) == {}


async def test_a_container_is_started_once(runtime: CriRuntime, key: RunKey, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    mount = ContainerMount("/data", tmp_path / "data")
    launch = shell(key, "echo run >> /data/count", mounts=(mount,))
    await runtime.start(key, launch)
    await runtime.wait(key)
    await runtime.start(key, launch)

    assert (tmp_path / "data" / "count").read_text() == "run\n"


async def test_a_restarted_containerd_keeps_the_container(
    containerd: Containerd, runtime: CriRuntime, key: RunKey, tmp_path: Path
) -> None:
    await runtime.start(key, shell(key, "sleep 100000"))
    containerd.kill_and_start()
    later = runtime_of(containerd, tmp_path)

    assert await later.find(key)
    await later.stop(key, 0.0)
    assert (await later.wait(key)).code == 137
    await later.close()


async def test_a_program_that_does_not_exist_is_reported(runtime: CriRuntime, key: RunKey) -> None:
    await runtime.start(key, shell(key, "no-such-program", "x"))
    ended = await runtime.wait(key)

    assert (ended.code, ended.reason) == (128, "StartError")
    assert "no-such-program" in ended.message


async def said_by(command: Command) -> list[tuple[int, bytes]]:
    found: dict[int, bytes] = {}
    while (part := await command.read()) is not None:
        found[part[0]] = found.get(part[0], b"") + part[1]
    return sorted(found.items())


async def test_a_short_command_runs_in_the_container(runtime: CriRuntime, key: RunKey) -> None:
    await runtime.start(key, shell(key, "sleep 100000"))
    command = await runtime.run(key, ["/bin/sh", "-c", "echo $OWN; echo bad >&2; exit 4"], is_short=True)

    assert await said_by(command) == [(1, b"value\n"), (2, b"bad\n")]
    assert await command.code() == 4


async def test_a_command_has_streams_and_its_input_can_end(runtime: CriRuntime, key: RunKey) -> None:
    await runtime.start(key, shell(key, "sleep 100000"))
    command = await runtime.run(key, ["/bin/sh", "-c", "cat; echo bad >&2; exit 4"])
    await command.write(b"in" * 40_000 + b"\n")
    command.end_input()

    assert await said_by(command) == [(1, b"in" * 40_000 + b"\n"), (2, b"bad\n")]
    assert await command.code() == 4


async def test_a_command_has_a_terminal_with_the_size_of_the_client(runtime: CriRuntime, key: RunKey) -> None:
    await runtime.start(key, shell(key, "sleep 100000"))
    script = 'while [ "$(stty size)" != "33 99" ]; do :; done; echo sized; read word; echo got $word; exit 5'
    command = await runtime.run(key, ["/bin/sh", "-c", script], tty=True)
    command.resize(99, 33)
    said = b""
    while b"sized" not in said:
        said += (await command.read() or (1, b""))[1]
    await command.write(b"word\n")

    assert b"got word" in (await said_by(command))[0][1]
    assert await command.code() == 5


async def test_a_command_that_does_not_exist_is_reported(runtime: CriRuntime, key: RunKey) -> None:
    await runtime.start(key, shell(key, "sleep 100000"))
    command = await runtime.run(key, ["no-such-program"])
    command.end_input()

    assert b"no-such-program" in (await said_by(command))[0][1]
    assert await command.code() != 0


async def test_memory_is_limited(runtime: CriRuntime, key: RunKey) -> None:
    script = "x=a; while :; do x=$x$x$x$x; done"
    await runtime.start(key, shell(key, script, limits=ContainerLimits(memory_bytes=32 * 2**20)))

    ended = await runtime.wait(key)

    assert (ended.code, ended.reason) == (137, "OOMKilled")
