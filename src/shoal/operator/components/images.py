"""Resolves the image of a component: the fields of the policy, with NVIDIA's names and versions for what is missing."""

from __future__ import annotations

import msgspec

from shoal.operator.policy.operands import ImageFields
from shoal.units.errors import UserError, Where

_CLOUD_NATIVE = "nvcr.io/nvidia/cloud-native"
_DRIVER_MANAGER = ("nvcr.io/nvidia/cloud-native", "k8s-driver-manager", "v0.9.0")
NVIDIA_IMAGES: dict[str, tuple[str, str, str]] = {
    "driver": ("nvcr.io/nvidia", "driver", "580.95.05"),
    "driver.manager": _DRIVER_MANAGER,
    "toolkit": ("nvcr.io/nvidia/k8s", "container-toolkit", "v1.18.0"),
    "devicePlugin": ("nvcr.io/nvidia", "k8s-device-plugin", "v0.18.0"),
    "gfd": ("nvcr.io/nvidia", "k8s-device-plugin", "v0.18.0"),
    "dcgm": (_CLOUD_NATIVE, "dcgm", "4.4.1-2-ubuntu22.04"),
    "dcgmExporter": ("nvcr.io/nvidia/k8s", "dcgm-exporter", "4.4.1-4.6.0-distroless"),
    "migManager": (_CLOUD_NATIVE, "k8s-mig-manager", "v0.13.0"),
    "nodeStatusExporter": ("nvcr.io/nvidia", "gpu-operator", "v25.10.0"),
    "validator": ("nvcr.io/nvidia", "gpu-operator", "v25.10.0"),
    "gds": (_CLOUD_NATIVE, "nvidia-fs", "2.26.6"),
    "gdrcopy": (_CLOUD_NATIVE, "gdrdrv", "v2.5.1"),
    "vfioManager": _DRIVER_MANAGER,
    "sandboxDevicePlugin": ("nvcr.io/nvidia", "kubevirt-gpu-device-plugin", "v1.4.0"),
    "vgpuDeviceManager": (_CLOUD_NATIVE, "vgpu-device-manager", "v0.4.1"),
    "kataManager": (_CLOUD_NATIVE, "k8s-kata-manager", "v0.2.3"),
    "ccManager": (_CLOUD_NATIVE, "k8s-cc-manager", "v0.2.0"),
    # Customers build these images themselves.
    "vgpuManager": ("", "vgpu-manager", ""),
    "kataSandboxDevicePlugin": ("", "", ""),
}
"""Repository, image and version by component, for fields that the policy leaves out."""
_DIGEST = "sha256:"


class ImageReference(msgspec.Struct, frozen=True):
    repository: str
    image: str
    version: str

    @property
    def is_pinned(self) -> bool:
        """Whether the version is a digest."""
        return self.version.startswith(_DIGEST)

    def text(self, suffix: str = "") -> str:
        """`suffix` is added to a tag; a digest names one image already."""
        name = f"{self.repository}/{self.image}" if self.repository else self.image
        if self.is_pinned:
            return f"{name}@{self.version}"
        return f"{name}:{self.version}{suffix}" if self.version else name


def nvidia_image(component: str, fields: ImageFields) -> ImageReference:
    """Raises `UserError` if neither the policy nor NVIDIA's defaults name an image."""
    repository, image, version = NVIDIA_IMAGES[component]
    found = ImageReference(fields.repository or repository, fields.image or image, fields.version or version)
    if not found.image or not (found.repository or fields.image):
        where = Where(path=f"spec.{component}")
        raise UserError(
            "names no image, and NVIDIA publishes none", where=where, fix="set repository, image and version"
        )
    return found
