"""The parts of a node's agent that write to its Node: health, labels, and the MIG layout; those that serve metrics and
resource claims.

All parts of a process use one driver: it reports each Xid once, and a simulated one has the layout of its GPUs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from shoal.agent.cdi.driver_files import driver_files
from shoal.agent.kubelet.pod_resources import KubeletPodDevices
from shoal.agent.parts import AgentPart, Stop, async_part
from shoal.agent.patient_driver import PatientDriver
from shoal.devices.cdi_devices import CdiInput
from shoal.devices.health_reports import HealthTaint
from shoal.devices.mig_port import MigControl
from shoal.devices.plugin_config import PluginConfig
from shoal.devices.plugin_flags import PluginFlags
from shoal.devices.port import GpuDriver, InstalledGpu
from shoal.units.errors import ShoalError

if TYPE_CHECKING:
    from shoal.agent.dra.claim_driver import ClaimFolders
    from shoal.agent.dra.claim_sharing import ClaimSharing
    from shoal.agent.health.node_condition import GpuUsers, PodUser
    from shoal.agent.health.watcher import HealthWatcher
    from shoal.client.clock import Clock
    from shoal.client.port import Api

_log = logging.getLogger("shoal.agent")
_LABEL_INTERVAL_S, _CLAIM_PATIENCE_S = 60.0, 3.0
_SYS = Path("/sys")
_USUAL_MACHINE_TYPE = Path("/sys/class/dmi/id/product_name")
Cluster = Callable[[Callable[["Api", "Clock"], Any], str], Any]
"""Runs work with a client of the node's cluster, as a field manager."""


class MigChoice(msgspec.Struct, frozen=True):
    namespace: str
    """Of the GPU clients that are stopped for a change."""
    file: Path | None = None
    """The layouts; None: those that are generated for the GPUs."""


class NodePartSettings(msgspec.Struct, frozen=True):
    metrics: tuple[str, int] | None = None
    """Where metrics are served; None: nowhere."""
    taint: HealthTaint | None = None
    """Of a node with an unhealthy GPU."""
    has_labels: bool = False
    mig: MigChoice | None = None
    claims: ClaimFolders | None = None
    """Where the kubelet looks for drivers of resource claims; None: GPUs are given by the device plugin."""
    has_dynamic_mig: bool = False
    """Whether MIG instances are created for resource claims."""


class AgentNode(msgspec.Struct, frozen=True):
    """What the parts share."""

    name: str
    driver: GpuDriver
    mig: MigControl
    health: HealthWatcher
    kubelet: KubeletPodDevices
    cluster: Cluster
    config: Callable[[], PluginConfig]
    """The configuration of the device plugin as it is now."""
    changed: Callable[[], None]
    """The devices of the node have changed."""
    flags: Callable[[], PluginFlags]
    capabilities: Callable[[], Mapping[str, int]]
    """The minor numbers of MIG capabilities."""


def condition_part(node: AgentNode, taint: HealthTaint | None) -> AgentPart:
    """The condition `GPUHealthy`, the taint and Events."""

    async def work(api: Api, clock: Clock) -> None:
        from shoal.agent.health.node_condition import NodeConditionWriter

        writer = NodeConditionWriter(api, clock, node.name, node.health.health, taint=taint, users=_users(node))
        end = node.health.listen(writer.changed)
        try:
            await writer.run()
        finally:
            # The part is started again with another writer.
            end()

    return async_part("condition of the node", lambda: node.cluster(work, "shoal-agent"))


def labels_part(node: AgentNode, machine_type: str | None) -> AgentPart:
    async def work(api: Api, clock: Clock) -> None:
        from shoal.agent.features.blocking_read import BlockingRead
        from shoal.agent.features.label_source import LabelSource, MachineFiles, SourceSettings
        from shoal.agent.features.labelling import keep_written
        from shoal.agent.features.node_object import NodeObject
        from shoal.devices.node_metadata import NodeMetadata

        machine = MachineFiles(_USUAL_MACHINE_TYPE) if machine_type is None else machine_type
        source = LabelSource(lambda: node.driver, SourceSettings(node.config()), machine, node.health.health)

        def read() -> NodeMetadata:
            source.use(node.config())
            return source.read()

        target = NodeObject(api, node.name)
        await keep_written(BlockingRead(read), target, clock, _LABEL_INTERVAL_S, _log.info)

    from shoal.agent.features.node_object import MANAGER

    return async_part("labels", lambda: node.cluster(work, MANAGER))


def mig_part(node: AgentNode, choice: MigChoice, *, has_device_plugin: bool) -> AgentPart:
    async def work(api: Api, clock: Clock) -> None:
        from shoal.agent.mig.held_devices import claimed_devices
        from shoal.agent.mig.label_controller import MigLabelController, MigSettings
        from shoal.agent.mig.layout_change import NodeMig
        from shoal.wiring.mig_labels import layouts_of_file

        file = choice.file
        settings = MigSettings(
            node=node.name,
            namespace=choice.namespace,
            configs=None if file is None else lambda: layouts_of_file(file),
            changed=node.changed,
            claimed=lambda: claimed_devices(node.kubelet.holdings(), node.health.gpus(), node.name),
            creates_on_demand=has_device_plugin,
        )
        await MigLabelController(api, clock, NodeMig(node.driver, node.mig), settings).run()

    return async_part("MIG layout", lambda: node.cluster(work, "shoal-agent"))


class ClaimChoice(msgspec.Struct, frozen=True):
    folders: ClaimFolders
    has_dynamic_mig: bool
    sharing: Callable[[], ClaimSharing]


def claims_part(node: AgentNode, choice: ClaimChoice, *, is_simulated: bool) -> AgentPart:
    """The driver of resource claims, and the ResourceSlices of the node."""
    # Claims wait for each other, so a call that does not return must not be waited for without end.
    gpu_driver = PatientDriver(lambda: node.driver, _CLAIM_PATIENCE_S)

    def cdi(gpus: Sequence[InstalledGpu]) -> CdiInput:
        version, flags = gpu_driver.versions().driver, node.flags()
        root, dev_root = Path(flags.driver_root), Path(flags.dev_root or flags.driver_root)
        files = driver_files(version, root, dev_root)
        return CdiInput(tuple(gpus), version, files, node.capabilities(), dev_root=str(dev_root))

    async def work(api: Api, _: Clock) -> None:
        from shoal.agent.dra.claim_driver import ClaimDriver
        from shoal.agent.dra.node_devices import ClaimableDevices

        mig = node.mig if choice.has_dynamic_mig else None
        devices = ClaimableDevices(gpu_driver, node.health.health, None if is_simulated else _SYS, mig)
        driver = ClaimDriver(node.name, choice.folders, devices, cdi, choice.sharing())
        end = node.health.listen(lambda _: driver.wake())
        try:
            await driver.run(api)
        finally:
            end()

    return async_part("resource claims", lambda: node.cluster(work, "shoal-agent"))


def refused_layout_part(node: AgentNode) -> AgentPart:
    """Of a node without device plugin."""

    async def work(api: Api, clock: Clock) -> None:
        from shoal.agent.dra.layout_refusal import report_refused_layout

        await report_refused_layout(api, clock, node.name)

    return async_part("MIG on demand", lambda: node.cluster(work, "shoal-agent"))


def metrics_part(node: AgentNode, address: tuple[str, int], *, is_simulated: bool) -> AgentPart:
    """Every start has a state of its own, so counters of Xids begin again with it."""
    state_of_xids: list[Any] = []
    node.health.listen_to_xids(lambda event: state_of_xids[-1].add_xid(event, monotonic()) if state_of_xids else None)

    def run(stop: Stop) -> None:
        from shoal.agent.exporter.metrics_server import MetricsServer
        from shoal.agent.exporter.node_state import NodeState
        from shoal.agent.exporter.node_watch import NodeWatch, Sources
        from shoal.agent.exporter.process_owners import ProcessOwners
        from shoal.agent.exporter.settings import ExporterSettings

        settings = ExporterSettings(hostname=node.name, node_name=node.name)
        state = NodeState(settings, node.driver.versions().driver, asks_kubelet=True)
        owners = None if is_simulated else ProcessOwners()
        watch = NodeWatch(node.driver, state, settings, Sources(pods=node.kubelet, owners=owners, has_xids=False))
        server = MetricsServer(address, lambda: state.text(monotonic()), state.problem)
        state_of_xids.append(state)
        watch.start()
        try:
            _log.info("metrics are at %s/metrics", server.url)
            with stop.calling(lambda: _stop_server(server)):
                server.serve()
        finally:
            state_of_xids.remove(state)
            watch.stop()
            server.close()

    return AgentPart("metrics", run)


def _stop_server(server: Any) -> None:
    from threading import Thread

    # `stop` waits for the loop of the server, which may run in the thread that calls this.
    Thread(target=server.stop, daemon=True).start()


def _users(node: AgentNode) -> GpuUsers:
    def users(uuid: str) -> Sequence[PodUser]:
        from shoal.agent.health.gpu_users import pods_of_gpu

        try:
            holdings = node.kubelet.holdings()
        except ShoalError as error:
            _log.warning("the pods of GPU %s are not known: %s", uuid, error)
            return ()
        # The driver is not asked: a GPU with a fault may keep it from answering.
        return pods_of_gpu(uuid, node.health.gpus(), holdings, node.name)

    return users
