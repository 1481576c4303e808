"""A dashboard of one namespace lists what is in it, and nodes and queues as a whole."""

from __future__ import annotations

from msgspec import structs

from build.dashboard_facts import event, node, pod
from shoal.views.dashboard.cluster_state import ClusterState
from shoal.views.dashboard.facts import GroupFacts, WorkloadFacts


def _workload(namespace: str) -> WorkloadFacts:
    return WorkloadFacts(namespace, "w", "q", "", "job/w", 1, 1, "pending", "", "2026-01-01T00:00:00Z")


def _state(namespace: str) -> ClusterState:
    state = ClusterState("Shoal", namespace)
    state.put_node(node("n-0"))
    for team in ("team", "team-b", "old-team"):
        state.put_pod(pod("runs", team, 2))
        state.put_pod(pod("waits", team, 1, ""))
        state.put_pod(structs.replace(pod("done", team), phase="Succeeded"))
        state.queues.put_workload(_workload(team))
        state.gangs.put_group(GroupFacts(team, "gang", 2, "", ""))
        state.put_event(structs.replace(event("Failed", is_warning=True), name=f"{team}/e", namespace=team))
    state.put_event(structs.replace(event("NodeNotReady", is_warning=True), name="default/n", about="node/n-0"))
    return state


def test_only_its_own_objects_are_listed_and_counted() -> None:
    found = _state("team").scene("")
    assert [one.full_name for one in found.waiting] == ["team/waits"]
    assert [one.full_name for one in found.workloads] == ["team/job/w"]
    assert [one.name for one in found.gangs] == ["team/gang"]
    assert {one.namespace for one in found.events} == {"team", ""}
    assert {one.key for one in found.warnings} == {"Failed team", "NodeNotReady "}
    assert (found.waits, found.running, found.done) == (1, 1, 1)


def test_nodes_show_what_all_namespaces_hold() -> None:
    assert dict(_state("team").scene("").fleet.sums) == {"team": 2, "team-b": 2, "old-team": 2}


def test_a_pod_that_starts_or_goes_is_counted_only_in_its_namespace() -> None:
    state = _state("team")
    for team in ("team", "team-b"):
        state.put_pod(pod("waits", team, 1))
        state.drop_pod((team, "runs"))
    found = state.scene("")
    assert (found.waits, found.running) == (0, 1)


def test_without_a_namespace_all_are_listed() -> None:
    found = _state("").scene("")
    assert (len(found.waiting), len(found.workloads), len(found.gangs), len(found.events)) == (3, 3, 3, 4)
    assert (found.waits, found.running, found.done) == (3, 3, 3)
