"""A volume and a claim become one, in four writes.

Each looks first whether it is done already, so that whoever was killed between two of them is followed by one who does
the rest: the volume is kept for the claim before the claim knows of it, and nobody else gets either meanwhile.
"""

from __future__ import annotations

from shoal.controllers.volumes.ground import BIND_COMPLETED, BOUND_BY_CONTROLLER, Ground, annotations_of
from shoal.store.live.item import Obj
from shoal.store.live.kind import VOLUME_CLAIMS, VOLUMES
from shoal.store.volumes.values import Claim, Volume


async def bind(ground: Ground, claim: Claim, volume: Volume) -> None:
    volume_obj, claim_obj = ground.volume_obj(volume), ground.claim_obj(claim)
    if volume_obj is None or claim_obj is None:
        return
    volume_obj = await _keep(ground, claim, volume_obj)
    await set_volume_phase(ground, volume_obj, "Bound")
    claim_obj = await _name(ground, claim_obj, volume)
    await _say(ground, claim_obj, volume_obj)


async def set_volume_phase(ground: Ground, volume: Obj, phase: str, message: str = "") -> None:
    status = volume.setdefault("status", {})
    if status.get("phase") != phase:
        status["phase"] = phase
        status["lastPhaseTransitionTime"] = ground.context.clock.text()
        status.pop("message", None)
        if message:
            status["message"] = message
        await ground.api.update(VOLUMES, volume, "status")


async def set_claim_phase(ground: Ground, claim: Claim, phase: str) -> None:
    obj = ground.claim_obj(claim)
    if obj is not None and obj.setdefault("status", {}).get("phase") != phase:
        obj["status"] = {"phase": phase}
        await ground.api.update(VOLUME_CLAIMS, obj, "status")


async def _keep(ground: Ground, claim: Claim, volume: Obj) -> Obj:
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
    return (await ground.api.update(VOLUMES, volume)).obj()


async def _name(ground: Ground, claim: Obj, volume: Volume) -> Obj:
    spec, annotations = claim["spec"], annotations_of(claim)
    if spec.get("volumeName") and annotations.get(BIND_COMPLETED) == "yes":
        return claim
    if not spec.get("volumeName"):
        spec["volumeName"] = volume.metadata.name
        annotations[BOUND_BY_CONTROLLER] = "yes"
    annotations[BIND_COMPLETED] = "yes"
    return (await ground.api.update(VOLUME_CLAIMS, claim)).obj()


async def _say(ground: Ground, claim: Obj, volume: Obj) -> None:
    status = claim.setdefault("status", {})
    if status.get("phase") == "Bound" and status.get("accessModes") == volume["spec"].get("accessModes"):
        return
    status["phase"] = "Bound"
    status["accessModes"] = volume["spec"].get("accessModes", [])
    status["capacity"] = volume["spec"].get("capacity", {})
    if name := volume["spec"].get("volumeAttributesClassName"):
        status["currentVolumeAttributesClassName"] = name
    await ground.api.update(VOLUME_CLAIMS, claim, "status")
