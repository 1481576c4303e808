"""Represents admission checks: which ones a cluster queue requires besides quota, and their results."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Literal

import msgspec

CheckState = Literal["Pending", "Ready", "Retry", "Rejected"]


class AdmissionCheckFacts(msgspec.Struct, frozen=True):
    """An AdmissionCheck."""

    name: str
    controller: str = ""
    active: bool = True


PROVISIONING = "kueue.x-k8s.io/provisioning-request"
"""The controller whose checks put off topology assignment until there are nodes."""


class AdmissionCheckRule(msgspec.Struct, frozen=True):
    """A check that a cluster queue requires, for some flavors or (empty) for all."""

    name: str
    flavors: tuple[str, ...] = ()

    def concerns(self, flavors: AbstractSet[str]) -> bool:
        """Whether a workload that was assigned these flavors needs the check."""
        return not self.flavors or not flavors.isdisjoint(self.flavors)
