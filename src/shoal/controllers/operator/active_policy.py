"""Represents the policy that applies at the moment, as the loop of the objects and that of the nodes share it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from shoal.operator.components.component import Component
from shoal.operator.policy.spec import ClusterPolicySpec


class ActivePolicy(msgspec.Struct, frozen=True):
    spec: ClusterPolicySpec
    components: tuple[Component, ...] = ()
    """Those that the policy asks for."""
    pools: dict[str, str] = {}
    """The driver pools of nodes that NVIDIADrivers select, by node."""
    keeps_pools: bool = False
    """Whether other nodes keep their pool, because an NVIDIADriver is wrong at the moment."""

    def pool_of(self, node: str) -> str | None:
        """None: as it is."""
        return self.pools.get(node, None if self.keeps_pools else "")


class SharedPolicy:
    """`changed` is called when another policy applies, or none."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.now: ActivePolicy | None = None
        self.is_known = False
        """Whether the policies were read at all. Before that no label is removed."""
        self._changed = changed

    def put(self, policy: ActivePolicy | None) -> None:
        if self.is_known and policy == self.now:
            return
        self.now, self.is_known = policy, True
        self._changed()
