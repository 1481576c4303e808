"""What remains of the facts for a viewer that may not see everything."""

import msgspec

from build.dashboard_facts import node, pod, scene
from shoal.views.dashboard.facts import (
    DashboardFacts,
    EventFacts,
    GangDetail,
    GangFacts,
    NodeDetail,
    PodDetail,
    QueueDetail,
    QueueFacts,
    WarningFacts,
    WorkloadFacts,
)
from shoal.views.queue_tree import Tree, TreeNode
from shoal.web.viewer import ALL, OTHERS, PermittedFacts, Viewer, namespaces_of, permitted_tree

VISION = Viewer(frozenset({"vision"}))


def workload(namespace: str, name: str) -> WorkloadFacts:
    return WorkloadFacts(namespace, name, "q", "cq", f"job/{name}", 1, 2.0, "pending", "no quota", "")


def gang(name: str) -> GangFacts:
    return GangFacts(name, 2, 1, 1, 8, 1, "q", "waits", "")


def everything() -> DashboardFacts:
    """Of two namespaces, the objects of one of which are all called secret."""
    found = scene(
        [node("n-0"), node("n-1")],
        [
            pod("mine", "vision", 3),
            pod("secret-0", "hidden", 2),
            pod("secret-1", "hidden", 1, ""),
            pod("m", "vision", 1, ""),
        ],
        [
            EventFacts("", "pod/secret", "Failed", "secret", is_warning=True, namespace="hidden"),
            EventFacts("", "pod/mine", "Started", "x", is_warning=False, namespace="vision"),
        ],
    )
    return msgspec.structs.replace(
        found,
        workloads=[workload("hidden", "secret"), workload("vision", "mine")],
        gangs=[gang("hidden/secret"), gang("vision/mine")],
        warnings=[WarningFacts("k", "Evicted", 1, "", "pod/secret", "secret")],
    )


def written(facts: object) -> str:
    return msgspec.json.encode(facts).decode()


def test_a_warning_of_the_client_is_shown_to_viewers_who_see_everything() -> None:
    facts = msgspec.structs.replace(everything(), note="pods cannot be followed")
    assert PermittedFacts().of(facts, ALL).note == "pods cannot be followed"
    for viewer in (VISION, Viewer(lists_nodes=False)):
        assert PermittedFacts().of(facts, viewer).note == ""


def test_a_viewer_that_sees_everything_gets_the_same_facts() -> None:
    facts = everything()
    assert PermittedFacts().of(facts, ALL) is facts


def test_no_name_of_another_namespace_is_left() -> None:
    shown = PermittedFacts().of(everything(), VISION)
    assert "secret" in written(everything())
    assert "secret" not in written(shown)
    assert "hidden" not in written(shown)
    assert "mine" in written(shown)


def test_what_others_hold_remains_as_a_sum() -> None:
    shown = PermittedFacts().of(everything(), VISION)
    assert shown.fleet.sums == {"vision": 3.0, OTHERS: 2.0}
    assert shown.tiles[0].sums == {"vision": 3.0, OTHERS: 2.0}
    assert shown.fleet.held == everything().fleet.held
    assert shown.waits == 2


def test_without_the_right_to_list_nodes_only_those_of_own_pods_are_named() -> None:
    """Every pod says on which node it runs."""
    shown = PermittedFacts().of(everything(), Viewer(frozenset({"vision"}), lists_nodes=False))
    assert [tile.node.name for tile in shown.tiles] == ["n-0"]
    assert [slot.pod for gpu in shown.tiles[0].parts for slot in gpu] == 3 * ["vision/mine"]
    assert shown.tiles[0].node.gpus == 0
    assert "n-1" not in written(shown)
    assert shown.fleet.most_free == ("", 8)
    assert shown.fleet.gpus == 16
    assert PermittedFacts().of(everything(), Viewer(frozenset(), lists_nodes=False)).tiles == []


def test_without_the_right_to_list_queues_none_is_named() -> None:
    facts = msgspec.structs.replace(everything(), queues=[QueueFacts("ClusterQueue", "gold", "")])
    assert PermittedFacts().of(facts, Viewer(None, lists_queues=False)).queues == ()
    assert len(PermittedFacts().of(facts, VISION).queues) == 1


def test_pages_of_single_objects_are_reduced_too() -> None:
    facts = everything()
    tile = facts.tiles[0]
    details = [
        NodeDetail(tile, [pod("mine", "vision"), pod("secret", "hidden")]),
        QueueDetail(
            QueueFacts("ClusterQueue", "gold", ""),
            [workload("hidden", "secret")],
            [workload("hidden", "secret"), workload("vision", "mine")],
            [gang("hidden/secret")],
        ),
        PodDetail(pod("secret", "hidden")),
        GangDetail(gang("hidden/secret"), [pod("secret", "hidden")]),
    ]
    for detail in details:
        shown = PermittedFacts().of(msgspec.structs.replace(facts, detail=detail), VISION).detail
        assert "secret" not in written(shown), detail
    assert isinstance(PermittedFacts().of(msgspec.structs.replace(facts, detail=details[0]), VISION).detail, NodeDetail)


def test_a_page_of_ones_own_pod_is_whole() -> None:
    detail = PodDetail(pod("mine", "vision"))
    facts = msgspec.structs.replace(everything(), detail=detail)
    assert PermittedFacts().of(facts, VISION).detail == detail


def test_tiles_that_have_not_changed_are_the_same_objects() -> None:
    facts, permitted = everything(), PermittedFacts()
    assert permitted.of(facts, VISION).tiles[0] is permitted.of(facts, VISION).tiles[0]


def test_every_namespace_that_is_shown_is_asked_about() -> None:
    facts = everything()
    assert namespaces_of(facts) == {"vision", "hidden"}
    assert "other" in namespaces_of(msgspec.structs.replace(facts, detail=PodDetail(pod("x", "other"))))
    queue = QueueDetail(QueueFacts("ClusterQueue", "gold", ""), [workload("third", "x")], [], [gang("fourth/y")])
    assert {"third", "fourth"} <= namespaces_of(msgspec.structs.replace(facts, detail=queue))


def test_local_queues_of_other_namespaces_are_left_out_of_the_tree() -> None:
    locals_ = [TreeNode("localQueue", "hidden/secret"), TreeNode("localQueue", "vision/q")]
    tree = Tree(
        [TreeNode("cohort", "all", children=[TreeNode("clusterQueue", "gold", children=locals_)])], locals_, locals_
    )
    shown = permitted_tree(tree, VISION)
    assert "secret" not in written(shown)
    assert written(shown).count("vision/q") == 3
    assert permitted_tree(tree, ALL) is tree
    assert permitted_tree(tree, Viewer(lists_queues=False)) == Tree()


def test_a_viewer_of_pods_alone_finds_nothing_that_events_and_workloads_say() -> None:
    waiting = msgspec.structs.replace(pod("gated", "vision", 1, ""), is_gated=True, why="quota of others")
    facts = msgspec.structs.replace(everything(), waiting=[waiting], detail=PodDetail(waiting, everything().events))
    pods_alone = Viewer(frozenset({"vision"}), events_in=frozenset(), workloads_in=frozenset())
    found = PermittedFacts().of(facts, pods_alone)
    assert (found.events, found.workloads) == ([], [])
    assert [gang.why for gang in found.gangs] == [""]
    assert found.waiting[0].why == ""
    assert isinstance(found.detail, PodDetail)
    assert not found.detail.events
    assert found.detail.pod.why == ""


def test_events_of_nodes_are_shown_to_viewers_of_nodes_and_of_the_default_namespace() -> None:
    facts = msgspec.structs.replace(everything(), events=[EventFacts("", "node/n-0", "Rebooted", "x", is_warning=True)])
    for events_in, count in ((None, 1), (frozenset({"default"}), 1), (frozenset({"vision"}), 0)):
        assert len(PermittedFacts().of(facts, Viewer(None, events_in=events_in)).events) == count
    assert PermittedFacts().of(facts, Viewer(None, lists_nodes=False)).events == []
