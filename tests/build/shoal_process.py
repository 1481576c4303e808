"""`shoal run` and `shoal cluster nodes` as processes beside a server, for as long as a test needs them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

PATIENCE_S = 90


class ShoalProcess:
    """One command. What it says lies in a file, because nobody may be there to read it."""

    def __init__(self, kubeconfig: Path, *arguments: str) -> None:
        self._said = TemporaryFile("a+")  # noqa: SIM115 - closed with the process
        self.process = subprocess.Popen(
            [sys.executable, "-m", "shoal", *arguments, "--kubeconfig", str(kubeconfig), "--notify-fd", "1"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        )

    def is_ready(self) -> bool:
        """Once it works; False if it ended before."""
        assert self.process.stdout is not None
        return bool(self.process.stdout.readline())

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(PATIENCE_S)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

    @property
    def said(self) -> str:
        self._said.seek(0)
        return self._said.read()


@contextmanager
def shoal_process(kubeconfig: Path, *arguments: str) -> Iterator[ShoalProcess]:
    """Ended afterwards, whatever happened; a traceback is a failure."""
    process = ShoalProcess(kubeconfig, *arguments)
    try:
        yield process
    finally:
        process.stop()
    assert "Traceback" not in process.said, process.said
