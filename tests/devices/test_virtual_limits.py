"""The limits of virtual GPUs are found in requests and limits of all containers."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.devices.virtual_limits import not_enforced, requested_limits


def pod(*containers: dict[str, Any], init: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    def of(resources: dict[str, Any]) -> dict[str, Any]:
        return {"name": "main", "resources": resources}

    return {"spec": {"containers": [of(one) for one in containers], "initContainers": [of(one) for one in init]}}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (pod({"limits": {"nvidia.com/gpu": 1}}), ()),
        (pod({}), ()),
        ({}, ()),
        (pod({"limits": {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000}}), ("nvidia.com/gpumem",)),
        (pod({"requests": {"nvidia.com/gpumem-percentage": 50}}), ("nvidia.com/gpumem-percentage",)),
        (pod({}, init=({"limits": {"nvidia.com/gpucores": 30}},)), ("nvidia.com/gpucores",)),
        (pod({"limits": {"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 1}}), ("volcano.sh/vgpu-memory",)),
        (
            pod({"limits": {"nvidia.com/gpumem": 1}}, {"limits": {"nvidia.com/gpucores": 1}}),
            ("nvidia.com/gpucores", "nvidia.com/gpumem"),
        ),
    ],
)
def test_limits_are_named_once_in_order(given: dict[str, Any], wanted: tuple[str, ...]) -> None:
    assert requested_limits(given) == wanted


def test_the_message_names_limits_and_file() -> None:
    assert not_enforced(("nvidia.com/gpumem",), "/x/libvgpu.so").startswith(
        "nvidia.com/gpumem limits nothing on this node: /x/libvgpu.so does not exist"
    )
