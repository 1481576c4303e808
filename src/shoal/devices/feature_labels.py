"""Computes the labels that GPU feature discovery writes on a node, from what the node's driver reports.

Differs from the original where GPUs of several models are in one node: it writes labels of one model or another by
chance, here they are those of the most frequent model, of equals the one with the lowest index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from shoal.devices.advertised_devices import single_problem
from shoal.devices.names import DOMAIN, GPU, MIG_PREFIX
from shoal.devices.plugin_config import PluginConfig
from shoal.devices.plugin_flags import MIG_STRATEGIES
from shoal.devices.port import DriverVersions, InstalledGpu, MigInstance
from shoal.devices.product_names import product_of_device, sanitised

COMING_AND_GOING = tuple(f"{DOMAIN}{name}" for name in ("mig-", "gpu.slices.", "gpu.engines.", "gpu.multiprocessors"))
"""The prefixes of labels that depend on the MIG layout."""
UNKNOWN = "unknown"
_GRAPHICS, _COMPUTE = 0x030000, 0x030200
_MODES = {_GRAPHICS: "graphics", _COMPUTE: "compute"}
_VERSION_PARTS = (2, 3)
_FAMILIES = {
    1: "tesla",
    2: "fermi",
    3: "kepler",
    5: "maxwell",
    6: "pascal",
    9: "hopper",
    10: "blackwell",
    12: "blackwell",
    13: "rubin",
}
_TURING_MINOR, _ADA_MINOR = 5, 9


class VgpuHost(msgspec.Struct, frozen=True):
    """What a virtual GPU says about the driver of its host."""

    driver_version: str
    driver_branch: str


class LabelInput(msgspec.Struct, frozen=True):
    versions: DriverVersions
    gpus: tuple[InstalledGpu, ...]
    config: PluginConfig
    machine_type: str | None = None
    """The product name in the firmware; None if it cannot be read."""
    vgpus: tuple[VgpuHost, ...] = ()
    timestamp_s: int | None = None
    """When discovery started, in seconds since 1970; None: without this label."""


class FeatureError(Exception):
    """Feature discovery would write no labels."""

    def __init__(self, message: str, refusal: Literal["driver-version", "mps-with-mig", "unknown-strategy"]) -> None:
        super().__init__(message)
        self.refusal = refusal


def feature_labels(scene: LabelInput) -> dict[str, str]:
    """All labels of the node; without GPUs only those about virtual GPUs and time. Raises `FeatureError`."""
    found = {} if scene.timestamp_s is None else {"gfd.timestamp": str(scene.timestamp_s)}
    found |= _vgpus(scene.vgpus)
    if scene.gpus:
        _check(scene)
        found |= {
            "gpu.machine": UNKNOWN if scene.machine_type is None else sanitised(scene.machine_type),
            **_versions(scene.versions),
            **_clique(scene.gpus),
            **_capabilities(scene),
            **_whole(scene),
        }
        if scene.config.mig_strategy == "single" and any(gpu.is_mig for gpu in scene.gpus):
            found |= _single(scene)
        if scene.config.mig_strategy == "mixed":
            found |= _mixed(scene)
    return {DOMAIN + name: value for name, value in found.items()}


def _check(scene: LabelInput) -> None:
    strategy = scene.config.mig_strategy
    if strategy not in MIG_STRATEGIES:
        raise FeatureError(f"unknown strategy: {strategy}", "unknown-strategy")
    if scene.config.sharing == "mps" and any(gpu.is_mig for gpu in scene.gpus):
        raise FeatureError("GPU sharing using MPS is not supported on nodes with MIG-enabled GPUs", "mps-with-mig")
    parts = scene.versions.driver.split(".")
    if len(parts) not in _VERSION_PARTS:
        what = f"error getting driver version: {scene.versions.driver!r} does not have the form X.Y or X.Y.Z"
        raise FeatureError(what, "driver-version")


def _vgpus(vgpus: Sequence[VgpuHost]) -> dict[str, str]:
    found = {"vgpu.present": _bool(bool(vgpus))}
    if vgpus:
        found["vgpu.host-driver-version"] = vgpus[-1].driver_version
        found["vgpu.host-driver-branch"] = vgpus[-1].driver_branch
    return found


def _versions(versions: DriverVersions) -> dict[str, str]:
    major, minor, revision = (*versions.driver.split("."), "")[:3]
    found = {
        "cuda.driver-version.full": versions.driver,
        "cuda.driver-version.major": major,
        "cuda.driver-version.minor": minor,
        "cuda.driver-version.revision": revision,
        "cuda.driver.major": major,
        "cuda.driver.minor": minor,
        "cuda.driver.rev": revision,
    }
    if versions.cuda is not None:
        cuda_major, _, cuda_minor = versions.cuda.partition(".")
        found |= {
            "cuda.runtime-version.full": versions.cuda,
            "cuda.runtime-version.major": cuda_major,
            "cuda.runtime-version.minor": cuda_minor,
            "cuda.runtime.major": cuda_major,
            "cuda.runtime.minor": cuda_minor,
        }
    return found


def _clique(gpus: Iterable[InstalledGpu]) -> dict[str, str]:
    """Of the GPUs that are attached to a fabric, if all are in one clique."""
    cliques = {(gpu.fabric.cluster, gpu.fabric.clique) for gpu in gpus if gpu.fabric is not None}
    (found,) = cliques if len(cliques) == 1 else (("", ""),)
    return {"gpu.clique": ".".join(found)} if all(found) else {}


def _capabilities(scene: LabelInput) -> dict[str, str]:
    found = {
        "gpu.mode": _mode(scene.gpus),
        "mig.capable": _bool(any(gpu.is_mig is not None for gpu in scene.gpus)),
        "mps.capable": _bool(scene.config.sharing == "mps"),
    }
    if scene.config.mig_strategy != "none":
        found["mig.strategy"] = scene.config.mig_strategy
    return found


def _mode(gpus: Iterable[InstalledGpu]) -> str:
    modes = {_MODES.get(gpu.pci_class or 0, UNKNOWN) for gpu in gpus}
    return modes.pop() if len(modes) == 1 else UNKNOWN


def _whole(scene: LabelInput) -> dict[str, str]:
    """Of the GPUs of the most frequent model. GPUs in MIG mode are counted, but replicas are of whole GPUs only."""
    counts = Counter(gpu.name for gpu in scene.gpus)
    name = max(counts, key=lambda one: counts[one])
    alike = [gpu for gpu in scene.gpus if gpu.name == name]
    gpu = next((one for one in alike if not one.is_mig), alike[0])
    product, count = product_of_device(name), counts[name]
    if gpu.is_mig:
        found = {"product": product, "count": str(count), "replicas": "0", "sharing-strategy": "none"}
    else:
        found = _shared(scene.config, GPU, product, count)
    if gpu.memory_mib:
        found["memory"] = str(gpu.memory_mib)
    major, _, minor = (gpu.compute_capability or "").partition(".")
    if major not in ("", "0"):
        found |= {"family": family_of(int(major), int(minor or 0)), "compute.major": major, "compute.minor": minor}
    return _prefixed("gpu", found)


def family_of(major: int, minor: int) -> str:
    """The architecture with this compute capability: `hopper`."""
    if major == 7:
        return "turing" if minor >= _TURING_MINOR else "volta"
    if major == 8:
        return "ada-lovelace" if minor >= _ADA_MINOR else "ampere"
    return _FAMILIES.get(major, "undefined")


def _single(scene: LabelInput) -> dict[str, str]:
    """The labels with MIG devices instead of GPUs; zeros if the strategy cannot be applied."""
    product = product_of_device(scene.gpus[0].name)
    profiles = [[one.profile for one in gpu.instances] if gpu.is_mig else None for gpu in scene.gpus]
    if single_problem(profiles) is not None:
        zero = {"count": "0", "replicas": "0", "memory": "0", "sharing-strategy": ""}
        return _prefixed("gpu", {"product": f"{product}-MIG-INVALID", **zero})
    instances = [one for gpu in scene.gpus for one in gpu.instances]
    return _prefixed("gpu", _instances(scene.config, GPU, product, instances))


def _mixed(scene: LabelInput) -> dict[str, str]:
    by_profile: dict[str, list[tuple[InstalledGpu, MigInstance]]] = {}
    for gpu in scene.gpus:
        for one in gpu.instances:
            by_profile.setdefault(_spelled(one.profile), []).append((gpu, one))
    found: dict[str, str] = {}
    for profile, rows in sorted(by_profile.items()):
        resource, product = MIG_PREFIX + profile, product_of_device(rows[0][0].name)
        row = _instances(scene.config, resource, product, [one for _, one in rows])
        found |= _prefixed(resource.removeprefix(DOMAIN), row)
    return found


def _instances(
    config: PluginConfig, resource: str, product: str, instances: Sequence[MigInstance]
) -> Mapping[str, str]:
    """Of MIG devices with one profile."""
    first = instances[0]
    found = _shared(config, resource, f"{product}-MIG-{_spelled(first.profile)}", len(instances))
    if first.memory_mib is not None:
        found["memory"] = str(first.memory_mib)
    has = first.attributes
    if has is not None:
        found |= {
            "multiprocessors": str(has.multiprocessors),
            "slices.gi": str(has.gpu_slices),
            "slices.ci": str(has.compute_slices),
            "engines.copy": str(has.copy_engines),
            "engines.decoder": str(has.decoders),
            "engines.encoder": str(has.encoders),
            "engines.jpeg": str(has.jpeg_engines),
            "engines.ofa": str(has.optical_flow_engines),
        }
    return found


def _shared(config: PluginConfig, resource: str, product: str, count: int) -> dict[str, str]:
    replicas = config.replicas_of(resource)
    is_marked = replicas > 1 and config.name_of(resource) == resource
    return {
        "product": f"{product}-SHARED" if is_marked else product,
        "count": str(count),
        "replicas": str(replicas),
        "sharing-strategy": config.sharing if replicas > 1 else "none",
    }


def _spelled(profile: str) -> str:
    """A plus sign is allowed neither in names of resources nor in labels."""
    return profile.replace("+", ".")


def _prefixed(prefix: str, labels: Mapping[str, str]) -> dict[str, str]:
    return {f"{prefix}.{name}": value for name, value in labels.items()}


def _bool(value: bool) -> str:
    return "true" if value else "false"
