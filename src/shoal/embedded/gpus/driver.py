"""Defines the driver and CUDA versions of simulated GPUs, and reads the version that the image of a driver pod has."""

from __future__ import annotations

from typing import NamedTuple

DRIVER = "580.95.05"
CUDA = "13.0"
_CUDA_OF_BRANCH = (
    (590, "13.1"),
    (580, "13.0"),
    (575, "12.9"),
    (570, "12.8"),
    (565, "12.7"),
    (560, "12.6"),
    (555, "12.5"),
    (550, "12.4"),
    (545, "12.3"),
    (535, "12.2"),
    (530, "12.1"),
    (525, "12.0"),
)
"""The newest CUDA version of each driver branch."""
_OLDEST_CUDA = "11.8"


class DriverImage(NamedTuple):
    version: str
    is_precompiled: bool = False
    """Whether its kernel modules were compiled for one kernel when the image was made."""


def read_driver_image(image: str) -> DriverImage:
    """`nvidia/driver:580.82.07-ubuntu24.04` has its version in front, `driver:580-6.8.0-1040-generic-ubuntu24.04` the
    branch and a kernel. An image without such a tag has the version of all simulated GPUs.
    """
    tag = image.rpartition("/")[2].partition("@")[0].partition(":")[2]
    version, _, rest = tag.partition("-")
    if not version or not all(part.isascii() and part.isdigit() for part in version.split(".")):
        return DriverImage(DRIVER)
    if "." in version:
        return DriverImage(version)
    kernel = rest.partition("-")[0].split(".")
    is_kernel = len(kernel) > 1 and all(part.isascii() and part.isdigit() for part in kernel)
    newest = DRIVER if version == DRIVER.partition(".")[0] else f"{version}.00"
    return DriverImage(newest, is_precompiled=is_kernel)


def cuda_of(driver: str) -> str:
    """The newest CUDA version that a driver supports."""
    branch = driver.partition(".")[0]
    number = int(branch) if branch.isascii() and branch.isdigit() and len(branch) < 6 else 0
    return next((cuda for first, cuda in _CUDA_OF_BRANCH if number >= first), _OLDEST_CUDA)
