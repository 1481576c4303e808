"""GPU names as the driver says them."""

from __future__ import annotations

import pytest

from shoal.devices.product_names import device_name


@pytest.mark.parametrize(
    ("product", "name"),
    [
        ("NVIDIA-A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB"),
        ("NVIDIA-A100-PCIE-40GB", "NVIDIA A100-PCIE-40GB"),
        ("Tesla-V100-SXM2-16GB", "Tesla V100-SXM2-16GB"),
        ("NVIDIA-H100-80GB-HBM3", "NVIDIA H100 80GB HBM3"),
        ("NVIDIA-GH200-480GB", "NVIDIA GH200 480GB"),
        ("NVIDIA-H100-PCIe", "NVIDIA H100 PCIe"),
        ("Tesla-T4", "Tesla T4"),
    ],
)
def test_dashes_that_belong_to_the_name_stay(product: str, name: str) -> None:
    assert device_name(product) == name
