"""Computes the CDI devices of a node: each GPU and each MIG instance under its names, and `all`.

A device has three forms of name: `index` (`0`, `0:1`), `type-index` (`gpu0`, `mig0:1`) and `uuid`. A GPU in MIG mode is
no device of its own, because a container on it sees no memory. `all` is every GPU and every MIG instance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from shoal.devices.cdi_spec import CdiDevice, CdiMount, CdiSpec, ContainerEdits, DeviceNode, Hook, cdi_spec
from shoal.devices.port import InstalledGpu, MigInstance

Naming = Literal["index", "type-index", "uuid"]
NAMINGS: tuple[Naming, ...] = ("index", "type-index", "uuid")
KIND = "nvidia.com/gpu"
PLUGIN_KIND = "k8s.device-plugin.nvidia.com/gpu"
"""The kind to which the device plugin's answers refer."""
CLAIM_KIND = "k8s.gpu.nvidia.com/claim"
"""The kind of the devices of claims."""
_READ_ONLY = ("ro", "nosuid", "nodev", "rbind", "rprivate")
_SOCKET = ("rw", "nosuid", "nodev", "rbind", "rprivate", "noexec")


class DriverFile(msgspec.Struct, frozen=True):
    host: str
    """On the host."""
    container: str
    links: tuple[str, ...] = ()
    """Symbolic links to it, such as `/usr/lib/x86_64-linux-gnu/libcuda.so.1`, in the container."""


class DriverFiles(msgspec.Struct, frozen=True):
    """The files of the installed driver that a program on a GPU needs."""

    libraries: tuple[DriverFile, ...] = ()
    programs: tuple[DriverFile, ...] = ()
    """`nvidia-smi` and others, and firmware."""
    sockets: tuple[DriverFile, ...] = ()
    """Of `nvidia-persistenced` and the fabric manager."""
    nodes: tuple[str, ...] = ()
    """Device nodes that every container needs: `/dev/nvidiactl`."""
    hook: str = ""
    """NVIDIA's program for hooks; empty if the host has none."""


class CdiInput(msgspec.Struct, frozen=True):
    gpus: tuple[InstalledGpu, ...]
    driver: str
    """The driver's version."""
    files: DriverFiles
    capabilities: Mapping[str, int] = {}
    """The minor numbers of MIG capabilities: `gpu0/gi1/access`."""
    namings: tuple[Naming, ...] = NAMINGS
    dev_root: str = "/"
    """Where the host has the device nodes of a driver in a container: `/run/nvidia/driver`."""


def node_spec(given: CdiInput, kind: str = KIND) -> CdiSpec:
    devices = list(_devices(given))
    every = tuple(dict.fromkeys(node for _, nodes in devices for node in nodes))
    named = [
        CdiDevice(name, ContainerEdits(device_nodes=nodes))
        for names, nodes in devices
        for name in dict.fromkeys(names)
        if nodes
    ]
    if every:
        named.append(CdiDevice("all", ContainerEdits(device_nodes=every)))
    return cdi_spec(kind, tuple(named), _common(given))


def claim_device(uid: str, device: str) -> str:
    """The CDI name of a claim's device."""
    return f"{uid}-{device}"


def claim_spec(given: CdiInput, named: Mapping[str, str], added: Mapping[str, ContainerEdits] | None = None) -> CdiSpec:
    """`named`: the UUID of the GPU or MIG instance of each CDI device. One without device nodes is left out. `added`:
    what a device of this UUID needs besides its nodes.
    """
    nodes, more = nodes_of(given), added or {}
    devices = (
        CdiDevice(name, msgspec.structs.replace(more.get(uuid, ContainerEdits()), device_nodes=nodes.get(uuid, ())))
        for name, uuid in named.items()
    )
    return cdi_spec(CLAIM_KIND, tuple(one for one in devices if one.container_edits.device_nodes), _common(given))


def indexes_of(gpus: Sequence[InstalledGpu]) -> Mapping[str, str]:
    """The index of each GPU and MIG instance by UUID: `0`, `0:1`."""
    found = {gpu.uuid: str(gpu.index) for gpu in gpus}
    return found | {one.uuid: f"{gpu.index}:{position}" for gpu in gpus for position, one in enumerate(gpu.instances)}


def nodes_of(given: CdiInput) -> Mapping[str, tuple[DeviceNode, ...]]:
    """The device nodes of each GPU and MIG instance by UUID."""
    named = msgspec.structs.replace(given, namings=("uuid",))
    return {name: nodes for names, nodes in _devices(named) for name in names}


def qualified(kind: str, names: Iterable[str]) -> tuple[str, ...]:
    """`nvidia.com/gpu=0`."""
    return tuple(f"{kind}={name}" for name in names)


def _devices(given: CdiInput) -> Iterator[tuple[list[str], tuple[DeviceNode, ...]]]:
    for gpu in given.gpus:
        own = _node(f"/dev/nvidia{gpu.index if gpu.minor is None else gpu.minor}", given)
        if not gpu.is_mig:
            yield [_gpu_name(gpu, naming) for naming in given.namings], (own,)
            continue
        for position, instance in enumerate(gpu.instances):
            caps = _capabilities(gpu, instance, given)
            # Without its capabilities an instance cannot be used, so it is no device.
            if caps:
                names = [_instance_name(gpu, instance, position, naming) for naming in given.namings]
                yield names, (own, *caps)


def _gpu_name(gpu: InstalledGpu, naming: Naming) -> str:
    return {"index": str(gpu.index), "type-index": f"gpu{gpu.index}", "uuid": gpu.uuid}[naming]


def _instance_name(gpu: InstalledGpu, instance: MigInstance, position: int, naming: Naming) -> str:
    pair = f"{gpu.index}:{position}"
    return {"index": pair, "type-index": f"mig{pair}", "uuid": instance.uuid}[naming]


def _capabilities(gpu: InstalledGpu, instance: MigInstance, given: CdiInput) -> tuple[DeviceNode, ...]:
    """The device nodes that allow the use of the GPU instance and of its compute instance."""
    minor = gpu.index if gpu.minor is None else gpu.minor
    whole = f"gpu{minor}/gi{instance.instance}"
    names = (f"{whole}/access", f"{whole}/ci{instance.compute_instance or 0}/access")
    if not all(name in given.capabilities for name in names):
        return ()
    return tuple(_node(f"/dev/nvidia-caps/nvidia-cap{given.capabilities[name]}", given) for name in names)


def _common(given: CdiInput) -> ContainerEdits:
    files = given.files
    mounted = [*_mounts(files.libraries, _READ_ONLY), *_mounts(files.programs, _READ_ONLY)]
    if not files.hook:
        # The hook creates the links and the cache of libraries. Without it each link is a mount of the library.
        mounted += [CdiMount(one.host, link, _READ_ONLY) for one in files.libraries for link in one.links]
    return ContainerEdits(
        # Keeps NVIDIA's own container runtime from adding the devices a second time.
        env=("NVIDIA_VISIBLE_DEVICES=void",),
        device_nodes=tuple(_node(path, given) for path in files.nodes),
        mounts=(*mounted, *_mounts(files.sockets, _SOCKET)),
        hooks=_hooks(given) if files.hook else (),
    )


def _mounts(files: Sequence[DriverFile], options: tuple[str, ...]) -> Iterator[CdiMount]:
    return (CdiMount(one.host, one.container, options) for one in files)


def _hooks(given: CdiInput) -> tuple[Hook, ...]:
    files = given.files
    links = [
        word
        for one in files.libraries
        for link in one.links
        for word in ("--link", f"{one.container.rpartition('/')[2]}::{link}")
    ]
    folders = sorted({one.container.rpartition("/")[0] for one in files.libraries})
    wanted: tuple[tuple[str, list[str]], ...] = (
        ("create-symlinks", links),
        ("enable-cuda-compat", [f"--host-driver-version={given.driver}"]),
        ("update-ldcache", [word for folder in folders for word in ("--folder", folder)]),
        ("disable-device-node-modification", []),
    )
    return tuple(
        Hook("createContainer", files.hook, ("nvidia-cdi-hook", name, *arguments))
        for name, arguments in wanted
        if arguments or name.startswith("disable")
    )


def _node(path: str, given: CdiInput) -> DeviceNode:
    root = given.dev_root.rstrip("/")
    return DeviceNode(path, host_path=f"{root}{path}" if root else "")
