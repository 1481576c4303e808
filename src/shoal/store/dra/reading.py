"""Reads devices and claims of manifests as events, and the claims of each pod.

No function here rejects a file: a missing claim, a missing class, or an expression that fails are reasons for the pod
to wait, as in Kubernetes, and the reason is given.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from shoal.api.claims import ResourceClaim, ResourceClaimTemplate
from shoal.api.device_classes import DeviceClass
from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.api.slices import ResourceSlice
from shoal.engine.dra.requests import ClaimRef
from shoal.engine.events import ClaimSeen, DevicesSeen, Event
from shoal.store.dra.claim_refs import ClaimRefs, made_for
from shoal.store.dra.extended import Extended, advertised_by
from shoal.store.dra.facts import claim_facts, slice_facts
from shoal.store.dra.sets import DeviceSets


@dataclass(slots=True)
class Dra:
    """The devices and claims of a set of manifests."""

    events: list[Event] = field(default_factory=list)
    """Events of devices, sets and claims; they must follow the events of nodes and precede those of pods."""
    refs: dict[str, tuple[ClaimRef, ...]] = field(default_factory=dict)
    """The claims of pods, by namespace/name; pods without claims are not included."""
    stripped: dict[str, Pod] = field(default_factory=dict)
    """Pods whose extended resources are served by claims, without those resources."""


def dra_of(
    slices: Iterable[ResourceSlice],
    classes: Iterable[DeviceClass],
    claims: Iterable[ResourceClaim],
    templates: Iterable[ResourceClaimTemplate],
    pods: Iterable[Pod],
    nodes: Iterable[Node] = (),
) -> Dra:
    """Read all claims and devices; nodes are read for the extended resources that they advertise themselves."""
    return _DraReader(slices, classes, claims, templates, nodes).dra(pods)


class _DraReader:
    def __init__(
        self,
        slices: Iterable[ResourceSlice],
        classes: Iterable[DeviceClass],
        claims: Iterable[ResourceClaim],
        templates: Iterable[ResourceClaimTemplate],
        nodes: Iterable[Node],
    ) -> None:
        self._pieces = [slice_facts(piece) for piece in slices]
        self._sets = DeviceSets(classes, self._pieces)
        self._claims = {claim.metadata.key: claim for claim in claims}
        # Of several claims for one pod, the first by name is used.
        by_name = sorted(self._claims.items(), reverse=True)
        made = {pod: key for key, claim in by_name if (pod := made_for(claim)) is not None}
        by_key = {template.metadata.key: template for template in templates}
        extended = Extended(self._sets, frozenset().union(*map(advertised_by, nodes)))
        self._refs = ClaimRefs(self._sets, self._claims, by_key, made, extended)

    def dra(self, pods: Iterable[Pod]) -> Dra:
        dra = Dra()
        for pod in pods:
            claimed = self._refs.of(pod)
            if claimed.pod is not pod:
                dra.stripped[pod.metadata.key] = claimed.pod
            if claimed.refs:
                dra.refs[pod.metadata.key] = claimed.refs
        seen = [ClaimSeen(claim_facts(claim, self._sets)) for claim in self._claims.values()]
        dra.events = [*map(DevicesSeen, self._pieces), *self._sets.events(), *seen]
        return dra
