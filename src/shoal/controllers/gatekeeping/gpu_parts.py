"""Builds the expressions of the policy that limits parts of GPUs by the ResourceQuotas of their namespace.

The policy is evaluated once for each quota, as its parameter. A quota with scopes applies to some pods only and is left
out; one without `requests.nvidia.com/gpu` does not limit GPUs.
"""

from __future__ import annotations

_RESOURCE = "requests.nvidia.com/gpu"
_ANNOTATIONS = "object.metadata.?annotations"
_COUNT = f"{_ANNOTATIONS}[?'gpu-fraction-num-devices'].orValue('1')"
_IS_ABOUT_GPUS = (
    f"!has(params.spec.scopeSelector) && size(params.spec.?scopes.orValue([])) == 0 "
    f"&& params.spec.?hard[?'{_RESOURCE}'].hasValue()"
)

VARIABLES = {
    # The scheduler rejects a value that is not a number; until then it counts as one device.
    "devices": f"{_COUNT}.matches('^[0-9]{{1,10}}$') ? int({_COUNT}) : 1",
    "hard": f"string(params.spec.?hard[?'{_RESOURCE}'].orValue('0'))",
    "used": f"string(params.?status.?used[?'{_RESOURCE}'].orValue('0'))",
}


def are_asked_for() -> str:
    return f"{_ANNOTATIONS}[?'gpu-fraction'].hasValue() || {_ANNOTATIONS}[?'gpu-memory'].hasValue()"


def are_within() -> str:
    left = "quantity(variables.used).add(variables.devices).compareTo(quantity(variables.hard)) <= 0"
    return f"!({_IS_ABOUT_GPUS}) || {left}"


def exceeded() -> str:
    """The message of Kubernetes' own quota."""
    return (
        f"'exceeded quota: ' + params.metadata.name + ', requested: {_RESOURCE}=' + string(variables.devices) + "
        f"', used: {_RESOURCE}=' + variables.used + ', limited: {_RESOURCE}=' + variables.hard"
    )
