"""Calls NVIDIA's program `nvidia-cuda-mps-control`, which starts the daemon of MPS and sends it commands.

Every call ends within a time limit, because a daemon whose GPU hangs does not answer. No shell is used: a command is a
line on the program's standard input.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile

from shoal.agent.foreign_file import read_foreign
from shoal.agent.sharing.process_identity import ProcessIdentity, has_variable, identity_of
from shoal.devices.mps_daemons import HEALTH_COMMAND, MpsDaemon

PROGRAM = "nvidia-cuda-mps-control"
_PID_FILE = "nvidia-cuda-mps-control.pid"
_MOST_DIGITS, _MOST_ANSWER_BYTES = 32, 1 << 20
_LIMIT_S = 10.0
_LOG = "CUDA_MPS_LOG_DIRECTORY"
"""Containers do not know its value."""
_REMAPS_INDEXES = "CUDA_VISIBLE_DEVICES"


class MpsError(Exception):
    """The daemon did not start, did not answer, or refused a command."""


class NoProgramError(MpsError):
    """The program does not exist, so it is not known what the daemon does."""


class MpsControl:
    """`program`: a path, or a name that is searched in PATH. Calls that fail raise `MpsError`."""

    def __init__(self, program: str = PROGRAM, limit_s: float = _LIMIT_S) -> None:
        self._program, self._limit_s = program, limit_s

    def start(self, daemon: MpsDaemon) -> None:
        """It continues after the end of this process."""
        self._run(daemon, ["-d"], "")

    def is_healthy(self, daemon: MpsDaemon) -> bool:
        """Whether it answers with a number. Raises `NoProgramError`."""
        try:
            float(self.send(daemon, HEALTH_COMMAND))
        except NoProgramError:
            raise
        except (MpsError, ValueError):
            return False
        return True

    def set_limits(self, daemon: MpsDaemon) -> None:
        """For all clients that start from now on. Those that run keep their limits."""
        for command in daemon.default_limits:
            self.send(daemon, command)
        for pid in self._servers(daemon):
            for command in daemon.limits_of_server(pid):
                self.send(daemon, command)

    def clients(self, daemon: MpsDaemon) -> int:
        return sum(len(_numbers(self.send(daemon, f"get_client_list {pid}"))) for pid in self._servers(daemon))

    def end(self, daemon: MpsDaemon) -> None:
        self.send(daemon, "quit")

    def send(self, daemon: MpsDaemon, command: str) -> str:
        """What the daemon answers."""
        return self._run(daemon, [], command + "\n")

    def process(self, daemon: MpsDaemon) -> ProcessIdentity | None:
        """That of the daemon, by the file that it writes; None if there is no such file or process.

        Containers can write to the folder, and processes are ended by this number. So a process that was not started
        with the daemon's environment is none.
        """
        try:
            pid = int(read_foreign(Path(daemon.folders.pipe) / _PID_FILE, _MOST_DIGITS))
        except (OSError, ValueError):
            return None
        found = identity_of(pid)
        is_own = found is not None and has_variable(found, _LOG, daemon.folders.log)
        return found if is_own else None

    def _servers(self, daemon: MpsDaemon) -> list[int]:
        return _numbers(self.send(daemon, "get_server_list"))

    def _run(self, daemon: MpsDaemon, arguments: Sequence[str], text: str) -> str:
        environment = {name: value for name, value in os.environ.items() if name != _REMAPS_INDEXES}
        what = text.strip() or "the start"
        # A daemon inherits the output, which is a file, because the end of a pipe would be its end.
        with TemporaryFile("w+b") as output:
            try:
                done = subprocess.run(  # noqa: S603 - the program is configured, the commands are fixed
                    [self._program, *arguments],
                    input=text.encode(),
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**environment, **daemon.environment},
                    timeout=self._limit_s,
                    start_new_session=True,
                    check=False,
                )
            except FileNotFoundError as error:
                raise NoProgramError(f"{self._program} was not found; install it with NVIDIA's driver") from error
            except subprocess.TimeoutExpired as error:
                raise MpsError(f"{what}: no answer in {self._limit_s:.0f} s") from error
            except OSError as error:
                raise MpsError(f"{self._program} cannot be run: {error.strerror}") from error
            output.seek(0)
            words = output.read(_MOST_ANSWER_BYTES).decode(errors="replace").strip()
        if done.returncode:
            raise MpsError(f"{what} failed with code {done.returncode}: {words or 'no message'}")
        return words


def _numbers(text: str) -> list[int]:
    """One in each line; other lines are messages."""
    return [int(line) for line in text.split() if line.isdecimal()]
