"""The part `admission` of the configuration of `shoal run`: which admission rules warn and which refuse."""

from __future__ import annotations

from typing import Literal

from msgspec import field

from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where

RuleMode = Literal["off", "warn", "enforce"]
WrittenMode = RuleMode | bool
"""YAML reads `off` without quotes as false."""


class AdmissionSettings(ApiStruct, frozen=True, forbid_unknown_fields=True):
    enabled: bool = False
    """Whether the policies of the rules are installed, and the webhook checks the others."""
    mode: WrittenMode = "warn"
    """Of all rules, in namespaces without labels."""
    rules: dict[str, WrittenMode] = field(default_factory=dict)
    """By name or id of the rule, before `mode`."""
    excluded_namespaces: tuple[str, ...] = ()
    """Beside the system namespaces and Shoal's own."""

    def check(self, where: Where) -> None:
        for name, mode in (("mode", self.mode), *((f"rules.{name}", mode) for name, mode in self.rules.items())):
            if mode is True:
                raise UserError("is no mode", where=where.below(name), fix="write off, warn or enforce")


def read_mode(written: WrittenMode) -> RuleMode:
    return "off" if isinstance(written, bool) else written
