"""`shoal run` in a process of its own, as users start it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

_END_S = 30
SCHEDULER = "shoal"


class RunProcess:
    """The scheduler alone, for the server of one kubeconfig. `wait_ready` returns when it has taken up its work.

    Its modules are compiled once, beside the log, as an installation does it: where Python is told to write no compiled
    files (as on machines of developers) every start would compile them anew.
    """

    def __init__(self, kubeconfig: Path, log: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "shoal", "run", "--kubeconfig", str(kubeconfig), "--controllers", "scheduler"]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(log.parent / "compiled")
        with log.open("ab") as out:
            self.process = subprocess.Popen(  # noqa: S603 - our own words
                [*command, "--no-leader-elect", "--notify-fd", "1", *arguments],
                stdout=subprocess.PIPE,
                stderr=out,
                env=environment,
            )
        self._log = log

    def wait_ready(self) -> None:
        assert self.process.stdout is not None
        if not self.process.stdout.readline():
            raise RuntimeError(f"shoal run ended with {self.process.wait(_END_S)}: {self._log.read_text()}")

    @property
    def pid(self) -> int:
        return self.process.pid

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(_END_S)
        if self.process.stdout is not None:
            self.process.stdout.close()
