"""How often simulated nodes say that they are alive."""

from __future__ import annotations

import pytest

from shoal.embedded.controllers.node_lifecycle.heartbeats import GRACE_S
from shoal.wiring.nodes import lease_s


@pytest.mark.parametrize("nodes", [1, 100, 101, 5000])
def test_a_renewal_in_time_is_enough_and_beside_others_one_may_be_lost(nodes: int) -> None:
    assert lease_s(nodes, is_own=True) < GRACE_S
    assert 2 * lease_s(nodes, is_own=False) < GRACE_S
