"""Processes are started once, leave logs and exit codes, and are found again by a later runtime."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from shoal.agent.kubelet.log_lines import log_lines
from shoal.agent.kubelet.process import supervisor
from shoal.agent.kubelet.process.cgroups import Cgroups
from shoal.agent.kubelet.process.runtime import ProcessRuntime
from shoal.agent.kubelet.runtime import Launch, RunKey, StartRefused

KEY = RunKey(f"uid-of-{os.getpid()}", "main", 0)
"""Processes of a container are recognized by these words, so that tests that run at once need different ones."""
ENVIRONMENT = {"PATH": os.environ["PATH"]}


@pytest.fixture
def runtime(tmp_path: Path) -> ProcessRuntime:
    return without_cgroups(tmp_path)


def without_cgroups(folder: Path) -> ProcessRuntime:
    return ProcessRuntime(folder / "pods", Cgroups(folder / "no-cgroups"))


def shell(folder: Path, script: str) -> Launch:
    return Launch(("sh", "-c", script), ENVIRONMENT, folder)


def has_ended(pid: int) -> bool:
    """A process that was killed may wait for its parent's notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def lines(runtime: ProcessRuntime) -> list[str]:
    return [text for _, text in log_lines(runtime.log_files(KEY))]


async def test_output_and_exit_code_are_kept(runtime: ProcessRuntime, tmp_path: Path) -> None:
    await runtime.start(KEY, shell(tmp_path, "echo out; echo err >&2; printf rest; exit 7"))
    ended = await runtime.wait(KEY)

    assert (ended.code, ended.reason) == (7, "")
    assert sorted(lines(runtime)) == ["err", "out", "rest"]


async def test_a_program_that_does_not_exist_is_a_start_error(runtime: ProcessRuntime, tmp_path: Path) -> None:
    await runtime.start(KEY, Launch(("no-such-program",), ENVIRONMENT, tmp_path))
    ended = await runtime.wait(KEY)

    assert (ended.code, ended.reason) == (128, "StartError")
    assert ended.message == 'exec: "no-such-program": executable file not found in $PATH'


async def test_a_working_directory_must_exist(runtime: ProcessRuntime, tmp_path: Path) -> None:
    await runtime.start(KEY, Launch(("true",), ENVIRONMENT, tmp_path / "none"))

    assert "No such file or directory" in (await runtime.wait(KEY)).message


async def test_a_later_runtime_waits_for_the_same_process(runtime: ProcessRuntime, tmp_path: Path) -> None:
    fifo, ready = tmp_path / "fifo", tmp_path / "ready"
    os.mkfifo(fifo)
    os.mkfifo(ready)
    await runtime.start(KEY, shell(tmp_path, f"echo > {ready}; read word < {fifo}; exit $word"))
    ready.read_text()
    later = without_cgroups(tmp_path)

    assert await later.find(KEY)
    fifo.write_text("5\n")

    assert (await later.wait(KEY)).code == 5


async def test_a_run_is_started_once(runtime: ProcessRuntime, tmp_path: Path) -> None:
    launch = shell(tmp_path, "echo run >> count")
    await runtime.start(KEY, launch)
    await runtime.wait(KEY)
    await without_cgroups(tmp_path).start(KEY, launch)

    assert (tmp_path / "count").read_text() == "run\n"


async def test_a_start_for_which_the_machine_had_no_process_is_tried_again(
    runtime: ProcessRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = shell(tmp_path, "echo run >> count")
    with monkeypatch.context() as machine:
        # Where no process can be created, the error comes at the same place.
        machine.setattr(sys, "executable", "/no/such/python")
        with pytest.raises(StartRefused, match="No such file"):
            await runtime.start(KEY, launch)
    await runtime.start(KEY, launch)
    ended = await runtime.wait(KEY)

    assert (ended.code, (tmp_path / "count").read_text()) == (0, "run\n")


async def test_a_run_that_was_only_recorded_is_given_up_for_good(runtime: ProcessRuntime, tmp_path: Path) -> None:
    folder = tmp_path / "pods" / KEY.pod / "containers" / KEY.container / "0"
    folder.mkdir(parents=True)
    (folder / "launch.json").write_text("{}")

    assert not await runtime.find(KEY)
    assert not folder.exists()


async def test_sigterm_comes_first(runtime: ProcessRuntime, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    script = f"trap 'echo bye; exit 3' TERM; echo > {ready}; while :; do sleep 0.05; done"
    await runtime.start(KEY, shell(tmp_path, script))
    ready.read_text()
    await runtime.stop(KEY, 30.0)

    assert (await runtime.wait(KEY)).code == 3
    assert lines(runtime) == ["bye"]


async def test_a_program_that_ignores_sigterm_is_killed_with_all_its_processes(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    script = f"trap '' TERM; setsid sh -c 'echo $$ > {ready}; sleep 1000' & wait; sleep 1000"
    await runtime.start(KEY, shell(tmp_path, script))
    daemon = int(ready.read_text())
    await runtime.stop(KEY, 0.1)

    assert (await runtime.wait(KEY)).code == 137
    assert has_ended(daemon)


async def test_daemons_end_with_the_main_process(runtime: ProcessRuntime, tmp_path: Path) -> None:
    await runtime.start(KEY, shell(tmp_path, "setsid sleep 1000 & echo $!"))
    assert (await runtime.wait(KEY)).code == 0

    assert has_ended(int(lines(runtime)[0]))


async def test_a_killed_supervisor_leaves_no_process_and_an_unknown_status(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    await runtime.start(KEY, shell(tmp_path, f"echo $$ > {ready}; sleep 1000"))
    main = int(ready.read_text())
    claim = tmp_path / "pods" / KEY.pod / "containers" / KEY.container / "0" / "claim"
    os.kill(int(claim.read_text().split()[0]), signal.SIGKILL)
    ended = await without_cgroups(tmp_path).wait(KEY)

    assert (ended.code, ended.reason) == (137, "ContainerStatusUnknown")
    assert has_ended(main)


async def test_commands_run_with_the_environment_of_the_container(runtime: ProcessRuntime, tmp_path: Path) -> None:
    await runtime.start(KEY, Launch(("sleep", "1000"), {**ENVIRONMENT, "OWN": "value"}, tmp_path))
    command = await runtime.run(KEY, ["sh", "-c", "cat; echo $OWN; echo bad >&2; exit 4"])
    await command.write(b"input\n")
    command.end_input()
    said: dict[int, bytes] = {}
    while (part := await command.read()) is not None:
        said[part[0]] = said.get(part[0], b"") + part[1]

    assert said == {1: b"input\nvalue\n", 2: b"bad\n"}
    assert await command.code() == 4
    with pytest.raises(StartRefused, match="executable file not found"):
        await runtime.run(KEY, ["no-such-program"])
    await runtime.stop(KEY, 0.0)
    await runtime.wait(KEY)


@pytest.mark.parametrize("tty", [False, True])
async def test_commands_have_the_limit_of_processes_of_the_container(
    runtime: ProcessRuntime, tmp_path: Path, tty: bool
) -> None:
    program = "import resource; print(*resource.getrlimit(resource.RLIMIT_NPROC))"
    await runtime.start(KEY, Launch(("sleep", "1000"), ENVIRONMENT, tmp_path))
    command = await runtime.run(KEY, [sys.executable, "-c", program], tty=tty)
    said = b""
    while (part := await command.read()) is not None:
        said += part[1]
    command.kill()
    await runtime.stop(KEY, 0.0)
    await runtime.wait(KEY)

    (recorded,) = (tmp_path / "pods").rglob("launch.json")
    limit = json.loads(recorded.read_text())["processes"]
    assert said.decode().split() == [str(limit), str(limit)]


async def test_a_terminal_is_one(runtime: ProcessRuntime, tmp_path: Path) -> None:
    await runtime.start(KEY, Launch(("sleep", "1000"), ENVIRONMENT, tmp_path))
    command = await runtime.run(KEY, [sys.executable, "-c", "import os; print(os.isatty(0), os.isatty(1))"], tty=True)
    said = b""
    while (part := await command.read()) is not None:
        said += part[1]

    assert said == b"True True\r\n"
    command.kill()
    await runtime.stop(KEY, 0.0)
    await runtime.wait(KEY)


async def test_long_lines_are_whole_again(runtime: ProcessRuntime, tmp_path: Path) -> None:
    program = "import sys; sys.stdout.write('x' * 50_000 + '\\n')"
    await runtime.start(KEY, Launch((sys.executable, "-c", program), ENVIRONMENT, tmp_path))
    await runtime.wait(KEY)

    assert lines(runtime) == ["x" * 50_000]


async def test_the_exit_code_needs_no_room_on_a_disk_that_became_full(runtime: ProcessRuntime, tmp_path: Path) -> None:
    """The program sees the file with its room while it runs."""
    script = "import pathlib; print(*(one.stat().st_size for one in pathlib.Path().rglob('exit.json.new')))"
    await runtime.start(KEY, Launch((sys.executable, "-c", script), ENVIRONMENT, tmp_path))
    ended = await runtime.wait(KEY)

    assert ended.code == 0
    (file,) = (tmp_path / "pods").rglob("exit.json")
    assert lines(runtime) == [str(file.stat().st_size)]


def test_a_log_that_cannot_be_rotated_is_continued(tmp_path: Path) -> None:
    (tmp_path / "log.1").mkdir()
    (tmp_path / "log.1" / "in the way").touch()
    log = supervisor.Log(str(tmp_path / "log"))
    for _ in range(3 * 1024):
        log.add("stdout", b"x" * 4095 + b"\n")
    log.end()
    assert (tmp_path / "log").stat().st_size > 10 * 1024 * 1024


@pytest.mark.skipif("pids" not in Cgroups().allowed(), reason="this user may not limit processes by cgroups")
async def test_a_program_that_forks_without_limit_is_stopped_by_its_cgroup(tmp_path: Path) -> None:
    runtime = ProcessRuntime(tmp_path / "pods", Cgroups(), processes=20)
    script = "for i in $(seq 100); do sleep 1000 & done; wait"
    await runtime.start(KEY, shell(tmp_path, script))
    ended = await runtime.wait(KEY)

    assert ended.code != 0
    assert any("fork" in line for line in lines(runtime))


async def test_no_command_runs_in_a_container_that_has_ended(runtime: ProcessRuntime, tmp_path: Path) -> None:
    await runtime.start(KEY, shell(tmp_path, "true"))
    await runtime.wait(KEY)

    with pytest.raises(StartRefused, match="the container does not run"):
        await runtime.run(KEY, ("true",))
