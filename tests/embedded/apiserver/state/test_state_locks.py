"""One writer per object, in the order of arrival, and never two who wait for each other."""

from __future__ import annotations

import asyncio
import random

import pytest

from build.cluster_states import pod
from shoal.embedded.apiserver.resource import Ref
from shoal.embedded.apiserver.state.locks import Locks

A, B = pod("a"), pod("b")


async def test_writers_of_one_object_go_one_after_another_in_the_order_they_came() -> None:
    locks, order = Locks(), list[str]()

    async def writer(name: str) -> None:
        async with locks.hold(A):
            order.append(f"{name} in")
            await asyncio.sleep(0)
            order.append(f"{name} out")

    await asyncio.gather(*(writer(name) for name in "abc"))
    assert order == ["a in", "a out", "b in", "b out", "c in", "c out"]


async def test_writers_of_different_objects_do_not_wait() -> None:
    locks = Locks()
    async with locks.hold(A), asyncio.timeout(60), locks.hold(B):
        assert locks.is_held(A)
        assert locks.is_held(B)


async def test_several_objects_named_in_any_order_never_lock_each_other_out() -> None:
    locks = Locks()
    refs = [pod(name) for name in "abcd"]
    chance = random.Random(5)
    held: set[Ref] = set()

    async def writer(mine: list[Ref]) -> None:
        async with locks.hold(*mine):
            assert held.isdisjoint(mine)
            held.update(mine)
            await asyncio.sleep(0)
            held.difference_update(mine)

    async with asyncio.timeout(60):
        await asyncio.gather(*(writer(chance.sample(refs, 3)) for _ in range(50)))
    assert not any(locks.is_held(ref) for ref in refs)


async def test_an_object_named_twice_is_held_once() -> None:
    locks = Locks()
    async with asyncio.timeout(60), locks.hold(A, A):
        assert locks.is_held(A)
    assert not locks.is_held(A)


async def test_a_lock_is_given_back_when_the_writer_fails() -> None:
    locks = Locks()
    with pytest.raises(ValueError, match="no"):
        async with locks.hold(A, B):
            raise ValueError("no")
    assert not locks.is_held(A)
    assert not locks.is_held(B)


@pytest.mark.parametrize("is_turn_given", [False, True])
async def test_a_writer_that_gives_up_waiting_leaves_its_place_to_the_next(is_turn_given: bool) -> None:
    locks = Locks()
    await locks.take(A)
    leaving = asyncio.create_task(enter(locks))
    staying = asyncio.create_task(enter(locks))
    await asyncio.sleep(0)
    if is_turn_given:
        locks.give(A)
        leaving.cancel()
    else:
        leaving.cancel()
        await asyncio.sleep(0)
        locks.give(A)
    async with asyncio.timeout(60):
        await staying
    assert leaving.cancelled()
    assert not locks.is_held(A)
    assert not locks.is_held(B)


async def enter(locks: Locks) -> None:
    async with locks.hold(A, B):
        pass
