"""`kubectl logs` on pods that run no process: the refusals of a real cluster, else one line that says why that is all.

A pod without a node answers with nothing and a container that has not started is refused, both as Kubernetes does it.
Rejected: an empty log for started containers. Whoever looks into a log wants to know why something does not work, and
nothing at all is the one answer that does not help.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.cluster.field_errors import FieldError, bad_value
from shoal.cluster.status import bad_request, invalid
from shoal.cluster.streams.containers import chosen_container

Obj = dict[str, Any]
_LINE = "this pod is simulated and runs no process: its containers write no log\n"
_LEAST = {"tailLines": 0, "sinceSeconds": 1, "limitBytes": 1}
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_TRUE = ("1", "t", "true")


def pod_log(pod: Obj, query: Mapping[str, str]) -> str:
    """What the log of one container holds; `query` has the options as they came."""
    numbers = _numbers(pod, query)
    name = chosen_container(pod, query.get("container", ""))["name"]
    if not (pod.get("spec") or {}).get("nodeName"):
        return ""
    if query.get("previous", "").lower() in _TRUE:
        raise bad_request(f'previous terminated container "{name}" in pod "{pod["metadata"]["name"]}" not found')
    _check_started(pod, name)
    if numbers.get("tailLines") == 0:
        return ""
    return _LINE[: numbers.get("limitBytes", len(_LINE))]


def _numbers(pod: Obj, query: Mapping[str, str]) -> dict[str, int]:
    numbers: dict[str, int] = {}
    errors: list[FieldError] = []
    for key, least in _LEAST.items():
        text = query.get(key, "")
        if not text:
            continue
        try:
            numbers[key] = int(text)
        except ValueError:
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None
        if numbers[key] < least:
            errors.append(bad_value(key, numbers[key], f"must be greater than or equal to {least}"))
    if errors:
        raise invalid("PodLogOptions", "", pod["metadata"]["name"], errors)
    return numbers


def _check_started(pod: Obj, name: str) -> None:
    status = pod.get("status") or {}
    found = next((one for key in _STATUSES for one in status.get(key) or () if one["name"] == name), None)
    where = f'container "{name}" in pod "{pod["metadata"]["name"]}"'
    if found is None:
        # A phase that was set by hand, without containers, says as much.
        if status.get("phase", "Pending") == "Pending":
            raise bad_request(f"{where} is not available")
        return
    waiting = (found.get("state") or {}).get("waiting")
    if waiting is not None and not (found.get("lastState") or {}).get("terminated"):
        raise bad_request(f"{where} is waiting to start: {waiting.get('reason', '')}")
