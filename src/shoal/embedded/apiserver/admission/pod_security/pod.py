"""A pod or pod template as the checks of the Pod Security Standards see it, and how they say what they found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from shoal.embedded.apiserver.reading import Obj

_NOTHING: Obj = {}


class Violation(NamedTuple):
    """Warnings contain the reason alone about many pods; the detail follows it in brackets elsewhere."""

    reason: str
    detail: str


class SecuredPod(NamedTuple):
    spec: Obj
    annotations: Obj
    security: Obj
    containers: tuple[tuple[str, Obj, Obj], ...]
    """Name, the container, its securityContext: init containers, containers, ephemeral ones."""

    @property
    def is_windows(self) -> bool:
        return bool((self.spec.get("os") or _NOTHING).get("name") == "windows")

    @property
    def has_own_users(self) -> bool:
        """In a user namespace root has no rights outside, so some rules do not apply."""
        return self.spec.get("hostUsers") is False


Check = Callable[[SecuredPod], Violation | None]


def pod_of(metadata: Obj, spec: Obj) -> SecuredPod:
    containers = tuple(
        (str(container.get("name", "")), container, container.get("securityContext") or _NOTHING)
        for field in ("initContainers", "containers", "ephemeralContainers")
        for container in spec.get(field) or ()
    )
    return SecuredPod(
        spec, metadata.get("annotations") or _NOTHING, spec.get("securityContext") or _NOTHING, containers
    )


def quoted(items: Iterable[str]) -> str:
    return ", ".join(f'"{item}"' for item in items)


def plural(count: int, one: str, many: str) -> str:
    return one if count == 1 else many


def containers(names: list[str]) -> str:
    return f"{plural(len(names), 'container', 'containers')} {quoted(names)}"


def setters(is_pod: bool, names: list[str]) -> str:
    """Who set something: the pod, some containers or both."""
    return " and ".join([*(["pod"] if is_pod else []), *([containers(names)] if names else [])])
