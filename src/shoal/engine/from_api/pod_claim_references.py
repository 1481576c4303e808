"""Reads a pod's device claims by name, for environments without a reader of claims: the pod waits, with the reason."""

from __future__ import annotations

from shoal.api.pod import Pod
from shoal.engine.dra.requests import ClaimRef


def claims_by_name(pod: Pod) -> tuple[ClaimRef, ...]:
    """The claims that exist under names of their own, and the trouble that templates are not known here."""
    namespace = pod.metadata.namespace
    return tuple(
        ClaimRef(claim.name, f"{namespace}/{claim.resource_claim_name}")
        if claim.resource_claim_name
        else ClaimRef(claim.name, trouble=f"claim {claim.name}: resource claim templates are not read here")
        for claim in pod.spec.resource_claims
    )
