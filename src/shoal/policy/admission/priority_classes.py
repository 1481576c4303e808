"""PriorityClasses: the priority and the preemption policy that a new pod gets, or why it is refused."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.policy.admission.pod_resources import Obj

_PREEMPTS = "PreemptLowerPriority"
_COMPUTED = (
    "must not be provided in pod spec; priority admission controller computed {} from the given PriorityClass name"
)


def class_not_found(name: str) -> str:
    return f"no PriorityClass with name {name} was found"


def default_class(classes: Iterable[Obj]) -> Obj | None:
    """Of several defaults, created at the same time, the lowest counts."""
    defaults = [one for one in classes if one.get("globalDefault")]
    return min(defaults, key=lambda one: (one.get("value", 0), one["metadata"]["name"]), default=None)


def set_priority(spec: Obj, chosen: Obj | None) -> str:
    """Set what the class says; the refusal if the spec says otherwise, else empty."""
    value = int(chosen.get("value", 0)) if chosen else 0
    policy = chosen.get("preemptionPolicy") if chosen else _PREEMPTS
    given = spec.get("priority")
    if given is not None and given != value:
        return f"the integer value of priority ({given}) {_COMPUTED.format(value)}"
    spec["priority"] = value
    if policy is None:
        return ""
    asked = spec.get("preemptionPolicy")
    if asked is not None and asked != policy:
        return f"the string value of PreemptionPolicy ({asked}) {_COMPUTED.format(policy)}"
    spec["preemptionPolicy"] = policy
    return ""
