"""A gang with optional parts and a minimum of the whole: no pod is offered twice, and what is offered is enough."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.engine.gangs.next_pods import minimum, one_more
from shoal.engine.gangs.teams import Roster
from shoal.engine.groups import GangSubgroup, GroupFacts, TopologyRequirement
from shoal.engine.pod_identity import PodIdentity

PART = st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 3), st.booleans())
"""(minimum, waiting, running, whether its pods stay together)."""


@given(parts=st.lists(PART, min_size=1, max_size=4), least=st.integers(0, 4), whole=st.integers(0, 12))
@settings(max_examples=examples(150), deadline=None)
def test_no_pod_is_offered_twice_in_one_attempt(
    parts: list[tuple[int, int, int, bool]], least: int, whole: int
) -> None:
    facts = GroupFacts(
        "g",
        whole,
        tuple(
            GangSubgroup(f"p{at}", "", low, TopologyRequirement(required="rack") if near else TopologyRequirement())
            for at, (low, _, _, near) in enumerate(parts)
        ),
        parts_minimum=min(least, len(parts)),
    )
    waiting = {f"p{at}-w{n}": PodIdentity(part=f"p{at}") for at, part in enumerate(parts) for n in range(part[1])}
    running = {f"p{at}-r{n}": PodIdentity(part=f"p{at}") for at, part in enumerate(parts) for n in range(part[2])}
    roster = Roster(facts, waiting, running)
    want = minimum(roster)
    for each in [want, *one_more(roster)]:
        if each is not None:
            offered = list(each.all_pods())
            assert len(offered) == len(set(offered))
    if want is not None and not roster.is_met:
        assert want.at_least + len(running) >= whole
