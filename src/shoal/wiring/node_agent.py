"""Composes the agent of a node: the list of its parts, each with what it needs of the others.

A part that is added is one function here, and one line in `agent_parts`.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from shoal.agent.cdi.driver_files import mig_capabilities
from shoal.agent.health.watcher import HealthWatcher
from shoal.agent.kubelet.pod_resources import USUAL_SOCKET, KubeletPodDevices
from shoal.agent.mig.patient_control import PatientMigControl
from shoal.agent.parts import AgentPart, Stop, async_part, part_after, periodic_part, run_parts
from shoal.agent.patient_call import PatientCall, SilentDriverError
from shoal.agent.patient_driver import PatientDriver
from shoal.agent.plugin.config_files import ConfigFile, ConfigFolder, ConfigKeys
from shoal.agent.plugin.device_plugin import DevicePlugin, NodeParts, PluginSettings
from shoal.agent.plugin.plugin_spec import PluginSpec
from shoal.agent.plugin.scheduler_choice import SchedulerChoice
from shoal.agent.sharing.mps_part import MpsSharing
from shoal.devices.labelled_config import LabelledConfig
from shoal.devices.mig_port import MigControl
from shoal.devices.plugin_resources import PluginConfigError
from shoal.devices.port import GpuDriver
from shoal.devices.waiting_requests import Held, PodName
from shoal.units.errors import UserError, Where
from shoal.wiring.agent_node_parts import (
    AgentNode,
    ClaimChoice,
    NodePartSettings,
    claims_part,
    condition_part,
    labels_part,
    metrics_part,
    mig_part,
    refused_layout_part,
)
from shoal.wiring.gpu_driver import health_watcher, open_mig, type_of_fake
from shoal.wiring.gpu_sharing import SharingOptions, claim_sharing, mps_sharing, time_slices
from shoal.wiring.plugin_settings import SettingsReader, most_mps_clients

if TYPE_CHECKING:
    from shoal.client.clock import Clock
    from shoal.client.http.access import Access
    from shoal.client.port import Api

_log = logging.getLogger("shoal.agent")
USUAL_FOLDER = Path("/var/lib/kubelet/device-plugins")
_DRIVER_RETRY_S, _CONFIG_S, _SPEC_S, _TIME_SLICE_S = 30.0, 5.0, 5.0, 5.0
_OPEN_S = 2.0
_FIRST_PODS_S = 5.0
"""How long the devices are kept back at the start if the cluster does not answer."""


_CONFIGURED = frozenset({"device plugin", "MPS", "time slices", "labels", "CDI specification"})
"""The parts that depend on the plugin's configuration."""


class AgentSettings(msgspec.Struct, frozen=True):
    fake: str = ""
    """A machine to simulate; empty: the driver of this machine."""
    folder: Path = USUAL_FOLDER
    """Where the kubelet's socket for device plugins is."""
    pod_resources: Path = USUAL_SOCKET
    cdi_folder: Path | None = None
    """Where CDI specifications are written; None: nowhere."""
    config: Path | None = None
    """The plugin's configuration: a file, or a folder with one for each kind of node."""
    default_config: str = ""
    """The file of a node without label."""
    flags: Mapping[str, Any] = {}
    """Options of the plugin, by the names of `PluginFlags`."""
    sharing: SharingOptions = SharingOptions()
    node: str = ""
    access: Access | None = None
    """Of the node's cluster; None: no cluster is asked."""
    parts: NodePartSettings = NodePartSettings()


def run_agent(settings: AgentSettings, stop: Stop) -> Sequence[str]:
    """Until `stop` is set; returns the parts that are still blocked then. Raises `UserError` for a configuration with
    which the plugin would not start; and if there is no driver, unless the settings let it come later.
    """
    opened = _driver(settings, stop)
    if opened is None:
        return ()
    driver = PatientDriver(lambda: opened[0])
    try:
        return run_parts(agent_parts(driver, PatientMigControl(opened[1]), settings), stop)
    finally:
        driver.close()


def agent_parts(driver: GpuDriver, mig: MigControl, settings: AgentSettings) -> Sequence[AgentPart]:
    """The driver is not called here: one that does not respond must not keep any part from its start."""
    reader = SettingsReader(settings.flags, most_mps_clients(driver))
    health = health_watcher(driver, settings.fake)
    is_plugin = settings.parts.claims is None
    choice = SchedulerChoice() if settings.access is not None and is_plugin else None
    first = _first(settings, reader)
    mps = mps_sharing(driver, settings.fake, settings.sharing, lambda: plugin.settings, first.flags.mps_root)
    plugin = _plugin(driver, settings, first, _usable(health, mps), choice)
    health.listen(lambda _: plugin.wake())
    files = _config_files(settings, reader, plugin)
    parts = [_health_part(health)]
    if is_plugin:
        # A GPU that is both in claims and in the plugin's resource would be given away twice.
        parts.append(_plugin_part(plugin, choice))
        if mps is not None:
            mps.listen(plugin.wake)
            parts.append(AgentPart("MPS", mps.run))
        slices = time_slices(driver, settings.fake, settings.sharing, lambda: plugin.settings)
        if slices is not None:
            parts.append(periodic_part("time slices", slices.check, _TIME_SLICE_S))
    if settings.cdi_folder is not None and is_plugin:
        spec = PluginSpec(settings.cdi_folder, driver, lambda: plugin.settings, _capabilities(driver, settings))
        # Containers must not refer to devices that no specification has yet.
        plugin.prepare_by(spec.write)
        parts.append(periodic_part("CDI specification", spec.check, _SPEC_S))
    if files is not None:
        parts.append(periodic_part("configuration", files.check, _CONFIG_S))
    if settings.access is not None:
        if choice is not None:
            parts.append(_pods_part(settings, settings.access, choice))
        if isinstance(files, ConfigFolder):
            parts.append(_label_part(settings, settings.access, files.set_label))
    node = _node(driver, mig, settings, health, plugin)
    if settings.parts.metrics is not None:
        parts.append(metrics_part(node, settings.parts.metrics, is_simulated=bool(settings.fake)))
    parts += _cluster_parts(node, settings) if settings.access is not None else ()
    if isinstance(files, ConfigFolder):
        # Under the configuration of another kind of node, running pods would have devices that are not advertised.
        return [part_after(files.is_chosen, part) if part.name in _CONFIGURED else part for part in parts]
    return parts


def _cluster_parts(node: AgentNode, settings: AgentSettings) -> Iterator[AgentPart]:
    chosen = settings.parts
    yield condition_part(node, chosen.taint)
    if chosen.has_labels:
        yield labels_part(node, type_of_fake(settings.fake) if settings.fake else None)
    if chosen.mig is not None:
        yield mig_part(node, chosen.mig, has_device_plugin=chosen.claims is None)
    if chosen.claims is not None:
        sharing = partial(claim_sharing, settings.fake, settings.sharing, node.flags().mps_root)
        choice = ClaimChoice(chosen.claims, chosen.has_dynamic_mig, sharing)
        yield claims_part(node, choice, is_simulated=bool(settings.fake))
        yield refused_layout_part(node)


def _node(
    driver: GpuDriver, mig: MigControl, settings: AgentSettings, health: HealthWatcher, plugin: DevicePlugin
) -> AgentNode:
    def cluster(work: Callable[[Api, Clock], Any], manager: str) -> Any:
        if settings.access is None:
            raise UserError("no cluster is known", fix="name the Node of this machine with --node")
        return _in_cluster(settings.access, work, manager)

    return AgentNode(
        name=settings.node,
        driver=driver,
        mig=mig,
        health=health,
        kubelet=KubeletPodDevices(settings.pod_resources),
        cluster=cluster,
        config=lambda: plugin.settings.config,
        changed=plugin.wake,
        flags=lambda: plugin.settings.flags,
        capabilities=_capabilities(driver, settings),
    )


def _driver(settings: AgentSettings, stop: Stop) -> tuple[GpuDriver, MigControl] | None:
    waits = not _first(settings, SettingsReader(settings.flags)).flags.fail_on_init_error
    opening, is_silent = PatientCall(partial(open_mig, settings.fake), _OPEN_S), False
    while not stop.is_set():
        try:
            return opening()
        except SilentDriverError:
            # The same call is waited for, in short steps, so that the agent can be ended meanwhile.
            if not is_silent:
                _log.warning("NVIDIA's driver does not respond; the agent waits for it")
            is_silent = True
            continue
        except UserError as error:
            if not waits:
                raise
            _log.warning("%s; again in %.0f s", error, _DRIVER_RETRY_S)
        stop.wait(_DRIVER_RETRY_S)
    return None


def _first(settings: AgentSettings, reader: SettingsReader) -> PluginSettings:
    """What the plugin starts with. The file of a folder is chosen later, because it depends on the Node."""
    file = settings.config if settings.config is not None and not settings.config.is_dir() else None
    try:
        found, _ = reader.read("" if file is None else _text(file))
    except PluginConfigError as error:
        where = Where(file=str(file)) if file is not None else Where()
        raise UserError(str(error), where=where, fix="see the flags and sharing of the device plugin") from error
    return found


def _health_part(health: HealthWatcher) -> AgentPart:
    def run(stop: Stop) -> None:
        health.start()
        stop.wait()
        health.stop()

    return AgentPart("health", run)


def _plugin(
    driver: GpuDriver,
    settings: AgentSettings,
    first: PluginSettings,
    is_usable: Callable[[str, int | None], bool],
    choice: SchedulerChoice | None,
) -> DevicePlugin:
    parts = NodeParts(driver, is_usable, monotonic, _capabilities(driver, settings))
    return DevicePlugin(settings.folder, parts, first, choice)


def _usable(health: HealthWatcher, mps: MpsSharing | None) -> Callable[[str, int | None], bool]:
    if mps is None:
        return health.is_usable
    return lambda uuid, instance: health.is_usable(uuid, instance) and mps.is_usable(uuid)


def _plugin_part(plugin: DevicePlugin, choice: SchedulerChoice | None) -> AgentPart:
    def run(stop: Stop) -> None:
        if choice is not None:
            # A kubelet that learns of devices admits waiting pods at once, so their choices should be known by then.
            with stop.calling(choice.known.set):
                choice.known.wait(_FIRST_PODS_S)
        plugin.run(stop)

    return AgentPart("device plugin", run)


def _capabilities(driver: GpuDriver, settings: AgentSettings) -> Callable[[], Mapping[str, int]]:
    if not settings.fake:
        return mig_capabilities
    from shoal.embedded.gpus.simulated_driver import simulated_capabilities

    return lambda: simulated_capabilities(driver.gpus().gpus)


def _config_files(
    settings: AgentSettings, reader: SettingsReader, plugin: DevicePlugin
) -> ConfigFile[PluginSettings] | ConfigFolder[PluginSettings] | None:
    if settings.config is None:
        return None
    if not settings.config.is_dir():
        return ConfigFile(settings.config, reader.read()[0], reader.read, plugin.configure)
    followed = LabelledConfig(reader.read()[0], reader.read)
    keys = ConfigKeys(settings.default_config, waits_for_label=settings.access is not None)
    return ConfigFolder(settings.config, followed, plugin.configure, keys)


def _pods_part(settings: AgentSettings, access: Access, choice: SchedulerChoice) -> AgentPart:
    kubelet = KubeletPodDevices(settings.pod_resources)

    def holders() -> dict[PodName, Held]:
        found: dict[PodName, dict[str, dict[str, tuple[str, ...]]]] = {}
        for one in kubelet.holdings():
            of_pod = found.setdefault(PodName(one.namespace, one.pod), {}).setdefault(one.container, {})
            # A resource whose devices are on several NUMA nodes is listed once for each.
            of_pod[one.resource] = (*of_pod.get(one.resource, ()), *one.device_ids)
        return dict(found)

    async def work(api: Api, clock: Clock) -> None:
        from shoal.agent.plugin.node_pods import FollowedPods
        from shoal.agent.sharing.virtual_limits import UnenforcedLimits
        from shoal.client.recorder import Recorder

        recorder = Recorder(api, clock, "shoal-agent")
        limits = UnenforcedLimits(recorder, settings.sharing.vgpu_library)
        events = asyncio.create_task(recorder.run())
        try:
            await FollowedPods(api, clock, settings.node, choice, holders, on_new=limits.look).run()
        finally:
            events.cancel()

    return async_part("pods", lambda: _in_cluster(access, work))


def _label_part(settings: AgentSettings, access: Access, apply: Callable[[str], None]) -> AgentPart:
    async def work(api: Api, clock: Clock) -> None:
        from shoal.agent.plugin.node_label import follow_config_label

        await follow_config_label(api, clock, settings.node, apply)

    return async_part("label of the node", lambda: _in_cluster(access, work))


async def _in_cluster(access: Access, work: Callable[[Api, Clock], Any], manager: str = "shoal-agent") -> None:
    from shoal.client.clock import WallClock
    from shoal.client.http.api import KubeApi
    from shoal.client.http.settings import KubeSettings

    api = KubeApi(access, random.Random(), KubeSettings(manager=manager))
    try:
        await work(api, WallClock())
    finally:
        await api.close()


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"cannot be read: {reason}", where=Where(file=str(file))) from error
