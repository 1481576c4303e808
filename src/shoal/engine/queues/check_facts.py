"""Represents admission checks: which ones a cluster queue requires besides quota, and their results."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Literal

import msgspec

CheckState = Literal["Pending", "Ready", "Retry", "Rejected"]


class CheckFacts(msgspec.Struct, frozen=True):
    """An AdmissionCheck."""

    name: str
    controller: str = ""
    active: bool = True


PROVISIONING = "kueue.x-k8s.io/provisioning-request"
"""The controller whose checks put off topology assignment until there are nodes."""


class CheckUse(msgspec.Struct, frozen=True):
    """A check that a cluster queue demands, for some flavors or (empty) for all."""

    name: str
    flavors: tuple[str, ...] = ()

    def concerns(self, flavors: AbstractSet[str]) -> bool:
        """Whether it is demanded of who gets these."""
        return not self.flavors or not flavors.isdisjoint(self.flavors)
