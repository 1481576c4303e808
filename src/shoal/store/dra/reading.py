"""All that manifests say about devices and claims, as events, and what each pod claims.

A pod's own claim comes from a template and has content but no name; where a claim object made for the pod exists and is
allocated, that object is what counts. Nothing in here refuses a file: a claim that is not there, a class that nobody
defined, an expression that fails are reasons for the pod to wait, as in Kubernetes, and it says which.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from shoal.api.claims import ResourceClaim, ResourceClaimTemplate
from shoal.api.device_classes import DeviceClass
from shoal.api.node import Node
from shoal.api.pod import Pod, PodClaim
from shoal.api.slices import ResourceSlice
from shoal.engine.dra.requests import ClaimRef
from shoal.engine.events import ClaimSeen, DevicesSeen, Event
from shoal.store.dra.extended import Extended
from shoal.store.dra.facts import claim_ask, claim_facts, slice_facts
from shoal.store.dra.sets import DeviceSets

_POD_CLAIM = "resource.kubernetes.io/pod-claim-name"


@dataclass(slots=True)
class Dra:
    """What was read."""

    events: list[Event] = field(default_factory=list)
    """Devices, sets and claims; to be told after the nodes and before the pods."""
    refs: dict[str, tuple[ClaimRef, ...]] = field(default_factory=dict)
    """What pods claim, by namespace/name; pods that claim nothing are not in here."""
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
    """Read them all; nodes are looked at for extended resources that they advertise themselves."""
    return _Reader(slices, classes, claims, templates, nodes).dra(pods)


class _Reader:
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
        self._templates = {template.metadata.key: template for template in templates}
        self._made: dict[tuple[str, str], str] = {}
        for key, claim in self._claims.items():
            owner = claim.metadata.controller()
            if owner is not None and owner.kind == "Pod":
                name = claim.metadata.annotations.get(_POD_CLAIM, "")
                self._made[f"{claim.metadata.namespace}/{owner.name}", name] = key
        self._extended = Extended(self._sets, nodes)

    def dra(self, pods: Iterable[Pod]) -> Dra:
        dra = Dra()
        for pod in pods:
            refs = [self._ref(pod, claim) for claim in pod.spec.resource_claims]
            served = self._extended.served(pod)
            if served is not None:
                refs.append(served.ref)
                dra.stripped[pod.metadata.key] = served.pod
            if refs:
                dra.refs[pod.metadata.key] = tuple(refs)
        seen = [ClaimSeen(claim_facts(claim, self._sets)) for claim in self._claims.values()]
        dra.events = [*map(DevicesSeen, self._pieces), *self._sets.events(), *seen]
        return dra

    def _ref(self, pod: Pod, claim: PodClaim) -> ClaimRef:
        namespace = pod.metadata.namespace
        if claim.resource_claim_name:
            return ClaimRef(claim.name, f"{namespace}/{claim.resource_claim_name}")
        made = self._made_for(pod, claim)
        if made is not None and (made.is_allocated() or not claim.resource_claim_template_name):
            return ClaimRef(claim.name, made.metadata.key)
        spec = made.spec if made is not None else None
        if spec is None:
            key = f"{namespace}/{claim.resource_claim_template_name}"
            template = self._templates.get(key)
            if template is None:
                what = f'resourceclaimtemplate "{key}" not found'
                return ClaimRef(claim.name, trouble=what)
            spec = template.spec.spec
        ask, fault = claim_ask(spec.devices, self._sets)
        return ClaimRef(claim.name, own=ask, trouble=f"claim {claim.name}: {fault}" if fault else "")

    def _made_for(self, pod: Pod, claim: PodClaim) -> ResourceClaim | None:
        """The claim object that was made for the pod from its template, if it is there."""
        for status in pod.status.resource_claim_statuses:
            if status.name == claim.name and status.resource_claim_name:
                return self._claims.get(f"{pod.metadata.namespace}/{status.resource_claim_name}")
        key = self._made.get((pod.metadata.key, claim.name))
        return None if key is None else self._claims[key]
