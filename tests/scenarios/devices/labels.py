"""Cases of GPU feature discovery: a machine and flags give labels."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.devices.feature_labels import FeatureError, LabelInput, VgpuHost, feature_labels
from shoal.devices.plugin_config import config_of_block
from shoal.devices.plugin_file import plugin_file
from shoal.devices.port import DriverVersions, Fabric, InstalledGpu, MigAttributes, MigInstance

from ..result import Result
from .verdicts import Raw, Refused

FAMILY = "labels"


def results_of_case(raw: Raw) -> list[Result]:
    name, expect = str(raw.get("id", "")), raw.get("expect") or {}
    answer = decide({key: value for key, value in raw.items() if key != "expect"})
    diff = differences(answer, expect)
    return [Result(name, FAMILY, "fail" if diff else "pass", 0 if diff else 2, diff)]


def decide(raw: Raw) -> dict[str, str] | Refused:
    machine, flags = raw["machine"], raw.get("flags") or {}
    file = plugin_file({"version": "v1", "sharing": raw.get("sharing") or {}})
    config = config_of_block(file.sharing, file.block, flags.get("migStrategy", "none"))
    major, minor = machine["cudaVersion"]
    scene = LabelInput(
        versions=DriverVersions(machine["driverVersion"], f"{major}.{minor}"),
        gpus=tuple(_gpu(index, gpu) for index, gpu in enumerate(machine["gpus"])),
        config=config,
        machine_type=machine["machineType"],
        vgpus=tuple(
            VgpuHost(one["hostDriverVersion"], one["hostDriverBranch"]) for one in machine.get("vgpuDevices") or ()
        ),
        timestamp_s=None if flags.get("noTimestamp") else 0,
    )
    try:
        return feature_labels(scene)
    except FeatureError as error:
        return Refused(error.refusal, str(error))


def differences(answer: dict[str, str] | Refused, expect: Raw) -> list[str]:
    wanted = expect.get("labels")
    if isinstance(answer, Refused):
        error = expect.get("error")
        return [] if error == answer.reason else [f"expected {error or 'labels'}, got an error: {answer.message}"]
    if wanted is None:
        return [f"expected the error {expect.get('error')}, got {len(answer)} labels"]
    names = sorted({*wanted, *answer})
    return [
        f"{name}: expected {wanted.get(name)!r}, got {answer.get(name)!r}"
        for name in names
        if wanted.get(name) != answer.get(name)
    ]


def _gpu(index: int, gpu: Raw) -> InstalledGpu:
    capability, fabric = gpu.get("computeCapability"), gpu.get("fabric")
    return InstalledGpu(
        index=index,
        uuid=f"GPU-{index}",
        name=gpu["model"],
        pci="",
        memory_mib=gpu["memoryMiB"] or None,
        compute_capability=None if capability is None else ".".join(map(str, capability)),
        is_mig=gpu["migEnabled"] if gpu["migCapable"] or gpu["migEnabled"] else None,
        instances=tuple(_instance(f"MIG-{index}-{n}", one) for n, one in enumerate(gpu.get("migInstances") or ())),
        pci_class=int(gpu["pciClass"], 16),
        fabric=None if fabric is None else Fabric(fabric["clusterUUID"], str(fabric["cliqueID"])),
    )


def _instance(uuid: str, one: Raw) -> MigInstance:
    engines: dict[str, Any] = one["engines"]
    attributes = msgspec.convert(
        {
            "multiprocessors": one["multiprocessors"],
            "gpu_slices": one["giSlices"],
            "compute_slices": one["ciSlices"],
            "copy_engines": engines["copy"],
            "decoders": engines["decoder"],
            "encoders": engines["encoder"],
            "jpeg_engines": engines["jpeg"],
            "optical_flow_engines": engines["ofa"],
        },
        MigAttributes,
    )
    return MigInstance(uuid, one["profile"], None, None, None, one["memoryMiB"], attributes=attributes)
