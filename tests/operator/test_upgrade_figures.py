"""How many nodes an upgrade has in which state."""

from __future__ import annotations

import pytest

from build.upgrading import node
from shoal.operator.upgrades.figures import UpgradeFigures, upgrade_figures


@pytest.mark.parametrize(
    ("states", "slots", "figures"),
    [
        pytest.param([], 3, UpgradeFigures(), id="without nodes nothing is counted"),
        pytest.param(["upgrade-done"] * 2, 1, UpgradeFigures(done=2), id="nodes that are done"),
        pytest.param(
            ["upgrade-required"] * 3, 2, UpgradeFigures(available=2, pending=3), id="places limit the available nodes"
        ),
        pytest.param(["upgrade-required"], 5, UpgradeFigures(available=1, pending=1), id="no more than wait"),
        pytest.param(
            ["drain-required", "upgrade-failed", "validation-required"],
            0,
            UpgradeFigures(in_progress=2, failed=1),
            id="failed nodes are counted apart",
        ),
    ],
)
def test_nodes_are_counted_by_state(states: list[str], slots: int, figures: UpgradeFigures) -> None:
    assert upgrade_figures([node(str(number), state) for number, state in enumerate(states)], slots) == figures


def test_a_node_without_driver_pod_and_state_is_not_counted() -> None:
    assert upgrade_figures([node("a", "", None)], 1) == UpgradeFigures()
