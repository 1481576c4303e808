"""What the dashboard takes from objects, and what it keeps counting."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.dashboard_facts import event, node, pod, read_event, read_node, read_pod, scene
from shoal.views.dashboard.account import Account, line
from shoal.views.dashboard.cluster_state import ClusterState
from shoal.views.dashboard.facts import DashboardPod
from shoal.views.dashboard.gpu_use import tile_of
from shoal.views.dashboard.queue_reading import cluster_queue, workload
from shoal.views.dashboard.reading import event_facts, node_detail, node_facts, pod_facts

_REFUSED = (
    "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. no new claims to deallocate, preemption: 0/1 nodes are "
    "available: 1 No preemption victims found for incoming pod."
)


def _json(obj: dict[str, Any]) -> bytes:
    return msgspec.json.encode(obj)


def test_a_node_says_its_kind_its_gpus_and_what_is_broken() -> None:
    labels = {"node.kubernetes.io/instance-type": "p5.48xlarge", "nvidia.com/gpu.count": "8"}
    annotations = {"shoal.dev/gpu-faults": '{"3":79}'}
    face = node_facts(
        _json(
            {
                "metadata": {"name": "n", "labels": labels, "annotations": annotations},
                "spec": {"unschedulable": True},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            }
        )
    )
    assert (face.kind, face.gpus, face.is_ready, face.is_cordoned) == ("p5.48xlarge", 8, True, True)
    assert face.broken == {3}


def test_gpus_that_a_node_does_not_advertise_as_a_resource_are_not_counted() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "8"}
    topology = {"shoal.dev/topology": json.dumps({"gpus": [{"index": 0, "uuid": "GPU-a"}]})}

    def gpus(**capacity: str) -> int:
        meta = {"name": "n", "labels": labels, "annotations": topology}
        return node_facts(_json({"metadata": meta, "status": {"capacity": {"cpu": "64", **capacity}}})).gpus

    assert gpus() == 0
    assert gpus(**{"nvidia.com/gpu": "8"}) == gpus(**{"nvidia.com/mig-1g.10gb": "56"}) == 8
    assert gpus(**{"nvidia.com/gpu.shared": "32"}) == 8


def test_a_misspelled_resource_is_no_gpu() -> None:
    spec = {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpus": "2"}}}]}
    assert pod_facts(_json({"metadata": {"name": "p", "namespace": "t"}, "spec": spec})).gpus == 0


def _topology(gpus: list[dict[str, Any]], product: str, **labels: str) -> list[tuple[str, int, float, float]]:
    annotations = {"shoal.dev/topology": json.dumps({"gpus": gpus})}
    named = {"nvidia.com/gpu.product": product, **{f"nvidia.com/{name}": text for name, text in labels.items()}}
    face = node_facts(_json({"metadata": {"name": "n", "labels": named, "annotations": annotations}}))
    return [(slot.device, slot.gpu, slot.start, slot.width) for slot in face.slots]


def test_mig_instances_lie_where_their_memory_slices_are() -> None:
    cut = [{"profile": "3g.40gb", "start": 0, "uuid": "MIG-a"}, {"profile": "1g.10gb", "start": 6, "uuid": "MIG-b"}]
    found = _topology(
        [{"index": 0, "uuid": "GPU-a", "mig": cut}, {"index": 1, "uuid": "GPU-b"}], "NVIDIA-H100-80GB-HBM3"
    )
    assert found == [("MIG-a", 0, 0.0, 0.5), ("MIG-b", 0, 0.75, 0.125), ("GPU-b", 1, 0.0, 1.0)]


def test_replicas_of_a_shared_gpu_stand_side_by_side() -> None:
    found = _topology([{"index": 0, "uuid": "GPU-a"}], "NVIDIA-L4-SHARED", **{"gpu.replicas": "2"})
    assert found == [("GPU-a::0", 0, 0.0, 0.5), ("GPU-a::1", 0, 0.5, 0.5)]


def test_what_cannot_be_read_of_a_node_is_as_if_it_were_not_there() -> None:
    annotations = {"shoal.dev/gpu-faults": "{", "shoal.dev/topology": "[1]"}
    face = node_facts(_json({"metadata": {"name": "n", "annotations": annotations}}))
    assert (face.gpus, face.slots, face.broken, face.is_ready) == (0, (), frozenset(), False)


def test_a_pod_says_what_it_asks_for_what_it_got_and_why_it_waits() -> None:
    limits = {"nvidia.com/gpu": "2", "nvidia.com/mig-1g.10gb": 1, "cpu": "4"}
    held = [{"name": "nvidia.com/gpu", "resources": [{"resourceID": "GPU-1", "health": "Healthy"}]}]
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": _REFUSED}
    face = pod_facts(
        _json(
            {
                "metadata": {"name": "p", "namespace": "team"},
                "spec": {"containers": [{"name": "c", "resources": {"limits": limits, "requests": limits}}]},
                "status": {"containerStatuses": [{"allocatedResourcesStatus": held}], "conditions": [refused]},
            }
        )
    )
    assert (face.gpus, face.devices, face.why, face.waits) == (3, ("GPU-1",), "1 Insufficient nvidia.com/gpu", True)


def test_an_event_is_a_line_whichever_time_it_carries() -> None:
    face = event_facts(
        _json(
            {
                "metadata": {"name": "e", "creationTimestamp": "2026-01-01T00:00:00Z"},
                "involvedObject": {"kind": "Pod", "name": "p"},
                "reason": "Killing",
                "type": "Warning",
                "lastTimestamp": None,
                "count": None,
            }
        )
    )
    assert (face.at, face.about, face.is_warning, face.count) == ("2026-01-01T00:00:00Z", "pod/p", True, 1)


def test_an_event_cannot_command_the_terminal() -> None:
    face = read_event("Kill\ning", "a\rb", "one\ntwo\x1b[2J\x1b]0;title\x07 three")
    assert (face.reason, face.about) == ("Kill ing", "a b/a b")
    assert face.message == "one two [2J ]0;title three"


@pytest.mark.parametrize("count", ["3000000", "9" * 5000])
def test_no_node_has_more_gpus_than_a_machine_can_have(count: str) -> None:
    assert read_node("n", "p5", count).gpus == 64


@pytest.mark.parametrize("gpus", ["1000000000", "9" * 5000])
def test_a_pod_that_asks_for_more_than_there_is_holds_all_there_is(gpus: str) -> None:
    shown = scene([node("n-0")], [read_pod("vision", "a", "", "n-0", gpus)])
    assert shown.tiles[0].sums == {"vision": 8}


def test_capacity_is_held_to_the_same_bound_as_the_label() -> None:
    status = {"capacity": {"nvidia.com/gpu": "1000000000"}}
    assert node_facts(_json({"metadata": {"name": "n"}, "status": status})).gpus == 64


def test_a_topology_that_no_machine_has_costs_no_more_than_one_that_is_real() -> None:
    gpus: list[dict[str, Any]] = [{"index": index, "uuid": "GPU"} for index in (-1, 64, 10**9, 10**30)]
    cut = [{"profile": "1g.10gb", "start": at, "uuid": "MIG"} for at in (-1, 8, 10**400)]
    assert _topology([*gpus, {"index": 0, "uuid": "G", "mig": cut}], "NVIDIA-H100-80GB-HBM3") == []
    many = [{"index": 1, "uuid": "G", "mig": [{"profile": "1g.10gb", "start": 1, "uuid": "M"}] * 5_000}]
    shared = {"gpu.replicas": "64"}
    assert len(_topology(many, "NVIDIA-H100-80GB-HBM3-SHARED", **shared)) == 1_024


@pytest.mark.parametrize("text", ['{"a":' + "[" * 100_000, '{"' + "9" * 5000 + '":1}', '{"-1":1,"64":1}'])
def test_faults_that_cannot_be_are_none(text: str) -> None:
    face = node_facts(_json({"metadata": {"name": "n", "annotations": {"shoal.dev/gpu-faults": text}}}))
    assert face.broken == frozenset()


def _with_phase(face: DashboardPod, phase: str) -> DashboardPod:
    return msgspec.structs.replace(face, phase=phase)


def test_what_is_done_stays_done_when_its_pods_are_gone() -> None:
    watched = ClusterState()
    watched.put_node(node("n-0"))
    running = pod("a")
    watched.put_pod(running)
    assert (watched.scene("").running, watched.scene("").tiles[0].sums) == (1, {"vision": 1})
    watched.put_pod(_with_phase(running, "Succeeded"))
    watched.drop_pod(("vision", "a"))
    shown = watched.scene("")
    assert (shown.running, shown.done, shown.tiles[0].sums) == (0, 1, {})


def test_who_is_told_to_end_has_not_failed() -> None:
    watched = ClusterState()
    watched.put_pod(msgspec.structs.replace(_with_phase(pod("a"), "Failed"), is_ending=True))
    watched.put_pod(_with_phase(pod("b"), "Failed"))
    assert watched.scene("").failed == 1


def test_a_pod_that_comes_back_under_its_name_is_counted_again() -> None:
    watched = ClusterState()
    for _ in range(3):
        watched.put_pod(pod("web-0"))
        for _ in range(2):
            watched.put_pod(_with_phase(pod("web-0"), "Failed"))
        watched.drop_pod(("vision", "web-0"))
    assert watched.scene("").failed == 3


def test_nothing_is_kept_of_pods_and_nodes_that_are_gone() -> None:
    watched = ClusterState()
    size = len(pickle.dumps(watched))
    for index in range(100):
        watched.put_node(node(f"n-{index}"))
        watched.put_pod(pod(f"p-{index}", node=f"n-{index}"))
        watched.put_pod(pod(f"w-{index}", node=""))
        watched.scene("")
        watched.drop_node(f"n-{index}")
        watched.drop_pod(("vision", f"p-{index}"))
        watched.drop_pod(("vision", f"w-{index}"))
    watched.scene("")
    assert len(pickle.dumps(watched)) < size + 20


def test_only_what_the_board_shows_is_a_change() -> None:
    watched = ClusterState()
    watched.put_node(node("n-0"))
    watched.put_pod(pod("a"))
    before = watched.changes
    watched.put_node(node("n-0"))
    watched.put_pod(pod("a"))
    watched.drop_pod(("vision", "nobody"))
    assert watched.changes == before
    watched.put_pod(_with_phase(pod("a"), "Succeeded"))
    assert watched.changes > before


_FACES = st.builds(
    lambda name, phase, place, gpus, second, ending: DashboardPod(
        "team", name, phase, place if phase != "Pending" else "", gpus, (), "", f"{second}", ending
    ),
    st.sampled_from("abcd"),
    st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
    st.sampled_from(["n-0", "n-1"]),
    st.integers(0, 4),
    st.integers(0, 3),
    st.booleans(),
)


@given(st.lists(st.one_of(_FACES, st.sampled_from("abcd")), max_size=30))
def test_scenes_say_the_same_whether_seen_often_or_once(explanation: list[DashboardPod | str]) -> None:
    """What is kept from scene to scene is as good as what is made from nothing."""
    watched, present = ClusterState(), dict[str, DashboardPod]()
    for name in ("n-0", "n-1"):
        watched.put_node(node(name))
    for step in explanation:
        if isinstance(step, str):
            present.pop(step, None)
            watched.drop_pod(("team", step))
        else:
            present[step.name] = step
            watched.put_pod(step)
        shown = watched.scene("")
        held = [sum(pod.gpus for pod in present.values() if pod.holds and pod.node == f"n-{at}") for at in (0, 1)]
        assert [sum(tile.sums.values()) for tile in shown.tiles] == [min(8, gpus) for gpus in held]
        waiting = sorted((pod.created, pod.name) for pod in present.values() if pod.waits and not pod.node)
        assert [(pod.created, pod.name) for pod in shown.waiting] == waiting
        assert shown.waits == len(waiting)
        assert shown.running == sum(pod.phase == "Running" for pod in present.values())


def test_nodes_are_in_the_order_people_count_and_the_newest_event_is_first() -> None:
    watched = ClusterState()
    for name in ("n-10", "n-9", "n-1"):
        watched.put_node(node(name))
    watched.put_event(event("First"))
    watched.put_event(event("Second"))
    shown = watched.scene("")
    assert [tile.node.name for tile in shown.tiles] == ["n-1", "n-9", "n-10"]
    assert [one.reason for one in shown.events] == ["Second", "First"]


def test_an_account_adds_up_gpu_time_by_team() -> None:
    account = Account()
    account.add(scene([node("n-0")], [pod("a", "vision", 4)]), 0)
    account.add(scene([node("n-0")], [pod("b", "llm", 8)]), 30)
    account.add(scene([node("n-0")]), 30)
    assert "held to 75 %" in account.words()
    assert account.words().startswith("In 60 s 1 node with 8 GPUs")


def test_a_line_says_the_same_as_a_frame_in_short() -> None:
    said = line(scene([node("n-0")], [pod("a", "vision", 4), pod("w", "llm", 8, "")])).plain
    assert said == "00:42  4/8 GPUs held  1 running  1 waiting  3 done  1 failed  vision 4"


def test_an_event_of_a_series_happened_as_often_and_as_late_as_the_series_says() -> None:
    series = {"count": 7, "lastObservedTime": "2026-01-01T00:05:00.000000Z"}
    found = event_facts(
        _json({"metadata": {"name": "e"}, "eventTime": "2026-01-01T00:00:00.000000Z", "count": None, "series": series})
    )
    assert (found.count, found.at) == (7, "2026-01-01T00:05:00.000000Z")


def test_no_field_of_a_pod_can_command_the_terminal() -> None:
    odd = "\x1b[2J\x9b\u202e"
    pod_json = {
        "metadata": {"namespace": f"t{odd}", "name": f"p{odd}", "creationTimestamp": f"2026{odd}"},
        "spec": {"nodeName": f"n{odd}", "schedulerName": f"s{odd}"},
        "status": {"phase": f"Running{odd}"},
    }
    found = pod_facts(_json(pod_json))
    assert (found.phase, found.node, found.created) == ("Running [2J", "n [2J", "2026 [2J")
    texts = [text for text in msgspec.to_builtins(found).values() if isinstance(text, str)]
    assert all(text.isprintable() for text in texts)


def test_a_null_is_read_as_an_absent_field() -> None:
    meta = {"name": "x", "namespace": "t", "labels": None, "annotations": None, "ownerReferences": None}
    seen = event_facts(_json({"metadata": meta, "reason": None, "message": "m", "series": {"count": None}}))
    assert (seen.name, seen.reason, seen.message, seen.count) == ("t/x", "", "m", 1)
    read = pod_facts(_json({"metadata": meta, "spec": {"containers": None, "nodeName": None}, "status": None}))
    assert (read.full_name, read.node, read.phase) == ("t/x", "", "Pending")
    assert node_facts(_json({"metadata": meta, "spec": None, "status": {"conditions": None}})).name == "x"
    spec = {"cohortName": None, "resourceGroups": None}
    assert cluster_queue(_json({"metadata": meta, "spec": spec, "status": {"pendingWorkloads": None}})).name == "x"
    assert workload(_json({"metadata": meta, "spec": {"queueName": None}, "status": None})).full_name == "t/x"


def test_an_object_of_wrong_types_is_refused_with_nulls_too() -> None:
    with pytest.raises(msgspec.ValidationError):
        pod_facts(_json({"metadata": {"name": 1, "labels": None}}))


def test_the_page_of_a_node_shows_only_conditions_that_report_a_fault() -> None:
    healthy = {"type": "GPUHealthy", "status": "True", "message": "8 GPUs are healthy"}
    full = {"type": "DiskPressure", "status": "True", "message": "the disk is full"}
    ready = {"type": "Ready", "status": "True"}

    def conditions(*found: dict[str, str]) -> Sequence[str]:
        node = _json({"metadata": {"name": "n-0"}, "status": {"conditions": list(found)}})
        return node_detail(node, tile_of(node_facts(node), []), []).conditions

    assert conditions(ready, healthy) == []
    [shown] = conditions(ready, healthy, full)
    assert "the disk is full" in shown
    [shown] = conditions({**ready, "status": "False"})
    assert shown.startswith("Ready=False")
    [shown] = conditions({**healthy, "status": "False", "message": "1 of 8 GPUs is unhealthy"})
    assert "unhealthy" in shown
