"""Writes metrics of GPUs in Prometheus' text format, with the names, labels and order of labels of the DCGM exporter.

The label of the node's name is `Hostname` in the releases of the exporter up to 4.5.3 and `hostname` after them;
`LabelNames` has the choice. Label values and help texts are escaped, which the exporter omits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, get_args

import msgspec

from shoal.units.errors import UserError

Group = Literal["gpu", "link", "switch", "cpu", "cpu-core"]
"""What the rows of a metric are about."""
_GROUPS: Mapping[str, Group] = {group: group for group in get_args(Group)}
Labels = tuple[tuple[str, str], ...]
Value = str | int | float
"""Text is written as it is, floating-point numbers with six decimals."""


class LabelNames(msgspec.Struct, frozen=True):
    uuid: str = "UUID"
    """`uuid` with the exporter's old names."""
    hostname: str = "Hostname"


class Entity(msgspec.Struct, frozen=True):
    """What one row is about: a GPU, a MIG instance, a link, a switch, a CPU or a core of one."""

    gpu: str = ""
    """Its number; with the groups `cpu` and `cpu-core`, that of the CPU or core."""
    uuid: str = ""
    pci: str = ""
    device: str = ""
    """`nvidia0`; with the group `cpu-core`, the number of the CPU."""
    model: str = ""
    profile: str = ""
    """Of the MIG instance; empty for a whole GPU."""
    instance: str = ""
    nvswitch: str = ""
    nvlink: str = ""
    hostname: str = ""
    """Empty: the label is omitted."""


def entity_labels(entity: Entity, group: Group = "gpu", names: LabelNames = LabelNames()) -> Labels:  # noqa: B008
    host = _given((names.hostname, entity.hostname))
    match group:
        case "gpu":
            return (
                ("gpu", entity.gpu),
                (names.uuid, entity.uuid),
                ("pci_bus_id", entity.pci),
                ("device", entity.device),
                ("modelName", entity.model),
                *_instance(entity),
                *host,
            )
        case "link":
            optional = (
                ("nvswitch", entity.nvswitch),
                ("gpu", entity.gpu),
                ("gpu_uuid", entity.uuid),
                ("pci_bus_id", entity.pci),
                ("device", entity.device),
                ("model_name", entity.model),
            )
            # The label was written small here already when the other groups had `Hostname`.
            return (
                ("nvlink", entity.nvlink),
                *_given(*optional),
                *_instance(entity),
                *_given(("hostname", entity.hostname)),
            )
        case "switch":
            return (("nvswitch", entity.nvswitch), *host)
        case "cpu":
            return (("cpu", entity.gpu), *host)
        case "cpu-core":
            return (("cpucore", entity.gpu), ("cpu", entity.device), *host)


def group_of(name: str) -> Group:
    """The group of this name; raises `UserError` for another name, with the message of the exporter."""
    group = _GROUPS.get(name)
    if group is None:
        raise UserError(f"unexpected group: {name}", fix=f"one of {', '.join(_GROUPS)}")
    return group


def has_attributes(group: Group) -> bool:
    """Whether rows of the group have the labels of pods and jobs."""
    return group in ("gpu", "link")


def ordered(labels: Mapping[str, str], attributes: Mapping[str, str]) -> Labels:
    """Labels behind those of the entity: first those from fields and pod labels, then the others, each by name."""
    return (*sorted(labels.items()), *sorted(attributes.items()))


def family(name: str, kind: str, words: str, rows: Iterable[tuple[str, Value]]) -> list[str]:
    """The lines of one metric, with each row's labels as `spelled` writes them."""
    said = words.replace("\\", r"\\").replace("\n", r"\n")
    lines = [f"# HELP {name} {said}", f"# TYPE {name} {kind}"]
    lines += [f"{name}{{{labels}}} {number(value)}" for labels, value in rows]
    return lines


def spelled(labels: Labels) -> str:
    return ",".join([f'{name}="{_escaped(value)}"' for name, value in labels])


def number(value: Value) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)


def _instance(entity: Entity) -> Labels:
    return (("GPU_I_PROFILE", entity.profile), ("GPU_I_ID", entity.instance)) if entity.profile else ()


def _given(*labels: tuple[str, str]) -> Labels:
    return tuple(label for label in labels if label[1])


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
