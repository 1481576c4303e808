"""`shoal agent run` as a process, for as long as a test needs it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path


class AgentProcess:
    """`folder`: the kubelet's for device plugins."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "shoal", "agent", "run", "--device-plugin-dir", str(folder), *arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def end(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """The exit code, and what was logged."""
        self.process.send_signal(how)
        _, words = self.process.communicate(timeout=30)
        return self.process.returncode, words
