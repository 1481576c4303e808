"""The kubelet's logs: which lines, which run, how they are followed, and how it refuses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.endpoint_clients import Doors, doors_of
from build.fake_nodes import START_S, FakeNodes
from shoal.embedded.kubelets.endpoint.log_text import LogText, stamp
from shoal.embedded.kubelets.node_view import LogLine, LogOptions

LOG = "/containerLogs/default/web/main"
PATIENCE_S = 60


@pytest.fixture
def nodes() -> FakeNodes:
    found = FakeNodes("n1", "n2")
    found["n2"].run_pod("web")
    found["n2"].write("web", "one", "two", "three")
    return found


@pytest.fixture
async def doors(nodes: FakeNodes) -> AsyncIterator[Doors]:
    async with doors_of(nodes) as found:
        yield found


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({}, "one\ntwo\nthree\n"),
        ({"tailLines": "2"}, "two\nthree\n"),
        ({"tailLines": "0"}, ""),
        ({"limitBytes": "5"}, "one\nt"),
        ({"sinceTime": "2026-01-01T00:00:02Z"}, "three\n"),
        ({"sinceSeconds": "99"}, "two\nthree\n"),
        ({"tailLines": "1", "timestamps": "true"}, "2026-01-01T00:00:02.000000000Z three\n"),
    ],
)
async def test_a_log_holds_the_lines_that_were_asked_for(doors: Doors, query: dict[str, Any], text: str) -> None:
    assert await doors.get(LOG, **query) == (200, text)


async def test_the_node_may_be_named_and_must_then_have_the_pod(doors: Doors) -> None:
    assert (await doors.get(LOG, {"Shoal-Node": "n2"}))[0] == 200
    assert await doors.get(LOG, {"Shoal-Node": "n1"}) == (404, 'pod "web" does not exist\n')
    assert await doors.get(LOG, {"Shoal-Node": "n3"}) == (404, 'node "n3" is not simulated here\n')


async def test_what_is_not_there_is_refused_as_kubelets_do(doors: Doors, nodes: FakeNodes) -> None:
    assert await doors.get("/containerLogs/default/gone/main") == (404, 'pod "gone" does not exist\n')
    words = 'container "side" not found in pod "web"\n'
    assert await doors.get("/containerLogs/default/web/side") == (404, words)
    words = 'previous terminated container "main" in pod "web" not found'
    assert await doors.get(LOG, previous="true") == (400, words)
    nodes["n2"].pods["default", "web"]["status"]["containerStatuses"][0]["state"] = {
        "waiting": {"reason": "ImagePullBackOff"}
    }
    words = 'container "main" in pod "web" is waiting to start: trying and failing to pull image'
    assert await doors.get(LOG) == (400, words)


async def test_the_run_before_is_shown_when_asked_for_and_while_the_next_one_waits(
    doors: Doors, nodes: FakeNodes
) -> None:
    node = nodes["n2"]
    node.restart("web")
    node.write("web", "again")
    assert await doors.get(LOG, previous="true") == (200, "one\ntwo\nthree\n")
    assert await doors.get(LOG) == (200, "again\n")
    node.pods["default", "web"]["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": "CrashLoopBackOff"}}
    assert await doors.get(LOG) == (200, "one\ntwo\nthree\n")


async def followed(doors: Doors) -> aiohttp.ClientResponse:
    response = await doors.session.get(doors.ports.kubelet_url + LOG, ssl=doors.tls, params={"follow": "true"})
    async with asyncio.timeout(PATIENCE_S):
        assert [await response.content.readline() for _ in range(3)] == [b"one\n", b"two\n", b"three\n"]
    return response


async def test_a_followed_log_goes_on_until_its_container_ends(doors: Doors, nodes: FakeNodes) -> None:
    response = await followed(doors)
    async with asyncio.timeout(PATIENCE_S):
        nodes["n2"].write("web", "four")
        assert await response.content.readline() == b"four\n"
        nodes["n2"].write("web", "five")
        nodes["n2"].running.clear()
        assert await response.content.read() == b"five\n"


async def test_a_followed_log_ends_with_the_run_that_it_began_with(doors: Doors, nodes: FakeNodes) -> None:
    response = await followed(doors)
    nodes["n2"].write("web", "last words")
    nodes["n2"].restart("web")
    nodes["n2"].write("web", *(f"new {number}" for number in range(9)))
    async with asyncio.timeout(PATIENCE_S):
        assert await response.content.read() == b"last words\n"


async def test_a_followed_log_breaks_off_when_its_node_is_cut_off(doors: Doors, nodes: FakeNodes) -> None:
    response = await followed(doors)
    nodes["n2"].reachable = False
    with pytest.raises(aiohttp.ClientError):
        async with asyncio.timeout(PATIENCE_S):
            await response.content.read()


async def test_who_goes_away_is_not_waited_for(doors: Doors, nodes: FakeNodes) -> None:
    response = await followed(doors)
    response.close()
    async with asyncio.timeout(PATIENCE_S):
        await nodes["n2"].left_alone()
    looks = nodes["n2"].looks
    nodes["n2"].write("web", "for nobody")
    await nodes["n2"].left_alone()
    assert nodes["n2"].looks == looks


async def test_a_node_that_is_cut_off_answers_nobody(doors: Doors, nodes: FakeNodes) -> None:
    nodes["n2"].reachable = False
    with pytest.raises(aiohttp.ClientError):
        await doors.get(LOG)


def test_the_tail_is_cut_before_old_lines_are_left_out() -> None:
    lines = [LogLine(START_S + number, f"{number}") for number in range(4)]
    text = LogText(LogOptions("main", tail_lines=2, since_s=START_S + 3))
    assert text.more(lines) == b"3\n"
    assert text.more([*lines, LogLine(START_S + 9, "9")]) == b"9\n"


@given(
    moments=st.lists(st.integers(0, 4), max_size=8),
    looks=st.lists(st.integers(0, 8), max_size=4),
    limit=st.none() | st.integers(1, 12),
    since=st.none() | st.integers(0, 5),
)
@settings(max_examples=examples(80), deadline=None)
def test_a_log_that_is_followed_in_pieces_is_the_log(
    moments: list[int], looks: list[int], limit: int | None, since: int | None
) -> None:
    lines = [LogLine(float(at), f"{number}") for number, at in enumerate(sorted(moments))]
    wanted = LogOptions("main", limit_bytes=limit, since_s=since)
    text = LogText(wanted)
    pieces = [text.more(lines[:look]) for look in [*sorted(looks), len(lines)]]
    expected = "".join(f"{line.text}\n" for line in lines if since is None or line.at_s >= since).encode()[:limit]
    assert b"".join(pieces) == expected == LogText(wanted).more(lines)


def test_a_log_is_followed_though_its_oldest_lines_are_dropped() -> None:
    lines = [LogLine(START_S + number // 2, f"{number}") for number in range(8)]
    text = LogText(LogOptions("main"))
    assert text.more(lines[:3]) == b"0\n1\n2\n"
    assert text.more(lines[:4]) == b"3\n"
    assert text.more(lines[2:6]) == b"4\n5\n"
    assert text.more(lines[2:6]) == b""
    assert text.more(lines[4:]) == b"6\n7\n"


def test_a_limit_ends_a_log_that_grows() -> None:
    text = LogText(LogOptions("main", limit_bytes=3))
    line = LogLine(START_S, "a")
    assert (text.more([line]), text.is_full) == (b"a\n", False)
    assert (text.more([line, line]), text.is_full) == (b"a", True)
    assert text.more([line, line, line]) == b""


def test_times_always_have_nine_digits() -> None:
    assert stamp(START_S + 0.25) == "2026-01-01T00:00:00.250000000Z"
