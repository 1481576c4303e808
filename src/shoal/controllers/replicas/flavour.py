"""In what ReplicaSets and ReplicationControllers differ: the kind, and how the selector is written."""

from __future__ import annotations

import msgspec

from shoal.api.selectors import LabelSelector, Selector
from shoal.controllers.owned_pods.selecting import selector_of_spec
from shoal.store.live.item import Obj
from shoal.store.live.kind import REPLICA_SETS, REPLICATION_CONTROLLERS, Kind


class Flavour(msgspec.Struct, frozen=True):
    kind: Kind
    has_map_selector: bool = False
    counts_terminating: bool = True

    def selector(self, spec: Obj) -> Selector:
        if not self.has_map_selector:
            return selector_of_spec(spec)
        written = spec.get("selector") or {}
        return LabelSelector(match_labels=written).selector() if written else Selector.NOTHING


SETS = Flavour(REPLICA_SETS)
CONTROLLERS = Flavour(REPLICATION_CONTROLLERS, has_map_selector=True, counts_terminating=False)
