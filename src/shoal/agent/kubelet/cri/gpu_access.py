"""Gives containers the GPUs that were allocated to them, by the code of the device plugin.

A runtime that reads CDI specifications gets names of CDI devices, and the specification is written before. Another
runtime gets the edits of the same specification itself: device nodes, and mounts of the driver's files. Rejected: CDI
names for every runtime. A runtime that does not know them starts the container without its GPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from shoal.agent.cdi.driver_files import driver_files
from shoal.agent.cdi.spec_file import write_spec
from shoal.agent.kubelet.container_settings import ContainerMount
from shoal.agent.kubelet.gpus import NodeGpus
from shoal.agent.kubelet.runtime import StartRefused
from shoal.devices.allocation_answer import AnswerSettings, answer_of
from shoal.devices.cdi_devices import PLUGIN_KIND, CdiInput, indexes_of, node_spec, nodes_of
from shoal.devices.cdi_spec import ContainerEdits, DeviceNode
from shoal.devices.plugin_flags import PluginFlags
from shoal.devices.port import GpuDriver
from shoal.units.errors import TemporaryError, UserError

_VOID = {"NVIDIA_VISIBLE_DEVICES": "void"}
"""Keeps NVIDIA's own runtime from adding GPUs that an image names."""
_READ_ONLY = "ro"


class Access(msgspec.Struct, frozen=True):
    environment: Mapping[str, str] = {}
    mounts: tuple[ContainerMount, ...] = ()
    nodes: tuple[DeviceNode, ...] = ()
    cdi: tuple[str, ...] = ()


class CdiFolder(msgspec.Struct, frozen=True):
    """`path`: where the runtime reads specifications; None: it reads none. `root`: of the driver's files."""

    path: Path | None = None
    root: Path = Path("/")


class GpuAccess:
    def __init__(
        self,
        driver: Callable[[], GpuDriver | None],
        gpus: NodeGpus,
        cdi: CdiFolder,
        capabilities: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        """`driver`: None while there is none. `capabilities`: the minor numbers of MIG capabilities."""
        self._driver, self._gpus, self._cdi, self._capabilities = driver, gpus, cdi, capabilities

    def of(self, uid: str, container: str) -> Access:
        """Raises StartRefused."""
        driver, devices = self._driver(), self._gpus.devices(uid, container)
        if driver is None or not devices:
            return Access({} if driver is None else _VOID)
        try:
            return self._access(driver, uid, container)
        except (TemporaryError, UserError) as error:
            raise StartRefused(
                "CreateContainerError", f"the GPUs of the container are not available: {error}"
            ) from None

    def _access(self, driver: GpuDriver, uid: str, container: str) -> Access:
        devices = self._gpus.devices(uid, container)
        version, root = driver.versions().driver, self._cdi.root
        given = CdiInput(
            gpus=driver.gpus().gpus,
            driver=version,
            files=driver_files(version, root),
            capabilities=self._capabilities(),
            namings=("uuid",),
            dev_root=str(root),
        )
        if self._cdi.path is None:
            # Without a hook each link to a library is a mount.
            given = msgspec.structs.replace(given, files=msgspec.structs.replace(given.files, hook=""))
        spec = node_spec(given, PLUGIN_KIND)
        flags = PluginFlags(
            device_list_strategy=("cdi-cri",) if self._cdi.path else ("envvar",),
            pass_device_specs=True,
            mps_root=self._gpus.mps_root,
        )
        settings = AnswerSettings(flags, self._gpus.config, indexes_of(given.gpus), nodes_of(given))
        answer = answer_of(devices, settings, uid)
        environment = {**answer.environment, **_VOID}
        own = tuple(ContainerMount(one.container, Path(one.host), one.read_only) for one in answer.mounts)
        if self._cdi.path is not None:
            write_spec(spec, self._cdi.path / f"{PLUGIN_KIND.replace('/', '-')}.json")
            return Access(environment, own, cdi=answer.cdi)
        edits = spec.container_edits or ContainerEdits()
        mounts = tuple(
            ContainerMount(one.container_path, Path(one.host_path), _READ_ONLY in one.options) for one in edits.mounts
        )
        return Access(environment, (*mounts, *own), (*edits.device_nodes, *answer.nodes))
