"""Builds the controllers for volumes: binder, provisioner, and the two that protect claims and volumes in use.

The keys of one loop are of both kinds: a claim has a namespace, a volume has none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from shoal.client.context import Context, Controller
from shoal.client.item import Item, Key
from shoal.client.kind import NODES, PODS, STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES
from shoal.client.loop import Loop
from shoal.client.volumes.values import Volume, VolumeClaim
from shoal.embedded.controllers.volumes.claims import ClaimReconciler
from shoal.embedded.controllers.volumes.context import VolumeContext
from shoal.embedded.controllers.volumes.protection import Protection, claims_of
from shoal.embedded.controllers.volumes.provisioning import Provisioner
from shoal.embedded.controllers.volumes.reclaim import VolumeReconciler


def volume_binder(context: Context) -> Controller:
    """Binds claims and volumes and writes their phases (`persistent-volume-binder`)."""
    volume_context = VolumeContext(context)
    claims, volumes = ClaimReconciler(volume_context), VolumeReconciler(volume_context)

    async def reconcile(key: Key) -> float | None:
        if not key[0]:
            volume = volume_context.volumes.get(key)
            if volume is not None:
                await volumes.reconcile(volume)
            return None
        claim = volume_context.claims.get(key)
        return await claims.reconcile(claim) if claim is not None else None

    # One worker: two claims must not choose one volume at the same time.
    loop = Loop(context, reconcile, workers=1)
    loop.follow(VOLUME_CLAIMS, lambda item: _claim_and_volume(volume_context, item))
    loop.follow(VOLUMES, lambda item: _volume_and_claims(volume_context, item))
    loop.follow(STORAGE_CLASSES, lambda _: [claim.key for claim in volume_context.claims if not claim.is_bound])
    return loop


def volume_provisioner(context: Context) -> Controller:
    """Provisions volumes for classes of Shoal's own provisioner."""
    volume_context = VolumeContext(context)
    provisioning = Provisioner(volume_context)
    loop = _loop(context, volume_context, provisioning.claim, provisioning.volume)
    loop.need(NODES, STORAGE_CLASSES)
    return loop


def claim_protection(context: Context) -> Controller:
    """Protects claims that pods on nodes use (`pvc-protection-controller`)."""
    volume_context = VolumeContext(context)
    loop = _loop(context, volume_context, Protection(volume_context).claim, None)
    loop.follow(PODS, claims_of, only_latest=True)
    return loop


def volume_protection(context: Context) -> Controller:
    """Protects bound volumes (`pv-protection-controller`)."""
    volume_context = VolumeContext(context)
    return _loop(context, volume_context, None, Protection(volume_context).volume)


def _loop(
    context: Context,
    volume_context: VolumeContext,
    on_claim: Callable[[VolumeClaim], Awaitable[None]] | None,
    on_volume: Callable[[Volume], Awaitable[None]] | None,
) -> Loop:
    async def reconcile(key: Key) -> None:
        claim, volume = volume_context.claims.get(key), volume_context.volumes.get(key)
        if claim is not None and on_claim is not None:
            await on_claim(claim)
        if volume is not None and on_volume is not None:
            await on_volume(volume)

    loop = Loop(context, reconcile)
    if on_claim is not None:
        loop.follow(VOLUME_CLAIMS)
    if on_volume is not None:
        loop.follow(VOLUMES)
    return loop


def _claim_and_volume(volume_context: VolumeContext, item: Item) -> Iterable[Key]:
    yield item.key
    claim = volume_context.claims.get(item.key)
    name = claim.spec.volume_name if claim is not None else ""
    for volume in volume_context.volumes:
        ref = volume.spec.claim_ref
        if volume.metadata.name == name or (ref is not None and (ref.namespace, ref.name) == item.key):
            yield volume.key


def _volume_and_claims(volume_context: VolumeContext, item: Item) -> Iterable[Key]:
    yield item.key
    for claim in volume_context.claims:
        if not claim.is_bound or claim.spec.volume_name == item.name:
            yield claim.key
