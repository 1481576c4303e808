"""A load in virtual time: everybody finishes, nothing is used twice, and the same seed tells the same story."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from build.depth import examples
from build.queue_loads import RACK, load, racks, work
from shoal.engine.queues.quota_tree import Cohort, CohortNode
from shoal.sim.queue_life import BATCH_MS, Batch, QueueLife
from shoal.sim.queue_load import QueueLoad

MOST_BATCHES = 2_000

LOADS = st.builds(
    lambda works, cohorts, queues, borrow: load(
        *(structs.replace(each, name=f"work-{index}") for index, each in enumerate(works)),
        cohorts=cohorts,
        queues=queues,
        borrow=borrow,
    ),
    st.lists(
        st.builds(
            work,
            st.just("work"),
            st.integers(1, 5),
            cores=st.sampled_from([0.5, 1, 2, 4]),
            priority=st.integers(0, 2),
            every_ms=st.sampled_from([0, 60, 100, 350]),
            runtime_ms=st.sampled_from([50, 150, 200, 700]),
        ),
        min_size=1,
        max_size=3,
    ),
    st.integers(1, 2),
    st.integers(1, 3),
    st.sampled_from([None, 0, 2, 100]),
)


def lived(life: QueueLife) -> list[Batch]:
    batches = list(islice(life.each(), MOST_BATCHES))
    assert len(batches) < MOST_BATCHES, "somebody runs and is stopped for ever"
    return batches


def explanation(batches: list[Batch]) -> list[tuple[object, ...]]:
    return [
        (
            batch.now_ms,
            batch.arrived,
            batch.finished,
            batch.stopped,
            [
                ([each.workload for each in cycle.admitted], [each.workload for each in cycle.preempted])
                for cycle in batch.cycles
            ],
        )
        for batch in batches
    ]


def assert_quota_kept(life: QueueLife) -> None:
    """Sums made anew from those that hold something, against the limits of every node of the tree."""
    queues, quota = life.queues, life.load.quota
    used = Counter(dict.fromkeys(queues.cluster_queues, 0))
    for held in queues.held.values():
        used[held.queue.name] += sum(held.usage.values())
    for name, queue in queues.cluster_queues.items():
        assert sum(queue.usage.values()) == used[name]
        if quota.borrowing_milli is not None:
            assert used[name] <= quota.nominal_milli + quota.borrowing_milli
    for root in roots(life):
        leaves = list(queues.leaves_of(root))
        assert sum(used[leaf.name] for leaf in leaves) <= len(leaves) * quota.nominal_milli


def roots(life: QueueLife) -> Iterator[CohortNode]:
    for cohort in life.queues.cohorts.values():
        if isinstance(cohort, Cohort) and cohort.parent is None:
            yield cohort


@given(LOADS, st.integers(0, 3), st.booleans())
@settings(max_examples=examples(40), deadline=None)
def test_everybody_finishes_within_quota(given_load: QueueLoad, seed: int, out_of_step: bool) -> None:
    life = QueueLife(given_load, seed, out_of_step=out_of_step)
    finished: Counter[str] = Counter()
    last_ms = -1
    for batch in islice(life.each(), MOST_BATCHES):
        assert_quota_kept(life)
        assert batch.now_ms % BATCH_MS == 0
        assert batch.now_ms > last_ms
        last_ms = batch.now_ms
        finished.update(batch.finished)
    assert finished == dict.fromkeys(life.jobs, 1)
    assert len(finished) == given_load.workloads
    for job in life.jobs.values():
        assert job.wait_ms >= 0
        assert job.end_ms == job.started_ms + job.arrival.work.runtime_ms
    assert not life.queues.held
    assert not any(any(node.usage.values()) for node in [*roots(life), *life.queues.cluster_queues.values()])


@given(LOADS, st.integers(0, 3))
@settings(max_examples=examples(15), deadline=None)
def test_the_same_seed_tells_the_same_story(given_load: QueueLoad, seed: int) -> None:
    assert explanation(lived(QueueLife(given_load, seed))) == explanation(lived(QueueLife(given_load, seed)))


def test_another_seed_lets_another_of_equal_standing_go_first() -> None:
    crowd = load(work("equal", 12, cores=4, every_ms=0))
    firsts = {lived(QueueLife(crowd, seed))[0].cycles[0].admitted[0].workload for seed in range(8)}
    assert len(firsts) > 1


def test_batches_come_only_where_something_happens() -> None:
    life = QueueLife(load(work("slow", 2, every_ms=1_000, runtime_ms=250)))
    assert [batch.now_ms for batch in lived(life)] == [0, 300, 1_000, 1_300]


def test_what_comes_within_a_batch_is_admitted_at_its_end() -> None:
    life = QueueLife(load(work("small", 3, every_ms=30)))
    lived(life)
    assert sorted((job.arrival.at_ms, job.wait_ms) for job in life.jobs.values()) == [(0, 0), (30, 70), (60, 40)]


def test_a_preempted_workload_keeps_its_quota_up_to_the_next_batch_and_starts_over() -> None:
    low = work("low", cores=4, runtime_ms=1_000)
    high = work("high", 2, cores=4, priority=10, every_ms=500, runtime_ms=200)
    batches = lived(life := QueueLife(load(low, high)))
    jobs = {job.arrival.work.name + key[-1]: job for key, job in life.jobs.items()}
    # High goes first at 0; low starts at 200 and has to stop when the second comes at 500.
    assert [batch.now_ms for batch in batches if batch.stopped] == [600]
    assert jobs["high1"].started_ms == 600
    assert jobs["low0"].started_ms == 800
    assert jobs["low0"].end_ms == 1_800
    assert jobs["low0"].wait_ms == 800
    assert life.used_milli_ms["cohort-0-queue-000"] == 4_000 * (200 + 400 + 200 + 1_000)


def test_a_preempted_workload_stands_in_line_by_its_creation() -> None:
    low = work("low", 3, cores=4, every_ms=300, runtime_ms=1_000)
    high = work("high", 2, cores=4, priority=10, every_ms=500, runtime_ms=200)
    lived(life := QueueLife(load(low, high)))
    starts = [job.started_ms for job in life.jobs.values() if job.arrival.work.name == "low"]
    assert starts == sorted(starts)


def test_an_idle_neighbour_lends() -> None:
    alone = load(work("wide", 4, cores=1, every_ms=0), queues=1, cores=1)
    lived(by_itself := QueueLife(alone))
    lived(lent := QueueLife(load(work("wide", 4, cores=1, every_ms=0), queues=2, cores=2, borrow=2)))
    assert max(job.end_ms for job in by_itself.jobs.values()) == 800
    assert max(job.end_ms for job in lent.jobs.values()) == 400


def test_pods_that_must_share_a_rack_do_and_no_node_holds_more_than_it_has() -> None:
    near = structs.replace(work("near", 6, cores=2, every_ms=50), pods=4, near="required", level=RACK)
    wide = structs.replace(work("wide", 6, cores=2, every_ms=50), pods=4, near="preferred", level=RACK)
    even = structs.replace(work("even", 4, cores=1, every_ms=70), pods=4, near="balanced", level=RACK, slice=2)
    world = structs.replace(load(near, wide, even, queues=2, cores=100), topology=racks(3, 2, 4))
    life = QueueLife(world)
    rack_of = {node.name: node.labels[RACK] for node in life.queues.nodes.values()}
    placed = 0
    for _ in islice(life.each(), MOST_BATCHES):
        used: Counter[str] = Counter()
        for held in life.queues.held.values():
            (pod_set,) = held.admission.pod_sets
            assert pod_set.topology is not None
            cores = held.facts.pod_sets[0].requests["cpu"]
            for (*_, host), pods in pod_set.topology.domains:
                used[host] += pods * cores
            if "near" in held.key:
                assert len({rack_of[host] for (*_, host), _ in pod_set.topology.domains}) == 1
            placed += 1
        assert all(amount <= 4_000 for amount in used.values())
    assert placed
    assert all(job.is_done for job in life.jobs.values())
