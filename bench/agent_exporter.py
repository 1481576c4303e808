"""The cost of the exporter of a node with 8 GPUs in 7 MIG instances each and 50 pods, each figure beside its bar.

python -m bench.agent_exporter [--quick]

`shoal agent export` runs as a process of its own with simulated GPUs, and asks a kubelet of the tests for its pods. The
same is measured with the GPUs of this machine if it has NVIDIA's driver.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from threading import Event
from time import perf_counter

from rich.console import Console

import bench.cluster  # noqa: F401 - makes the helpers of the tests importable
from bench.cluster.figures import Figure, table
from build.pod_resources_server import PodResourcesServer
from shoal.devices.dcgm_holders import ContainerHolding
from shoal.units.errors import UserError
from shoal.wiring.gpu_driver import open_driver

_MACHINE = "dgx-h100[mig=all-1g.10gb]"
_MIG_RESOURCE = "nvidia.com/mig-1g.10gb"
_PODS = 50
_P50_MS, _P99_MS, _CPU_PERCENT, _RESIDENT_MB = 10, 40, 2, 80
_PORT = re.compile(r"metrics at http://127\.0\.0\.1:([0-9]+)/")
_RESIDENT = re.compile(r"^VmRSS:\s+([0-9]+) kB", re.MULTILINE)


def measure(machine: str, scrapes: int, seconds: int) -> list[Figure]:
    """`machine`: a simulated one; empty: this one."""
    kubelet = PodResourcesServer()
    kubelet.holdings = _holdings(machine)
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "kubelet.sock"
        with kubelet.served(socket), _exporter(machine, socket) as (process, port):
            connection = HTTPConnection("127.0.0.1", port, timeout=30)
            text = _first(connection, kubelet.holdings[-1].pod)
            times = sorted(_scrape_ms(connection) for _ in range(scrapes))
            cpu = _cpu_percent(process, connection, seconds)
            resident = int(_RESIDENT.findall(Path(f"/proc/{process.pid}/status").read_text())[0]) * 1024 / 1e6
    rows = sum(not line.startswith("#") for line in text.splitlines())
    pods = len(set(re.findall(r'pod="([^"]+)"', text)))
    beside = f"{rows} rows, {pods} pods" + ("" if machine else ", real GPUs")
    return [
        Figure("scrape, median", times[len(times) // 2], " ms", most=_P50_MS, beside=beside),
        Figure("scrape, 99 of 100", times[int(len(times) * 0.99)], " ms", most=_P99_MS, beside=f"{scrapes} scrapes"),
        Figure("processor at one scrape a second", cpu, " %", most=_CPU_PERCENT, beside=f"{seconds} s, of one core"),
        Figure("resident memory", resident, " MB", most=_RESIDENT_MB),
    ]


def _holdings(machine: str) -> list[ContainerHolding]:
    driver = open_driver(machine)
    gpus = driver.gpus().gpus
    driver.close()
    held = [(_MIG_RESOURCE, one.uuid) for gpu in gpus for one in gpu.instances]
    held = held or [("nvidia.com/gpu", gpu.uuid) for gpu in gpus]
    return [
        ContainerHolding(f"pod-{number}", "team", "main", resource, (uuid,))
        for number, (resource, uuid) in enumerate(held[:_PODS])
    ]


@contextmanager
def _exporter(machine: str, socket: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, "-m", "shoal", "agent", "export", "--listen", "127.0.0.1:0"]
    command += ["--fake", machine] if machine else []
    with subprocess.Popen(  # noqa: S603
        [*command, "--pod-resources", str(socket)], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            found = _PORT.search(process.stderr.readline())
            assert found is not None
            yield process, int(found[1])
        finally:
            process.terminate()


def _first(connection: HTTPConnection, pod: str) -> str:
    """The first scrape with all GPUs and pods."""
    for _ in range(100):
        text = _scrape(connection)
        if f'pod="{pod}"' in text and "DCGM_FI_PROF_SM_ACTIVE" in text:
            return text
        Event().wait(0.1)
    raise AssertionError("the exporter shows no pods")


def _scrape(connection: HTTPConnection) -> str:
    connection.request("GET", "/metrics")
    return connection.getresponse().read().decode()


def _scrape_ms(connection: HTTPConnection) -> float:
    begun = perf_counter()
    _scrape(connection)
    return (perf_counter() - begun) * 1000


def _cpu_percent(process: subprocess.Popen[str], connection: HTTPConnection, seconds: int) -> float:
    before, begun = _cpu_s(process), perf_counter()
    for _ in range(seconds):
        _scrape(connection)
        Event().wait(1.0)
    return 100 * (_cpu_s(process) - before) / (perf_counter() - begun)


def _cpu_s(process: subprocess.Popen[str]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer scrapes")
    chosen = parser.parse_args(arguments)
    scrapes, seconds = (200, 10) if chosen.quick else (2000, 60)
    figures = [figure for machine in _machines() for figure in measure(machine, scrapes, seconds)]
    Console(highlight=False).print(table(figures))
    return 0


def _machines() -> list[str]:
    try:
        open_driver("").close()
    except UserError:
        return [_MACHINE]
    return [_MACHINE, ""]


if __name__ == "__main__":
    sys.exit(main())
