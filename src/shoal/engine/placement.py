"""Chooses the node and devices for a pod with this request now.

Mostly there is one profile. Where each scheduler name has its own, an ask says whose it is: pods that ask for the same
under two profiles have two shapes, and a decision costs as much as with one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.charges import Charge
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import DeviceGrant
from shoal.engine.domains.verdict import Domains
from shoal.engine.pod_identity import NO_IDENTITY, PodIdentity
from shoal.engine.profile import Profile
from shoal.engine.request_classes import RequestClass
from shoal.engine.topology.trees import Trees

_MOST_KEYS: Final = 16_000_000
"""Keys kept over all shapes (16 bytes each): asks beyond that give way, the longest unused first."""


class _Chosen(NamedTuple):
    profile: Profile
    domains: Domains


class Placement:
    """Answers for any ask; keeps a shape for each so that asking again is cheap."""

    def __init__(
        self,
        cluster: Cluster,
        profile: Profile,
        others: Mapping[str, Profile] = {},
        *,
        most_keys: int = _MOST_KEYS,
    ) -> None:
        """`others` are of asks that name them; all others go by `profile`."""
        self.cluster = cluster
        self.profile = profile
        self._others = {name: _Chosen(other, Domains(cluster, other.soft)) for name, other in others.items()}
        self._first = _Chosen(profile, Domains(cluster, profile.soft))
        self.trees = Trees(cluster)
        self._most_keys = most_keys
        self._shapes: dict[Charge, RequestClass] = {}
        self._clock = 0
        self._epoch = 0
        self._static_epochs: list[object] = []

    def with_profile(self, profile: Profile) -> Placement:
        """A placement over the same cluster by another profile."""
        found = Placement(self.cluster, profile, most_keys=self._most_keys)
        found.trees = self.trees
        return found

    def shape(self, charge: Charge) -> RequestClass:
        """The shape of an ask, made on first sight."""
        shape = self._shapes.get(charge)
        if shape is None:
            self._free_capacity()
            shape = self._shapes[charge] = RequestClass(self.cluster, self._of(charge).profile, charge)
        self._clock += 1
        shape.last_used = self._clock
        return shape

    def renew(self) -> None:
        """Let the profile follow the fleet; called before a round or an explanation: each is judged by one measure."""
        # Each counts up by itself, so the sum changes when any of them does.
        profiles = (self.profile, *[other.profile for other in self._others.values()])
        epoch = sum([profile.epoch() for profile in profiles])
        if epoch != self._epoch:
            self._epoch = epoch
            static = [profile.static_epoch() for profile in profiles]
            for shape in self._shapes.values():
                shape.invalidate(static_too=static != self._static_epochs)
            self._static_epochs = static

    @property
    def domains(self) -> Domains:
        """Of the first profile."""
        return self._first.domains

    @property
    def at_random(self) -> bool:
        """Whether some profile needs chance."""
        return self.profile.at_random or any(other.profile.at_random for other in self._others.values())

    def choose(
        self,
        charge: Charge,
        draw: int,
        who: PodIdentity = NO_IDENTITY,
        within: NDArray[np.int64] | None = None,
    ) -> tuple[int, DeviceGrant | None] | None:
        """The best row (of some rows, if given) and the devices there, or None when the ask fits nowhere."""
        shape = self.shape(charge)
        profile, domains = self._of(charge)
        verdict = domains.verdict(charge.ask, who) if self.cluster.counts.active else None
        if profile.at_random:
            rows = shape.feasible()
            if verdict is not None and verdict.allowed is not None:
                rows = rows[verdict.allowed.take(rows)]
            if within is not None:
                rows = rows[np.isin(rows, within)]
            if len(rows) == 0:
                return None
            # Counted in the order of ranks, which unlike rows does not depend on who was seen first.
            nth = draw % len(rows)
            row = int(rows[np.argpartition(self.cluster.rank.take(rows), nth)[nth]])
        else:
            if verdict is not None:
                row = shape.best_where(verdict.allowed, verdict.extra, within)
            else:
                row = shape.best() if within is None else shape.best_of(within)
            if row < 0:
                return None
        grant = profile.devices.grant(self.cluster, charge.ask, row, draw >> 20)
        if charge.ask.claims:
            grant = self.cluster.dra.with_claims(grant, charge.ask.claims, row)
        return row, grant

    def by_preference(self, charge: Charge, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Of these rows those that suit the ask if they had capacity, the best first."""
        return self.shape(charge).by_preference(rows)

    def _of(self, charge: Charge) -> _Chosen:
        return self._others.get(charge.ask.profile, self._first) if self._others else self._first

    def _free_capacity(self) -> None:
        most = max(self._most_keys // max(self.cluster.capacity, 1), 1)
        while len(self._shapes) >= most:
            oldest = min(self._shapes.values(), key=lambda shape: shape.last_used)
            del self._shapes[oldest.charge]
