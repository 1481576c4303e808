"""Creates the claims for generic ephemeral volumes of pods: named after the pod, and owned by it.

An existing claim of that name that belongs to another owner is not changed. The pod gets an Event, and waits until that
claim is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import field

from shoal.api.meta import OwnerReference
from shoal.api.wire import ApiStruct
from shoal.client.context import Context, Controller
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import PODS, VOLUME_CLAIMS
from shoal.client.loop import Loop
from shoal.client.owner_reference import controlled_by
from shoal.client.refusals import AlreadyExistsError, RefusedError

_MARK = b'"ephemeral"'


class _ClaimMeta(ApiStruct, frozen=True):
    owner_references: tuple[OwnerReference, ...] = ()


class _Claim(ApiStruct, frozen=True):
    metadata: _ClaimMeta = field(default_factory=_ClaimMeta)


def ephemeral_volume_controller(context: Context) -> Controller:
    pods, claims = context.informers.of(PODS), context.informers.of(VOLUME_CLAIMS)
    events = context.events.named("ephemeral_volume")

    async def reconcile(key: Key) -> None:
        item = pods.get(*key)
        pod = item.obj() if item is not None and _MARK in item.data else {}
        if not pod or "deletionTimestamp" in pod["metadata"]:
            return
        for volume in pod["spec"].get("volumes") or ():
            template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
            if template is not None:
                await provide(pod, volume["name"], template)

    async def provide(pod: Obj, volume: str, template: Obj) -> None:
        meta = pod["metadata"]
        claim = _claim(meta, volume, template)
        name = claim["metadata"]["name"]
        present = claims.get(meta["namespace"], name)
        about = {"kind": "Pod", "apiVersion": "v1", "metadata": meta}
        if present is not None:
            if not _is_of(present, meta["uid"]):
                place = meta["namespace"]
                words = f"PVC {place}/{name} was not created for pod {place}/{meta['name']} (pod is not owner)"
                events.record(about, "FailedBinding", f"ephemeral volume {volume}: {words}", type_="Warning")
            return
        try:
            await context.api.create(VOLUME_CLAIMS, claim)
        except AlreadyExistsError:
            # The claim will appear in the cache, with its owner.
            raise
        except RefusedError as error:
            words = f"ephemeral volume {volume}: create PVC {name}: {error}"
            events.record(about, "FailedBinding", words, type_="Warning")
            raise

    loop = Loop(context, reconcile)
    loop.follow(PODS, lambda item: [item.key] if _MARK in item.data else [], only_latest=True)
    loop.follow(VOLUME_CLAIMS, lambda item: _pods_of(item, context))
    return loop


def _claim(pod: Obj, volume: str, template: Obj) -> Obj:
    said = template.get("metadata") or {}
    metadata: Obj = {
        "name": f"{pod['name']}-{volume}",
        "namespace": pod["namespace"],
        "ownerReferences": [controlled_by(PODS, pod["name"], pod["uid"])],
    }
    metadata |= {key: said[key] for key in ("labels", "annotations") if said.get(key)}
    return {"metadata": metadata, "spec": template["spec"]}


def _is_of(claim: Item, uid: str) -> bool:
    return any(one.uid == uid and one.controller for one in claim.read(_Claim).metadata.owner_references)


def _pods_of(claim: Item, context: Context) -> Iterator[Key]:
    """The pod that owns the claim, and pods whose claim would have the same name."""
    for owner in claim.read(_Claim).metadata.owner_references:
        if owner.kind == "Pod":
            yield (claim.namespace, owner.name)
    for cut in (at for at, letter in enumerate(claim.name) if letter == "-"):
        key = (claim.namespace, claim.name[:cut])
        if context.informers.of(PODS).get(*key) is not None:
            yield key
