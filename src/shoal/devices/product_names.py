"""Derives the driver's name of a GPU from its product label, and label values from names.

The label has dashes for spaces. Older products have dashes in the name itself, between product, form factor and memory;
newer ones have none: `NVIDIA A100-SXM4-80GB` and `Tesla V100-SXM2-16GB`, but `NVIDIA H100 80GB HBM3`.
"""

from __future__ import annotations

import re

from shoal.data.gpus import Model

_DASHED = re.compile(r"(?P<maker>NVIDIA|Tesla)-(?P<part>[A-Z0-9]+-(?:SXM[0-9]*|PCIE)-[0-9]+GB)")
_NOT_IN_LABELS = re.compile(r"[^A-Za-z0-9\-_. ]")
_OWN_BRAND = "Tesla-"
"""Old products are named without their vendor."""


def device_name(product: str) -> str:
    dashed = _DASHED.fullmatch(product)
    return f"{dashed['maker']} {dashed['part']}" if dashed is not None else product.replace("-", " ")


def product_of_device(name: str) -> str:
    """The product label of a driver's name, as GPU feature discovery writes it."""
    return sanitised(name)


def sanitised(text: str) -> str:
    """As feature discovery writes names in labels: other characters are removed, and words are joined by a
    dash.
    """
    return "-".join(_NOT_IN_LABELS.sub("", text).split())


def product_label(model: Model) -> str:
    name = model.labels[0]
    return name if name.startswith(_OWN_BRAND) else f"NVIDIA-{name}"
