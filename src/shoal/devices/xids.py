"""Defines the effects of Xid errors: which programs end, whether the device plugin marks the GPU as unhealthy, and what
an operator has to do.

The plugin has a short list of application errors, and marks the GPU as unhealthy for every other one, including
contained memory errors (94), although the GPU itself continues to work.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Victims = Literal["none", "newest", "all"]
XidAction = Literal[
    "none",
    "restart-app",
    "preceding",
    "reset",
    "drain-and-reset",
    "nvlink",
    "power",
    "reboot",
    "power-cycle",
    "support",
]

APPLICATION_ERRORS = frozenset({13, 31, 43, 45, 68, 109})
"""The device plugin ignores these."""
ADVICE: dict[XidAction, str] = {
    "none": "no action is needed; watch whether it occurs again",
    "restart-app": (
        "an error of the program: restart it; if different programs fail on this GPU alone, run NVIDIA's diagnostics"
    ),
    "preceding": "a consequence of another error: act on the Xid before it",
    "reset": "move its pods away and reset the GPU; if it occurs again, restart the node, then replace the GPU",
    "drain-and-reset": "drain the node and reset the GPU with its MIG instances; if it occurs again, replace the GPU",
    "nvlink": "drain the node and reset all GPUs that are connected by NVLink; if it occurs again, check the hardware",
    "power": "take the GPU out of service and check its power connection",
    "reboot": "drain the node and restart it",
    "power-cycle": "drain the node and switch its power off and on; if it occurs again, replace the GPU",
    "support": "contact NVIDIA's support and plan a replacement",
}


class Xid(msgspec.Struct, frozen=True):
    number: int
    meaning: str
    victims: Victims = "all"
    is_lost: bool = False
    """Whether the GPU no longer responds, not even to nvidia-smi."""
    action: XidAction = "reset"

    def marks_unhealthy(self) -> bool:
        return self.number not in APPLICATION_ERRORS

    @property
    def advice(self) -> str:
        return ADVICE[self.action]


_KNOWN = {
    xid.number: xid
    for xid in (
        Xid(11, "Invalid or corrupted push buffer stream", "newest", action="restart-app"),
        Xid(13, "Graphics Engine Exception", "newest", action="restart-app"),
        Xid(25, "Invalid or illegal push buffer stream", "newest", action="restart-app"),
        Xid(31, "MMU Fault", "newest", action="restart-app"),
        Xid(32, "Invalid or corrupted push buffer stream", "newest", action="restart-app"),
        Xid(43, "Reset Channel Verif Error", "newest", action="none"),
        Xid(45, "Preemptive Channel Removal", "newest", action="preceding"),
        Xid(46, "GPU stopped processing"),
        Xid(48, "Double Bit ECC Error"),
        Xid(54, "Auxiliary power is not connected", action="power"),
        Xid(61, "Internal micro-controller breakpoint/warning"),
        Xid(62, "Internal micro-controller halt"),
        Xid(63, "ECC row remapping was recorded", "none", action="none"),
        Xid(64, "ECC row remapper failure", action="drain-and-reset"),
        Xid(68, "NVDEC0 Exception", "newest", action="restart-app"),
        Xid(74, "NVLINK Error", action="nvlink"),
        Xid(79, "GPU has fallen off the bus", is_lost=True, action="power-cycle"),
        Xid(92, "High single-bit ECC error rate", "none", action="none"),
        Xid(94, "Contained memory error", "newest", action="restart-app"),
        Xid(95, "Uncontained memory error", action="drain-and-reset"),
        Xid(109, "Context Switch Timeout Error", "newest"),
        Xid(110, "Security Fault Error"),
        Xid(119, "GSP RPC Timeout"),
        Xid(120, "GSP Error"),
        Xid(121, "C2C Link corrected error", "none", action="none"),
        Xid(136, "ALI training failed"),
        Xid(137, "NVLink privilege error", "newest", action="restart-app"),
        Xid(140, "Unrecovered ECC Error", action="drain-and-reset"),
        Xid(142, "NVENC3 Error", action="support"),
        Xid(143, "GPU initialization error"),
        Xid(144, "NVLINK SAW Error", action="nvlink"),
        Xid(145, "NVLINK RLW Error", action="nvlink"),
        Xid(146, "NVLINK TLW Error", action="nvlink"),
        Xid(147, "NVLINK TREX Error", action="nvlink"),
        Xid(148, "NVLINK NVLPW_CTRL Error", action="nvlink"),
        Xid(149, "NVLINK NETIR Error", action="nvlink"),
        Xid(150, "NVLINK MSE Error", action="nvlink"),
        Xid(151, "Key rotation Error", action="reboot"),
        Xid(154, "GPU recovery action changed", "none", action="preceding"),
        Xid(155, "NVLINK software-defined Error"),
        Xid(156, "Resource retirement event"),
        Xid(157, "Resource retirement failure", action="support"),
        Xid(158, "GPU fatal timeout"),
    )
}


def is_known(number: int) -> bool:
    return number in _KNOWN


def xid_of(number: int) -> Xid:
    """The effects of an Xid; for an unknown one, the worst effects."""
    return _KNOWN.get(number) or Xid(number, "Unknown Error")


class HealthChecks(msgspec.Struct, frozen=True):
    """Which Xids the device plugin heeds."""

    disabled: frozenset[int] = APPLICATION_ERRORS
    enabled: frozenset[int] = frozenset()
    is_off: bool = False
    """Whether every Xid is disabled that is not enabled."""
    is_complete: bool = False
    """Whether every Xid is enabled."""

    def heeds(self, number: int) -> bool:
        if self.is_complete or number in self.enabled:
            return True
        return not self.is_off and number not in self.disabled


def health_checks(disable: str = "", enable: str = "") -> HealthChecks:
    """`disable` and `enable` are the values of `DP_DISABLE_HEALTHCHECKS` (`all`, `xids` or a list of Xids) and of
    `DP_ENABLE_HEALTHCHECKS` (`all` or a list), which takes precedence. Words that are no number are left out.
    """
    off, on = _words(disable), _words(enable)
    return HealthChecks(
        disabled=APPLICATION_ERRORS | _numbers(off),
        enabled=_numbers(on),
        is_off=bool(off & {"all", "xids"}),
        is_complete="all" in on,
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(word for part in text.split(",") if (word := part.strip().lower()))


def _numbers(words: frozenset[str]) -> frozenset[int]:
    return frozenset(int(word) for word in words if word.isascii() and word.isdecimal() and len(word) < 5)
