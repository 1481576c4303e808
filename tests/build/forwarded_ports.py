"""kubectl port-forward as a process beside the test."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from build.kubectl_runs import Kubectl


@contextmanager
def forwarded(kubectl: Kubectl, pod: str, port: str) -> Iterator[int]:
    """The port of this machine that leads to a port of the pod."""
    command = kubectl.command("port-forward", pod, f":{port}", "--address=127.0.0.1")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=kubectl.environment())
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said.startswith("Forwarding from 127.0.0.1:"), said
        yield int(said.split(":")[1].split()[0])
    finally:
        process.terminate()
        process.wait(30)
