"""The table of boxes is checked when it is read."""

from __future__ import annotations

from importlib.resources import files

import msgspec
import pytest

from shoal.embedded.machines.on_premises import parse_boxes
from shoal.units.errors import BugError

GOOD = msgspec.json.decode(files("shoal.embedded.machines").joinpath("boxes.json").read_bytes())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"gpu": "A1000"}, "unknown GPU model A1000"),
        ({"gpu": ""}, "go together"),
        ({"gpus": 7}, "islands are not of one size"),
        ({"numa": 9}, "a NUMA node has no GPU"),
        ({"cpus": 0}, "amounts are positive"),
        ({"wheels": 4}, "wheels"),
    ],
)
def test_a_wrong_fact_stops_with_its_entry(change: dict[str, object], told: str) -> None:
    boxes = [{**GOOD["boxes"][0], **change}, *GOOD["boxes"][1:]]
    with pytest.raises(BugError, match=told):
        parse_boxes(msgspec.json.encode({**GOOD, "boxes": boxes}))


def test_no_box_is_there_twice() -> None:
    with pytest.raises(BugError, match="2 times"):
        parse_boxes(msgspec.json.encode({**GOOD, "boxes": [*GOOD["boxes"], GOOD["boxes"][0]]}))
