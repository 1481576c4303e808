"""Faults of the runtime at commands with streams, and when a log is replaced, end no pod and lose no log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from build.fake_cri import Fault, How
from build.kubelet_on_cri import KubeletOnCri, kubelet_on_cri
from shoal.agent.kubelet.cri.ends import LOG_BYTES, former_log
from shoal.agent.kubelet.runtime import Command, RunKey, StartRefused
from shoal.agent.kubelet.spdy import FrameWriter
from shoal.units.errors import TemporaryError

pytestmark = pytest.mark.slow
every_way = pytest.mark.parametrize("how", ["error", "hang", "lost"])
before_and_after = pytest.mark.parametrize("is_after", [False, True], ids=["before its effect", "after its effect"])
_UPGRADED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\n\r\n"
_STDOUT, _STDERR, _ERROR = 5, 7, 1


def said(text: bytes, *outcome: bytes) -> bytes:
    frames = FrameWriter()
    ends = [frames.data(stream, b"", is_end=True) for stream in (_STDOUT, _STDERR)]
    return b"".join([frames.data(_STDOUT, text), *(ends if outcome else ())]) + b"".join(
        frames.data(_ERROR, one, is_end=True) for one in outcome
    )


@asynccontextmanager
async def streams(answer: bytes) -> AsyncIterator[str]:
    """The address of a runtime's streams: it answers each request so, and ends the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.write_eof()
        # What the client sends is read: a reset would take away what it has not read yet.
        while await reader.read(1 << 16):
            pass
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/exec/token?x=1"
    finally:
        server.close()


async def running(machine: KubeletOnCri) -> RunKey:
    uid = await machine.create("serves", "serve")
    await machine.until_ready("serves")
    return RunKey(uid, "main", 0)


async def output(command: Command) -> bytes:
    found = b""
    while (part := await command.read()) is not None:
        found += part[1]
    return found


def runs_once(machine: KubeletOnCri, key: RunKey) -> bool:
    return machine.cri.starts == {(key.pod, "main", 0): 1} and machine.cri.running(key.pod, "main") == 1


@every_way
@before_and_after
async def test_a_command_fails_with_the_runtime_and_works_after_it(tmp_path: Path, how: How, is_after: bool) -> None:
    async with kubelet_on_cri(tmp_path) as machine, streams(_UPGRADED + said(b"hi", b'{"status":"Success"}')) as url:
        key, machine.cri.exec_url = await running(machine), url
        machine.cri.faults["Exec"] = Fault(how, is_after)

        with pytest.raises(TemporaryError, match=r"rpc error: code = \w+ desc = "):
            await machine.runtime.run(key, ["ls"])

        async def works() -> bool:
            try:
                command = await machine.runtime.run(key, ["ls"])
            except TemporaryError:  # while the runtime listens again
                return False
            found = await output(command), await command.code()
            command.kill()
            return found == (b"hi", 0)

        await machine.until(works)
        assert runs_once(machine, key)


@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1 403 Forbidden\r\n\r\n", b"HTTP/1.1 101", b"\xff" * 70_000],
    ids=["nothing", "a refusal", "a part", "too much"],
)
async def test_a_command_whose_streams_do_not_open_fails(tmp_path: Path, answer: bytes) -> None:
    async with kubelet_on_cri(tmp_path) as machine, streams(answer) as url:
        key, machine.cri.exec_url = await running(machine), url

        with pytest.raises(TemporaryError, match="the runtime does not open the streams of the command"):
            await machine.runtime.run(key, ["ls"])

        assert runs_once(machine, key)


@pytest.mark.parametrize("url", ["", "no address", "http://127.0.0.1:1/exec", "http://[::", "http://127.0.0.1:port/"])
async def test_a_command_whose_streams_have_no_usable_address_fails(tmp_path: Path, url: str) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        key, machine.cri.exec_url = await running(machine), url

        with pytest.raises(TemporaryError, match="the runtime does not open the streams of the command"):
            await machine.runtime.run(key, ["ls"])


async def test_a_command_whose_connection_ends_early_fails_and_says_so(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine, streams(_UPGRADED + said(b"half")) as url:
        key, machine.cri.exec_url = await running(machine), url

        command = await machine.runtime.run(key, ["ls"])

        text = await output(command)
        assert text.startswith(b"half")
        assert b"the connection to the container runtime ended before the command" in text
        assert await command.code() == 1
        command.kill()
        assert runs_once(machine, key)


async def test_a_command_in_a_container_that_has_ended_is_refused(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        key = await running(machine)
        machine.cri.end(key.pod, "main", 3)

        with pytest.raises(StartRefused, match="the container does not run"):
            await machine.runtime.run(key, ["ls"])


@every_way
@before_and_after
async def test_a_log_is_whole_and_is_replaced_later_in_spite_of_a_fault(
    tmp_path: Path, how: How, is_after: bool
) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        key = await running(machine)
        log = machine.runtime.sandboxes.logs(key.pod) / "main" / "0.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as file:
            file.write(b"first")
            file.truncate(LOG_BYTES + 1)
        machine.cri.faults["ReopenContainerLog"] = Fault(how, is_after)

        await machine.until(lambda: machine.cri.faults["ReopenContainerLog"].left == 0)
        await machine.until(lambda: sum(machine.cri.reopened.values()) > is_after or former_log(log).exists())

        (kept,) = machine.runtime.log_files(key)
        assert kept.stat().st_size == LOG_BYTES + 1
        assert kept.read_bytes()[:5] == b"first"
        assert runs_once(machine, key)
