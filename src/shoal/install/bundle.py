"""The versions of NVIDIA's components that this release installs, and the versions that are known to be unsafe.

Driver and toolkit are always NVIDIA's images, because the work in the kernel and in the container runtime is NVIDIA's.
"""

from __future__ import annotations

DRIVER_VERSION = "580.95.05"
TOOLKIT_VERSION = "v1.18.0"
DRIVER_IMAGE = ("nvcr.io/nvidia", "driver")
DRIVER_MANAGER_IMAGE = ("nvcr.io/nvidia/cloud-native", "k8s-driver-manager", "v0.8.1")
TOOLKIT_IMAGE = ("nvcr.io/nvidia/k8s", "container-toolkit")
SMOKE_TEST_IMAGE = "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0"

LEAST_SAFE_TOOLKIT = (1, 17, 8)
"""Older versions let a container escape: CVE-2025-23359 up to 1.17.3, CVE-2025-23266 and 23267 up to 1.17.7."""
