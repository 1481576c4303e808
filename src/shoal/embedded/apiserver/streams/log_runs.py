"""Selects the run of a container whose log is requested: the current or the previous one. And when there is none, why.

A container that waits to be started again still has the log of the run that ended: what crashes is looked into just
then.
"""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.status import ApiError, bad_request

Obj = dict[str, Any]
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_PULLS = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


def container_status(pod: Obj, name: str) -> Obj | None:
    status = pod.get("status") or {}
    return next((one for key in _STATUSES for one in status.get(key) or () if one.get("name") == name), None)


def is_previous(pod: Obj, name: str, *, previous: bool) -> bool:
    """Whether it is the run before the present one. ApiError in the kubelet's words where there is no such run."""
    found = container_status(pod, name)
    if found is None:
        raise not_available(pod, name)
    state = found.get("state") or {}
    has_ended = bool((found.get("lastState") or {}).get("terminated"))
    if previous:
        if not has_ended:
            raise no_previous(pod, name)
        return True
    if state.get("running") is not None or state.get("terminated") is not None:
        return False
    if has_ended:
        return True
    waiting = state.get("waiting")
    if waiting is None:
        raise bad_request(f"{_where(pod, name)} is waiting to start - no logs yet")
    reason = waiting.get("reason") or ""
    raise bad_request(f"{_where(pod, name)} is waiting to start: {_PULLS.get(reason, reason)}")


def not_available(pod: Obj, name: str) -> ApiError:
    return bad_request(f"{_where(pod, name)} is not available")


def no_previous(pod: Obj, name: str) -> ApiError:
    return bad_request(f"previous terminated {_where(pod, name)} not found")


def _where(pod: Obj, name: str) -> str:
    return f'container "{name}" in pod "{pod["metadata"]["name"]}"'
