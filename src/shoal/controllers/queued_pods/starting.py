"""What a pod gets when it is let go: what its admission puts on pods of its set, and its role in its group.

What is put on is what jobs get (`queued_jobs/clothes.py`). A pod that says itself where it wants to be keeps that, and
one that contradicts its admission is not let go.
"""

from __future__ import annotations

from typing import Any

from shoal.controllers.queued_jobs.clothes import Clothes, MisfitError
from shoal.controllers.queued_pods.words import GATE, ROLE_HASH

Obj = dict[str, Any]


def let_go(pod: Obj, clothes: Clothes, role: str = "") -> Obj:
    """The merge patch; it holds for that version of the pod alone. `role` is noted for pods of groups. Raises
    MisfitError."""
    meta, spec = pod["metadata"], pod["spec"]
    notes = dict(clothes.annotations)
    if role:
        notes[ROLE_HASH] = role
    kept = [gate for gate in spec.get("schedulingGates") or () if gate.get("name") != GATE]
    added: Obj = {"schedulingGates": kept + clothes.gates or None}
    if clothes.node_selector:
        added["nodeSelector"] = _joined(spec.get("nodeSelector") or {}, clothes.node_selector)
    present = spec.get("tolerations") or []
    more = [one for one in clothes.tolerations if one not in present]
    if more:
        added["tolerations"] = [*present, *more]
    known = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    return {"metadata": {**known, "labels": dict(clothes.labels), "annotations": notes}, "spec": added}


def _joined(own: dict[str, str], added: dict[str, str]) -> dict[str, str]:
    for key, value in added.items():
        if own.get(key, value) != value:
            raise MisfitError(f"conflict for key={key}, value1={own[key]}, value2={value}")
    return {**added, **own}
