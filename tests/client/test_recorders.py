"""Events: one for what is said again and again, never waited for, never in the way."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from build.small_clusters import SmallCluster, small_cluster
from build.stormy_api import CALM, StormyApi, Weather
from build.virtual_time import virtual
from shoal.client.item import Item, Obj
from shoal.client.kind import CONFIG_MAPS, EVENTS, Kind
from shoal.client.port import Api
from shoal.client.recorder import BINDING, SCHEDULING, Deed, Recorder, reference_of
from shoal.client.refusals import BusyError

NEWER_EVENTS = Kind("events.k8s.io", "v1", "events", "Event")


async def about(cluster: SmallCluster, name: str = "a") -> Obj:
    return await cluster.create(CONFIG_MAPS, {"metadata": {"name": name}})


def started(cluster: SmallCluster, api: Api | None = None) -> Recorder:
    events = Recorder(api or cluster.api, cluster.clock, "a-controller")
    cluster.tasks.append(asyncio.ensure_future(events.run()))
    return events


@virtual
async def test_an_event_says_who_said_what_about_whom(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        events = started(cluster)
        obj = await about(cluster)
        events.record(obj, "Broken", "it broke", type_="Warning", field="data{x}")
        events.named("kubelet").record(obj, "Mended", "it is whole", host="gpu-0")
        await events.settled()
        broken, mended = sorted(await cluster.events("a"), key=lambda event: str(event["reason"]))
        assert (broken["reason"], broken["message"]) == ("Broken", "it broke")
        assert (broken["type"], broken["count"]) == ("Warning", 1)
        assert broken["involvedObject"] == {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "name": "a",
            "namespace": "default",
            "uid": obj["metadata"]["uid"],
            "resourceVersion": obj["metadata"]["resourceVersion"],
            "fieldPath": "data{x}",
        }
        assert broken["source"] == {"component": "a-controller"}
        assert broken["firstTimestamp"] == broken["lastTimestamp"]
        assert (mended["type"], mended["source"]) == ("Normal", {"component": "kubelet", "host": "gpu-0"})


@virtual
async def test_what_somebody_did_says_so_as_kube_schedulers_events_do_and_is_counted_all_the_same(
    tmp_path: Path,
) -> None:
    async with small_cluster(tmp_path) as cluster:
        events = started(cluster).named("shoal")
        pod, other = await about(cluster), await about(cluster, "b")
        preempting = Deed("Preempting", reference_of({**other, "kind": "ConfigMap", "apiVersion": "v1"}))
        for _ in range(3):
            events.record(pod, "Preempted", "gone", deed=preempting)
            await cluster.pass_time(5)
        events.record(pod, "Preempted", "gone", deed=Deed("Preempting"))
        await events.settled()
        first, second = sorted(await cluster.events("a"), key=lambda event: -event["count"])
        assert (first["action"], first["count"], second["count"]) == ("Preempting", 3, 1)
        uid = other["metadata"]["uid"]
        assert first["related"] == {
            "kind": "ConfigMap", "apiVersion": "v1", "name": "b", "namespace": "default", "uid": uid
        }  # fmt: skip
        assert "related" not in second
        assert (first["reportingComponent"], first["source"]) == ("shoal", {"component": "shoal"})
        assert first["reportingInstance"].startswith("shoal-")
        assert first["eventTime"][:19] == first["firstTimestamp"][:19] < first["lastTimestamp"][:19]
        assert len(first["eventTime"]) == len("2026-11-21T10:00:00.000000Z")
        [newer] = [
            one.obj()
            for one in (await cluster.api.list(NEWER_EVENTS)).items
            if one.obj()["deprecatedCount"] == first["count"]
        ]
        assert (newer["action"], newer["related"]["name"], newer["regarding"]["name"]) == ("Preempting", "b", "a")
        assert newer["reportingController"] == "shoal"


@virtual
async def test_whatever_a_scheduler_is_called_and_says_its_events_are_taken(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        events, pod = started(cluster), await about(cluster)
        events.named("my scheduler/β").record(pod, "Scheduled", "there", deed=BINDING)
        events.named("s" * 63).record(pod, "FailedScheduling", "β" * 1024, deed=SCHEDULING)
        await events.settled()
        assert {event["action"] for event in await cluster.events("a")} == {"Binding", "Scheduling"}


@virtual
async def test_the_longest_names_are_told_of_too(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        events = started(cluster)
        names = ["a" * 253, "a" * 231 + "-" + "b" * 21, "a" * 230 + "." + "b" * 22]
        for name in names:
            events.record(await about(cluster, name), "Broken", "it broke")
        await events.settled()
        assert sorted(event["involvedObject"]["name"] for event in await cluster.all(EVENTS)) == sorted(names)


@virtual
async def test_several_write_about_one_object_at_one_moment(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        obj = await about(cluster)
        writers = [Recorder(cluster.api, cluster.clock, f"controller-{number % 5}") for number in range(10)]
        cluster.tasks += [asyncio.ensure_future(one.run()) for one in writers]
        for one in writers:
            for word in "abcdefghij":
                one.record(obj, "Broken", word)
        await asyncio.gather(*(one.settled() for one in writers))
        told = [(event["source"]["component"], event["message"]) for event in await cluster.events("a")]
        words = "abcdefghij" * 2
        assert sorted(told) == sorted((f"controller-{number}", word) for number in range(5) for word in words)


@virtual
async def test_the_same_said_again_is_counted_and_after_ten_quiet_minutes_said_anew(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        events = started(cluster)
        obj = await about(cluster)
        for _ in range(5):
            events.record(obj, "Broken", "it broke")
            await cluster.pass_time(60)
        [event] = await cluster.events("a")
        assert event["count"] == 5
        assert event["firstTimestamp"] < event["lastTimestamp"]
        await cluster.pass_time(601)
        events.record(obj, "Broken", "it broke")
        await events.settled()
        assert sorted(event["count"] for event in await cluster.events("a")) == [1, 5]


@virtual
async def test_what_differs_in_anything_is_another_event(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        events = started(cluster)
        one, other = await about(cluster), await about(cluster, "b")
        events.record(one, "Broken", "it broke")
        events.record(one, "Broken", "it broke again")
        events.record(one, "Gone", "it broke")
        events.record(other, "Broken", "it broke")
        events.named("another").record(one, "Broken", "it broke")
        await events.settled()
        assert [event["count"] for event in await cluster.all(EVENTS)] == [1] * 5


@virtual
async def test_an_event_that_was_deleted_is_made_anew(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        events = started(cluster)
        obj = await about(cluster)
        events.record(obj, "Broken", "it broke")
        await events.settled()
        [event] = await cluster.events("a")
        await cluster.delete(EVENTS, event["metadata"]["name"])
        events.record(obj, "Broken", "it broke")
        await events.settled()
        assert [event["count"] for event in await cluster.events("a")] == [1]


@virtual
async def test_events_about_what_has_no_namespace_are_in_default_and_long_ones_are_cut(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        events = started(cluster)
        node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "gpu-0", "uid": "u"}}
        events.record(node, "Broken", "x" * 2000)
        await events.settled()
        [event] = await cluster.events("gpu-0")
        assert event["metadata"]["namespace"] == "default"
        assert len(event["message"]) == 1024


@virtual
async def test_a_server_in_trouble_costs_events_and_nothing_else(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        storm = StormyApi(cluster.api, cluster.clock, random.Random(1), Weather(refused=1.0))
        events = started(cluster, storm)
        obj = await about(cluster)
        events.record(obj, "Broken", "never heard")
        await events.settled()
        storm.calm()
        events.record(obj, "Broken", "heard")
        await events.settled()
        assert [event["message"] for event in await cluster.events("a")] == ["heard"]


@virtual
async def test_a_server_that_is_full_hears_of_it_later(tmp_path: Path) -> None:
    """It took nothing on, so that nothing is said twice; and it is not asked before the time it named."""

    class Full(StormyApi):
        asked_at_s: list[float] = []  # noqa: RUF012 - one of these is made

        async def create(self, kind: Kind, obj: Obj) -> Item:
            self.asked_at_s.append(asyncio.get_running_loop().time())
            if len(self.asked_at_s) < 3:
                raise BusyError("too many", 7.0, code=429)
            return await super().create(kind, obj)

    async with small_cluster(tmp_path) as cluster:
        full = Full(cluster.api, cluster.clock, random.Random(1), CALM)
        events = started(cluster, full)
        events.record(await about(cluster), "Broken", "heard")
        await events.settled()
        [event] = await cluster.events("a")
        assert (event["message"], event["count"]) == ("heard", 1)
        first, second, third = full.asked_at_s
        assert (second - first, third - second) == (7, 7)


@virtual
async def test_events_give_way_to_other_work_and_are_all_written_in_the_end(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        events, is_busy = started(cluster), True
        events.give_way(lambda: is_busy)
        obj = await about(cluster)
        for number in range(100):
            events.record(obj, "Broken", str(number))
        await cluster.pass_time(1)
        meanwhile = len(await cluster.events("a"))
        assert 10 <= meanwhile <= 25
        is_busy = False
        await events.settled()
        assert len(await cluster.events("a")) == 100
