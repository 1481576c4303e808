"""Runs containers as processes, each below a supervisor that outlives Shoal.

The state folder has one folder for each run, with the files that the supervisor writes. Guarantees: a run that was
started is found again by any later process; it is started at most once, because its supervisor must create the file
`claim` exclusively, and so must a kubelet that gives up a run whose supervisor never came to that point.
"""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from shoal.agent.kubelet.port_forwarding import LocalPortForwarding
from shoal.agent.kubelet.private_files import write_private
from shoal.agent.kubelet.process import supervisor
from shoal.agent.kubelet.process.attached_output import AttachedOutput
from shoal.agent.kubelet.process.cgroups import Cgroups
from shoal.agent.kubelet.process.commands import ProcessCommand, run_command
from shoal.agent.kubelet.process.process_usage import all_processes, below, total
from shoal.agent.kubelet.runtime import Consumption, ContainerLimits, Exit, Launch, RunKey, Started, StartRefused

PROCESSES = 4096
"""How many processes and threads one container may have, at most."""
_LOST = "the process that supervised the container was killed; its exit code is unknown"


class _Recorded(msgspec.Struct):
    """`launch.json`."""

    run: str
    command: list[str]
    environment: dict[str, str]
    folder: str
    groups: list[str]
    processes: int


class _ExitFile(msgspec.Struct):
    code: int
    started_s: float
    finished_s: float
    fault: str = ""


class ProcessRuntime:
    name = "process"

    def __init__(self, folder: Path, cgroups: Cgroups | None = None, processes: int = PROCESSES) -> None:
        self._folder = folder
        self._cgroups = cgroups or Cgroups()
        self._processes = processes
        self._children: dict[RunKey, subprocess.Popen[bytes]] = {}

    def problem(self) -> str:
        """Why this user may not run process pods; empty if it may."""
        if os.geteuid() == 0 and "pids" not in self._cgroups.allowed():
            return (
                "the number of processes of a pod cannot be limited: root may exceed its limit of processes, and the "
                "cgroup controller pids is not available. Start Shoal as another user"
            )
        return ""

    def unenforced(self, limits: ContainerLimits) -> str:
        """The limit that cannot be enforced here; empty if there is none."""
        wanted = (("memory", limits.memory_bytes), ("cpu", limits.cpu_milli))
        return next((name for name, value in wanted if value and name not in self._cgroups.allowed()), "")

    async def start(self, key: RunKey, launch: Launch) -> Started:
        folder = self._of(key)
        if (folder / "launch.json").exists():
            return Started()
        name = _name(key)
        try:
            folder.mkdir(parents=True, mode=0o700, exist_ok=True)
            groups = self._cgroups.make(name, launch.limits, self._processes)
            recorded = _Recorded(
                name,
                list(launch.command),
                {**launch.environment, "SHOAL_CONTAINER_RUN": name},
                str(launch.folder or "/"),
                groups,
                0 if "pids" in self._cgroups.allowed() else _own_tasks() + self._processes,
            )
            write_private(folder / "launch.json", msgspec.json.encode(recorded))
            command = [sys.executable, "-I", "-S", supervisor.__file__, str(folder)]
            self._children[key] = subprocess.Popen(  # noqa: ASYNC220, S603 - it takes a millisecond
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},
                start_new_session=True,
            )
        except OSError as error:
            # The next attempt must not take this one for a start.
            (folder / "launch.json").unlink(missing_ok=True)
            raise StartRefused("CreateContainerError", f"{error.filename or folder}: {error.strerror}") from None
        return Started()

    async def find(self, key: RunKey) -> Started | None:
        folder = self._of(key)
        if not (folder / "launch.json").exists():
            return None
        if key in self._children or (folder / "exit.json").exists():
            return Started()
        # The supervisor of a kubelet that was killed may be about to start. The process that creates the file decides.
        try:
            os.close(os.open(folder / "claim", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            return Started()
        shutil.rmtree(folder, ignore_errors=True)
        return None

    async def wait(self, key: RunKey) -> Exit:
        folder = self._of(key)
        await self._ended(key)
        child = self._children.pop(key, None)
        if child is not None:
            child.wait()
            # The supervisor of a killed kubelet may have been faster; then ours has ended at once.
            await self._ended(key)
        name = _name(key)
        try:
            ended = msgspec.json.decode((folder / "exit.json").read_bytes(), type=_ExitFile)
        except (OSError, msgspec.DecodeError):
            await asyncio.to_thread(supervisor.kill_all, self._recorded(key).groups, name)
            now = time.time()
            self._cgroups.remove(name)
            return Exit(137, 0.0, now, "ContainerStatusUnknown", _LOST)
        reason = "StartError" if ended.fault else ""
        if ended.code == 137 and self._cgroups.was_out_of_memory(name):
            reason = "OOMKilled"
        self._cgroups.remove(name)
        code = 128 if ended.fault else ended.code
        return Exit(code, ended.started_s, ended.finished_s, reason, ended.fault)

    async def _ended(self, key: RunKey) -> None:
        handle = self._handle(key)
        if handle is not None:
            try:
                await _readable(handle)
            finally:
                os.close(handle)

    async def stop(self, key: RunKey, grace_s: float) -> None:
        handle = self._handle(key)
        if handle is None:
            return
        try:
            await self._claimed(key, handle)
            for number, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGUSR1, 10.0), (signal.SIGKILL, 10.0)):
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, number)
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(wait_s, 0.0)):
                        await _readable(handle)
                        return
        finally:
            os.close(handle)

    async def _claimed(self, key: RunKey, handle: int) -> None:
        """Wait until the supervisor handles signals, which is a few milliseconds after its start."""
        for _ in range(500):
            if (self._of(key) / "claim").exists():
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(0.01):
                    await _readable(handle)
                    return

    async def run(
        self,
        key: RunKey,
        command: Sequence[str],
        *,
        tty: bool = False,
        is_short: bool = False,  # noqa: ARG002 - each command has its own process
    ) -> ProcessCommand:
        if (self._of(key) / "exit.json").exists():
            raise StartRefused("NotFound", "the container does not run")
        try:
            recorded = self._recorded(key)
            launch = Launch((), recorded.environment, Path(recorded.folder))
            return await run_command(launch, recorded.groups, command, recorded.processes, tty=tty)
        except FileNotFoundError:
            raise StartRefused("NotFound", f'exec: "{command[0]}": executable file not found in $PATH') from None
        except OSError as error:
            raise StartRefused("NotFound", f'exec: "{command[0]}": {(error.strerror or "").lower()}') from None

    async def attach(self, key: RunKey, *, has_input: bool, tty: bool) -> AttachedOutput:  # noqa: ARG002 - it has neither
        folder = self._of(key)
        if (folder / "exit.json").exists():
            raise StartRefused("NotFound", "the container does not run")
        return AttachedOutput(folder / "log", folder / "exit.json")

    async def forward_ports(self, pod: str) -> LocalPortForwarding:  # noqa: ARG002 - all have the ports of the machine
        return LocalPortForwarding()

    async def consumption(self, keys: Sequence[RunKey]) -> Mapping[RunKey, Consumption]:
        return await asyncio.to_thread(self._consumption, keys)

    async def written(self, keys: Sequence[RunKey]) -> Mapping[RunKey, int]:  # noqa: ARG002 - they have none
        return {}

    def log_files(self, key: RunKey) -> Sequence[Path]:
        folder = self._of(key)
        return [path for path in (folder / "log.1", folder / "log") if path.exists()]

    async def remove(self, pod: str) -> None:
        await asyncio.to_thread(shutil.rmtree, self._folder / pod, True)

    def _consumption(self, keys: Sequence[RunKey]) -> Mapping[RunKey, Consumption]:
        processes, found = all_processes(), {}
        for key in keys:
            name = _name(key)
            own = self._cgroups.processes(name) | below(processes, self._supervisor(key))
            if own:
                cpu_s, memory = total(processes, own)
                counted_s, counted = self._cgroups.cpu_s(name), self._cgroups.memory_bytes(name)
                cpu_s, memory = cpu_s if counted_s is None else counted_s, memory if counted is None else counted
                found[key] = Consumption(time.time(), cpu_s, memory)
        return found

    def _supervisor(self, key: RunKey) -> int:
        """Its process id; -1 if it has ended."""
        with suppress(OSError, ValueError, IndexError):
            pid, ticks, boot = (self._of(key) / "claim").read_text().split()
            if [supervisor.start_ticks(int(pid)), supervisor.boot()] == [ticks, boot]:
                return int(pid)
        return -1

    def _of(self, key: RunKey) -> Path:
        return self._folder / key.pod / "containers" / key.container / str(key.attempt)

    def _recorded(self, key: RunKey) -> _Recorded:
        return msgspec.json.decode((self._of(key) / "launch.json").read_bytes(), type=_Recorded)

    def _handle(self, key: RunKey) -> int | None:
        """A file descriptor of the running supervisor; None if it has ended."""
        child = self._children.get(key)
        if child is not None:
            return os.pidfd_open(child.pid)
        try:
            words = (self._of(key) / "claim").read_text().split()
            handle = os.pidfd_open(int(words[0]))
        except (OSError, ValueError, IndexError):
            return None
        # The descriptor is opened first: the process cannot be replaced by another between the two.
        with suppress(OSError, IndexError):
            if [supervisor.start_ticks(int(words[0])), supervisor.boot()] == words[1:]:
                return handle
        os.close(handle)
        return None


def _name(key: RunKey) -> str:
    return f"{key.pod}_{key.container}_{key.attempt}"


def _settle(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)


async def _readable(handle: int) -> None:
    """Wait for the end of a process."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    own = os.dup(handle)
    loop.add_reader(own, _settle, ended)
    try:
        await ended
    finally:
        loop.remove_reader(own)
        os.close(own)


def _own_tasks() -> int:
    """The number of processes and threads of this user, which count for its limit."""
    count, own = 0, os.getuid()
    for path in Path("/proc").iterdir():
        with suppress(OSError):
            if path.name.isdigit() and path.stat().st_uid == own:
                count += len(list((path / "task").iterdir()))
    soft = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    return count if soft == resource.RLIM_INFINITY else min(count, soft)
