"""Keeps account of launches where the provider itself does not: which machines of a group belong to which launch.

A launch has numbered places. Machines appear later, one by one, and none of them says which launch it is for: each
takes a free place, those of the oldest launch first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import msgspec
from msgspec.structs import replace

from shoal.cloud.port import CloudInstance, InstanceState

Place = tuple[str, int]
"""The token of a launch, and a number."""


class Launch(msgspec.Struct, frozen=True):
    """A request for machines of a group."""

    count: int
    created_s: float
    offering: tuple[str, str, str] = ("", "", "")
    """Instance type, zone and capacity type; the group may change later."""
    tags: Mapping[str, str] = {}
    deleted: tuple[int, ...] = ()
    """The places whose machines were deleted again."""

    @property
    def places(self) -> tuple[int, ...]:
        return tuple(number for number in range(self.count) if number not in self.deleted)


Launches = Mapping[str, Launch]
"""By token."""


def machines_of(launches: Launches) -> int:
    """How many machines they have."""
    return sum(len(each.places) for each in launches.values())


def without_place(launches: Launches, place: Place) -> dict[str, Launch]:
    """With one machine fewer. A launch of which no machine is left is forgotten."""
    token, number = place
    left = replace(launches[token], deleted=(*launches[token].deleted, number))
    found = {**launches, token: left}
    if not left.places:
        del found[token]
    return found


def free_places(launches: Launches, held: Collection[Place]) -> list[Place]:
    """The places without a machine; `held`: those that machines have."""
    oldest_first = sorted(launches.items(), key=lambda each: (each[1].created_s, each[0]))
    return [
        (token, number) for token, launch in oldest_first for number in launch.places if (token, number) not in held
    ]


def place_text(place: Place) -> str:
    return f"{place[0]}/{place[1]}"


def place_of(text: str) -> Place | None:
    """None if it is not the text of a place."""
    token, _, number = text.rpartition("/")
    return (token, int(number)) if token and number.isdecimal() and len(number) < 10 else None


def instances_of(
    launches: Launches, found: Callable[[Place], tuple[str, InstanceState]], name: Callable[[Place], str]
) -> list[CloudInstance]:
    """`found`: the provider id of a place and its state; `name`: the id of the instance."""
    listed = []
    for token, launch in launches.items():
        instance_type, zone, capacity_type = launch.offering
        for number in launch.places:
            provider_id, state = found((token, number))
            listed.append(
                CloudInstance(
                    id=name((token, number)),
                    provider_id=provider_id,
                    instance_type=instance_type,
                    zone=zone,
                    capacity_type=capacity_type,
                    state=state,
                    created_s=launch.created_s,
                    tags=launch.tags,
                )
            )
    return listed
