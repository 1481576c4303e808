"""The devices that serve claims on one node: what fits, what does not, and what is preferred."""

from __future__ import annotations

import pytest

from build.dra import DRIVER, claim, device, first_of, full, option, pool, stock, wants
from shoal.engine.dra.devices import SliceFacts
from shoal.engine.dra.requests import ClaimAsk, Pick, Picks
from shoal.engine.dra.search import find

GPUS = pool(device("g0", rack="a"), device("g1", rack="a"), device("g2", rack="b"), device("g3", rack="b"))
ALL = [full(each.name) for each in GPUS.devices]

# One GPU cut on demand: whole, two halves, or seven of which each half takes four and three.
PARTS = pool(
    device("whole", draws={"slices": 7, "memory": 8}),
    device("left", draws={"slices": 4, "memory": 4}),
    device("right", draws={"slices": 3, "memory": 4}),
    device("tiny", draws={"slices": 1, "memory": 1}),
    counters={"slices": 7, "memory": 8},
)
PARTS_ALL = [full(each.name) for each in PARTS.devices]

Case = tuple[SliceFacts, list[ClaimAsk], list[str], list[list[str]] | None]

CASES: dict[str, Case] = {
    "one device of four": (GPUS, [claim(wants(1))], [], [["g0"]]),
    "as many as there are": (GPUS, [claim(wants(4))], [], [["g0", "g1", "g2", "g3"]]),
    "more than there are": (GPUS, [claim(wants(5))], [], None),
    "a device in use is not given again": (GPUS, [claim(wants(2))], ["g0"], [["g1", "g2"]]),
    "two claims never get the same device": (
        GPUS,
        [claim(wants(2)), claim(wants(2))],
        [],
        [["g0", "g1"], ["g2", "g3"]],
    ),
    "two claims that together want too much": (GPUS, [claim(wants(2)), claim(wants(3))], [], None),
    "all devices": (GPUS, [claim(wants(None))], [], [["g0", "g1", "g2", "g3"]]),
    "all devices of which one is in use": (GPUS, [claim(wants(None))], ["g3"], None),
    "all devices of a set without any": (GPUS, [claim(wants(None, "none"))], [], None),
    "a look at devices in use": (GPUS, [claim(wants(None, admin=True))], ["g3"], [["g0", "g1", "g2", "g3"]]),
    "a look does not take": (
        GPUS,
        [claim(wants(4, admin=True)), claim(wants(4))],
        [],
        [["g0", "g1", "g2", "g3"], ["g0", "g1", "g2", "g3"]],
    ),
    "two of one rack": (GPUS, [claim(wants(2), match="rack")], ["g0"], [["g2", "g3"]]),
    "three of one rack": (GPUS, [claim(wants(3), match="rack")], [], None),
    "two of different racks": (GPUS, [claim(wants(2), distinct="rack")], [], [["g0", "g2"]]),
    "three of different racks": (GPUS, [claim(wants(3), distinct="rack")], [], None),
    "an attribute that no device has": (GPUS, [claim(wants(1), match="zone")], [], None),
    "a constraint over one request only": (
        GPUS,
        [claim(wants(2, name="x"), wants(1, name="y"), match="rack", over=["x"])],
        ["g0"],
        [["g2", "g3", "g1"]],
    ),
    "a constraint over two requests moves the first": (
        GPUS,
        [claim(wants(1, name="x"), wants(1, "last", name="y"), match="rack")],
        [],
        [["g2", "g3"]],
    ),
    "the greedy choice of the first would starve the second": (
        GPUS,
        [claim(wants(1, name="x"), wants(1, "first", name="y"))],
        [],
        [["g1", "g0"]],
    ),
    "the better alternative is taken": (
        GPUS,
        [claim(first_of(option(2, name="two"), option(1, name="one")))],
        [],
        [["g0", "g1"]],
    ),
    "the worse alternative is better than none": (
        GPUS,
        [claim(first_of(option(5, name="five"), option(1, name="one")))],
        [],
        [["g0"]],
    ),
    "a later request may force the worse alternative": (
        GPUS,
        [claim(first_of(option(3, name="three"), option(2, name="two"), name="x"), wants(2, name="y"))],
        [],
        [["g0", "g1", "g2", "g3"]],
    ),
    "the devices found first stay, though a later request then takes its worse alternative": (
        GPUS,
        [claim(wants(1, name="x"), first_of(option(1, "first", "best"), option(1, name="next"), name="y"))],
        [],
        [["g0", "g1"]],
    ),
    "parts beside each other": (PARTS, [claim(wants(2, "halves"))], [], [["left", "right"]]),
    "no part beside the whole": (PARTS, [claim(wants(1, "tinies"))], ["whole"], None),
    "no whole beside a part": (PARTS, [claim(wants(1, "wholes"))], ["tiny"], None),
    "parts that fit by number but not by counters": (
        PARTS,
        [claim(wants(1, "halves"), wants(1, "tinies", name="t"))],
        ["right"],
        None,
    ),
    "the smaller part where the larger has no room": (PARTS, [claim(wants(1, "halves"))], ["left"], [["right"]]),
    "more than thirty-two devices in one claim": (
        pool(*(device(f"d{n}") for n in range(40))),
        [claim(wants(33))],
        [],
        None,
    ),
}

SETS = {
    "gpus": [*ALL, *(full(f"d{n}") for n in range(40))],
    "first": [full("g0")],
    "last": [full("g3")],
    "wholes": [full("whole")],
    "halves": [full("left"), full("right")],
    "tinies": [full("tiny")],
}


def names(picks: tuple[Picks, ...] | None) -> list[list[str]] | None:
    return None if picks is None else [[pick.device.rpartition("/")[2] for pick in each] for each in picks]


@pytest.mark.parametrize(("there", "claims", "taken", "given"), CASES.values(), ids=CASES)
def test_devices_for_claims(
    there: SliceFacts, claims: list[ClaimAsk], taken: list[str], given: list[list[str]] | None
) -> None:
    holds = tuple(Pick("other", full(name)) for name in taken)
    assert names(find(claims, stock(there, sets=SETS, taken=holds)).picks) == given


def test_allocations_name_the_alternative() -> None:
    found = find([claim(first_of(option(9, name="many"), option(1, name="one")))], stock(GPUS, sets=SETS))
    assert found.picks == ((Pick("gpu/one", full("g0")),),)


def test_a_tainted_device_goes_only_to_those_who_tolerate_it() -> None:
    there = stock(pool(device("g0", tainted=True)), sets=SETS)
    assert find([claim(wants())], there).picks is None
    assert find([claim(wants(tolerant=True))], there).picks is not None


def test_a_shared_device_is_given_in_parts_until_its_capacity_is_gone() -> None:
    share = ((f"{DRIVER}/memory", 30 * 10**9),)
    there = pool(device("g0", memory=80, shared=True))
    taken = (Pick("other", full("g0"), share),)
    fits = find([claim(wants(1, memory=50))], stock(there, sets=SETS, taken=taken))
    assert fits.picks == ((Pick("gpu", full("g0"), ((f"{DRIVER}/memory", 50 * 10**9),)),),)
    assert find([claim(wants(1, memory=51))], stock(there, sets=SETS, taken=taken)).picks is None


def test_a_shared_device_serves_one_request_twice() -> None:
    there = stock(pool(device("g0", memory=80, shared=True)), sets=SETS)
    assert names(find([claim(wants(2, memory=40))], there).picks) == [["g0", "g0"]]
    assert find([claim(wants(3, memory=40))], there).picks is None


def test_of_a_shared_device_a_claim_that_names_no_amount_takes_all() -> None:
    there = stock(pool(device("g0", memory=80, shared=True)), sets=SETS)
    assert find([claim(wants(1)), claim(wants(1))], there).picks is None


def test_capacity_asked_of_a_device_that_is_not_shared_is_a_condition() -> None:
    there = stock(pool(device("g0", memory=40), device("g1", memory=80)), sets=SETS)
    assert names(find([claim(wants(1, memory=60))], there).picks) == [["g1"]]
    assert find([claim(wants(1, memory=90))], there).picks is None


def test_all_of_a_half_published_pool_is_not_known() -> None:
    half = pool(device("g0"), pieces=2)
    other = SliceFacts("whole", DRIVER, "other", (device("g9", at="n1"),), reach=GPUS.reach)
    sets = {"gpus": [f"{DRIVER}/other/g9"]}
    assert find([claim(wants(1))], stock(other, half, sets=sets)).picks is not None
    assert find([claim(wants(None))], stock(other, half, sets=sets)).picks is None


def test_many_equal_devices_are_no_puzzle() -> None:
    """Sixteen claims for one device each of fifteen: the seventeen thousand million ways to fail are one."""
    there = pool(*(device(f"d{n}", model="a") for n in range(15)))
    found = find([claim(wants(1), match="model") for _ in range(16)], stock(there, sets=SETS))
    assert found.picks is None
    assert not found.gave_up


def test_a_puzzle_without_end_is_given_up() -> None:
    """Every device of its own kind and of its own pair of racks: nothing to leave out."""
    devices = [device(f"d{n}", draws={f"c{m}": n * 7 % (m + 2) + 1 for m in range(6)}, kind=n) for n in range(40)]
    there = pool(*devices, counters={f"c{m}": 50 for m in range(6)})
    found = find([claim(wants(32))], stock(there, sets=SETS))
    assert found.picks is None
    assert found.gave_up
