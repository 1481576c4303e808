"""Determines the claims of a pod: named claims, claims made from templates, and resources that device classes serve.

A pod's own claim comes from a template and has content but no name. Where a claim object was created for the pod and is
allocated, that object is used instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from shoal.api.claims import ResourceClaim, ResourceClaimTemplate
from shoal.api.pod import Pod, PodClaim
from shoal.engine.dra.requests import ClaimRef
from shoal.store.dra.extended import EXTENDED, Extended
from shoal.store.dra.facts import claim_ask
from shoal.store.dra.sets import DeviceSets
from shoal.units.near_texts import aside_words

_POD_CLAIM = "resource.kubernetes.io/pod-claim-name"

Claims = Mapping[str, ResourceClaim]
Templates = Mapping[str, ResourceClaimTemplate]
Made = Mapping[tuple[str, str], str]
"""(namespace/name of a pod, the pod's name for the claim) -> namespace/name of the claim made for it."""


class Claimed(NamedTuple):
    """The claims of a pod."""

    refs: tuple[ClaimRef, ...]
    pod: Pod
    """The pod without the resources that claims provide; the pod itself where there are none."""


def made_for(claim: ResourceClaim) -> tuple[str, str] | None:
    """The pod that a claim was created for, and the pod's name for it."""
    owner = claim.metadata.controller()
    if owner is None or owner.kind != "Pod":
        return None
    return f"{claim.metadata.namespace}/{owner.name}", claim.metadata.annotations.get(_POD_CLAIM, "")


class ClaimRefs:
    """Reads the claims of pods with the known claim objects; the maps may change between two calls."""

    def __init__(self, sets: DeviceSets, claims: Claims, templates: Templates, made: Made, extended: Extended) -> None:
        self._sets = sets
        self._claims = claims
        self._templates = templates
        self._made = made
        self._extended = extended

    def of(self, pod: Pod) -> Claimed:
        refs = [self._ref(pod, claim) for claim in pod.spec.resource_claims]
        served = self._extended.served(pod)
        if served is None:
            return Claimed(tuple(refs), pod)
        made = self._claims.get(self._made.get((pod.metadata.key, ""), ""))
        ref = ClaimRef(EXTENDED, made.metadata.key) if made is not None and made.is_allocated() else served.ref
        return Claimed((*refs, ref), served.pod)

    def made_for(self, pod: Pod, claim: PodClaim) -> ResourceClaim | None:
        """The claim object that was created for the pod from its template, if it exists."""
        for status in pod.status.resource_claim_statuses:
            if status.name == claim.name and status.resource_claim_name:
                return self._claims.get(f"{pod.metadata.namespace}/{status.resource_claim_name}")
        key = self._made.get((pod.metadata.key, claim.name))
        return None if key is None else self._claims[key]

    def _ref(self, pod: Pod, claim: PodClaim) -> ClaimRef:
        namespace = pod.metadata.namespace
        if claim.resource_claim_name:
            return ClaimRef(claim.name, f"{namespace}/{claim.resource_claim_name}")
        made = self.made_for(pod, claim)
        if made is not None and (made.is_allocated() or not claim.resource_claim_template_name):
            return ClaimRef(claim.name, made.metadata.key)
        spec = made.spec if made is not None else None
        if spec is None:
            key = f"{namespace}/{claim.resource_claim_template_name}"
            template = self._templates.get(key)
            if template is None:
                there = (each.partition("/")[2] for each in self._templates if each.startswith(f"{namespace}/"))
                meant = aside_words(claim.resource_claim_template_name, there)
                return ClaimRef(claim.name, trouble=f'resourceclaimtemplate "{key}" not found{meant}')
            spec = template.spec.spec
        ask, fault = claim_ask(spec.devices, self._sets)
        return ClaimRef(claim.name, own=ask, trouble=f"claim {claim.name}: {fault}" if fault else "")
