"""Describes what a pod requests, in one line."""

from __future__ import annotations

from shoal.api.requirement import Requirement
from shoal.api.stated_capacity import is_by_cloud_label
from shoal.data.mig import RESOURCE_PREFIX
from shoal.engine.asks import Ask
from shoal.engine.device_demand import (
    Demand,
    GpuShare,
    GpuShares,
    MemoryShares,
    MigTiles,
    Replicas,
    VirtualGpus,
    WholeGpus,
)

_SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_BYTES = ("memory", "ephemeral-storage")
_SIGNS = {"NotIn": "not", "Gt": ">", "Lt": "<"}


def ask_words(ask: Ask) -> str:
    """Devices first: they are what is scarce."""
    parts = [demand_words(ask.devices)] if ask.devices is not None else []
    is_told = isinstance(ask.devices, MigTiles)
    requests = [each for each in ask.requests if not (is_told and each[0].startswith(RESOURCE_PREFIX))]
    parts += [amount_words(name, amount) for name, amount in requests]
    parts += [f"device claim {ref.shared or ref.name}" for ref in ask.claims]
    return ", ".join(parts) or "nothing but a place"


def condition_words(ask: Ask) -> list[str]:
    """Conditions on the node, one each."""
    found = [_requirement(each) for each in ask.nodes.always]
    if ask.nodes.terms is not None:
        own = [term for term in ask.nodes.terms if not is_by_cloud_label(term)]
        terms = [" and ".join(map(_requirement, (*t.match_expressions, *t.match_fields))) for t in own]
        by_cloud = " (or by the label of its cloud)" if len(own) < len(ask.nodes.terms) else ""
        words = " or ".join(term for term in terms if term) or "an empty list of terms, which no node meets"
        found.append(f"{words}{by_cloud}")
    if ask.host_ports:
        found.append(f"host port {', '.join(str(port.port) for port in ask.host_ports)} free")
    return found


def demand_words(demand: Demand) -> str:
    match demand:
        case WholeGpus(count, island, numa):
            near = " on one NVLink island" if island else " on one NUMA node" if numa else ""
            return f"{_gpus(count)}{near}"
        case GpuShare(milli):
            return f"{_part(milli)} of a GPU"
        case GpuShares(count, milli):
            return f"{_part(milli)} of each of {_gpus(count)}"
        case MemoryShares(count, mib):
            return f"{mib:,} MiB of GPU memory" + (f" on each of {_gpus(count)}" if count > 1 else "")
        case VirtualGpus(count, mib, percent, cores):
            memory = f"{mib:,} MiB" if mib else f"{percent} % of the memory"
            limit = f" and {cores} % of the cores" if cores else ""
            return f"{count} virtual GPU{'s' if count > 1 else ''} of {memory}{limit}"
        case Replicas(count):
            return f"{count} GPU replica{'s' if count > 1 else ''}"
        case MigTiles(tiles):
            return ", ".join(f"{count} x MIG {profile}" for profile, count in tiles)


def pods_words(count: int) -> str:
    return "1 pod" if count == 1 else f"{count:,} pods"


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"


def _part(milli: int) -> str:
    return f"{milli / 1000:.3f}".rstrip("0")


def amount_words(name: str, amount: int) -> str:
    """An amount in the engine's units, in the units that people use."""
    if name == "cpu":
        cores = f"{amount / 1000:,.3f}".rstrip("0").rstrip(".")
        return f"{cores} core{'' if amount == 1000 else 's'}"
    if name in _BYTES or name.startswith("hugepages-"):
        return f"{_bytes(amount)} of {name}"
    return f"{amount:,} {name}"


def _bytes(amount: int) -> str:
    for size, unit in _SIZES:
        if amount >= size:
            return f"{amount / size:,.1f}".removesuffix(".0") + f" {unit}"
    return f"{amount} bytes"


def _requirement(requirement: Requirement) -> str:
    key, values = requirement.key, requirement.values
    match requirement.operator:
        case "In":
            return f"{key}={' or '.join(values)}"
        case "Exists":
            return key
        case "DoesNotExist":
            return f"no {key}"
        case operator:
            return f"{key} {_SIGNS[operator]} {' or '.join(values)}"
