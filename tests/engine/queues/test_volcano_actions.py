"""What each action of Volcano decides, on worlds of a few nodes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from build.volcano_worlds import World, part, plugin, queue
from shoal.engine.cycle import cycle
from shoal.engine.groups import TopologyRequirement
from shoal.engine.placement import Placement
from shoal.engine.plan import Plan
from shoal.engine.profile import NO_PREFERENCES
from shoal.engine.queues.disciplines.volcano.configuration import VolcanoConfiguration
from shoal.engine.queues.disciplines.volcano.discipline import Volcano
from shoal.engine.queues.disciplines.volcano.jobs import JobState
from shoal.engine.queues.disciplines.volcano.queue_forest import QueueForest
from shoal.engine.queues.disciplines.volcano.session import VolcanoFacts

ONE = [queue("q")]
PREEMPT = (
    plugin("priority"),
    plugin("gang", off=("Preemptable",)),
    plugin("conformance"),
    plugin("proportion"),
    plugin("nodeorder"),
)


def world(**more: Any) -> World:
    return World(**{"queues": list(ONE), **more})


def test_a_job_starts_whole_or_not_at_all() -> None:
    assert world().job("a", "q", *[""] * 5, minimum=5).run("allocate").bound == set()
    assert len(world().job("a", "q", *[""] * 4, minimum=4).run("allocate").bound) == 4


def test_surplus_comes_after_the_minimum_of_later_jobs() -> None:
    found = world().job("a", "q", *[""] * 4, minimum=1).job("b", "q", "", "", minimum=2).run("allocate")
    assert found.bound == {"a-0", "a-1", "b-0", "b-1"}


def test_a_failed_job_leaves_its_capacity_to_the_next() -> None:
    found = world().job("a", "q", *[""] * 5, minimum=5, priority=9).job("b", "q", "").run("allocate")
    assert found.bound == {"b-0"}


def test_queues_take_turns_by_their_share() -> None:
    queues = [queue("a", weight=1), queue("b", weight=3)]
    made = world(queues=queues)
    for number in range(4):
        made.job(f"a{number}", "a", "").job(f"b{number}", "b", "")
    assert len([pod for pod in made.run("allocate").bound if pod.startswith("b")]) == 3


def test_a_queue_beyond_its_capability_waits_with_the_reason() -> None:
    made = world(queues=[queue("q", capability={"cpu": 2})]).job("a", "q", "").job("b", "q", "").job("c", "q", "")
    found = made.run("allocate")
    assert found.bound == {"a-0", "b-0"}
    assert found.why("c") == "queue q is overused"


def test_a_job_in_a_queue_with_children_is_refused_and_the_others_start() -> None:
    queues = [queue("team"), queue("child", parent="team")]
    found = world(queues=queues).job("a", "team", "").job("b", "child", "").run("allocate")
    assert found.bound == {"b-0"}
    assert found.why("a") == "queue team has child queues (child); only leaf queues take jobs"


@pytest.mark.parametrize(
    ("queues", "words"),
    [
        ([queue("q", is_open=False)], "queue q is not open"),
        ([queue("q", parent="p"), queue("p", is_open=False)], "queue p is not open"),
        ([queue("other")], "queue q does not exist"),
        ([queue("q", parent="nowhere")], "queue nowhere, an ancestor of queue q, does not exist"),
        (
            [queue("q", parent="p"), queue("p", parent="r"), queue("r", parent="p")],
            "queue q has no way to the root: parents form the cycle p -> r -> p",
        ),
    ],
)
def test_queues_that_take_no_jobs_say_why(queues: list[object], words: str) -> None:
    found = world(queues=queues).job("a", "q", "").run("allocate")
    assert (found.bound, found.why("a")) == (set(), words)


def test_a_job_that_is_not_admitted_waits_only_where_admission_is_an_action() -> None:
    assert world().job("a", "q", "", is_enqueued=False).run("allocate").bound == {"a-0"}
    full = world(queues=[queue("q", capability={"cpu": 1})])
    full.job("a", "q", "", min_resources={"cpu": 2}, is_enqueued=False)
    found = full.run("enqueue", "allocate")
    assert (found.bound, found.why("a")) == (set(), "queue resource quota insufficient: insufficient cpu")


def test_admission_counts_what_was_admitted_before_and_not_the_surplus() -> None:
    made = world(queues=[queue("q", capability={"cpu": 4})])
    made.job("runs", "q", "n1", "n1", minimum=1, min_resources={"cpu": 1})
    made.job("admitted", "q", "", min_resources={"cpu": 1})
    made.job("fits", "q", "", min_resources={"cpu": 2}, is_enqueued=False)
    made.job("free", "q", "", is_enqueued=False)
    made.job("late", "q", "", min_resources={"cpu": 1}, is_enqueued=False)
    assert list(made.run("enqueue").session.enqueued) == ["ns/fits", "ns/free"]


def test_a_first_come_queue_is_blocked_by_its_first_job() -> None:
    made = world(queues=[queue("q", capability={"cpu": 2}, dequeue_strategy="fifo")])
    made.job("large", "q", "", min_resources={"cpu": 3}, is_enqueued=False)
    made.job("small", "q", "", min_resources={"cpu": 1}, is_enqueued=False)
    assert list(made.run("enqueue").session.enqueued) == []


def test_pods_that_request_nothing_are_left_to_backfill() -> None:
    made = world().job("a", "q", "", ":0", minimum=2)
    assert made.run("allocate").bound == {"a-0"}
    assert made.run("backfill").bound == {"a-1"}


def test_preemption_takes_the_least_important_pods_of_the_same_queue() -> None:
    made = world(plugins=(PREEMPT,)).job("low", "q", "n1:2", priority=1).job("mid", "q", "n1:2", priority=2)
    found = made.job("high", "q", ":2", priority=3).run("allocate", "preempt")
    assert (found.evicted, found.promised) == ({"low-0"}, {"high-0"})


def test_preemption_for_a_job_that_would_not_be_whole_is_undone() -> None:
    made = world(plugins=(PREEMPT,)).job("low", "q", "n1:2", priority=1).job("same", "q", "n1:2", priority=3)
    found = made.job("high", "q", ":2", ":2", minimum=2, priority=3).run("allocate", "preempt")
    assert (found.evicted, found.promised) == (set(), set())


def test_preemption_makes_room_under_the_capability_of_the_queue_though_nodes_have_room() -> None:
    made = world(queues=[queue("q", capability={"cpu": 2})], plugins=(PREEMPT,))
    found = made.job("low", "q", "n1:2", priority=1).job("high", "q", ":2", priority=3).run("preempt")
    assert (found.evicted, found.promised) == ({"low-0"}, {"high-0"})


def test_pods_of_one_job_are_preempted_by_their_own_priority() -> None:
    made = world(plugins=(PREEMPT,)).job("a", "q", "n1:4+1", ":4+5", minimum=2)
    found = made.run("allocate", "preempt")
    assert (found.evicted, found.promised) == ({"a-0"}, {"a-1"})


@pytest.mark.parametrize(
    "of_pods", [{"is_preemptible": False}, {"namespace": "kube-system"}], ids=["not preemptible", "of the system"]
)
def test_protected_pods_are_no_victims(of_pods: dict[str, Any]) -> None:
    made = world(plugins=(PREEMPT,)).job("low", "q", "n1:4", priority=1, **of_pods)
    assert made.job("high", "q", ":4", priority=3).run("preempt").evicted == set()


def test_a_pod_that_never_preempts_waits() -> None:
    made = world(plugins=(PREEMPT,)).job("low", "q", "n1:4", priority=1)
    assert made.job("high", "q", ":4", priority=3, preempts=False).run("preempt").evicted == set()


def test_a_job_with_a_network_topology_is_not_served_by_preempt() -> None:
    near = TopologyRequirement(required="rack")
    made = world(plugins=(PREEMPT,), labels={"n1": {"rack": "r"}}).job("low", "q", "n1:4", priority=1)
    assert made.job("high", "q", ":4", priority=3, requirement=near).run("preempt").evicted == set()


def test_simulated_preemption_spares_who_need_not_go() -> None:
    made = world(plugins=(PREEMPT,), arguments={"preempt": {"enableTopologyAwarePreemption": True}})
    made.job("low", "q", "n1:3", priority=1).job("lower", "q", "n1:1", priority=0)
    found = made.job("high", "q", ":3", priority=3).run("preempt")
    assert (found.evicted, found.promised) == ({"low-0"}, {"high-0"})


RECLAIM = (plugin("priority"), plugin("gang"), plugin("conformance"), plugin("proportion"), plugin("nodeorder"))


def test_reclaim_takes_from_queues_beyond_their_share() -> None:
    made = world(queues=[queue("a"), queue("b")], plugins=(RECLAIM,))
    made.job("a", "a", *["n1"] * 4, minimum=1).job("b", "b", "", "", "", minimum=3)
    found = made.run("allocate", "reclaim")
    assert (found.evicted, found.promised) == ({"a-3", "a-2"}, {"b-0", "b-1"})


def test_a_queue_that_is_not_reclaimable_keeps_its_pods() -> None:
    made = world(queues=[queue("a", is_reclaimable=False), queue("b")], plugins=(RECLAIM,))
    found = made.job("a", "a", *["n1"] * 4, minimum=1).job("b", "b", "").run("reclaim")
    assert found.evicted == set()


def test_a_node_that_does_not_suffice_keeps_its_pods() -> None:
    nodes = {"n1": {"cpu": 2}, "n2": {"cpu": 4}}
    made = world(queues=[queue("a"), queue("b")], plugins=(RECLAIM,), nodes=nodes)
    made.job("a", "a", "n1", "n1", "n2:2", "n2:2", minimum=1).job("b", "b", ":3")
    found = made.run("allocate", "reclaim")
    assert (found.evicted, found.promised) == ({"a-3", "a-2"}, {"b-0"})


def test_free_and_departing_capacity_counts_when_a_node_is_reclaimed() -> None:
    made = world(queues=[queue("a"), queue("b")], plugins=(RECLAIM,), nodes={"n1": {"cpu": 5}})
    found = made.job("a", "a", *["n1"] * 4, minimum=1).job("b", "b", ":2").run("reclaim")
    assert (found.evicted, found.promised) == ({"a-3"}, {"b-0"})


def test_roles_hold_only_within_the_minimum_of_the_job() -> None:
    made = world().job("a", "q", "", "", minimum=1, roles={"": 2})
    state = JobState(made.jobs["ns/a"], made.cluster.gangs["ns/a"])
    assert state.roles == {}


def test_parts_of_a_job_are_placed_by_their_minima() -> None:
    found = world().job("a", "q", "", "", minimum=1, parts=(part("p", 1),)).run("allocate")
    assert found.bound == set()
    assert found.session.state.why["ns/a"] == "GangTooSmall"


def test_nothing_changes_in_a_second_cycle() -> None:
    made = world(queues=[queue("a"), queue("b")], plugins=(RECLAIM,))
    made.job("a", "a", *["n1"] * 4, minimum=1).job("b", "b", "", "", minimum=2)
    first = made.run("allocate", "reclaim")
    made.carry_out(first.plan)
    second = made.run("allocate", "reclaim")
    assert second.bound == first.promised
    made.carry_out(second.plan)
    third = made.run("allocate", "reclaim")
    assert (third.bound, third.evicted, third.promised) == (set(), set(), set())


def test_a_pod_waits_for_capacity_that_is_being_freed() -> None:
    made = world().job("a", "q", "n1:4")
    made.cluster.mark_terminating("a-0")
    found = made.job("b", "q", ":2", ":2", minimum=2).run("allocate")
    assert (found.bound, found.promised) == (set(), {"b-0", "b-1"})


def test_a_job_that_must_wait_for_some_of_its_capacity_starts_nothing_yet() -> None:
    made = world(nodes={"n1": {"cpu": 2}, "n2": {"cpu": 2}}).job("a", "q", "n1:2")
    made.cluster.mark_terminating("a-0")
    found = made.job("b", "q", ":2", ":2", minimum=2).run("allocate")
    assert (found.bound, found.promised) == (set(), {"b-0", "b-1"})


def test_a_cycle_that_goes_on_where_the_last_one_was_cut_decides_as_one_that_reads_all_jobs_again() -> None:
    def plans(*, reads_again: bool) -> list[Plan]:
        world = World(
            [queue("root"), queue("a", weight=1), queue("b", weight=3, capability={"cpu": 9})],
            nodes={f"n{at}": {"cpu": 8} for at in range(4)},
        )
        for at in range(10):
            world.job(f"a{at}", "a", "", "", minimum=2).job(f"b{at}", "b", "", is_enqueued=False)
        facts = VolcanoFacts(QueueForest(world.queues), world.jobs)
        actions = VolcanoConfiguration(("enqueue", "allocate", "backfill"), world.plugins)
        placement, found = Placement(world.cluster, NO_PREFERENCES), list[Plan]()
        admitted: set[str] = set()
        discipline = Volcano(lambda: facts, actions, admitted.update)
        while not found or found[-1].is_cut:
            if reads_again:
                jobs = {name: msgspec.structs.replace(job, is_enqueued=True) for name, job in world.jobs.items()}
                facts = VolcanoFacts(facts.forest, {**world.jobs, **{name: jobs[name] for name in admitted}})
            found.append(cycle(world.cluster, placement, now_s=0, seed=0, steps=discipline.steps(), most=5))
        return found

    went_on, read_again = plans(reads_again=False), plans(reads_again=True)
    assert len(went_on) > 3
    assert [plan.intentions for plan in went_on] == [plan.intentions for plan in read_again]
