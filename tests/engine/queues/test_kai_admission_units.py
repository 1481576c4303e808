"""What KAI's queues count for a pod, and how its gang is split into admission units."""

from __future__ import annotations

import pytest

from shoal.engine.asks import Ask
from shoal.engine.device_demand import MigTiles
from shoal.engine.events import PodArrived
from shoal.engine.pod_identity import PodIdentity
from shoal.engine.queues.disciplines.kai.admission_unit import GangSpec, amounts_of
from shoal.engine.queues.disciplines.kai.admission_units import AdmissionUnits

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


def units_of(spec: GangSpec, *parts: str) -> AdmissionUnits:
    """A pod of each part, `default/0`, `default/1`, ..., all waiting."""
    units = AdmissionUnits(lambda pod: float(pod.partition("/")[2]))
    for number, part in enumerate(parts):
        units.add_waiting(PodArrived(f"default/{number}", Ask(), 0, "", PodIdentity(part=part)), spec)
    return units


def waiting(units: AdmissionUnits) -> dict[str, list[str]]:
    return {key: [pod.partition("/")[2] for pod in unit.waiting] for key, unit in units.all.items() if unit.waiting}


def test_who_is_beyond_takes_the_place_of_one_that_went_before_it_was_let_in() -> None:
    units = units_of(GangSpec("default/g", "q", 2), "", "", "")
    assert waiting(units) == {"default/g": ["0", "1"], "default/g+2": ["2"]}
    units.remove("default/0")
    assert waiting(units) == {"default/g": ["1", "2"]}
    assert units.all["default/g"].is_ready


def test_a_gang_of_parts_is_whole_when_each_has_its_least() -> None:
    spec = GangSpec("default/g", "q", 3, (("head", 1), ("work", 2)))
    units = units_of(spec, "work", "work", "work")
    assert not units.all["default/g"].is_ready
    units.add_waiting(PodArrived("default/9", Ask(), 0, "", PodIdentity(part="head")), spec)
    assert waiting(units) == {"default/g": ["0", "1", "9"], "default/g+2": ["2"]}
    assert units.all["default/g"].is_ready


def test_another_minimum_sorts_anew_who_waits() -> None:
    units = units_of(GangSpec("default/g", "q", 1), "", "", "")
    assert len(waiting(units)) == 3
    units.update_spec(GangSpec("default/g", "q", 3))
    assert waiting(units) == {"default/g": ["0", "1", "2"]}
