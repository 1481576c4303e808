"""Of several processes one works: whoever is killed, cut off, slow, or has a wrong clock."""

from __future__ import annotations

import asyncio
import random

import pytest

from build.candidates import Process, Stage, now_s
from build.scripted_api import ScriptedApi
from build.small_clusters import START_S
from build.stormy_api import STORM, StormyApi, Weather
from build.virtual_time import in_virtual_time, virtual
from shoal.client.clock import LoopClock
from shoal.client.election import LeaderElection
from shoal.client.item import Item, Obj
from shoal.client.kind import LEASES, Kind
from shoal.client.lease_lock import LeaseLock, Lock, Timing
from shoal.client.leased import LeasedApi
from shoal.client.port import Api
from shoal.client.recorder import Recorder
from shoal.client.refusals import NO_ANSWER, BusyError, ForbiddenError, NotFoundError

TIMING = Timing()
YEARS_S = 10 * 365 * 86_400.0


async def lease(server: Api) -> Obj:
    found: Obj = (await server.get(LEASES, "kube-system", "shoal")).obj()
    return found


async def ended(stage: Stage, *processes: Process) -> None:
    for process in processes:
        await process.end()
    assert stage.most <= 1, "two led at once"


@virtual
async def test_the_first_leads_the_second_waits_and_takes_over_at_once_when_the_first_ends() -> None:
    server, stage = ScriptedApi(), Stage()
    first = Process(server, stage, "first")
    await asyncio.sleep(1)
    second = Process(server, stage, "second")
    await asyncio.sleep(600)
    assert stage.working == ["first"]
    assert (first.election.is_leading, second.election.is_leading) == (True, False)
    assert second.election.leader == "first"
    await first.end()
    await asyncio.sleep(0.1)
    assert stage.working == ["second"]
    spec = (await lease(server))["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("second", 7, 1)
    await ended(stage, second)


@virtual
async def test_a_candidate_that_may_not_watch_the_lease_takes_over_at_its_next_retry() -> None:
    server, stage = ScriptedApi(), Stage()
    first = Process(server, stage, "first")
    await asyncio.sleep(1)
    server.ends_with, server.watches_end_at_once = ForbiddenError("not allowed"), True
    second = Process(server, stage, "second")
    await asyncio.sleep(60)
    await first.end()
    await asyncio.sleep(TIMING.retry_s * 2.2 + 0.1)
    assert stage.working == ["second"]
    await ended(stage, second)


@virtual
async def test_a_watch_that_is_not_allowed_is_tried_less_and_less_often() -> None:
    server, stage = ScriptedApi(), Stage()
    first = Process(server, stage, "first")
    await asyncio.sleep(1)
    server.ends_with, server.watches_end_at_once = ForbiddenError("not allowed"), True
    second = Process(server, stage, "second")
    await asyncio.sleep(600)
    assert len(server.watched_from) < 20
    server.ends_with, server.watches_end_at_once = None, False
    await asyncio.sleep(120)
    await first.end()
    await asyncio.sleep(0.1)
    assert stage.working == ["second"], "it is allowed by now"
    await ended(stage, second)


@virtual
async def test_a_process_that_slept_past_its_lease_writes_nothing_when_it_wakes() -> None:
    server, stage = ScriptedApi(), Stage()
    process = Process(server, stage, "first")
    await stage.until_somebody_works()
    api = LeasedApi(server, lambda: process.election.is_leading)
    await api.create(LEASES, {"metadata": {"namespace": "default", "name": "before"}})
    cut_off = process.line
    cut_off.is_cut = True
    await asyncio.sleep(TIMING.renew_s + 0.1)
    with pytest.raises(BusyError, match="another may lead"):
        await api.create(LEASES, {"metadata": {"namespace": "default", "name": "after"}})
    assert (await api.get(LEASES, "default", "before")).name == "before"
    process.kill()


@virtual
async def test_the_lease_of_a_killed_leader_is_waited_out() -> None:
    server, stage = ScriptedApi(), Stage()
    first, second = Process(server, stage, "first"), Process(server, stage, "second")
    leader = await stage.until_somebody_works()
    dead, other = (first, second) if leader == "first" else (second, first)
    await asyncio.sleep(60)
    dead.kill()
    killed_at_s = now_s()
    await asyncio.sleep(0.1)
    assert await stage.until_somebody_works() == other.name
    assert TIMING.lease_s - TIMING.retry_s <= now_s() - killed_at_s <= TIMING.lease_s + TIMING.retry_s * 2.2 + 0.2
    await ended(stage, first, second)


@pytest.mark.parametrize("ahead_s", [-YEARS_S, YEARS_S])
@virtual
async def test_clocks_that_are_wrong_by_years_change_nothing(ahead_s: float) -> None:
    server, stage = ScriptedApi(), Stage()
    first = Process(server, stage, "first")
    await asyncio.sleep(1)
    second = Process(server, stage, "second", ahead_s=ahead_s)
    await asyncio.sleep(600)
    assert stage.working == ["first"]
    first.kill()
    await asyncio.sleep(TIMING.lease_s - TIMING.retry_s - 0.1)
    assert stage.working == []
    await asyncio.sleep(10)
    assert stage.working == ["second"]
    await ended(stage, first, second)


@virtual
async def test_a_leader_that_is_cut_off_stops_before_another_begins_and_comes_back_as_candidate() -> None:
    server, stage = ScriptedApi(), Stage()
    first = Process(server, stage, "first")
    await asyncio.sleep(1)
    second = Process(server, stage, "second")
    await asyncio.sleep(100)
    first.line.is_cut = True
    cut_at_s = now_s()
    await asyncio.sleep(TIMING.renew_s + 0.1)
    assert stage.ended[-1][0] == "first"
    assert stage.ended[-1][1] <= cut_at_s + TIMING.renew_s
    assert not first.election.is_leading
    await asyncio.sleep(TIMING.lease_s)
    assert stage.working == ["second"]
    first.line.is_cut = False
    await asyncio.sleep(60)
    await second.end()
    await asyncio.sleep(20)
    assert stage.working == ["first"]
    await ended(stage, first)


@virtual
async def test_a_leader_that_sees_another_holder_stops_at_its_next_look() -> None:
    server, stage = ScriptedApi(), Stage()
    first = Process(server, stage, "first")
    await asyncio.sleep(5)
    taken = await lease(server)
    taken["spec"] |= {"holderIdentity": "somebody", "renewTime": "2026-01-01T00:00:00.000000Z"}
    await server.update(LEASES, taken)
    await asyncio.sleep(TIMING.retry_s + 0.1)
    assert stage.working == []
    await asyncio.sleep(TIMING.lease_s + 5)
    assert stage.working == ["first"]
    await ended(stage, first)


@virtual
async def test_answers_that_are_slow_count_from_when_they_were_asked_for() -> None:
    """Every renewal takes most of the five seconds there are: another look is due at once, or the work stops."""
    server, stage = ScriptedApi(), Stage()
    first = Process(server, stage, "first")
    await asyncio.sleep(1)
    second = Process(server, stage, "second")
    for seconds in (2, 4, 4.9, 5.1):
        first.line.slow_s = seconds
        await asyncio.sleep(200)
    assert stage.working == ["second"]
    await ended(stage, first, second)


@virtual
async def test_one_identity_given_to_two_processes_still_leads_once() -> None:
    server, stage = ScriptedApi(), Stage()
    twins = [Process(server, stage, name, identity="same") for name in ("one", "two")]
    await asyncio.sleep(600)
    assert len(stage.began) == 1
    await ended(stage, *twins)


@virtual
async def test_who_saw_the_lease_held_waits_it_out_although_somebody_deleted_it() -> None:
    server, stage = ScriptedApi(), Stage()
    first = Process(server, stage, "first")
    await asyncio.sleep(1)
    others = [Process(server, stage, f"other {number}") for number in range(8)]
    await asyncio.sleep(30)
    await server.delete(LEASES, "kube-system", "shoal")
    await asyncio.sleep(30)
    assert stage.began == [("first", stage.began[0][1])]
    assert (await lease(server))["spec"]["holderIdentity"] == "first"
    await ended(stage, first, *others)


@virtual
async def test_what_others_keep_in_the_lease_is_left_alone() -> None:
    server, stage = ScriptedApi(), Stage()
    kept = {"metadata": {"namespace": "kube-system", "name": "shoal", "labels": {"a": "b"}}, "spec": {"strategy": "x"}}
    await server.create(LEASES, kept)
    process = Process(server, stage, "first")
    await asyncio.sleep(10)
    found = await lease(server)
    assert found["metadata"]["labels"] == {"a": "b"}
    assert found["spec"]["strategy"] == "x"
    assert stage.working == ["first"]
    await ended(stage, process)


@pytest.mark.parametrize(
    "weather",
    [Weather(lost=0.1), Weather(stale=0.1), Weather(refused=0.03)],
    ids=["lost answers", "conflicts", "refusals"],
)
@virtual
async def test_a_leader_leads_on_through(weather: Weather) -> None:
    """At least two tries fit into the time there is, and four where no pause is asked for."""
    server, stage = ScriptedApi(), Stage()
    storm = StormyApi(server, LoopClock(START_S), random.Random(3), weather)
    processes = [Process(storm, stage, name) for name in "abc"]
    await asyncio.sleep(600)
    assert storm.happened
    assert len(stage.began) == 1
    await ended(stage, *processes)


@pytest.mark.parametrize("seed", range(25))
def test_in_a_storm_there_are_never_two_and_afterwards_there_is_one(seed: int) -> None:
    async def explanation() -> None:
        server, stage, draw = ScriptedApi(), Stage(), random.Random(seed)
        storm = StormyApi(server, LoopClock(START_S), random.Random(seed), STORM)
        processes = [Process(storm, stage, name, ahead_s=draw.uniform(-1e6, 1e6)) for name in "abc"]
        for round_ in range(12):
            await asyncio.sleep(draw.uniform(1, 40))
            one = draw.choice(processes)
            match draw.randrange(4):
                case 0:
                    one.kill()
                    processes.remove(one)
                    processes.append(Process(storm, stage, f"{one.name}{round_}"))
                case 1:
                    one.line.is_cut = not one.line.is_cut
                case 2:
                    one.line.slow_s = draw.choice([0, 3, 8])
                case _:
                    await one.end()
                    processes.remove(one)
                    processes.append(Process(storm, stage, f"{one.name}{round_}"))
        storm.calm()
        for process in processes:
            process.line.is_cut, process.line.slow_s = False, 0.0
        await asyncio.sleep(60)
        assert len(stage.working) == 1
        assert len(stage.began) > 1
        failed = [one.task.exception() for one in processes if one.task.done()]
        assert not failed
        await ended(stage, *processes)

    in_virtual_time(explanation())


@pytest.mark.parametrize("step", range(1, 21))
def test_killed_at_any_step_another_leads_in_time(step: int) -> None:
    async def explanation() -> None:
        server, stage = ScriptedApi(), Stage()
        first = Process(server, stage, "first")
        first.line.cut_at = step
        await asyncio.sleep(0.5)
        second = Process(server, stage, "second")
        await asyncio.sleep(20)
        assert first.line.is_cut
        await asyncio.sleep(TIMING.lease_s + 2.2 * TIMING.retry_s)
        assert stage.working == ["second"]
        await ended(stage, first, second)

    in_virtual_time(explanation())


@virtual
async def test_work_that_ends_by_itself_ends_the_election_and_leaves_the_lease_free() -> None:
    server = ScriptedApi()

    async def work() -> None:
        await asyncio.sleep(100)

    election = LeaderElection(server, LoopClock(START_S), random.Random(1), Lock("kube-system", "shoal", "me"))
    await election.run(work)
    assert (await lease(server))["spec"]["holderIdentity"] == ""
    assert not election.is_leading


@virtual
async def test_a_candidate_without_an_answer_says_so_at_growing_intervals(caplog: pytest.LogCaptureFixture) -> None:
    class Gone(ScriptedApi):
        async def get(self, kind: Kind, namespace: str, name: str) -> Item:
            raise BusyError("no answer from x", reason=NO_ANSWER)

    async def work() -> None:
        await asyncio.Event().wait()

    clock = LoopClock(START_S)
    election = LeaderElection(Gone(), clock, random.Random(1), Lock("kube-system", "shoal", "me"))
    running = asyncio.ensure_future(election.run(work))
    await clock.sleep(300)
    running.cancel()
    said = [one.message for one in caplog.records if one.levelname == "WARNING"]
    assert said == [
        f"no answer from x; retrying{lasting} until it answers" for lasting in ("", " for 1 min", " for 3 min")
    ]


@virtual
async def test_work_that_breaks_is_told_and_leaves_the_lease_free() -> None:
    server = ScriptedApi()

    async def work() -> None:
        raise RuntimeError("broken")

    election = LeaderElection(server, LoopClock(START_S), random.Random(1), Lock("kube-system", "shoal", "me"))
    with pytest.raises(RuntimeError, match="broken"):
        await election.run(work)
    assert (await lease(server))["spec"]["holderIdentity"] == ""


@virtual
async def test_a_server_that_says_when_to_come_back_is_not_asked_before() -> None:
    class Full(ScriptedApi):
        asked = 0

        async def get(self, kind: Kind, namespace: str, name: str) -> Item:
            self.asked += 1
            raise BusyError("too many", 30.0, code=429)

    server, stage = Full(), Stage()
    process = Process(server, stage, "first")
    await asyncio.sleep(29)
    assert server.asked == 1
    await asyncio.sleep(40)
    assert server.asked == 2
    await ended(stage, process)


@virtual
async def test_becoming_and_ceasing_to_be_leader_are_events_of_the_lease() -> None:
    server, noted = ScriptedApi(), list[Obj]()

    class Held(ScriptedApi):
        async def create(self, kind: Kind, obj: Obj) -> Item:
            noted.append(obj)
            return await super().create(kind, obj)

    clock = LoopClock(START_S)
    events = Recorder(Held(), clock, "shoal")
    writing = asyncio.ensure_future(events.run())

    async def work() -> None:
        await asyncio.sleep(1)

    await LeaderElection(server, clock, random.Random(1), Lock("kube-system", "shoal", "me"), events).run(work)
    await events.settled()
    writing.cancel()
    assert [(one["reason"], one["message"], one["involvedObject"]["kind"]) for one in noted] == [
        ("LeaderElection", "me became leader", "Lease"),
        ("LeaderElection", "me stopped leading", "Lease"),
    ]
    assert all(one["involvedObject"]["uid"] for one in noted)


@pytest.mark.parametrize(("lease_s", "renew_s", "retry_s"), [(10, 10, 2), (15, 2, 2), (15, 10, 0)])
def test_times_that_could_let_two_lead_are_refused(lease_s: float, renew_s: float, retry_s: float) -> None:
    with pytest.raises(ValueError, match="longer"):
        Timing(lease_s, renew_s, retry_s)


async def test_a_server_of_either_kind_elects(api: Api, home: str) -> None:
    """Real leases: their times come back as they were written, and one that is free is taken at once."""
    clock, draw = LoopClock(START_S), random.Random(1)
    for number in range(2):
        lock = Lock(home, "shoal", f"me {number}")
        election = LeaderElection(api, clock, draw, lock, None)
        seen: list[bool] = []

        async def work(election: LeaderElection = election, seen: list[bool] = seen) -> None:
            seen.append(election.is_leading)

        await election.run(work)
        assert seen == [True]
        spec = (await api.get(LEASES, home, "shoal")).obj()["spec"]
        assert (spec.get("holderIdentity", ""), spec.get("leaseTransitions", 0)) == ("", number)
    with pytest.raises(NotFoundError):
        await api.get(LEASES, home, "other")


@virtual
async def test_a_holder_says_on_the_lease_what_it_was_given_to_say_and_keeps_what_others_wrote() -> None:
    server = ScriptedApi()
    await server.create(LEASES, {"metadata": {"namespace": "kube-system", "name": "shoal", "annotations": {"a": "b"}}})
    lock = Lock("kube-system", "shoal", "me", annotations=(("shoal.dev/configuration", "{}"),))
    held = LeaseLock(server, LoopClock(START_S), lock)
    assert await held.attempt()
    assert await held.attempt()
    assert (await lease(server))["metadata"]["annotations"] == {"a": "b", "shoal.dev/configuration": "{}"}
