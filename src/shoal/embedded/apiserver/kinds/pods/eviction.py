"""Evicting a pod: a deletion that asks the disruption budgets first.

`evict` decides on one version of a pod and of its budgets. It says what to charge; that both are still those versions
when it is charged is up to the operation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shoal.embedded.apiserver.kinds.complaints import Obj
from shoal.embedded.apiserver.kinds.pods.conditions import is_ready, set_condition
from shoal.embedded.apiserver.label_selectors import selects
from shoal.embedded.apiserver.status import ApiError, forbidden, too_many_requests

_REFUSAL = "Cannot evict pod as it would violate the pod's disruption budget."
_MANY = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_MOST_DISRUPTED = 2000
_RETRY_S = 10


def evict(pod: Obj, budgets: Iterable[Obj], now: str) -> Obj | None:
    """Decide over `budgets` of the pod's namespace: the one with this disruption counted, None where none is touched.

    The budgets themselves are left as they are. Raises what a real API server answers when the pod must not go.
    """
    if is_beyond_budgets(pod):
        return None
    labels = pod["metadata"].get("labels") or {}
    found = [one for one in budgets if _covers(one, labels)]
    if len(found) > 1:
        raise ApiError(500, "", _MANY)
    if not found or (not is_ready(pod) and _lets_unready_go(found[0])):
        return None
    return _spend(found[0], pod["metadata"]["name"], now)


def mark_evicted(pod: Obj, now: str) -> None:
    """The condition that tells the pod's owner why it ended, in place."""
    pod["status"] = dict(pod.get("status") or {})
    reason = {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}
    set_condition(pod, {"type": "DisruptionTarget", "status": "True", **reason}, now)


def is_beyond_budgets(pod: Obj) -> bool:
    """Ended, terminating or not started: its deletion is no disruption."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def _covers(budget: Obj, labels: dict[str, str]) -> bool:
    selector = (budget.get("spec") or {}).get("selector")
    return selector is not None and selects(selector, labels)


def _lets_unready_go(budget: Obj) -> bool:
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    wanted = status.get("desiredHealthy", 0)
    return bool(wanted > 0 and status.get("currentHealthy", 0) >= wanted)


def _spend(budget: Obj, pod_name: str, now: str) -> Obj:
    metadata, status = budget["metadata"], dict(budget.get("status") or {})
    name, allowed = metadata["name"], status.get("disruptionsAllowed", 0)
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        raise _refusal(f"The disruption budget {name} is still being processed by the server.", _RETRY_S)
    if allowed < 0:
        raise forbidden("poddisruptionbudget", "policy", name, "pdb disruptions allowed is negative")
    disrupted = status.get("disruptedPods") or {}
    if len(disrupted) > _MOST_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden("poddisruptionbudget", "policy", name, why)
    if allowed == 0:
        raise _refusal(_why_none(name, status), 0)
    status["disruptionsAllowed"] = allowed - 1
    status["disruptedPods"] = {**disrupted, pod_name: now}
    if allowed == 1:
        status["conditions"] = _none_left(status.get("conditions") or [], metadata.get("generation"), now)
    return {**budget, "metadata": {**metadata}, "status": status}


def _why_none(name: str, status: dict[str, Any]) -> str:
    for one in status.get("conditions") or ():
        if one.get("type") == "DisruptionAllowed" and one.get("reason") == "SyncFailed":
            return (
                f"The disruption budget {name} does not allow evicting pods currently because it failed sync: "
                f"{one.get('message', '')}"
            )
    wanted, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    return f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently"


def _none_left(conditions: list[Obj], generation: int | None, now: str) -> list[Obj]:
    fresh: Obj = {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "InsufficientPods",
        "message": "",
        "lastTransitionTime": now,
    }
    if generation:
        fresh["observedGeneration"] = generation
    for one in conditions:
        if one.get("type") == "DisruptionAllowed" and one.get("status") == "False":
            fresh["lastTransitionTime"] = one.get("lastTransitionTime", now)
    return [one for one in conditions if one.get("type") != "DisruptionAllowed"] + [fresh]


def _refusal(why: str, retry_s: int) -> ApiError:
    return too_many_requests(_REFUSAL, retry_s, [{"reason": "DisruptionBudget", "message": why}])
