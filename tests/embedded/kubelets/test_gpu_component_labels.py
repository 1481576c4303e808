"""A pod belongs to a component by its labels, in the spelling of each chart and operator."""

from __future__ import annotations

import pytest

from shoal.embedded.kubelets.gpu_components.table import COMPONENTS, component_of
from shoal.embedded.machines.gpu_software import LAYERS

_NFD = "node-feature-discovery"


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ({"app": "nvidia-driver-daemonset", "helm.sh/chart": "gpu-operator"}, "driver"),
        ({"app": "nvidia-gpu-driver-ubuntu24.04", "app.kubernetes.io/component": "nvidia-driver"}, "driver"),
        ({"app.kubernetes.io/name": "nvidia-device-plugin"}, "device-plugin"),
        ({"app": "nvidia-node-feature-discovery"}, "discovery"),
        ({"app.kubernetes.io/name": _NFD, "role": "worker"}, "discovery"),
        ({"app.kubernetes.io/name": _NFD, "role": "master"}, None),
        ({"app.kubernetes.io/name": _NFD, "role": "gc"}, None),
        ({"app": "nvidia-cuda-validator"}, None),
        ({"app": "web"}, None),
        ({}, None),
    ],
)
def test_labels_identify_the_component(labels: dict[str, str], name: str | None) -> None:
    found = component_of(labels)
    assert (found.name if found is not None else None) == name


def test_each_layer_is_added_by_a_component_that_needs_only_layers_added_before() -> None:
    added: set[str] = set()
    for component in COMPONENTS:
        assert added.issuperset(component.needs), component.name
        added.update(component.adds)
    assert added == {*LAYERS}
