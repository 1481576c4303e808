"""Defines the effects of Xid errors: which programs end, and whether the device plugin marks the GPU as unhealthy.

The plugin has a short list of application errors, and marks the GPU as unhealthy for every other one, including
contained memory errors (94), although the GPU itself continues to work.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Victims = Literal["none", "newest", "all"]

APPLICATION_ERRORS = frozenset({13, 31, 43, 45, 68, 109})
"""The device plugin ignores these."""


class Xid(msgspec.Struct, frozen=True):
    number: int
    meaning: str
    victims: Victims = "all"
    is_lost: bool = False
    """Whether the GPU no longer responds, not even to nvidia-smi."""

    def marks_unhealthy(self) -> bool:
        return self.number not in APPLICATION_ERRORS


_KNOWN = {
    xid.number: xid
    for xid in (
        Xid(13, "Graphics Engine Exception", "newest"),
        Xid(31, "MMU Fault", "newest"),
        Xid(32, "Invalid or corrupted push buffer stream", "newest"),
        Xid(43, "Reset Channel Verif Error", "newest"),
        Xid(45, "Preemptive Channel Removal", "newest"),
        Xid(48, "Double Bit ECC Error"),
        Xid(61, "Internal micro-controller breakpoint/warning"),
        Xid(62, "Internal micro-controller halt"),
        Xid(63, "ECC row remapping was recorded", "none"),
        Xid(64, "ECC row remapper failure"),
        Xid(68, "NVDEC0 Exception", "newest"),
        Xid(74, "NVLINK Error"),
        Xid(79, "GPU has fallen off the bus", is_lost=True),
        Xid(92, "High single-bit ECC error rate", "none"),
        Xid(94, "Contained memory error", "newest"),
        Xid(95, "Uncontained memory error"),
        Xid(109, "Context Switch Timeout Error", "newest"),
        Xid(110, "Security Fault Error"),
        Xid(119, "GSP RPC Timeout"),
        Xid(120, "GSP Error"),
        Xid(121, "C2C Link corrected error", "none"),
        Xid(136, "ALI training failed"),
        Xid(140, "Unrecovered ECC Error"),
        Xid(143, "GPU initialization error"),
        Xid(149, "NVLINK NETIR Error"),
        Xid(154, "GPU recovery action changed", "none"),
    )
}


def xid_of(number: int) -> Xid:
    """The effects of an Xid; for an unknown one, the worst effects."""
    return _KNOWN.get(number) or Xid(number, "Unknown Error")
