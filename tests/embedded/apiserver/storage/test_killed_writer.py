"""A server that is killed in the middle of ten thousand writes has kept every one it acknowledged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from build.cluster_states import PODS, opened
from shoal.embedded.apiserver.storage.sqlite import SqliteStorage

_WRITER = """
import asyncio, sys
from pathlib import Path
from build.cluster_states import drop, opened, pod, put
from shoal.embedded.apiserver.storage.sqlite import SqliteStorage

async def main():
    state = await opened(SqliteStorage(Path(sys.argv[1])), history_count=1_500)
    async def writer(number):
        for turn in range(160):
            ref = pod(f"p{number}-{turn % 40}")
            if turn % 7 == 6 and state.get(ref):
                record, kind = await drop(state, ref), "gone"
            else:
                record, kind = await put(state, ref, turn=turn, filling="x" * 500), "kept"
            print(ref.name, record.revision, kind, flush=True)
    await asyncio.gather(*(writer(number) for number in range(64)))

asyncio.run(main())
"""


@pytest.mark.parametrize("acknowledged", [1, 700, 4_000])
async def test_every_acknowledged_write_is_there_after_a_kill(tmp_path: Path, acknowledged: int) -> None:
    told = _killed_after(tmp_path, acknowledged)
    assert len(told) >= acknowledged
    state = await opened(SqliteStorage(tmp_path))
    assert state.revision >= max(revision for _, revision, _ in told)
    there = {record.ref.name: record.revision for record in state.list(PODS).records}
    newest = {name: (revision, kind) for name, revision, kind in sorted(told, key=lambda one: one[1])}
    ahead: list[str] = []
    for name, (revision, kind) in newest.items():
        if there.get(name) != (revision if kind == "kept" else None):
            assert there.get(name, state.revision) > revision, name
            ahead.append(name.split("-")[0])
    # Each writer may have been one write further than its last word that came through, and no more.
    assert len(ahead) == len(set(ahead))
    await state.close()


async def test_what_is_found_after_a_kill_is_whole_and_goes_on(tmp_path: Path) -> None:
    _killed_after(tmp_path, 3_000)
    state = await opened(SqliteStorage(tmp_path))
    for record in state.list(PODS).records:
        assert record.obj()["metadata"]["resourceVersion"] == str(record.revision)
        assert record.obj()["filling"] == "x" * 500
    revisions = [event.record.revision for event in state._history.since(PODS, state.oldest)]
    assert revisions == sorted(set(revisions))
    await state.close()


def _killed_after(folder: Path, lines: int) -> list[tuple[str, int, str]]:
    paths = [str(Path(__file__).parents[3]), str(Path(__file__).parents[4] / "src")]
    command = [sys.executable, "-c", f"import sys; sys.path[:0] = {paths!r}\n{_WRITER}", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        told = [line for _, line in zip(range(lines), writer.stdout, strict=False)]
        writer.kill()
        told += [line for line in writer.stdout if line.endswith("\n")]
    return [(name, int(revision), kind) for name, revision, kind in map(str.split, told)]
