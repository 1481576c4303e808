"""An option of the values: its name, default and purpose, and where it goes in a ClusterPolicy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

FREE: dict[str, Any] = {}
"""The default of an option with free keys: labels, resources. What is below it is not checked."""


class Option(NamedTuple):
    path: str
    default: Any
    """Its type is that of the values: true or false, a text, a whole number, a list, an object with free keys."""
    about: str
    field: str | None = ""
    """Of `spec` of the ClusterPolicy: empty for the same name; None where the policy does not have it."""

    @property
    def target(self) -> str | None:
        return self.path if self.field == "" else self.field


def operand(
    name: str,
    about: str,
    *,
    enabled: bool | None = True,
    repository: str = "",
    image: str = "",
    version: str = "",
) -> Iterator[Option]:
    """The options that each component of the GPU stack has. Without an image the operator uses Shoal's."""
    if enabled is not None:
        yield Option(f"{name}.enabled", enabled, about)
    yield Option(f"{name}.repository", repository, "The registry and folder of the image.")
    yield Option(f"{name}.image", image, "The name of the image.")
    yield Option(f"{name}.version", version, "The tag or digest of the image; empty means the version of this release.")
    yield Option(f"{name}.imagePullPolicy", "IfNotPresent", "When the image is pulled.")
    yield Option(f"{name}.imagePullSecrets", [], "Names of Secrets with credentials of the registry.")
    yield Option(f"{name}.args", [], "Further arguments of the container.")
    yield Option(f"{name}.env", [], "Environment variables of the container.")
    yield Option(f"{name}.resources", FREE, "Resource requests and limits of the container.")
