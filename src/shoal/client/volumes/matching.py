"""Matches volumes to claims: the smallest volume that fits, as Kubernetes' binder and scheduler choose."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.client.volumes.values import StorageClass, Volume, VolumeClaim

NO_PROVISIONER = "kubernetes.io/no-provisioner"


def best_volume(
    claim: VolumeClaim, volumes: Iterable[Volume], node: tuple[str, dict[str, str]] | None = None
) -> Volume | None:
    """A volume reserved for the claim, else the smallest suitable free one. With a `node`, one that the node can
    reach.
    """
    found = serving(claim, list(volumes))
    reached = [each for each in found if node is None or each.is_reached_from(*node)]
    return min(reached, key=_order, default=None)


def serving(claim: VolumeClaim, volumes: Iterable[Volume]) -> list[Volume]:
    """The suitable volumes on any node: those reserved for the claim, else the free ones."""
    kept = [volume for volume in volumes if volume.is_for(claim) and _has_form(claim, volume)]
    return kept or [volume for volume in volumes if _serves(claim, volume)]


def fault_of(claim: VolumeClaim, volume: Volume) -> str:
    """Why a volume that a claim names cannot serve it; empty when it can."""
    if volume.size < claim.asked:
        return "requested PV is too small"
    if volume.class_name != claim.class_name:
        return "storageClassName does not match"
    if volume.spec.volume_mode != claim.spec.volume_mode:
        return "incompatible volumeMode"
    if not set(claim.spec.access_modes) <= set(volume.spec.access_modes):
        return "incompatible accessMode"
    return ""


def can_provision(storage_class: StorageClass | None, labels: dict[str, str]) -> bool:
    """Whether a volume can be provisioned that a node with these labels can reach."""
    if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
        return False
    return storage_class.is_allowed_on(labels)


def _serves(claim: VolumeClaim, volume: Volume) -> bool:
    if volume.spec.claim_ref is not None or volume.metadata.is_terminating or volume.status.phase != "Available":
        return False
    selector = claim.spec.selector
    if selector is not None and not selector.matches(volume.metadata.labels):
        return False
    return volume.class_name == claim.class_name and _has_form(claim, volume)


def _has_form(claim: VolumeClaim, volume: Volume) -> bool:
    return (
        volume.size >= claim.asked
        and volume.spec.volume_mode == claim.spec.volume_mode
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
        and (claim.spec.volume_attributes_class_name or "") == (volume.spec.volume_attributes_class_name or "")
    )


def _order(volume: Volume) -> tuple[int, str]:
    return (volume.size.nano, volume.metadata.name)
