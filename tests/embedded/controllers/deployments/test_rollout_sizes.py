"""The arithmetic of rollouts: tables of known cases, and what holds whatever happens to the pods."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.embedded.controllers.deployments.sizes import Size, Slack, new_size, old_sizes, shared_out, slack

SLACKS = {
    "a quarter of ten": (10, "25%", "25%", Slack(3, 2)),
    "a quarter of three": (3, "25%", "25%", Slack(1, 0)),
    "a quarter of one": (1, "25%", "25%", Slack(1, 0)),
    "whole numbers": (10, 4, 1, Slack(4, 1)),
    "shares that come to nothing": (3, "0%", "1%", Slack(0, 1)),
    "more than there are": (2, 0, 5, Slack(0, 2)),
    "nobody at all": (0, "25%", "25%", Slack(0, 0)),
}


@pytest.mark.parametrize("name", SLACKS)
def test_how_many_more_and_fewer_there_may_be(name: str) -> None:
    replicas, surge, unavailable, expected = SLACKS[name]
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    spec = {"replicas": replicas, "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}
    assert slack(spec) == expected


def test_a_deployment_that_recreates_has_no_slack() -> None:
    assert slack({"replicas": 3, "strategy": {"type": "Recreate"}}) == Slack()
    assert new_size(3, "Recreate", 0, 0, 3) == 3


def test_pods_that_do_not_serve_go_first() -> None:
    broken, serving = Size("broken", 5, 0, "2026-01-02"), Size("serving", 8, 8, "2026-01-01")
    assert old_sizes(10, 2, Size("new", 0), [broken, serving]) == {"broken": 0}


def test_a_scaled_rollout_keeps_its_proportions() -> None:
    sets = [Size("old", 8, 8, "2026-01-01", 13), Size("new", 5, 0, "2026-01-02", 13)]
    assert shared_out(15, 3, sets, 13) == {"old": 11, "new": 7}
    assert shared_out(0, 3, sets, 13) == {"old": 0, "new": 0}


@settings(max_examples=examples(80), deadline=None)
@given(st.integers(0, 30), st.integers(0, 10), st.lists(st.integers(1, 20), min_size=1, max_size=4))
def test_what_is_shared_out_is_all_there_is(wanted: int, surge: int, sizes: list[int]) -> None:
    before = sum(sizes)
    sets = [Size(f"set-{place}", size, size, f"2026-01-0{place + 1}", before) for place, size in enumerate(sizes)]
    allowed = wanted + surge if wanted else 0
    for looks in range(1, len(sets) + 1):
        shared = shared_out(wanted, surge, sets, before)
        assert all(size >= 0 for size in shared.values())
        if sum(shared.values()) == allowed:
            break
        # What rounding leaves is taken from one set at a time, and that one may not have so many.
        assert before > allowed
        assert looks < len(sets)
        sets = [msgspec.structs.replace(one, replicas=shared[one.name], greatest=allowed) for one in sets]


class World:
    """Replica sets that remove pods that do not serve before pods that do, as the real ones."""

    def __init__(self, wanted: int, slack_: Slack) -> None:
        self.wanted = wanted
        self.slack = slack_
        self.sizes = {0: wanted}
        self.serving = {0: wanted}

    @property
    def newest(self) -> int:
        return max(self.sizes)

    def one(self, number: int) -> Size:
        return Size(str(number), self.sizes[number], self.serving[number], f"{number:04d}")

    def step(self) -> bool:
        """What the controller does at one look."""
        new, everything = self.newest, sum(self.sizes.values())
        size = new_size(self.wanted, "RollingUpdate", self.slack.surge, self.sizes[new], everything)
        if size != self.sizes[new]:
            self.resize(new, size)
            return True
        old = [self.one(number) for number in self.sizes if number != new and self.sizes[number]]
        changes = old_sizes(self.wanted, self.slack.unavailable, self.one(new), old)
        for name, size in changes.items():
            self.resize(int(name), size)
        return bool(changes)

    def resize(self, number: int, size: int) -> None:
        self.sizes[number] = size
        self.serving[number] = min(self.serving[number], size)

    def total(self) -> tuple[int, int]:
        return sum(self.sizes.values()), sum(self.serving.values())


EVENTS = st.lists(st.sampled_from(["look", "roll", "ready", "ready all", "break"]), max_size=40)


@settings(max_examples=examples(80), deadline=None)
@given(st.integers(1, 12), st.integers(0, 5), st.integers(0, 5), EVENTS)
def test_no_look_takes_more_than_may_be_missing_or_makes_more_than_may_be(
    wanted: int, surge: int, unavailable: int, events: list[str]
) -> None:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    allowed = slack({"replicas": wanted, "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}})
    world = World(wanted, allowed)
    for event in events:
        pods, serving = world.total()
        if event == "look":
            world.step()
            after, still = world.total()
            assert after <= max(pods, wanted + allowed.surge)
            assert still >= min(serving, wanted - allowed.unavailable)
        elif event == "roll":
            number = world.newest + 1
            world.sizes[number] = world.serving[number] = 0
        elif event == "break":
            number = max(world.serving, key=lambda one: world.serving[one])
            world.serving[number] = max(world.serving[number] - 1, 0)
        else:
            for number, size in world.sizes.items():
                world.serving[number] = size if event == "ready all" else min(world.serving[number] + 1, size)
    for _ in range(200):
        for number, size in world.sizes.items():
            world.serving[number] = size
        if not world.step():
            break
    assert {number: size for number, size in world.sizes.items() if size} == {world.newest: wanted}
