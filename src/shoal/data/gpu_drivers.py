"""The oldest driver for each generation of GPUs, and the branch of the driver that the labels of a node name."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.data.gpus import PRODUCT_LABEL, read_product

LEAST_DRIVER = (("blackwell", 570), ("hopper", 535), ("ada", 525), ("ampere", 450), ("turing", 418), ("volta", 418))
"""By the generation: the branch with which its GPUs work, for Hopper with MIG and NVSwitch."""
_DRIVER_MAJOR = ("nvidia.com/cuda.driver-version.major", "nvidia.com/cuda.driver.major")
_MOST_DIGITS = 5


def generation_of(labels: Mapping[str, str]) -> str:
    """Of the GPUs of a node; empty if its labels do not name it."""
    label = labels.get(PRODUCT_LABEL, "")
    model = read_product(label).model if label else None
    return model.architecture if model is not None else labels.get("nvidia.com/gpu.family", "")


def driver_branch(labels: Mapping[str, str]) -> int:
    """0 if the labels do not name it."""
    return next((found for label in _DRIVER_MAJOR if (found := major_version(labels.get(label, "")))), 0)


def major_version(version: str) -> int:
    """0 for a version of another form."""
    first = version.removeprefix("v").partition(".")[0]
    return int(first) if first.isascii() and first.isdigit() and len(first) <= _MOST_DIGITS else 0
