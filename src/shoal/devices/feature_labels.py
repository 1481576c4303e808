"""Computes the labels that GPU feature discovery, the GPU operator and the MIG manager write on a node with GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from shoal.devices.advertised_devices import single_problem
from shoal.devices.gpu_slot import GpuSlot
from shoal.devices.mig_instances import Cut, Gpu
from shoal.devices.names import GPU
from shoal.devices.plugin_config import PluginConfig

_PREFIX = "nvidia.com/"
COMING_AND_GOING = tuple(f"{_PREFIX}{name}" for name in ("mig-", "gpu.slices.", "gpu.engines.", "gpu.multiprocessors"))
"""The prefixes of labels that depend on the MIG layout."""
_OPERANDS = (
    "container-toolkit",
    "dcgm",
    "dcgm-exporter",
    "device-plugin",
    "driver",
    "gpu-feature-discovery",
    "node-status-exporter",
    "operator-validator",
)
_FAMILIES = {7: "volta", 8: "ampere", 9: "hopper", 10: "blackwell", 12: "blackwell"}
_GRAPHICS_FORMS = ("GeForce", "RTX-6000-Ada")
_SMS_UNKNOWN = 0


class LabelInput(msgspec.Struct, frozen=True):
    slots: tuple[GpuSlot, ...]
    gpus: tuple[Gpu, ...]
    config: PluginConfig
    driver: str
    """`580.95.05`."""
    cuda: str
    """The greatest version of CUDA that the driver supports: `13.0`."""


def gpu_labels(scene: LabelInput) -> dict[str, str]:
    """All GPU labels of the node."""
    if not scene.slots:
        return {}
    found = {**_operator(scene), **_versions(scene.driver, scene.cuda), **_model(scene)}
    strategy = scene.config.mig_strategy
    if strategy == "single" and any(gpu.is_mig for gpu in scene.gpus):
        found |= _single(scene)
    if strategy == "mixed":
        for profile, cuts in _by_profile(scene.gpus):
            found |= _mixed(scene, profile, cuts)
    return {_PREFIX + name: value for name, value in found.items()}


def _operator(scene: LabelInput) -> dict[str, str]:
    found = {"gpu.present": "true", **{f"gpu.deploy.{name}": "true" for name in _OPERANDS}}
    capable = scene.slots[0].is_mig_capable
    if capable:
        found["gpu.deploy.mig-manager"] = "true"
    mps = scene.config.sharing == "mps" and not any(gpu.is_mig for gpu in scene.gpus)
    found |= {"mig.capable": _bool(capable), "mps.capable": _bool(mps), "vgpu.present": "false"}
    if scene.config.mig_strategy != "none":
        found["mig.strategy"] = scene.config.mig_strategy
    return found


def _versions(driver: str, cuda: str) -> dict[str, str]:
    major, minor, revision = driver.split(".")
    cuda_major, cuda_minor = cuda.split(".")
    return {
        "cuda.driver-version.full": driver,
        "cuda.driver-version.major": major,
        "cuda.driver-version.minor": minor,
        "cuda.driver-version.revision": revision,
        "cuda.driver.major": major,
        "cuda.driver.minor": minor,
        "cuda.driver.rev": revision,
        "cuda.runtime-version.full": cuda,
        "cuda.runtime-version.major": cuda_major,
        "cuda.runtime-version.minor": cuda_minor,
        "cuda.runtime.major": cuda_major,
        "cuda.runtime.minor": cuda_minor,
    }


def _model(scene: LabelInput) -> dict[str, str]:
    slot, config = scene.slots[0], scene.config
    major, _, minor = (slot.compute_capability or "0.0").partition(".")
    shows = any(name in slot.product for name in _GRAPHICS_FORMS)
    # GPUs with MIG are still counted; the number of replicas is that of whole advertised GPUs.
    replicas = config.replicas_of(GPU) if _has_whole(scene) else 0
    return {
        "gpu.product": slot.product + _shared(config, GPU),
        "gpu.count": str(len(scene.slots)),
        "gpu.replicas": str(replicas),
        "gpu.sharing-strategy": config.sharing if replicas > 1 else "none",
        "gpu.memory": str(slot.memory_mib),
        "gpu.mode": "graphics" if shows else "compute",
        "gpu.family": _family(int(major), int(minor)),
        "gpu.compute.major": major,
        "gpu.compute.minor": minor,
    }


def _family(major: int, minor: int) -> str:
    if (major, minor) == (7, 5):
        return "turing"
    return "ada-lovelace" if (major, minor) == (8, 9) else _FAMILIES.get(major, "undefined")


def _has_whole(scene: LabelInput) -> bool:
    return scene.config.mig_strategy == "none" or any(not gpu.is_mig for gpu in scene.gpus)


def _single(scene: LabelInput) -> dict[str, str]:
    """The labels with MIG devices instead of GPUs; zeros if the strategy cannot be applied."""
    product = scene.slots[0].product
    if single_problem(scene.gpus):
        zero = {"gpu.count": "0", "gpu.replicas": "0", "gpu.memory": "0", "gpu.sharing-strategy": ""}
        return {"gpu.product": f"{product}-MIG-INVALID", **zero}
    cuts = [one for gpu in scene.gpus for one in gpu.cuts]
    profile = cuts[0].profile.name
    replicas = scene.config.replicas_of(GPU)
    return {
        "gpu.product": f"{product}-MIG-{profile}{_shared(scene.config, GPU)}",
        "gpu.count": str(len(cuts)),
        "gpu.replicas": str(replicas),
        "gpu.sharing-strategy": scene.config.sharing if replicas > 1 else "none",
        **{f"gpu.{name}": value for name, value in _attributes(cuts[0]).items()},
    }


def _mixed(scene: LabelInput, name: str, cuts: Sequence[Cut]) -> dict[str, str]:
    resource = cuts[0].profile.resource
    replicas = scene.config.replicas_of(resource)
    row = {
        "product": f"{scene.slots[cuts[0].gpu].product}-MIG-{name.replace('+', '.')}{_shared(scene.config, resource)}",
        "count": str(len(cuts)),
        "replicas": str(replicas),
        "sharing-strategy": scene.config.sharing if replicas > 1 else "none",
        **_attributes(cuts[0]),
    }
    prefix = resource.removeprefix(_PREFIX)
    return {f"{prefix}.{key}": value for key, value in row.items()}


def _attributes(one: Cut) -> dict[str, str]:
    profile, engines = one.profile, one.profile.engines
    return {
        "memory": str(one.memory_mib),
        "multiprocessors": str(profile.sm or _SMS_UNKNOWN),
        "slices.gi": str(profile.compute),
        "slices.ci": str(profile.compute),
        "engines.copy": str(engines.copy or 0),
        "engines.decoder": str(engines.decode or 0),
        "engines.encoder": str(engines.encode or 0),
        "engines.jpeg": str(engines.jpeg or 0),
        "engines.ofa": str(engines.optical_flow or 0),
    }


def _by_profile(gpus: Sequence[Gpu]) -> Iterator[tuple[str, list[Cut]]]:
    found: dict[str, list[Cut]] = {}
    for gpu in gpus:
        for one in gpu.cuts:
            found.setdefault(one.profile.name, []).append(one)
    yield from sorted(found.items())


def _shared(config: PluginConfig, resource: str) -> str:
    return "-SHARED" if config.replicas_of(resource) > 1 and not config.rename else ""


def _bool(value: bool) -> str:
    return "true" if value else "false"
