"""Parses faults of nodes and GPUs from annotations of the Node, which work on any API server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import msgspec

from shoal.devices.xids import xid_of
from shoal.embedded.kubelets.gpu_components.table import NAMES
from shoal.units.errors import UserError, excerpt

FAULT, GPU_FAULTS = "shoal.dev/fault", "shoal.dev/gpu-faults"
GPU_SOFTWARE = "shoal.dev/gpu-software"
"""Of a node: the layers that its machine had at the start, if component pods add others."""
COMPONENT_FAULTS = "shoal.dev/component-faults"
ComponentFault = Literal["error", "image-pull"]
FaultKind = Literal["fail", "partition", "reboot", "spot-interrupt"]


class Fault(msgspec.Struct, frozen=True):
    kind: FaultKind
    id: str = ""
    """A different id is a different fault of the same kind."""


def fault_of(annotations: Mapping[str, str]) -> Fault | None:
    """None for a healthy node. Raises UserError."""
    said = annotations.get(FAULT)
    if not said:
        return None
    try:
        return msgspec.json.decode(said, type=Fault)
    except msgspec.DecodeError as error:
        kinds = ", ".join(get_args(FaultKind))
        raise UserError(f'{FAULT}: {error}; it is {{"kind": K, "id": "..."}} with K one of {kinds}') from None


def gpu_faults_of(annotations: Mapping[str, str], gpus: int) -> dict[int, int]:
    """The Xid of each GPU that has one. Raises UserError."""
    said = annotations.get(GPU_FAULTS)
    if not said:
        return {}
    try:
        found = msgspec.json.decode(said, type=dict[str, int])
    except msgspec.DecodeError as error:
        raise UserError(f'{GPU_FAULTS}: {error}; it is {{"INDEX": XID}}') from None
    for index in found:
        # Python rejects numbers with thousands of digits.
        if not index.isascii() or not index.isdecimal() or len(index) > 9 or int(index) >= gpus:
            raise UserError(f"{GPU_FAULTS}: no GPU {excerpt(index)}; this node has {gpus}")
    return {int(index): xid for index, xid in found.items()}


def component_faults_of(annotations: Mapping[str, str]) -> dict[str, ComponentFault]:
    """The kind of fault of each GPU component that has one. Raises UserError."""
    said = annotations.get(COMPONENT_FAULTS)
    if not said:
        return {}
    try:
        found = msgspec.json.decode(said, type=dict[str, ComponentFault])
    except msgspec.DecodeError as error:
        kinds = " or ".join(get_args(ComponentFault))
        raise UserError(f'{COMPONENT_FAULTS}: {error}; it is {{"COMPONENT": "KIND"}} with KIND {kinds}') from None
    for name in found:
        if name not in NAMES:
            raise UserError(f"{COMPONENT_FAULTS}: no component {excerpt(name)}; there are {', '.join(NAMES)}")
    return found


def xid_words(pci: str, xid: int) -> str:
    """The line in the kernel log."""
    return f"NVRM: Xid (PCI:{pci[4:].rpartition('.')[0] or pci}): {xid}, {xid_of(xid).meaning}"
