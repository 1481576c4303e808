"""Binds a claim and a volume to each other, in four writes.

Each write is skipped if it was done already, so that a new process can continue after a crash between two of them. The
volume is reserved for the claim before the claim names the volume, so no other claim can get it in between.
"""

from __future__ import annotations

from shoal.client.item import Obj
from shoal.client.kind import VOLUME_CLAIMS, VOLUMES
from shoal.client.volumes.values import Volume, VolumeClaim
from shoal.embedded.controllers.volumes.context import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    VolumeContext,
    annotations_of,
)


async def bind(context: VolumeContext, claim: VolumeClaim, volume: Volume) -> None:
    volume_obj, claim_obj = context.volume_obj(volume), context.claim_obj(claim)
    if volume_obj is None or claim_obj is None:
        return
    volume_obj = await _reserve_volume(context, claim, volume_obj)
    await set_volume_phase(context, volume_obj, "Bound")
    claim_obj = await _set_volume_name(context, claim_obj, volume)
    await _set_phases(context, claim_obj, volume_obj)


async def set_volume_phase(context: VolumeContext, volume: Obj, phase: str, message: str = "") -> None:
    status = volume.setdefault("status", {})
    if status.get("phase") != phase:
        status["phase"] = phase
        status["lastPhaseTransitionTime"] = context.runtime.clock.text()
        status.pop("message", None)
        if message:
            status["message"] = message
        await context.api.update(VOLUMES, volume, "status")


async def set_claim_phase(context: VolumeContext, claim: VolumeClaim, phase: str) -> None:
    obj = context.claim_obj(claim)
    if obj is not None and obj.setdefault("status", {}).get("phase") != phase:
        obj["status"] = {"phase": phase}
        await context.api.update(VOLUME_CLAIMS, obj, "status")


async def _reserve_volume(context: VolumeContext, claim: VolumeClaim, volume: Obj) -> Obj:
    meta, ref = claim.metadata, volume["spec"].get("claimRef")
    if ref is not None and ref.get("uid") == meta.uid:
        return volume
    if ref is None:
        annotations_of(volume)[BOUND_BY_CONTROLLER] = "yes"
    volume["spec"]["claimRef"] = {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
    }
    return (await context.api.update(VOLUMES, volume)).obj()


async def _set_volume_name(context: VolumeContext, claim: Obj, volume: Volume) -> Obj:
    spec, annotations = claim["spec"], annotations_of(claim)
    if spec.get("volumeName") and annotations.get(BIND_COMPLETED) == "yes":
        return claim
    if not spec.get("volumeName"):
        spec["volumeName"] = volume.metadata.name
        annotations[BOUND_BY_CONTROLLER] = "yes"
    annotations[BIND_COMPLETED] = "yes"
    return (await context.api.update(VOLUME_CLAIMS, claim)).obj()


async def _set_phases(context: VolumeContext, claim: Obj, volume: Obj) -> None:
    status = claim.setdefault("status", {})
    if status.get("phase") == "Bound" and status.get("accessModes") == volume["spec"].get("accessModes"):
        return
    status["phase"] = "Bound"
    status["accessModes"] = volume["spec"].get("accessModes", [])
    status["capacity"] = volume["spec"].get("capacity", {})
    if name := volume["spec"].get("volumeAttributesClassName"):
        status["currentVolumeAttributesClassName"] = name
    await context.api.update(VOLUME_CLAIMS, claim, "status")
