"""Starts the exporter of a node's GPUs: the driver, the threads that read, and the server of the metrics."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

import msgspec

from shoal.agent.exporter.job_files import read_jobs
from shoal.agent.exporter.metrics_server import MetricsServer
from shoal.agent.exporter.node_state import NodeState
from shoal.agent.exporter.node_watch import NodeWatch, Sources
from shoal.agent.exporter.pod_devices import PodDevices
from shoal.agent.exporter.process_owners import ProcessOwners
from shoal.agent.exporter.settings import ExporterSettings
from shoal.devices.dcgm_selection import config_map_name
from shoal.units.errors import TemporaryError, UserError
from shoal.wiring.gpu_driver import open_driver

if TYPE_CHECKING:
    from shoal.agent.kubelet.api_reader import ApiReader
    from shoal.agent.kubelet.pod_metadata import PodMetadata

_ONCE_INTERVAL_S, _ONCE_DEADLINE_S = 0.2, 10.0
_READINGS_FOR_RATES = 2
"""Performance counters are the difference of two readings."""


class ExporterChoice(msgspec.Struct, frozen=True):
    settings: ExporterSettings
    fake: str = ""
    """A machine to simulate; empty: the driver of this machine."""
    socket: Path | None = None
    """Of the kubelet; None: it is not asked."""
    jobs: Path | None = None
    """The folder of job mapping files."""
    has_pod_labels: bool = False


def exposition_once(choice: ExporterChoice) -> str:
    """The metrics after two readings of each GPU that responds."""
    settings = msgspec.structs.replace(choice.settings, interval_s=_ONCE_INTERVAL_S)
    with _RunningExporter(msgspec.structs.replace(choice, settings=settings)) as node:
        node.watch.wait_for_readings(_READINGS_FOR_RATES, _ONCE_DEADLINE_S)
        return node.text()


def serve_metrics(choice: ExporterChoice, address: tuple[str, int], ready: Callable[[str], None]) -> None:
    """Until the process gets SIGINT or SIGTERM. `ready` is called with the URL."""
    with _RunningExporter(choice) as node:
        server = MetricsServer(address, node.text, node.state.problem)
        try:
            _stop_on_signals(server)
            ready(server.url)
            server.serve()
        finally:
            server.close()


class _RunningExporter:
    def __init__(self, choice: ExporterChoice) -> None:
        self._driver = open_driver(choice.fake)
        has_pods = choice.socket is not None
        self.state = NodeState(choice.settings, self._driver.versions().driver, asks_kubelet=has_pods)
        folder = choice.jobs
        sources = Sources(
            pods=_pod_devices(choice.socket) if choice.socket is not None else None,
            # Processes of simulated GPUs are none of this machine.
            owners=ProcessOwners() if has_pods and not choice.fake else None,
            metadata=_pod_metadata(choice.settings.node_name) if choice.has_pod_labels and has_pods else None,
            jobs=(lambda: read_jobs(folder)) if folder is not None else None,
        )
        self.watch = NodeWatch(self._driver, self.state, choice.settings, sources)

    def text(self) -> str:
        return self.state.text(monotonic())

    def __enter__(self) -> Self:
        self.watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.watch.stop()


def _pod_devices(socket: Path) -> PodDevices:
    from shoal.agent.kubelet.pod_resources import KubeletPodDevices

    return KubeletPodDevices(socket)


def _pod_metadata(node: str) -> Callable[[str, str], PodMetadata | None]:
    from shoal.agent.kubelet.pod_metadata import PodsOfNode

    return PodsOfNode(_api("pod labels"), node).find


def selected_metrics(name: str) -> str:
    """The key `metrics` of the ConfigMap `NAMESPACE:NAME`."""
    namespace, own = config_map_name(name)
    api = _api("a ConfigMap")
    try:
        found = msgspec.json.decode(api.get(f"/api/v1/namespaces/{quote(namespace)}/configmaps/{quote(own)}"))
    except TemporaryError as error:
        raise UserError(f"could not retrieve ConfigMap '{name}'; err: {error}") from error
    text = (found.get("data") or {}).get("metrics")
    if text is None:
        raise UserError(f"malformed ConfigMap '{name}'; no 'metrics' key")
    return str(text)


def _api(what: str) -> ApiReader:
    from shoal.agent.kubelet.api_reader import ApiReader
    from shoal.client.http.locate import in_cluster

    access = in_cluster(os.environ)
    if access is None:
        raise UserError(f"{what} can be read in a pod only", fix="run the agent in a pod with a service account")
    return ApiReader(access)


def _stop_on_signals(server: MetricsServer) -> None:
    def stop(*_: object) -> None:
        # The server waits for its own loop to end, so it is stopped from another thread.
        threading.Thread(target=server.stop, daemon=True).start()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
