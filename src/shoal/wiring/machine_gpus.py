"""The GPUs of a node that runs real pods, with their health, labels, sharing and MIG layout: `shoal up --this-machine`
and `shoal join`.

Guarantees: a GPU that fails leaves the allocatable resources of the Node and is given to no pod, with an Event and the
condition `GPUHealthy`; it returns when it is healthy again. A driver that does not respond delays the start for a
bounded time, and the machine gets its GPUs when it does. Rejected: the device plugin of `shoal agent run`, which is an
interface to another kubelet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from shoal.agent.features.label_source import LabelSource, MachineFiles, SourceSettings
from shoal.agent.health.node_condition import NodeConditionWriter, PodUser
from shoal.agent.health.watcher import HealthWatcher
from shoal.agent.kubelet.closing_mig_control import ClosingMigControl
from shoal.agent.kubelet.gpus import NodeGpus
from shoal.agent.mig.label_controller import MigLabelController, MigSettings
from shoal.agent.mig.layout_change import NodeMig
from shoal.agent.mig.patient_control import PatientMigControl
from shoal.agent.patient_call import PatientCall, SilentDriverError
from shoal.agent.patient_driver import PatientDriver
from shoal.agent.plugin.device_plugin import PluginSettings
from shoal.agent.sharing.mps_part import MpsSharing
from shoal.client.clock import Clock
from shoal.client.port import Api
from shoal.devices.health_reports import changes
from shoal.devices.labelled_config import LABEL
from shoal.devices.mig_port import MigControl
from shoal.devices.node_metadata import NodeMetadata
from shoal.devices.plugin_flags import PluginFlags
from shoal.devices.port import GpuDriver
from shoal.units.errors import ShoalError, UserError
from shoal.wiring.gpu_configs import ConfigMaps, GpuConfigs
from shoal.wiring.gpu_driver import health_watcher, open_mig, type_of_fake
from shoal.wiring.gpu_sharing import MPS_STATE, SharingOptions, mps_sharing
from shoal.wiring.plugin_settings import SettingsReader

_log = logging.getLogger("shoal.this-machine")
_MACHINE_TYPE = Path("/sys/class/dmi/id/product_name")
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - that of MPS
_PATIENCE_S, _OPEN_S, _AGAIN_S = 3.0, 10.0, 60.0
_LOOK_S, _MPS_S, _WITHOUT_MPS_S = 5.0, 1.0, 15.0
_NO_METADATA = NodeMetadata({})
Named = Callable[[str], PodUser | None]
"""The name of the pod with a UID; None if the kubelet has no such pod."""


class OpenGpus(msgspec.Struct, frozen=True):
    """The GPUs of an open driver. `mig`: None where layouts are not changed."""

    driver: GpuDriver
    health: HealthWatcher
    mig: MigControl | None = None


class GpuScene(msgspec.Struct, frozen=True):
    """What the GPUs need of their node."""

    api: Api
    clock: Clock
    node: str
    changed: Callable[[], None]
    """Writes the Node, in the event loop."""
    named: Named
    labels: Callable[[], Mapping[str, str]]
    """Those of the Node."""
    tell: Callable[[str, str], None]
    """Records a warning about the Node: reason and message."""


class MachineGpus:
    """`fake`: a simulated machine; empty: this one. `sharing`: how GPUs are shared."""

    def __init__(self, opened: OpenGpus | None, fake: str = "", sharing: SharingOptions | None = None) -> None:
        self._fake, self._sharing = fake, sharing or SharingOptions()
        self.node = NodeGpus(None)
        self.opened: OpenGpus | None = None
        self.metadata = _NO_METADATA
        """The labels and annotations of the Node, as they were read last."""
        self._opening: PatientCall[OpenGpus] | None = None
        self._configs: GpuConfigs | None = None
        self._settings: PluginSettings | None = None
        self._mps: MpsSharing | None = None
        self._source: LabelSource | None = None
        self._is_watched = False
        self._layout_changed = asyncio.Event()
        if opened is not None:
            self._attach(opened)

    def driver(self) -> GpuDriver | None:
        """None while there is none."""
        return None if self.opened is None else self.opened.driver

    async def open(self, opening: PatientCall[OpenGpus]) -> None:
        """Raises UserError if there is no driver. It is waited for in `run` if it does not respond."""
        self._opening = opening
        try:
            self._attach(await asyncio.to_thread(opening))
        except SilentDriverError as error:
            _log.warning("this machine has no GPU for pods until the driver responds: %s", error.what)

    def configure(self, path: Path | None, maps: ConfigMaps | None, mps_root: str, label: str) -> None:
        """Follow a configuration of the device plugin. Raises UserError for a file with which it would not start."""
        usual = SettingsReader({}, defaults=PluginFlags(mps_root=mps_root))
        self._configs = GpuConfigs(usual, path, maps)
        self._use(self._configs.now(label)[0])

    def read_metadata(self) -> None:
        """Of feature discovery. It calls the driver; what cannot be read stays as it was."""
        if self._source is None:
            return
        self._source.use(self.node.config)
        try:
            self.metadata = self._source.read()
        except (ShoalError, OSError) as error:
            _log.warning("the GPUs of this machine are not labelled: %s", error)

    async def run(self, scene: GpuScene) -> None:
        """Keep the Node true until cancelled."""
        opened = await self._present(scene)
        works = [
            self._watch_health(opened.health, scene),
            self._follow(scene),
            self._follow_mps(scene),
            self._follow_layout(opened.health, scene),
        ]
        if opened.mig is not None:
            works.append(self._mig_controller(opened, opened.mig, scene).run())
        tasks = [asyncio.ensure_future(one) for one in works]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                one.result()
        finally:
            for one in tasks:
                one.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def end(self) -> None:
        if self.opened is not None:
            await asyncio.to_thread(self.opened.health.stop)
            await asyncio.to_thread(self.opened.driver.close)

    def _attach(self, opened: OpenGpus) -> None:
        self.opened = opened
        driver = opened.driver
        machine = type_of_fake(self._fake) if self._fake else MachineFiles(_MACHINE_TYPE)
        settings = SourceSettings(self.node.config, needs_driver=True)
        self._source = LabelSource(lambda: driver, settings, machine, opened.health.health)
        self.node.attach(opened.health)
        if self._settings is not None:
            self._use(self._settings)

    def _use(self, settings: PluginSettings) -> None:
        self._settings = settings
        self.node.use(settings.config, settings.flags.mps_root)
        if self._mps is None and self.opened is not None and self._needs_mps(settings):
            root = settings.flags.mps_root
            self._mps = mps_sharing(self.opened.driver, self._fake, self._sharing, self._now, root)
            if self._mps is not None:
                self.node.is_shared_ready = self._mps.is_usable

    def _needs_mps(self, settings: PluginSettings) -> bool:
        """Also for daemons of an earlier process, which have to end if they are wanted no longer."""
        root = Path(settings.flags.mps_root)
        if settings.config.sharing != "mps":
            return bool(settings.flags.mps_root) and (root / MPS_STATE).exists()
        shared = root / "shm"
        with suppress(OSError):
            # Daemons and programs share this folder, and here both are on the machine itself.
            root.mkdir(parents=True, exist_ok=True)
            if not shared.exists():
                shared.symlink_to(_SHARED_MEMORY)
        return True

    def _now(self) -> PluginSettings:
        return self._settings or PluginSettings(PluginFlags(), self.node.config)

    async def _present(self, scene: GpuScene) -> OpenGpus:
        while self.opened is None:
            if self._opening is None:
                return await asyncio.Future[OpenGpus]()
            running = self._opening.begin()
            try:
                # It is not ended with this task: it may be blocked in the driver.
                found = await asyncio.shield(asyncio.wrap_future(running))
            except UserError:
                await scene.clock.sleep(_AGAIN_S)
            else:
                self._attach(found)
                await asyncio.to_thread(self.read_metadata)
                _log.info("this machine has its GPUs now")
                scene.changed()
            finally:
                self._opening.end(running)
        return self.opened

    async def _watch_health(self, health: HealthWatcher, scene: GpuScene) -> None:
        """Writes the condition and the Events."""
        loop = asyncio.get_running_loop()

        def users(uuid: str) -> Sequence[PodUser]:
            return [one for uid in self.node.users(uuid) if (one := scene.named(uid)) is not None]

        writer = NodeConditionWriter(scene.api, scene.clock, scene.node, health.health, users=users)
        ends = (health.listen(writer.changed), health.listen(lambda _: loop.call_soon_threadsafe(scene.changed)))
        writing = asyncio.ensure_future(writer.run())
        try:
            await asyncio.sleep(0)
            if not self._is_watched:
                # The writer was not informed of what was found before it runs.
                writer.changed(changes({}, health.health()))
                self._is_watched = True
                await asyncio.to_thread(health.start)
            await writing
        finally:
            for end in ends:
                end()
            writing.cancel()

    async def _follow(self, scene: GpuScene) -> None:
        """Changes of the configuration, of a MIG layout that an administrator changes, and of what labels say."""
        before: tuple[Mapping[str, str], NodeMetadata] | None = None
        while True:
            if self._configs is not None:
                settings, change = self._configs.now(scene.labels().get(LABEL, ""))
                if change is not None and change.is_fault:
                    scene.tell("DevicePluginConfig", change.message)
                if settings != self._settings:
                    self._use(settings)
            await asyncio.to_thread(self.read_metadata)
            now = self.node.allocatable(), self.metadata
            if now != before:
                scene.changed()
            before = now
            await scene.clock.sleep(_LOOK_S)

    async def _follow_mps(self, scene: GpuScene) -> None:
        while True:
            before = self.node.allocatable()
            if self._mps is not None:
                await asyncio.to_thread(self._mps.check)
            if self.node.allocatable() != before:
                scene.changed()
            is_shared = self.node.config.sharing == "mps" and self._mps is not None
            await scene.clock.sleep(_MPS_S if is_shared else _WITHOUT_MPS_S)

    async def _follow_layout(self, health: HealthWatcher, scene: GpuScene) -> None:
        """What this process changes is advertised at once."""
        while True:
            await self._layout_changed.wait()
            self._layout_changed.clear()
            await asyncio.to_thread(health.read)
            self.node.reopen()
            await asyncio.to_thread(self.read_metadata)
            scene.changed()

    def _mig_controller(self, opened: OpenGpus, control: MigControl, scene: GpuScene) -> MigLabelController:
        loop = asyncio.get_running_loop()

        def changed() -> None:
            # It is called in several threads.
            loop.call_soon_threadsafe(self._layout_changed.set)

        closing = ClosingMigControl(control, self.node)
        settings = MigSettings(
            node=scene.node,
            changed=changed,
            held=self.node.in_use,
        )
        return MigLabelController(scene.api, scene.clock, NodeMig(opened.driver, closing), settings)


async def open_machine_gpus(fake: str = "", patience_s: float = _OPEN_S) -> MachineGpus:
    """`fake`: a simulated machine, whose GPUs the node has."""
    gpus = MachineGpus(None, fake)
    try:
        await gpus.open(PatientCall(lambda: _opened(fake), patience_s))
    except UserError as error:
        if fake:
            raise
        _log.info("this machine has no GPU for pods: %s", error.what)
    return gpus


def _opened(fake: str) -> OpenGpus:
    """Raises UserError if there is no driver."""
    driver, mig = open_mig(fake)
    patient = PatientDriver(lambda: driver, _PATIENCE_S)
    return watched(patient, fake, PatientMigControl(mig))


def watched(driver: GpuDriver, fake: str = "", mig: MigControl | None = None) -> OpenGpus:
    """The GPUs of an open driver, as they are now."""
    health = health_watcher(driver, fake)
    health.read()
    return OpenGpus(driver, health, mig)
