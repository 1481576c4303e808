"""What KAI's queues count of a pod, whatever its user wrote."""

from __future__ import annotations

import pytest

from shoal.controllers.kai.works import amounts_of
from shoal.engine.asks import Ask
from shoal.engine.devices.demand import MigTiles

PROFILES = {
    "1g.5gb": 1,
    "3g.40gb": 3,
    "1c.3g.40gb": 3,
    "1g.10gb.me": 1,
    "nonsense": 0,
    "g": 0,
    "xg.5gb": 0,
    "": 0,
    "0g": 0,
}


@pytest.mark.parametrize(("profile", "slices"), PROFILES.items())
def test_an_instance_counts_its_slices_of_compute_and_nonsense_nothing(profile: str, slices: int) -> None:
    asked = Ask(devices=MigTiles(((profile, 2),)))
    assert amounts_of(asked)["gpu"] == 2000 * slices
