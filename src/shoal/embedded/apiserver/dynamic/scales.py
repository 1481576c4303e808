"""A write of a scale, as it is asked about: the Scale that was sent, not the object it is kept in.

Webhooks for deployments are not called for `deployments/scale`; webhooks for that see a Scale and may change its
replicas.
"""

from __future__ import annotations

import msgspec

from shoal.embedded.apiserver.calls import AdmissionAttributes, Call
from shoal.embedded.apiserver.rest.scaling import scale_of

_REPLICAS = ".spec.replicas"


def door_of(call: Call) -> Call:
    """The call as its writer made it."""
    return msgspec.structs.replace(call, subresource="scale", through_scale=False) if call.through_scale else call


def shown(admission: AdmissionAttributes) -> AdmissionAttributes:
    """The same write of a scale; warnings go where they went."""
    call = door_of(admission.call)
    obj, old = admission.obj, admission.old
    return msgspec.structs.replace(
        admission,
        call=call,
        obj=None if obj is None else scale_of(call, obj),
        old=None if old is None else scale_of(call, old),
    )


def kept(scale: AdmissionAttributes, admission: AdmissionAttributes) -> None:
    """What became of the scale, in the object."""
    if scale.obj is None or admission.obj is None:
        return
    paths = admission.call.resource.scale_paths
    *front, last = [step for step in (paths[0] if paths else _REPLICAS).split(".") if step]
    at = admission.obj
    for step in front:
        at = at.setdefault(step, {})
    replicas = (scale.obj.get("spec") or {}).get("replicas", 0)
    if at.get(last, 0) != replicas:
        at[last] = replicas
