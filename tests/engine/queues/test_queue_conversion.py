"""Queues converted between Kueue, KAI and Volcano: what survives a round trip, and what is said about the rest."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from build.depth import seeds
from shoal.api.kueue import ClusterQueue, Cohort, LocalQueue, ResourceFlavor
from shoal.api.wire import dec_hook
from shoal.engine.queues.conversion.kai_queues import from_kai, to_kai
from shoal.engine.queues.conversion.kueue_queues import KueueObjects, from_kueue, to_kueue
from shoal.engine.queues.conversion.model import GPU, NeutralQueue, Queues, Written, parents_first
from shoal.engine.queues.conversion.volcano_queues import from_volcano, to_volcano
from shoal.engine.queues.disciplines.kai.objects import Queue as KaiQueue
from shoal.engine.queues.disciplines.volcano.objects import Queue as VolcanoQueue

Writer = Callable[[Queues], Written]
Reader = Callable[[Written], Queues]


def typed(value: Any, wanted: Any) -> Any:
    return msgspec.convert(value, wanted, dec_hook=dec_hook)


def of_kind(written: Written, kind: str, wanted: Any) -> list[Any]:
    return [typed(each, wanted) for each in written.objects if each["kind"] == kind]


def read_kueue(written: Written) -> Queues:
    return from_kueue(
        KueueObjects(
            of_kind(written, "ClusterQueue", ClusterQueue),
            of_kind(written, "Cohort", Cohort),
            of_kind(written, "ResourceFlavor", ResourceFlavor),
            of_kind(written, "LocalQueue", LocalQueue),
        )
    )


WRITERS: dict[str, Writer] = {"kueue": lambda queues: to_kueue(queues, "default"), "kai": to_kai, "volcano": to_volcano}
READERS: dict[str, Reader] = {
    "kueue": read_kueue,
    "kai": lambda written: from_kai(of_kind(written, "Queue", KaiQueue)),
    "volcano": lambda written: from_volcano(of_kind(written, "Queue", VolcanoQueue)),
}


def bare(queues: Queues) -> list[NeutralQueue]:
    """What every project can express, in one spelling."""
    return [
        msgspec.structs.replace(queue, locals=(), weight=1.0 if queue.weight is None else queue.weight)
        for queue in queues.queues
    ]


def random_queues(seed: int) -> Queues:
    """Trees in which parents have what their children have, and something on top."""
    chance = random.Random(seed)
    leaves: list[NeutralQueue] = []
    found: list[NeutralQueue] = []
    for top in range(chance.randint(2, 3)):
        below = []
        for leaf in range(chance.randint(1, 3)):
            quota = {"cpu": chance.randint(1, 9) * 1000, GPU: chance.randint(1, 8) * 1000}
            limit = {GPU: quota[GPU] + chance.randint(0, 4) * 1000} if chance.random() < 0.5 else {}
            below.append(NeutralQueue(f"q{top}{leaf}", f"q{top}", quota, limit, weight=float(chance.randint(1, 5))))
        more = chance.randint(0, 2) * 1000
        whole = {name: sum(each.quota[name] for each in below) + more for name in ("cpu", GPU)}
        found.append(NeutralQueue(f"q{top}", "", whole, weight=float(chance.randint(1, 5))))
        leaves += below
    return Queues(parents_first([*found, *leaves]))


@pytest.mark.parametrize("project", ["kueue", "kai", "volcano"])
@pytest.mark.parametrize("seed", seeds(20))
def test_what_a_project_can_express_survives_writing_and_reading(seed: int, project: str) -> None:
    queues = random_queues(seed)
    assert bare(READERS[project](WRITERS[project](queues))) == list(queues.queues)


@pytest.mark.parametrize("way", [("kueue", "kai", "volcano"), ("volcano", "kueue", "kai"), ("kai", "volcano", "kueue")])
@pytest.mark.parametrize("seed", seeds(10))
def test_a_round_over_all_projects_ends_where_it_began(seed: int, way: tuple[str, str, str]) -> None:
    queues = random_queues(seed)
    now = queues
    for project in way:
        now = READERS[project](WRITERS[project](now))
    assert bare(now) == list(queues.queues)


def one(**fields: Any) -> Queues:
    return Queues([NeutralQueue("q", **{"quota": {GPU: 4000}, **fields})])


@pytest.mark.parametrize(
    ("project", "queues", "words"),
    [
        ("kueue", one(priority=5), "queue q: priority 5 is left out"),
        ("kueue", one(is_reclaimable=False), "queue q: other queues may reclaim what it borrows"),
        ("kueue", one(quota={GPU: 500}), "quota of 0.5 GPUs is rounded up"),
        ("kueue", one(unlimited=frozenset({GPU})), "the unlimited quota of nvidia.com/gpu is left out"),
        ("kueue", one(quota={}), "the queues declare no quotas"),
        ("kai", one(guarantee={GPU: 1000}), "the guarantee is left out"),
        ("kai", one(is_held=True), "it is stopped; KAI has no such state"),
        ("kai", one(quota={"example.com/fpga": 1}), "that KAI's queues do not count are left out: example.com/fpga"),
        ("kai", one(is_first_come=True), "the first job does not block"),
        ("kai", one(locals=(("team", "l"),)), "pods of LocalQueue team/l need the label kai.scheduler/queue: q"),
        ("volcano", one(weight=0.5), "weight 0.5 is written as 1"),
        ("volcano", one(is_held=True), "vcctl queue operate -n q -a close"),
        ("volcano", one(unlimited=frozenset({GPU})), "Volcano has no word for it"),
        ("volcano", one(locals=(("team", "l"),)), "jobs of LocalQueue team/l must name the queue q themselves"),
    ],
)
def test_what_the_other_project_cannot_express_is_listed(project: str, queues: Queues, words: str) -> None:
    losses = WRITERS[project](queues).losses
    assert [loss for loss in losses if words in loss], losses


def test_quotas_of_children_above_the_parents_are_said_for_kueue() -> None:
    queues = Queues([NeutralQueue("p", quota={GPU: 1000}), NeutralQueue("q", "p", {GPU: 2000})])
    assert (
        "queue p: the quotas of its children add up to more nvidia.com/gpu than its own" in to_kueue(queues, "d").losses
    )


def kai(**spec: Any) -> Queues:
    return from_kai([typed({"metadata": {"name": "q"}, "spec": spec}, KaiQueue)])


def gpu(quota: float, limit: float, weight: float = 1) -> dict[str, Any]:
    return {"gpu": {"quota": quota, "limit": limit, "overQuotaWeight": weight}}


def test_a_kai_queue_without_weight_gets_nothing_beyond_its_quota() -> None:
    (queue,) = kai(resources=gpu(4, -1, weight=0)).queues
    assert (queue.quota, queue.limit) == ({GPU: 4000}, {GPU: 4000})


def test_unlimited_quota_of_kai_is_known_as_such() -> None:
    (queue,) = kai(resources=gpu(-1, 8)).queues
    assert (queue.quota, queue.limit, queue.unlimited) == ({}, {GPU: 8000}, frozenset({GPU}))


def test_minimum_runtimes_and_weights_by_resource_are_listed() -> None:
    resources = {**gpu(4, -1, 2), "cpu": {"quota": 1000, "limit": -1, "overQuotaWeight": 1}}
    losses = kai(preemptMinRuntime="5m", resources=resources).losses
    assert any("preemptMinRuntime 5m is left out" in loss for loss in losses)
    assert any("of the weights by resource (gpu 2, cpu 1) only the largest is kept" in loss for loss in losses)


def test_extensions_of_volcanos_queues_are_listed() -> None:
    specs = {"a": {"preemptable": False}, "b": {"preemptionPolicy": "FIFO"}, "c": {"preemptable": True}}
    queues = [typed({"metadata": {"name": name}, "spec": spec}, VolcanoQueue) for name, spec in specs.items()]
    assert from_volcano(queues).losses == [
        "queue a: preemptable, an extension of Shoal, is left out",
        "queue b: preemptionPolicy, an extension of Shoal, is left out",
    ]


def cluster_queue(name: str, cohort: str = "", *flavors: tuple[str, int], **spec: Any) -> ClusterQueue:
    given = [
        {"name": flavor, "resources": [{"name": GPU, "nominalQuota": str(count)}]}
        for flavor, count in flavors or (("f", 4),)
    ]
    body = {"resourceGroups": [{"coveredResources": [GPU], "flavors": given}], "cohortName": cohort, **spec}
    found: ClusterQueue = typed({"metadata": {"name": name}, "spec": body}, ClusterQueue)
    return found


def test_a_cluster_queue_without_cohort_borrows_nothing() -> None:
    (queue,) = from_kueue(KueueObjects([cluster_queue("q")])).queues
    assert (queue.quota, queue.limit) == ({GPU: 4000}, {GPU: 4000})


def test_quotas_of_flavors_are_added_up_and_that_is_said() -> None:
    found = from_kueue(KueueObjects([cluster_queue("q", "", ("a", 4), ("b", 2))]))
    assert found.queues[0].quota == {GPU: 6000}
    assert "quotas are added up over the flavors a, b: only Kueue has quotas by flavor" in found.losses


def test_what_a_queue_does_not_lend_is_its_guarantee() -> None:
    resources = [{"name": GPU, "nominalQuota": "4", "lendingLimit": "1", "borrowingLimit": "2"}]
    groups = [{"coveredResources": [GPU], "flavors": [{"name": "f", "resources": resources}]}]
    found = from_kueue(KueueObjects([cluster_queue("q", "c", resourceGroups=groups)]))
    queue = next(each for each in found.queues if each.name == "q")
    assert (queue.guarantee, queue.limit) == ({GPU: 3000}, {GPU: 6000})


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"preemption": {"reclaimWithinCohort": "Never"}}, "it may reclaim from its cohort after the conversion"),
        ({"namespaceSelector": {"matchLabels": {"a": "b"}}}, "namespaceSelector is left out"),
        (
            {"preemption": {"borrowWithinCohort": {"policy": "LowerPriority"}, "reclaimWithinCohort": "Any"}},
            "preemption.borrowWithinCohort is left out",
        ),
    ],
)
def test_rules_that_only_kueue_has_are_listed(spec: dict[str, Any], words: str) -> None:
    losses = from_kueue(KueueObjects([cluster_queue("q", "c", **spec)])).losses
    assert [loss for loss in losses if words in loss], losses


def test_labels_of_flavors_are_listed() -> None:
    flavor = typed({"metadata": {"name": "f"}, "spec": {"nodeLabels": {"gpu": "h100"}}}, ResourceFlavor)
    losses = from_kueue(KueueObjects([cluster_queue("q")], flavors=[flavor])).losses
    assert "flavor f: nodeLabels are left out; write them into the pods of its jobs" in losses


def test_parents_in_a_circle_end() -> None:
    queues = [typed({"metadata": {"name": a}, "spec": {"parent": b}}, VolcanoQueue) for a, b in ("pq", "qp")]
    found = from_volcano(queues)
    assert {queue.name for queue in found.queues} == {"p", "q"}
    for write in WRITERS.values():
        assert write(found).objects
