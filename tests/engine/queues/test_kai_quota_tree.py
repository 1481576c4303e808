"""KAI's rules on the one quota tree, against plain sums: limits at every level, and quota for what is never ended."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.api.meta import ObjectMeta
from shoal.engine.queues.disciplines.kai.objects import (
    Queue,
    QueueResources,
    QueueResourceShare,
    QueueSpec,
    path_to_root,
)
from shoal.engine.queues.disciplines.kai.queue_quotas import SETTINGS, facts_of, local_queue_key, usage_of
from shoal.engine.queues.disciplines.kai.unschedulable_reasons import OVER_LIMIT, OVER_QUOTA, unschedulable_reason
from shoal.engine.queues.facts import Amounts, BudgetUse, PodSet, WorkloadFacts
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.state import Queues

_ENDLESS = QueueResourceShare(-1, -1, 1)


def queue(name: str, parent: str, gpu: QueueResourceShare) -> Queue:
    return Queue(ObjectMeta(name), QueueSpec(parent, resources=QueueResources(gpu, _ENDLESS, _ENDLESS)))


def work(key: str, name: str, gpus: int, *, is_non_preemptible: bool) -> WorkloadFacts:
    usage = usage_of({"gpu": gpus * 1000, "cpu": 1000}, is_non_preemptible=is_non_preemptible)
    budgets = (BudgetUse("never", 1, 0),) if is_non_preemptible else ()
    return WorkloadFacts(
        f"default/{key}", local_queue_key(name), uid=key, pod_sets=(PodSet("main", 1, requests=usage),), budgets=budgets
    )


shares = st.builds(
    QueueResourceShare,
    st.sampled_from([-1.0, 0.0, 1.0, 2.0, 4.0]),
    st.sampled_from([-1.0, 1.0, 3.0, 5.0]),
    st.sampled_from([0.0, 1.0, 2.0]),
)
works = st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(1, 3), st.booleans()), max_size=12)


@settings(max_examples=examples(30), deadline=None)
@given(shares, shares, shares, shares, works)
def test_no_limit_is_passed_and_what_is_never_ended_stays_within_quota(
    top: QueueResourceShare,
    a: QueueResourceShare,
    b: QueueResourceShare,
    c: QueueResourceShare,
    jobs: list[tuple[str, int, bool]],
) -> None:
    queues = {
        one.name: one for one in (queue("top", "", top), queue("a", "top", a), queue("b", "top", b), queue("c", "", c))
    }
    kueue = Kueue(Queues(SETTINGS))
    for fact in facts_of(queues, {"gpu": 8000, "cpu": 64000, "memory": 0}):
        kueue.queues.put(fact)
    asked: dict[str, tuple[str, int, bool]] = {}
    for number, (name, gpus, is_non_preemptible) in enumerate(jobs):
        asked[f"default/{number}"] = name, gpus, is_non_preemptible
        kueue.put_workload(work(str(number), name, gpus, is_non_preemptible=is_non_preemptible), 0.0)
    kueue.run(1.0)
    held = {key: asked[key] for key in kueue.queues.held}

    def used(name: str, only_fixed: bool) -> Amounts:
        rows = [row for row in held.values() if any(one.name == name for one in path_to_root(queues, row[0]))]
        return {"gpu": 1000 * sum(row[1] for row in rows if row[2] or not only_fixed)}

    for one in queues.values():
        limit, quota = one.limit("gpu"), one.quota("gpu")
        assert limit is None or used(one.name, False)["gpu"] <= limit
        assert quota is None or used(one.name, True)["gpu"] <= quota
    for key in asked.keys() - held.keys():
        name, gpus, is_non_preemptible = asked[key]
        if queues[name].quota("gpu") is None:
            # Who owns without end is kept out by a limit, or by a quota above it of work that is never ended.
            assert unschedulable_reason(
                queues, name, {"gpu": gpus * 1000}, used, is_non_preemptible=is_non_preemptible
            )[0] in {OVER_LIMIT, OVER_QUOTA}


def test_words_name_the_queue_whose_limit_it_is() -> None:
    queues = {
        one.name: one
        for one in (queue("top", "", QueueResourceShare(4, 4, 1)), queue("a", "top", QueueResourceShare(2, -1, 1)))
    }
    reason, message = unschedulable_reason(
        queues, "a", {"gpu": 2000}, lambda name, fixed: {"gpu": 0 if fixed else 3000}, is_non_preemptible=False
    )
    assert reason == OVER_LIMIT
    assert message.startswith("top quota has reached the allowable limit of GPUs. Limit is 4 GPUs, currently 3 GPUs")
