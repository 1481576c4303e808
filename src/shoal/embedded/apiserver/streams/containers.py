"""Selects the container of a request to a pod, with Kubernetes' messages when it is ambiguous."""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.status import bad_request

Obj = dict[str, Any]
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


def chosen_container(pod: Obj, name: str) -> Obj:
    """The container of this name; without a name the only one there is."""
    spec, pod_name = pod.get("spec") or {}, pod["metadata"]["name"]
    if name:
        found = (one for key in _CONTAINERS for one in spec.get(key) or ())
        chosen: Obj | None = next((one for one in found if one["name"] == name), None)
        if chosen is None:
            raise bad_request(f"container {name} is not valid for pod {pod_name}")
        return chosen
    own: list[Obj] = spec.get("containers") or []
    if len(own) == 1:
        return own[0]
    words = f"a container name must be specified for pod {pod_name}, choose one of: [{_names(own)}]"
    if spec.get("initContainers"):
        words += f" or one of the init containers: [{_names(spec['initContainers'])}]"
    raise bad_request(words)


def _names(containers: list[Obj]) -> str:
    return " ".join(one["name"] for one in containers)
