"""Who attaches to a process reads what it prints from then on, until it ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shoal.agent.kubelet.process.attached_output import AttachedOutput
from shoal.agent.kubelet.process.cgroups import Cgroups
from shoal.agent.kubelet.process.runtime import ProcessRuntime
from shoal.agent.kubelet.runtime import Launch, RunKey, StartRefused

TIME = "2026-11-27T00:00:00.000000000Z"


def line(text: str, stream: str = "stdout", tag: str = "F") -> str:
    return f"{TIME} {stream} {tag} {text}\n"


async def printed(output: AttachedOutput) -> list[tuple[int, bytes]]:
    found = []
    while (part := await output.read()) is not None:
        found.append(part)
    return found


async def test_only_later_output_is_read_with_its_stream(tmp_path: Path) -> None:
    log, end = tmp_path / "log", tmp_path / "end"
    log.write_text(line("before"))
    output = AttachedOutput(log, end)
    with log.open("a") as file:
        file.write(line("out") + line("err", "stderr") + line("par", tag="P") + line("tial"))
    end.touch()

    assert await printed(output) == [(1, b"out\n"), (2, b"err\n"), (1, b"par"), (1, b"tial\n")]
    assert await output.code() == 0


async def test_a_log_that_is_replaced_is_read_to_its_end_first(tmp_path: Path) -> None:
    log, end = tmp_path / "log", tmp_path / "end"
    log.write_text("")
    output = AttachedOutput(log, end)
    log.write_text(line("last"))
    log.rename(tmp_path / "log.1")
    log.write_text(line("first"))
    end.touch()

    assert await printed(output) == [(1, b"last\n"), (1, b"first\n")]


async def test_the_output_of_a_real_process_ends_with_it(tmp_path: Path) -> None:
    hold, key = tmp_path / "hold", RunKey(f"attached-{os.getpid()}", "main", 0)
    os.mkfifo(hold)
    runtime = ProcessRuntime(tmp_path / "pods", Cgroups(tmp_path / "no-cgroups"))
    script = f"read word < {hold}; echo $word"
    await runtime.start(key, Launch(("sh", "-c", script), {"PATH": os.environ["PATH"]}, tmp_path))
    output = await runtime.attach(key, has_input=False, tty=False)
    hold.write_text("hello\n")

    assert await printed(output) == [(1, b"hello\n")]
    await runtime.wait(key)
    with pytest.raises(StartRefused, match="does not run"):
        await runtime.attach(key, has_input=False, tty=False)
