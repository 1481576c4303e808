"""On anything small enough to try everything, the search finds what trying everything finds."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.dra import DRIVER, claim, device, full, is_sound, plainly, pool, stock
from shoal.engine.dra.devices import DeviceFacts, SliceFacts
from shoal.engine.dra.requests import ClaimAsk, Option, Pick, Request
from shoal.engine.dra.search import find
from shoal.engine.dra.trial import Stock
from shoal.units.quantity import Quantity

NAMES = [f"g{number}" for number in range(5)]
SETS = ["one", "other", "third"]


@st.composite
def devices(draw: st.DrawFn, name: str) -> DeviceFacts:
    """Few values, so that devices are often alike and constraints often bite."""
    attributes = {key: draw(st.sampled_from(["a", "b"])) for key in ("rack", "model") if draw(st.integers(0, 5))}
    draws = draw(st.sampled_from([None, None, {"slices": 1}, {"slices": 2, "memory": 1}]))
    memory = draw(st.sampled_from([0, 0, 4, 8]))
    shared = bool(memory) and draw(st.booleans())
    return device(name, draws=draws, memory=memory, shared=shared, tainted=draw(st.integers(0, 6)) == 0, **attributes)


@st.composite
def options(draw: st.DrawFn, name: str) -> Option:
    capacity = (("memory", Quantity.of(draw(st.sampled_from([2, 4]))).nano),) if draw(st.integers(0, 3)) == 0 else ()
    return Option(
        matching=draw(st.sampled_from(SETS)),
        count=draw(st.sampled_from([1, 1, 2, 3, None])),
        name=name,
        admin=draw(st.integers(0, 6)) == 0,
        tolerations=(),
        capacity=capacity,
    )


@st.composite
def requests(draw: st.DrawFn, name: str) -> Request:
    if draw(st.integers(0, 2)):
        return Request(name, (draw(options("")),))
    return Request(name, (draw(options("best")), draw(options("next"))))


@st.composite
def claims(draw: st.DrawFn) -> ClaimAsk:
    asked = [draw(requests(name)) for name in ("x", "y")[: draw(st.integers(1, 2))]]
    over = draw(st.sampled_from([(), ("x",), ("x/best",)]))
    return claim(
        *asked,
        match=draw(st.sampled_from(["", "rack", "model"])),
        distinct=draw(st.sampled_from(["", "", "rack"])),
        over=over,
    )


@st.composite
def stocks(draw: st.DrawFn) -> Stock:
    there: SliceFacts = pool(
        *(draw(devices(name)) for name in NAMES), counters={"slices": draw(st.integers(1, 5)), "memory": 2}
    )
    sets = {name: [full(each) for each in draw(st.sets(st.sampled_from(NAMES)))] for name in SETS}
    taken = []
    for facts in there.devices:
        if draw(st.integers(0, 4)) == 0:
            share = ((f"{DRIVER}/memory", Quantity.of(2).nano),) if facts.shared else ()
            taken.append(Pick("other", full(facts.name), share))
    return stock(there, sets=sets, taken=tuple(taken))


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(claims(), min_size=1, max_size=2), stocks())
def test_the_search_finds_devices_exactly_where_trying_everything_does(asked: list[ClaimAsk], there: Stock) -> None:
    found, plain = find(asked, there), plainly(asked, there)
    assert not found.gave_up
    assert (found.picks is None) == (plain is None)
    if found.picks is not None and plain is not None:
        assert is_sound(asked, found.picks, there)
        # Later requests make do with what the first devices found leave them; the first gets its best possible way.
        assert found.picks[0][0].request == plain[0][0].request
