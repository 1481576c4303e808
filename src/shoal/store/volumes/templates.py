"""Determines the claims that the pods of a Workload will mount, from its templates.

Claims that the templates name are read like those of a pod. Ephemeral volumes have no claim before their pod exists;
their claims are read from the volume's template.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from msgspec import field

from shoal.api.wire import dec_hook
from shoal.client.item import Item, Key
from shoal.client.volumes.needs import Mounts, Needed, VolumeNeeds
from shoal.client.volumes.values import ClaimSpec, StorageClass, VolumeClaim, VolumeObjectMeta

_MOUNTS = (b'"persistentVolumeClaim"', b'"ephemeral"')


class TemplateMounts(NamedTuple):
    """The volume claims of pods of one template."""

    claims: tuple[Key, ...] = ()
    made: tuple[VolumeClaim, ...] = ()
    """The claims that would be created for each pod."""


class _ClaimTemplateMeta(msgspec.Struct, gc=False):
    annotations: dict[str, str] | None = None


class _ClaimTemplate(msgspec.Struct, gc=False):
    metadata: _ClaimTemplateMeta = field(default_factory=_ClaimTemplateMeta)
    spec: ClaimSpec = field(default_factory=ClaimSpec)


class _Ephemeral(msgspec.Struct, rename="camel", gc=False):
    volume_claim_template: _ClaimTemplate | None = None


class _ByName(msgspec.Struct, rename="camel", gc=False):
    claim_name: str = ""


class _Volume(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    persistent_volume_claim: _ByName | None = None
    ephemeral: _Ephemeral | None = None


class _TemplatePodSpec(msgspec.Struct, gc=False):
    volumes: tuple[_Volume, ...] | None = None


class _Template(msgspec.Struct, gc=False):
    spec: _TemplatePodSpec = field(default_factory=_TemplatePodSpec)


class _TemplatePodSet(msgspec.Struct, gc=False):
    name: str = ""
    template: _Template = field(default_factory=_Template)


class _TemplateWorkloadSpec(msgspec.Struct, rename="camel", gc=False):
    pod_sets: tuple[_TemplatePodSet, ...] = ()


class _Workload(msgspec.Struct, gc=False):
    spec: _TemplateWorkloadSpec = field(default_factory=_TemplateWorkloadSpec)


_workloads = msgspec.json.Decoder(_Workload, dec_hook=dec_hook)


def mounts_by_pod_set(workload: Item) -> Mapping[str, TemplateMounts]:
    """The claims of pod sets that mount any; an unreadable template counts as without claims."""
    if not any(word in workload.data for word in _MOUNTS):
        return {}
    try:
        sets = _workloads.decode(workload.data).spec.pod_sets
    except msgspec.DecodeError:
        return {}
    found = {one.name: _mounts(workload.namespace, one.template.spec.volumes or ()) for one in sets}
    return {name: mounts for name, mounts in found.items() if mounts.claims or mounts.made}


def needed_by(needs: VolumeNeeds, mounts: TemplateMounts) -> Needed:
    """The known state of a claim. A missing claim, or an unbound one that waits for no pod, may still get its volume
    anywhere.
    """
    needed = Needed([], [])
    for key in mounts.claims:
        found = needs.needed(Mounts((key,)))
        if not isinstance(found, str):
            needed.bound.extend(found.bound)
            needed.waiting.extend(found.waiting)
    for claim in mounts.made:
        storage_class = needs.class_of(claim)
        if storage_class is not None and storage_class.waits:
            needed.waiting.append(claim)
    return needed


def with_default_class(claim: VolumeClaim, classes: tuple[StorageClass, ...]) -> VolumeClaim:
    """The class that the server would set: the newest default class, the first by name among equally old ones."""
    defaults = [one for one in classes if one.is_default]
    if not claim.is_unclassed or not defaults:
        return claim
    by_name = sorted(defaults, key=lambda one: one.metadata.name)
    chosen = max(by_name, key=lambda one: one.metadata.creation_timestamp)
    return msgspec.structs.replace(
        claim, spec=msgspec.structs.replace(claim.spec, storage_class_name=chosen.metadata.name)
    )


def _mounts(namespace: str, volumes: tuple[_Volume, ...]) -> TemplateMounts:
    named = [one.persistent_volume_claim.claim_name for one in volumes if one.persistent_volume_claim is not None]
    made = tuple(
        VolumeClaim(
            VolumeObjectMeta(
                name=f"#{one.name}",
                namespace=namespace,
                annotations=one.ephemeral.volume_claim_template.metadata.annotations or {},
            ),
            one.ephemeral.volume_claim_template.spec,
        )
        for one in volumes
        if one.ephemeral is not None and one.ephemeral.volume_claim_template is not None
    )
    return TemplateMounts(tuple((namespace, name) for name in dict.fromkeys(named) if name), made)
