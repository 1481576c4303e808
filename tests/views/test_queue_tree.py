"""The quota tree as it is read: who has, uses, borrows and lends what, and who waits in front of it."""

from __future__ import annotations

import io

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from rich.console import Console

from build.depth import examples
from build.queues import admitted, cluster_queue, cohort, limited, queues, quotas, workload
from shoal.api.selectors import Selector
from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.state import Queues
from shoal.views.queue_backlog import waiters_of
from shoal.views.queue_text import show_tree
from shoal.views.queue_tree import QuotaLine, Tree, TreeNode, queue_tree

GPU = "nvidia.com/gpu"


def read(world: Queues, *waiting: WorkloadFacts) -> Tree:
    kueue = Kueue(world)
    for facts in waiting:
        kueue.put_workload(facts, 0.0)
    return queue_tree(world, waiters_of(kueue, {facts.key: facts for facts in waiting}))


def using(queue: str, gpus: int, name: str = "held") -> WorkloadFacts:
    return admitted(workload(f"{name}-{queue}", queue, gpu=gpus), queue)


def find(tree: Tree, name: str) -> TreeNode:
    ahead = [*tree.roots, *tree.astray]
    while ahead:
        node = ahead.pop()
        if node.name == name:
            return node
        ahead += node.children
    raise AssertionError(name)


def line(tree: Tree, name: str, resource: str = GPU) -> QuotaLine:
    (found,) = [each for each in find(tree, name).quotas if each.resource == resource]
    return found


def amounts(tree: Tree, name: str) -> tuple[float | None, float, float, float]:
    found = line(tree, name)
    return found.nominal, found.used, found.borrowed, found.lent


def test_what_one_borrows_another_lends() -> None:
    world = queues(cluster_queue("a", cohort="c", gpu=8), cluster_queue("b", cohort="c", gpu=8), using("a", 11))
    tree = read(world)
    assert amounts(tree, "a") == (8, 11, 3, 0)
    assert amounts(tree, "b") == (8, 0, 0, 3)
    assert amounts(tree, "c") == (16, 11, 0, 0)


def test_several_lend_in_proportion_to_what_they_have_idle() -> None:
    world = queues(
        cluster_queue("a", cohort="c", gpu=0),
        cluster_queue("b", cohort="c", gpu=6),
        cluster_queue("d", cohort="c", gpu=4),
        using("a", 3),
        using("d", 1),
    )
    tree = read(world)
    assert [amounts(tree, name)[3] for name in "bd"] == [2, 1]


def test_what_is_not_lent_stays() -> None:
    keeps = cluster_queue("b", cohort="c", gpu=limited(8, lend=2))
    world = queues(cluster_queue("a", cohort="c", gpu=2), keeps, cluster_queue("d", cohort="c", gpu=2), using("a", 5))
    tree = read(world)
    assert amounts(tree, "b")[3] + amounts(tree, "d")[3] == 3
    assert amounts(tree, "b")[3] <= 2


def test_quota_of_a_cohort_is_used_before_that_of_its_children() -> None:
    world = queues(
        cohort("c", gpu=2), cluster_queue("a", cohort="c", gpu=0), cluster_queue("b", cohort="c", gpu=4), using("a", 3)
    )
    tree = read(world)
    assert amounts(tree, "c") == (6, 3, 0, 0)
    assert amounts(tree, "b")[3] == 1


def test_a_cohort_borrows_for_those_below_it_and_lends_what_they_lend() -> None:
    world = queues(
        cohort("left", parent="top"),
        cohort("right", parent="top"),
        cluster_queue("a", cohort="left", gpu=2),
        cluster_queue("b", cohort="right", gpu=6),
        using("a", 5),
    )
    tree = read(world)
    assert amounts(tree, "left") == (2, 5, 3, 0)
    assert amounts(tree, "right") == (6, 0, 0, 3)
    assert amounts(tree, "b") == (6, 0, 0, 3)
    assert amounts(tree, "top") == (8, 5, 0, 0)


def test_a_share_is_told_of_those_who_borrow_alone() -> None:
    world = queues(
        cluster_queue("a", cohort="c", gpu=8), cluster_queue("b", cohort="c", gpu=8, weight=0.0), using("a", 12)
    )
    share = find(read(world), "a").share
    assert share is not None
    assert (share.weighted, share.resource) == (250, GPU)
    assert find(read(world), "b").share is None


def test_a_weight_of_nothing_makes_any_share_the_largest() -> None:
    heavy = cluster_queue("a", cohort="c", gpu=8, weight=0.0)
    share = find(read(queues(heavy, cluster_queue("b", cohort="c", gpu=8), using("a", 9))), "a").share
    assert share is not None
    assert share.weighted is None


def test_who_waits_is_counted_all_the_way_up() -> None:
    world = queues(cluster_queue("a", cohort="c", gpu=8, cpu=4))
    waiting = [workload("x", "a", gpu=4, cpu=1.5), workload("y", "a", gpu=2, count=2)]
    tree = read(world, *waiting)
    for name in ("default/a", "a", "c"):
        assert find(tree, name).waiting.workloads == 2
        assert find(tree, name).waiting.amounts == {"cpu": 1.5, GPU: 8}
    assert line(tree, "a").waiting == 8
    assert line(tree, "a", "cpu").waiting == 1.5


def test_where_there_is_a_choice_of_flavors_nobody_is_said_to_wait_for_one() -> None:
    world = queues(cluster_queue("a", quotas("new", gpu=8), quotas("old", gpu=8)))
    tree = read(world, workload("x", "a", gpu=4))
    assert [each.waiting for each in find(tree, "a").quotas] == [None, None]
    assert find(tree, "a").waiting.amounts == {GPU: 4}


def test_a_local_queue_uses_what_its_workloads_hold() -> None:
    tree = read(queues(cluster_queue("a", gpu=8, cpu=8), using("a", 3)))
    local = find(tree, "default/a")
    assert (local.kind, line(tree, "default/a").used, line(tree, "default/a").nominal) == ("localQueue", 3, None)


def test_a_queue_that_admits_nobody_says_why() -> None:
    world = queues(cluster_queue("a", gpu=8, stop="Hold"))
    assert find(read(world), "a").closed == "it is stopped"


def test_amounts_are_cores_bytes_and_pieces() -> None:
    tree = read(queues(cluster_queue("a", cpu="2500m", memory="1Gi", gpu=3)))
    found = {each.resource: each.nominal for each in find(tree, "a").quotas}
    assert found == {"cpu": 2.5, "memory": 1 << 30, GPU: 3}


sizes = st.integers(0, 9)


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.tuples(sizes, sizes, st.none() | sizes, st.sampled_from(["l", "r"])), min_size=1, max_size=6), sizes)
def test_everything_that_is_borrowed_is_lent_by_somebody(
    drawn: list[tuple[int, int, int | None, str]], own: int
) -> None:
    facts = [
        cluster_queue(f"q{number}", cohort=side, gpu=limited(nominal, lend=lend))
        for number, (nominal, _, lend, side) in enumerate(drawn)
    ]
    world = queues(cohort("l", parent="top", gpu=own), cohort("r", parent="top"), *facts)
    for number, (_, used, _, _) in enumerate(drawn):
        room = world.cluster_queues[f"q{number}"].available(("default", GPU))
        if 0 < used <= room:
            world.hold(using(f"q{number}", used), 0.0)
    tree = read(world)
    names = [f"q{number}" for number in range(len(drawn))]
    borrowed = sum(line(tree, name).borrowed for name in names)
    lent = sum(line(tree, name).lent for name in names)
    assert borrowed - own <= lent <= borrowed
    for name, (nominal, used, lend, _) in zip(names, drawn, strict=True):
        found = line(tree, name)
        assert found.lent <= (nominal if lend is None else min(lend, nominal))
        assert found.lent + min(found.used, nominal) <= nominal
        assert not (found.lent and found.borrowed)
        assert found.used in (0, used)


def test_a_queue_without_a_namespace_selector_is_said_to_admit_nobody() -> None:
    everybody = cluster_queue("open", gpu=8)
    nobody = structs.replace(cluster_queue("shut", gpu=8), namespaces=Selector.NOTHING)
    tree = read(queues(everybody, nobody))
    assert find(tree, "open").closed == ""
    assert find(tree, "shut").closed.startswith("it has no namespaceSelector")


def test_workloads_of_a_local_queue_that_does_not_exist_are_counted() -> None:
    lost = [structs.replace(workload(f"lost-{at}", "a", gpu=1), queue="default/missing") for at in range(2)]
    nameless = structs.replace(workload("nameless", "a", gpu=1), queue="")
    tree = read(queues(cluster_queue("a", gpu=8)), workload("known", "a", gpu=9), *lost, nameless)
    assert [(node.name, node.waiting.workloads, node.closed) for node in tree.missing] == [
        ("", 1, "these workloads name no LocalQueue"),
        ("default/missing", 2, "it does not exist"),
    ]
    screen = io.StringIO()
    show_tree(Console(file=screen, width=100), tree)
    assert "1 cluster queue, 0 of 8 GPUs used, 4 waiting" in screen.getvalue()
    assert "from default/missing admits no workloads: it does not exist" in screen.getvalue()
    assert "from (none) admits no workloads: these workloads name no LocalQueue" in screen.getvalue()
