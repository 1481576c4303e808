"""A control plane in a process of its own, for tests that are its clients: as users have it, by `shoal up`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

_START_S = 60


class ServerProcess:
    """`shoal up` in the foreground, until `stop`. Its output lies in a file beside its state.

    Bare: an API server alone. Otherwise `arguments` say which nodes there are, and controllers make them work.
    """

    def __init__(self, folder: Path, *arguments: str, port: int = 0, is_bare: bool = True) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.log = folder / "log"
        state = ["--state", str(folder / "state")]
        alone = ["--nodes", "none", "--no-controllers"] if is_bare else ["--metrics-port", "0"]
        command = [sys.executable, "-m", "shoal", "up", *state, "--port", str(port), *alone, *arguments]
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig)}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--kubeconfig", str(self.kubeconfig)],
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                text=True,
            )
        self._await_ready()

    def _await_ready(self) -> None:
        """The command prints the line to copy when, and only when, it answers requests."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if "export KUBECONFIG" in line:
                return
        raise RuntimeError(f"shoal up ended with {self.process.wait(_START_S)}: {self.log.read_text()}")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(_START_S)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code
