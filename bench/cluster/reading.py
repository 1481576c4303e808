"""What a person waits for, and what it takes to hold it all: kubectl over ten thousand pods, memory."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from statistics import median
from time import perf_counter

import pytest

from bench.cluster import accounts
from bench.cluster.figures import Figure
from bench.cluster.wire import Connection, Target
from build.kubectl import kubectl_binary

_REAL_MB = 860
_PAGE = 500


async def list_figure(target: Target, kubeconfig: Path, pods: int, times: int) -> Figure | None:
    """None, and the reason is printed, where there is no kubectl."""
    try:
        binary = kubectl_binary()
    except pytest.skip.Exception as reason:
        print(f"kubectl get pods -A: not measured: {reason}")
        return None
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    _run(binary, ["get", "nodes", "-o", "name"], environment)  # discovery is cached from here on
    seconds = []
    for _ in range(times):
        started = perf_counter()
        rows = _run(binary, ["get", "pods", "-A", "--no-headers"], environment).count("\n")
        seconds.append(perf_counter() - started)
        if rows != pods:
            raise RuntimeError(f"kubectl shows {rows} of {pods} pods")
    started = perf_counter()
    _run(binary, ["get", "pods", "-A", "-o", "name", f"--chunk-size={_PAGE}"], environment)
    paged = perf_counter() - started
    line = await Connection.open(target)
    started = perf_counter()
    _, body = await line.answer(b"GET", b"/api/v1/pods")
    plain = perf_counter() - started
    line.close()
    beside = (
        f"in one page of rows; as objects in pages of {_PAGE}, which kubectl paces itself, {paged:.2f} s; "
        f"as one JSON list, {len(body) / 1e6:.0f} MB, {plain:.2f} s"
    )
    return Figure(f"kubectl get pods -A, {pods:,} pods", median(seconds), " s", most=2, beside=beside)


def memory_figure(pid: int, nodes: int, pods: int) -> Figure:
    title = f"resident memory, {nodes:,} nodes, {pods:,} pods, history"
    beside = f"most so far {accounts.most_resident_mb(pid):,.0f} MB; a real API server about {_REAL_MB} MB"
    return Figure(title, accounts.resident_mb(pid), " MB", most=300, beside=beside)


def _run(binary: str, arguments: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(  # noqa: S603 - the kubectl of the tests
        [binary, *arguments], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout
