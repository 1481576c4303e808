"""Compares the PCI ids of GPUs with the filters of configuration files: `0x233010DE`, `0x233010DE:0x16C110DE`.

An id is device and vendor in one number; the second number is that of the board's maker. A filter without the second
number matches every board.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

_NUMBERS = 2**32


class PciId(msgspec.Struct, frozen=True):
    device: int
    """Device and vendor."""
    subsystem: int | None = None

    def __str__(self) -> str:
        first = f"0x{self.device:08X}"
        return first if self.subsystem is None else f"{first}:0x{self.subsystem:08X}"


def parse_pci_id(text: str) -> PciId | None:
    """None for a text that is no id."""
    first, colon, second = text.partition(":")
    device, subsystem = _number(first), _number(second) if colon else None
    if device is None or (colon and subsystem is None):
        return None
    return PciId(device, subsystem)


def is_matched(filters: Sequence[str], gpu: PciId | None) -> bool:
    """Whether one of the filters is that of the GPU; without filters every GPU matches."""
    return not filters or (gpu is not None and any(_matches(parse_pci_id(one), gpu) for one in filters))


def _matches(wanted: PciId | None, gpu: PciId) -> bool:
    if wanted is None or wanted.device != gpu.device:
        return False
    return wanted.subsystem in (None, gpu.subsystem)


def _number(text: str) -> int | None:
    """With the prefixes of program code: `0x` for hexadecimal numbers."""
    if text != text.strip() or text[:1] in ("+", "-"):
        return None
    try:
        number = int(text, 0)
    except ValueError:
        return None
    return number if number < _NUMBERS else None
