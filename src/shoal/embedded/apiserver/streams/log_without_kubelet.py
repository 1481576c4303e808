"""`kubectl logs` on pods without a kubelet: the refusals of a real cluster, else one line that says why that is all.

A container that has not started is refused, as Kubernetes does it.
Rejected: an empty log for started containers. Users read logs to find out why something does not work, and
an empty one does not help.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.streams.containers import chosen_container
from shoal.embedded.apiserver.streams.log_options import log_options
from shoal.embedded.apiserver.streams.log_runs import container_status, is_previous, no_previous, not_available

Obj = dict[str, Any]
_LINE = "this pod is simulated and runs no process: its containers write no log\n"


def pod_log(pod: Obj, query: Mapping[str, str]) -> str:
    """What the log of one container of a pod on a node holds; `query` has the options as they came."""
    options = log_options(query, pod["metadata"]["name"])
    name = chosen_container(pod, query.get("container", ""))["name"]
    if options.previous:
        raise no_previous(pod, name)
    _check_started(pod, name)
    if options.tail_lines == 0:
        return ""
    return _LINE[: options.limit_bytes]


def _check_started(pod: Obj, name: str) -> None:
    if container_status(pod, name) is not None:
        is_previous(pod, name, previous=False)
    # A phase that was set by hand, without containers, says as much.
    elif (pod.get("status") or {}).get("phase", "Pending") == "Pending":
        raise not_available(pod, name)
