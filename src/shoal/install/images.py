"""The container images that an installation needs, for sites that copy them to a registry of their own."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.install.objects.deployments import image_of, operator_image_of
from shoal.install.values.reading import ChartValues

_COMPONENTS = (
    *("driver", "toolkit", "devicePlugin", "gfd", "dcgm", "dcgmExporter", "migManager", "nodeStatusExporter"),
    *("validator", "gds", "gdrcopy"),
)
_OF_SYSTEMS = ("ubuntu22.04", "ubuntu24.04", "rhel9.6")
"""The driver's image has the operating system of the nodes in its tag."""


def needed_images(values: ChartValues, version: str, systems: tuple[str, ...] = _OF_SYSTEMS) -> list[str]:
    """`systems`: of the nodes, as in tags of the driver's image."""
    return list(dict.fromkeys(_images(values, version, systems)))


def _images(values: ChartValues, version: str, systems: tuple[str, ...]) -> Iterator[str]:
    yield image_of(values, version)
    if values.get("smokeTest.enabled"):
        yield values.get("smokeTest.image")
    if not values.get("operator.enabled"):
        return
    yield operator_image_of(values, version)
    for name in _COMPONENTS:
        if name != "validator" and not values.get(f"{name}.enabled"):
            continue
        image = values.get(f"{name}.image")
        if not image:
            continue
        repository, tag = values.get(f"{name}.repository"), values.get(f"{name}.version")
        whole = f"{repository}/{image}" if repository else image
        if tag.startswith("sha256:"):
            yield f"{whole}@{tag}"
        elif name == "driver" and not values.get("driver.usePrecompiled"):
            yield from (f"{whole}:{tag}-{system}" for system in systems)
        else:
            yield f"{whole}:{tag}" if tag else whole
        if name == "driver":
            manager = [values.get(f"driver.manager.{part}") for part in ("repository", "image", "version")]
            yield f"{manager[0]}/{manager[1]}:{manager[2]}"
