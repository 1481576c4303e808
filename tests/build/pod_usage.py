"""What kubectl top prints of a pod, as soon as it was measured."""

from __future__ import annotations

from time import monotonic

from build.kubectl_runs import PATIENCE_S, Kubectl


def top_of(kubectl: Kubectl, pod: str) -> list[str]:
    """Name, CPU and memory."""
    deadline = monotonic() + PATIENCE_S
    while True:
        done = kubectl.run("top", "pod", pod, "--no-headers")
        if done.code == 0 and int(done.out.split()[1].removesuffix("m")):
            return done.out.split()
        assert monotonic() < deadline, done.err
