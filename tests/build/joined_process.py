"""`shoal join` as a process: a second node of a cluster on this machine, in a folder of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

_PATIENCE_S = 60


def shoal(*arguments: str) -> subprocess.CompletedProcess[str]:
    """One command to its end."""
    command = [sys.executable, "-m", "shoal", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PATIENCE_S)


class JoinedProcess:
    """Runs until `stop`; its output is in `log`."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.log = folder.with_suffix(".log")
        self._arguments = arguments
        self.process = self._start(*arguments)

    def again(self, *arguments: str) -> None:
        """A new process of the same machine."""
        self.process = self._start(*arguments)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.end()

    def end(self) -> int:
        """The exit code, once it has ended by itself."""
        code = self.process.wait(_PATIENCE_S)
        if self.process.stderr is not None and not self.process.stderr.closed:
            self.log.write_text(self.log.read_text() + self.process.stderr.read())
            self.process.stderr.close()
        return code

    def _start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "shoal", "join", "--state", str(self.folder), *arguments]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if line.startswith("ready: "):
                break
        self.log.write_text("".join(lines))
        if process.poll() is not None:
            raise RuntimeError(f"shoal join ended with {process.returncode}: {self.log.read_text()}")
        return process
