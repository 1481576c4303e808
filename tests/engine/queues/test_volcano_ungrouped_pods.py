"""Running pods whose PodGroups are not known yet count in their queues, until they count as pods of the group."""

from __future__ import annotations

import pytest

from build.volcano_objects import group, read
from build.volcano_worlds import World, queue
from shoal.engine.asks import Ask
from shoal.engine.events import PodBound
from shoal.engine.queues.disciplines.volcano.known_jobs import KnownJobs
from shoal.engine.queues.disciplines.volcano.objects import GROUP, QUEUE_ANNOTATION, GroupPod


def pod(name: str = "p", queue: str = "", group: str = "", phase: str = "Running", **meta: str) -> GroupPod:
    notes = {key: text for key, text in ((QUEUE_ANNOTATION, queue), (GROUP, group)) if text}
    metadata = {"name": name, "namespace": "t", "annotations": notes, **meta}
    spec = {"nodeName": "n", "schedulerName": "volcano"}
    return read(GroupPod, {"metadata": metadata, "spec": spec, "status": {"phase": phase}})


def read_by_sessions(known: KnownJobs) -> dict[str, str]:
    return dict(known.facts().ungrouped)


def test_a_pod_without_a_queue_counts_in_the_default_one() -> None:
    assert read_by_sessions(KnownJobs(pods=[pod("a", "q"), pod("b")])) == {"t/a": "q", "t/b": "default"}


def test_a_pod_that_names_a_group_counts_in_its_queue_until_the_group_is_known() -> None:
    known = KnownJobs(pods=[pod(queue="q")])
    assert not known.put_pod(pod(queue="q", group="g")), "nothing is different for a session"
    assert read_by_sessions(known) == {"t/p": "q"}
    known.put_group(group("g"))
    assert read_by_sessions(known) == {}


def test_a_group_that_is_known_first_takes_the_pod_at_once() -> None:
    known = KnownJobs(groups=[group("g")], pods=[pod(queue="q")])
    assert known.put_pod(pod(queue="q", group="g"))
    assert read_by_sessions(known) == {}


def test_a_pod_whose_group_was_deleted_counts_for_nothing() -> None:
    known = KnownJobs(groups=[group("g")], pods=[pod(queue="q", group="g")])
    known.drop_group("t/g")
    known.put_pod(pod(queue="q", group="g"))
    assert read_by_sessions(known) == {}


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(pod(queue="q", phase="Succeeded"), id="it has ended"),
        pytest.param(pod(queue="q", deletionTimestamp="2026-01-01T00:00:00Z"), id="it is being deleted"),
        pytest.param(None, id="it is gone"),
    ],
)
def test_a_pod_that_leaves_counts_no_more(after: GroupPod | None) -> None:
    known = KnownJobs(pods=[pod(queue="q")])
    before = known.facts()
    assert known.drop_pod("t/p") if after is None else known.put_pod(after)
    assert known.facts() is not before
    assert read_by_sessions(known) == {}


def test_a_pod_that_leaves_before_its_group_is_known_is_forgotten() -> None:
    known = KnownJobs(pods=[pod(queue="q")])
    known.put_pod(pod(queue="q", group="g"))
    known.drop_pod("t/p")
    known.put_pod(pod(queue="q"))
    known.put_group(group("g"))
    assert read_by_sessions(known) == {"t/p": "q"}, "a new pod of that name, which names no group"


@pytest.mark.parametrize(("of", "bound"), [("q", 1), ("other", 3)])
def test_no_more_pods_are_placed_than_the_queue_has_quota_left(of: str, bound: int) -> None:
    made = World([queue("q", capability={"cpu": 3}), queue("other")], {"n1": {"cpu": 8}})
    made.job("new", "q", "", "", "", minimum=0)
    for name in ("ns/a", "ns/b"):
        made.intake.apply(PodBound(name, Ask(requests=(("cpu", 1000),)), "n1"))
        made.ungrouped[name] = of
    assert len(made.run("allocate").bound) == bound


def test_a_pod_that_is_not_in_the_facts_counts_for_nothing() -> None:
    made = World([queue("q", capability={"cpu": 1})])
    made.ungrouped["ns/gone"] = "q"
    assert made.job("new", "q", "").run("allocate").bound == {"new-0"}
