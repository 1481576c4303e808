"""The adapter for the Container Runtime Interface runs containers by a real containerd and runc."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from build.containerd import PAUSE, TOOLS, Containerd, may_run
from shoal.agent.kubelet.cri.calls import RuntimeCalls
from shoal.agent.kubelet.cri.runtime import CriRuntime
from shoal.agent.kubelet.log_lines import log_lines
from shoal.agent.kubelet.runtime import ContainerLimits, ContainerMount, Launch, RunKey, StartRefused

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
    found = CriRuntime(RuntimeCalls(containerd.socket), tmp_path)
    yield found
    await found.remove(tmp_path.name)
    await found.close()


@pytest.fixture
def key(tmp_path: Path) -> RunKey:
    return RunKey(tmp_path.name, "main", 0)


def shell(script: str, **more: object) -> Launch:
    fields: dict[str, object] = {"image": TOOLS, "pod_name": "p", "namespace": "n", **more}
    return Launch(("/bin/sh", "-c", script), {"OWN": "value"}, Path("/"), **fields)  # type: ignore[arg-type]


async def test_a_container_prints_and_ends(runtime: CriRuntime, key: RunKey) -> None:
    await runtime.start(key, shell("echo out $OWN; exit 3"))
    ended = await runtime.wait(key)

    assert (ended.code, ended.reason) == (3, "")
    assert [text for _, text in log_lines(runtime.log_files(key))] == ["out value"]


async def test_a_container_is_started_once(runtime: CriRuntime, key: RunKey, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    mount = ContainerMount("/data", tmp_path / "data")
    launch = shell("echo run >> /data/count", mounts=(mount,))
    await runtime.start(key, launch)
    await runtime.wait(key)
    await runtime.start(key, launch)

    assert (tmp_path / "data" / "count").read_text() == "run\n"


async def test_a_restarted_containerd_keeps_the_container(
    containerd: Containerd, runtime: CriRuntime, key: RunKey, tmp_path: Path
) -> None:
    await runtime.start(key, shell("sleep 100000"))
    containerd.kill_and_start()
    later = CriRuntime(RuntimeCalls(containerd.socket), tmp_path)

    assert await later.is_started(key)
    await later.stop(key, 0.0)
    assert (await later.wait(key)).code == 137
    await later.close()


async def test_a_program_that_does_not_exist_is_reported(runtime: CriRuntime, key: RunKey) -> None:
    await runtime.start(key, Launch(("no-such-program",), {}, Path("/"), image=TOOLS, pod_name="p", namespace="n"))
    ended = await runtime.wait(key)

    assert (ended.code, ended.reason) == (128, "StartError")
    assert "no-such-program" in ended.message


async def test_an_image_that_does_not_exist_cannot_be_started(runtime: CriRuntime, key: RunKey) -> None:
    with pytest.raises(StartRefused) as refused:
        await runtime.start(key, shell("true", image="localhost:1/none:1"))

    assert refused.value.reason == "ErrImagePull"


async def test_a_command_runs_in_the_container(runtime: CriRuntime, key: RunKey) -> None:
    await runtime.start(key, shell("sleep 100000"))
    command = await runtime.run(key, ["/bin/sh", "-c", "echo $OWN; echo bad >&2; exit 4"])
    said = []
    while (part := await command.read()) is not None:
        said.append(part)

    assert said == [(1, b"value\n"), (2, b"bad\n")]
    assert await command.code() == 4


async def test_memory_is_limited(runtime: CriRuntime, key: RunKey) -> None:
    script = "x=a; while :; do x=$x$x$x$x; done"
    await runtime.start(key, shell(script, limits=ContainerLimits(memory_bytes=32 * 2**20)))

    ended = await runtime.wait(key)

    assert (ended.code, ended.reason) == (137, "OOMKilled")
