"""Writes rows of the DCGM exporter in Prometheus' text format.

Names, labels and their order are the exporter's (`Hostname` with a capital, as in its releases).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from shoal.devices.advertised_devices import PhysicalDevice
from shoal.devices.dcgm_fields import Field
from shoal.devices.device_ids import number_of_replica
from shoal.devices.gpu_slot import GpuSlot
from shoal.devices.mig_instances import Cut
from shoal.devices.product_names import device_name
from shoal.devices.xids import Xid


class PodName(NamedTuple):
    namespace: str
    name: str


class DeviceUser(NamedTuple):
    """A container that holds a device, for the labels of its rows."""

    uid: str
    container: str
    device: PhysicalDevice


Labels = tuple[tuple[str, str], ...]


def family(field: Field, rows: Iterable[tuple[Labels, float]]) -> list[str]:
    """The lines of one metric; none without a row."""
    lines = [f"{field.name}{{{_spelled(labels)}}} {_number(value)}" for labels, value in rows]
    return [f"# HELP {field.name} {field.words}", f"# TYPE {field.name} {field.kind}", *lines] if lines else []


def device_labels(node: str, driver: str, slot: GpuSlot, one: Cut | None) -> Labels:
    instance = (("GPU_I_PROFILE", one.profile.name), ("GPU_I_ID", str(one.instance))) if one is not None else ()
    return (
        ("gpu", str(slot.index)),
        ("UUID", slot.uuid),
        ("pci_bus_id", slot.pci),
        ("device", f"nvidia{slot.index}"),
        ("modelName", device_name(slot.product)),
        *instance,
        ("Hostname", node),
        ("DCGM_FI_DRIVER_VERSION", driver),
    )


def fault_labels(fault: Xid | None) -> Labels:
    if fault is None:
        return (("err_code", "0"), ("err_msg", "No Error"))
    return (("err_code", str(fault.number)), ("err_msg", fault.meaning))


def pod_labels(holder: DeviceUser, pods: Mapping[str, PodName]) -> Labels:
    pod = pods.get(holder.uid)
    replica = number_of_replica(holder.device.id)
    shared = (("vgpu", replica),) if replica else ()
    if pod is None:
        return shared
    return (("container", holder.container), ("namespace", pod.namespace), ("pod", pod.name), *shared)


def _spelled(labels: Labels) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.6f}"
