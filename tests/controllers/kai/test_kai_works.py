"""What KAI's queues count of a pod, whatever its user wrote."""

from __future__ import annotations

import pytest

from shoal.controllers.kai.work import Origin, amounts_of
from shoal.controllers.kai.works import Works
from shoal.engine.asks import Ask
from shoal.engine.devices.demand import MigTiles
from shoal.engine.events import PodArrived
from shoal.engine.who import Who

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


def works_of(origin: Origin, *parts: str) -> Works:
    """A pod of each part, `default/0`, `default/1`, ..., all waiting."""
    works = Works(lambda pod: float(pod.partition("/")[2]))
    for number, part in enumerate(parts):
        works.arrive(PodArrived(f"default/{number}", Ask(), 0, "", Who(part=part)), origin)
    return works


def waiting(works: Works) -> dict[str, list[str]]:
    return {key: [pod.partition("/")[2] for pod in work.waiting] for key, work in works.all.items() if work.waiting}


def test_who_is_beyond_takes_the_place_of_one_that_went_before_it_was_let_in() -> None:
    works = works_of(Origin("default/g", "q", 2), "", "", "")
    assert waiting(works) == {"default/g": ["0", "1"], "default/g+2": ["2"]}
    works.leave("default/0")
    assert waiting(works) == {"default/g": ["1", "2"]}
    assert works.all["default/g"].is_whole


def test_a_gang_of_parts_is_whole_when_each_has_its_least() -> None:
    origin = Origin("default/g", "q", 3, (("head", 1), ("work", 2)))
    works = works_of(origin, "work", "work", "work")
    assert not works.all["default/g"].is_whole
    works.arrive(PodArrived("default/9", Ask(), 0, "", Who(part="head")), origin)
    assert waiting(works) == {"default/g": ["0", "1", "9"], "default/g+2": ["2"]}
    assert works.all["default/g"].is_whole


def test_another_minimum_sorts_anew_who_waits() -> None:
    works = works_of(Origin("default/g", "q", 1), "", "", "")
    assert len(waiting(works)) == 3
    works.again(Origin("default/g", "q", 3))
    assert waiting(works) == {"default/g": ["0", "1", "2"]}
