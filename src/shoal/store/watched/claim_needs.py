"""Tracks the objects on which the claims of a pod depend: templates, generated claims, sets of devices, served
resources.
"""

from __future__ import annotations

from collections.abc import Hashable

from shoal.api.pod import Pod
from shoal.store.dra.claim_refs import ClaimRefs, Templates
from shoal.store.dra.extended import Extended
from shoal.store.dra.facts import sets_of


def needs_of(pod: Pod, refs: ClaimRefs, templates: Templates, extended: Extended) -> list[Hashable]:
    """Names, each with its kind of object; sets by their keys."""
    key, namespace = pod.metadata.key, pod.metadata.namespace
    needs: list[Hashable] = []
    for claim in pod.spec.resource_claims:
        name = claim.resource_claim_template_name
        if not name:
            continue
        template, made = templates.get(f"{namespace}/{name}"), refs.made_for(pod, claim)
        spec = made.spec if made is not None else template.spec.spec if template is not None else None
        needs += [("template", f"{namespace}/{name}"), ("made", key), *(sets_of(spec.devices) if spec else ())]
        reported = (one.resource_claim_name for one in pod.status.resource_claim_statuses if one.name == claim.name)
        needs += [("claim", f"{namespace}/{each}") for each in reported]
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        resources = container.resources
        for resource in {**resources.requests, **resources.limits}:
            if "/" in resource:
                class_name = extended.class_of(resource)
                needs += [("resource", resource), ("made", key), *([(class_name, ())] if class_name else ())]
    return needs
