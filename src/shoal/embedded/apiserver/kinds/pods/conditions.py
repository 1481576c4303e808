"""Conditions in the status of a pod."""

from __future__ import annotations

from shoal.embedded.apiserver.kinds.complaints import Obj


def set_condition(pod: Obj, wanted: Obj, now: str) -> None:
    """Put a condition in place of the one of its type; the time moves only when the answer does.

    The list is a new one, so that a status shared with an older version of the pod is left as it was.
    """
    status = pod.setdefault("status", {})
    conditions = list(status.get("conditions") or ())
    condition = {"lastProbeTime": None, "lastTransitionTime": now, **wanted}
    for place, former in enumerate(conditions):
        if former.get("type") == wanted["type"]:
            if former.get("status") == wanted["status"]:
                condition["lastTransitionTime"] = former.get("lastTransitionTime")
            conditions[place] = condition
            break
    else:
        conditions.append(condition)
    status["conditions"] = conditions


def is_ready(pod: Obj) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
