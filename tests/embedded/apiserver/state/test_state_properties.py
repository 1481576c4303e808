"""Whatever is written, fails, is read and forgotten in whatever order: the promises of list and watch hold.

The oracle keeps a copy of everything at every revision, which the state must never do.
"""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from build.cluster_states import PODS, drop, opened, pod, put
from build.depth import examples
from shoal.embedded.apiserver.resource import Ref
from shoal.embedded.apiserver.state.event import Event
from shoal.embedded.apiserver.state.listing import Page
from shoal.embedded.apiserver.state.state import State
from shoal.embedded.apiserver.state.watch import Watch
from shoal.embedded.apiserver.status import ApiError
from shoal.embedded.apiserver.storage.faulty import FaultyStorage
from shoal.embedded.apiserver.storage.memory import MemoryStorage

few = settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.too_slow])

Moment = dict[Ref, int]
refs = st.builds(pod, st.sampled_from(["a", "b", "b-c", "c.d"]), st.sampled_from(["x", "x-y", "z"]))
writes = st.tuples(st.sampled_from(["put", "put", "drop"]), refs)
steps = st.one_of(
    st.tuples(st.just("write"), st.lists(writes, min_size=1, max_size=6)),
    st.tuples(st.just("fail"), st.lists(writes, min_size=1, max_size=3)),
    st.tuples(st.just("follow"), st.sampled_from([None, "x", "z"])),
    st.tuples(st.just("read"), st.integers(0, 5)),
)


class Follower:
    """A client that lists, then watches, and keeps what it was told."""

    def __init__(self, state: State, namespace: str | None) -> None:
        page = state.list(PODS, namespace)
        self.namespace = namespace
        self.objects = {record.ref: record.revision for record in page.records}
        self.watch = state.watch(PODS, namespace, page.revision)
        self.newest = page.revision
        self.task = asyncio.create_task(self.watch.next_batch())
        self.is_lost = False

    def read(self) -> None:
        """Take what has come and wait on."""
        if not self.task.done() or self.is_lost:
            return
        try:
            events = self.task.result()
        except ApiError as gone:
            if gone.code != 410:
                raise
            self.is_lost = True
            return
        for event in events:
            self.take(event)
        self.task = asyncio.create_task(self.watch.next_batch())

    def take(self, event: Event) -> None:
        ref = event.record.ref
        assert event.record.revision > self.newest
        assert (event.kind == "ADDED") == (ref not in self.objects)
        assert event.before is None or event.before.revision == self.objects[ref]
        self.newest = event.record.revision
        if event.kind == "DELETED":
            del self.objects[ref]
        else:
            self.objects[ref] = event.record.revision


class Oracle:
    """Every moment there was."""

    def __init__(self) -> None:
        self.moments: dict[int, Moment] = {1: {}}

    def hear(self, events: list[Event]) -> None:
        moment = dict(self.moments[max(self.moments)])
        for event in events:
            moment.pop(event.record.ref, None)
            if event.kind != "DELETED":
                moment[event.record.ref] = event.record.revision
            self.moments[event.record.revision] = dict(moment)

    def at(self, revision: int, namespace: str | None) -> list[tuple[Ref, int]]:
        """In the order of keys."""
        moment = self.moments[revision]
        found = [(ref, one) for ref, one in moment.items() if namespace in (None, ref.namespace)]
        return sorted(found, key=lambda one: f"{one[0].namespace}/{one[0].name}")


async def write(state: State, wanted: list[tuple[str, Ref]]) -> None:
    """All at once, as clients do; those that delete what is not there do nothing."""

    async def one(verb: str, ref: Ref) -> None:
        if verb == "put":
            await put(state, ref)
        elif state.get(ref) is not None and not state._locks.is_held(ref):
            await drop(state, ref)

    await asyncio.gather(*(one(verb, ref) for verb, ref in wanted), return_exceptions=True)


@few
@given(st.lists(steps, max_size=40), st.sampled_from([4, 10, 1_000]))
def test_list_then_watch_is_what_is_there_or_says_that_it_is_lost(script: list[Any], history_count: int) -> None:
    async def play() -> None:
        storage, oracle, followers = FaultyStorage(MemoryStorage()), Oracle(), list[Follower]()
        state = await opened(storage, history_count=history_count)
        state.on_commit(oracle.hear)
        for verb, what in script:
            if verb == "follow":
                followers.append(Follower(state, what))
            elif verb == "read":
                await asyncio.sleep(0)
                for follower in followers[: what + 1]:
                    follower.read()
            else:
                storage.fault = "no" if verb == "fail" else ""
                await write(state, what)
        for _ in range(60):
            await asyncio.sleep(0)
            for follower in followers:
                follower.read()
        for follower in followers:
            assert follower.is_lost or follower.objects == dict(oracle.at(state.revision, follower.namespace))
            assert not (follower.is_lost and history_count == 1_000)
        await state.close()
        again = await opened(storage)
        assert [(one.ref, one.revision) for one in again.list(PODS).records] == oracle.at(state.revision, None)

    asyncio.run(play())


@few
@given(
    st.lists(st.tuples(writes, st.booleans()), min_size=1, max_size=30),
    st.integers(1, 5),
    st.sampled_from([None, "x", "x-y"]),
    st.sampled_from([6, 1_000]),
)
def test_pages_of_a_list_are_one_moment_whatever_happens_between_them(
    script: list[tuple[tuple[str, Ref], bool]], limit: int, namespace: str | None, history_count: int
) -> None:
    async def play() -> None:
        oracle = Oracle()
        state = await opened(history_count=history_count)
        state.on_commit(oracle.hear)
        lists: list[list[Page]] = []
        for wanted, is_start in script:
            await write(state, [wanted])
            for pages in lists:
                turn(state, namespace, limit, pages)
            if is_start:
                lists.append([state.list(PODS, namespace, limit=limit)])
        for pages in lists:
            while turn(state, namespace, limit, pages):
                pass
            found = [(record.ref, record.revision) for page in pages for record in page.records]
            expected = oracle.at(pages[0].revision, namespace)
            assert found == (expected if pages[-1].last is None else expected[: len(found)])
            assert history_count == 6 or pages[-1].last is None
            for i, page in enumerate(pages):
                assert page.remaining == len(expected) - len(
                    [one for before in pages[: i + 1] for one in before.records]
                )

    asyncio.run(play())


def turn(state: State, namespace: str | None, limit: int, pages: list[Page]) -> bool:
    """The next page, where there is one and it is still known."""
    last = pages[-1]
    if last.last is None:
        return False
    try:
        pages.append(state.list(PODS, namespace, at=pages[0].revision, after=last.last, limit=limit))
    except ApiError as gone:
        if gone.code != 410:
            raise
        return False
    return True


@few
@given(st.lists(writes, max_size=60), st.lists(st.integers(0, 60), min_size=1, max_size=12))
def test_every_watch_from_any_moment_hears_the_same_story_from_there_on(
    script: list[tuple[str, Ref]], starts: list[int]
) -> None:
    async def play() -> None:
        state = await opened()
        story: list[Event] = []
        state.on_commit(story.extend)
        await write(state, script[: len(script) // 2])
        early = [state.watch(PODS, None, min(1 + start, state.revision)) for start in starts]
        begins = [watch.position for watch in early]
        await write(state, script[len(script) // 2 :])
        for watch, begin in zip(early, begins, strict=True):
            assert await told(watch, state) == [event for event in story if event.record.revision > begin]

    asyncio.run(play())


async def told(watch: Watch, state: State) -> list[Event]:
    found: list[Event] = []
    while watch.position < state.revision:
        found += await watch.next_batch()
    return found
