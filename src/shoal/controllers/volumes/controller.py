"""The controllers about volumes: binder, provisioner, and the two that protect what is in use.

Keys of one loop are of both kinds: a claim has a namespace, a volume has none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from shoal.controllers.volumes.claims import ClaimWork
from shoal.controllers.volumes.ground import Ground
from shoal.controllers.volumes.protection import Protection, claims_of
from shoal.controllers.volumes.provisioning import Provisioning
from shoal.controllers.volumes.reclaim import VolumeWork
from shoal.store.live.context import Context, Controller
from shoal.store.live.item import Item, Key
from shoal.store.live.kind import NODES, PODS, STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES
from shoal.store.live.loop import Loop
from shoal.store.volumes.values import Claim, Volume


def volume_binder(context: Context) -> Controller:
    """Binds claims and volumes, and says what state each is in (`persistent-volume-binder`)."""
    ground = Ground(context)
    claims, volumes = ClaimWork(ground), VolumeWork(ground)

    async def reconcile(key: Key) -> float | None:
        if not key[0]:
            volume = ground.volumes.get(key)
            if volume is not None:
                await volumes.reconcile(volume)
            return None
        claim = ground.claims.get(key)
        return await claims.reconcile(claim) if claim is not None else None

    # One worker: two claims must not choose one volume at the same time.
    loop = Loop(context, reconcile, workers=1)
    loop.follow(VOLUME_CLAIMS, lambda item: _claim_and_volume(ground, item))
    loop.follow(VOLUMES, lambda item: _volume_and_claims(ground, item))
    loop.follow(STORAGE_CLASSES, lambda _: [claim.key for claim in ground.claims if not claim.is_bound])
    return loop


def volume_provisioner(context: Context) -> Controller:
    """Makes volumes for classes of Shoal's own provisioner."""
    ground = Ground(context)
    provisioning = Provisioning(ground)
    loop = _loop(context, ground, provisioning.claim, provisioning.volume)
    loop.need(NODES, STORAGE_CLASSES)
    return loop


def claim_protection(context: Context) -> Controller:
    """Keeps claims that pods on nodes use (`pvc-protection-controller`)."""
    ground = Ground(context)
    loop = _loop(context, ground, Protection(ground).claim, None)
    loop.follow(PODS, claims_of, only_latest=True)
    return loop


def volume_protection(context: Context) -> Controller:
    """Keeps volumes that are bound (`pv-protection-controller`)."""
    ground = Ground(context)
    return _loop(context, ground, None, Protection(ground).volume)


def _loop(
    context: Context,
    ground: Ground,
    on_claim: Callable[[Claim], Awaitable[None]] | None,
    on_volume: Callable[[Volume], Awaitable[None]] | None,
) -> Loop:
    async def reconcile(key: Key) -> None:
        claim, volume = ground.claims.get(key), ground.volumes.get(key)
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


def _claim_and_volume(ground: Ground, item: Item) -> Iterable[Key]:
    yield item.key
    claim = ground.claims.get(item.key)
    name = claim.spec.volume_name if claim is not None else ""
    for volume in ground.volumes:
        ref = volume.spec.claim_ref
        if volume.metadata.name == name or (ref is not None and (ref.namespace, ref.name) == item.key):
            yield volume.key


def _volume_and_claims(ground: Ground, item: Item) -> Iterable[Key]:
    yield item.key
    for claim in ground.claims:
        if not claim.is_bound or claim.spec.volume_name == item.name:
            yield claim.key
