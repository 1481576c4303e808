"""The ConfigMap of Volcano's scheduler among manifests: read as it is, and what is said where it cannot be read."""

from __future__ import annotations

import pytest

from shoal.api.decode import Document, Unknown
from shoal.api.meta import ObjectMeta
from shoal.engine.queues.disciplines.volcano.configuration import DEFAULT
from shoal.sim.volcano_settings import KEY, volcano_settings
from shoal.units.errors import Where

GOOD = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n    enablePreemptable: false\n'


def config_map(text: str) -> Document:
    raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {KEY: text}}
    return Document(Unknown("v1", "ConfigMap", ObjectMeta(name="c"), raw), Where(file="volcano.yaml"))


def test_the_configuration_is_read_as_volcano_keeps_it() -> None:
    found = volcano_settings([config_map(GOOD)])
    assert (found.actions, [option.name for option in found.plugins()]) == (("enqueue", "allocate"), ["gang"])


def test_without_a_config_map_the_default_holds() -> None:
    assert volcano_settings([]) == DEFAULT


@pytest.mark.parametrize("text", ["actions: [", "- a list", "actions: 7"])
def test_what_cannot_be_read_leaves_the_last_good_configuration_with_a_warning(text: str) -> None:
    found = volcano_settings([config_map(GOOD), config_map(text)])
    assert found.actions == ("enqueue", "allocate")
    (warning,) = found.warnings
    assert KEY in warning
    assert "the last good configuration is used" in warning


def test_a_name_with_a_mistake_is_told_with_the_nearest() -> None:
    (warning,) = volcano_settings([config_map(GOOD.replace("allocate", "alocate"))]).warnings
    assert "did you mean allocate?" in warning
