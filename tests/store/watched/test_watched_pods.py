"""Pods of a living cluster: what is told of them, when, and what stays unsaid."""

from __future__ import annotations

from typing import Any

from build.fed_worlds import FedWorld
from build.manifests import node, pod, priority_class, thing
from shoal.client.item import Obj
from shoal.engine.events import NodeRefused, OthersSeen, PodArrived, PodBound, PodGone
from shoal.store.watched.cluster import WatchSettings

READY = {"type": "Ready", "status": "True"}


def running(name: str, on: str = "n1", **more: Any) -> Obj:
    return pod(name, on=on, status={"phase": "Running", "startTime": "2026-01-01T00:10:00Z"}, **more)


def world() -> FedWorld:
    made = FedWorld()
    made.put(node("n1"))
    made.drain()
    return made


def test_a_pod_that_waits_for_us_arrives_once() -> None:
    fed = world()
    fed.put(pod("a"))
    assert [event.key for event in fed.heard(PodArrived)] == ["default/a"]
    assert fed.drain() == []


def test_pods_arrive_the_oldest_first() -> None:
    fed = world()
    fed.put(pod("b", meta={"creationTimestamp": "2026-01-01T09:00:00Z"}))
    fed.put(pod("a", meta={"creationTimestamp": "2026-01-01T08:00:00Z"}))
    assert [event.key for event in fed.heard(PodArrived)] == ["default/a", "default/b"]


def test_pods_of_other_schedulers_are_known_only_once_they_are_bound() -> None:
    fed = world()
    fed.put(pod("a", schedulerName="volcano"))
    assert fed.drain() == []
    fed.put(pod("a", on="n1", schedulerName="volcano"))
    assert [event.node for event in fed.heard(PodBound)] == ["n1"]


def test_a_pod_whose_gates_open_arrives_then() -> None:
    fed = world()
    fed.put(pod("a", schedulingGates=[{"name": "queue"}]))
    assert fed.drain() == []
    view = fed.world.view("default/a")
    assert view is not None
    assert view.held == "waits for its scheduling gates: queue"
    fed.put(pod("a"))
    assert len(fed.heard(PodArrived)) == 1


def test_what_was_bound_by_us_is_confirmed_with_the_ask_it_was_placed_by() -> None:
    fed = world()
    fed.put(pod("a", gpus=1))
    (arrived,) = fed.heard(PodArrived)
    fed.put(pod("a", gpus=1, on="n1"))
    (bound,) = fed.heard(PodBound)
    assert bound.ask is arrived.ask
    assert bound.grant is None


def test_a_pod_that_ends_or_is_deleted_is_gone_once() -> None:
    fed = world()
    fed.put(running("a"), running("b"))
    fed.drain()
    fed.put(pod("a", on="n1", status={"phase": "Succeeded"}))
    fed.drop(pod("b"))
    assert {event.key for event in fed.heard(PodGone)} == {"default/a", "default/b"}
    fed.drop(pod("a"))
    assert fed.drain() == []


def test_a_pod_made_anew_under_its_name_is_gone_before_it_arrives() -> None:
    fed = world()
    fed.put(running("a"))
    fed.drain()
    fed.drop(pod("a"))
    fed.put(pod("a"))
    events = [event for event in fed.drain() if isinstance(event, PodGone | PodArrived)]
    assert [type(event) for event in events] == [PodGone, PodArrived]


def test_a_pod_that_comes_and_goes_between_two_rounds_is_never_mentioned() -> None:
    fed = world()
    fed.put(pod("a"))
    fed.drop(pod("a"))
    assert fed.drain() == []


def test_a_terminating_pod_on_a_node_leaves_and_a_waiting_one_is_gone() -> None:
    fed = world()
    fed.put(running("a"), pod("b"))
    fed.drain()
    ending = {"deletionTimestamp": "2026-01-01T01:00:00Z"}
    fed.put(running("a", meta=ending), pod("b", meta=ending))
    events = fed.drain()
    assert [event.terminating for event in events if isinstance(event, PodBound)] == [True]
    assert [event.key for event in events if isinstance(event, PodGone)] == ["default/b"]


def test_a_change_of_status_that_concerns_nobody_wakes_nobody() -> None:
    fed = world()
    status = {"phase": "Running", "startTime": "2026-01-01T00:10:00Z", "conditions": [READY]}
    fed.put(pod("a", on="n1", status=status))
    fed.drain()
    fed.wakes = 0
    fed.put(pod("a", on="n1", status={**status, "podIP": "10.0.0.7", "hostIP": "10.0.0.1"}))
    assert fed.wakes == 0
    assert fed.drain() == []


def test_a_nomination_is_heard() -> None:
    fed = world()
    fed.put(pod("a"))
    fed.drain()
    fed.put(pod("a", status={"nominatedNodeName": "n1"}))
    assert [event.nominated for event in fed.heard(PodArrived)] == ["n1"]


def test_pods_of_one_template_share_one_ask_whatever_their_names_volumes_and_environment() -> None:
    fed = world()
    for number in range(2):
        made = pod(f"worker-{number}", gpus=1)
        (container,) = made["spec"]["containers"]
        container["env"] = [{"name": "RANK", "value": str(number)}]
        container["volumeMounts"] = [{"name": f"kube-api-access-{number}", "mountPath": "/var/run"}]
        made["spec"]["volumes"] = [{"name": f"kube-api-access-{number}", "projected": {"sources": []}}]
        fed.put(made)
    first, second = fed.heard(PodArrived)
    assert first.ask is second.ask


def test_rules_about_other_pods_are_each_pods_own() -> None:
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "a"}},
        }
    ]
    fed = world()
    for namespace in ("red", "blue"):
        fed.put(pod(f"{namespace}/a", labels={"app": "a"}, topologySpreadConstraints=spread))
    first, second = fed.heard(PodArrived)
    assert first.ask != second.ask


def test_a_pod_that_cannot_be_read_says_why_and_keeps_nobody_else_waiting() -> None:
    fed = world()
    fed.put(pod("bad", annotations={"gpu-fraction": "much"}), pod("good"))
    assert [event.key for event in fed.heard(PodArrived)] == ["default/good"]
    (trouble,) = fed.world.take_troubles()
    assert (trouble.kind.name, trouble.key) == ("Pod", "default/bad")
    assert '"much"' in trouble.message
    view = fed.world.view("default/bad")
    assert view is not None
    assert view.held == trouble.message
    assert fed.world.take_troubles() == []


def test_a_pod_mended_arrives() -> None:
    fed = world()
    fed.put(pod("a", annotations={"gpu-fraction": "much"}))
    fed.drain()
    fed.put(pod("a", annotations={"gpu-fraction": "0.5"}))
    assert len(fed.heard(PodArrived)) == 1


def test_a_class_that_is_told_late_is_obeyed_then() -> None:
    fed = world()
    fed.put(pod("a", priorityClassName="high"))
    assert fed.heard(PodArrived) == []
    fed.put(priority_class("high", 1000))
    assert [event.priority for event in fed.heard(PodArrived)] == [1000]


def test_devices_that_running_pods_name_are_told_first() -> None:
    fed = world()
    fed.put(running("a", gpus=1), running("b", gpus=1, annotations={"shoal.dev/devices": "3"}))
    assert [(event.key, event.positions) for event in fed.heard(PodBound)] == [
        ("default/b", ((3, 0),)),
        ("default/a", ()),
    ]


def test_our_scheduler_knows_several_names() -> None:
    fed = FedWorld(WatchSettings(schedulers=frozenset({"shoal", "default-scheduler"})))
    fed.put(pod("a"), pod("b", schedulerName="shoal"), pod("c", schedulerName="other"))
    assert [event.key for event in fed.heard(PodArrived)] == ["default/a", "default/b"]


def test_a_running_pod_that_is_written_wrongly_takes_its_room_all_the_same() -> None:
    fed = world()
    fed.put(running("a", gpus=2, annotations={"gpu-fraction": "much"}))
    (bound,) = fed.heard(PodBound)
    assert bound.ask.gpu_milli == 2000
    assert [trouble.key for trouble in fed.world.take_troubles()] == ["default/a"]


def test_a_field_that_is_null_is_a_field_that_is_absent() -> None:
    fed = world()
    fed.put(pod("a", initContainers=None, affinity=None, tolerations=None, volumes=None, resourceClaims=None))
    fed.put(pod("b", meta={"labels": None, "annotations": None, "ownerReferences": None}))
    fed.put(pod("c"))
    asks = {event.ask for event in fed.heard(PodArrived)}
    assert len(asks) == 1
    assert fed.world.take_troubles() == []


def test_what_is_no_pod_at_all_is_told_and_nobody_waits_for_it() -> None:
    fed = world()
    fed.put(pod("a", containers=7), pod("b"))
    assert [event.key for event in fed.heard(PodArrived)] == ["default/b"]
    assert [trouble.key for trouble in fed.world.take_troubles()] == ["default/a"]


def test_a_class_of_devices_that_comes_to_serve_a_resource_changes_all_pods_that_ask_for_it() -> None:
    fed = world()
    fed.put(*(pod(name, limits={"example.com/gpu": 1}) for name in "ab"), pod("c"))
    assert [event.ask.claims for event in fed.heard(PodArrived)] == [(), (), ()]
    serving = thing("resource.k8s.io/v1", "DeviceClass", "gpu", spec={"extendedResourceName": "example.com/gpu"})
    fed.put(serving)
    assert [(event.key, len(event.ask.claims)) for event in fed.heard(PodArrived)] == [
        ("default/a", 1),
        ("default/b", 1),
    ]
    fed.drop(serving)
    assert [event.ask.claims for event in fed.heard(PodArrived)] == [(), ()]


def test_a_pod_waits_for_volumes_that_are_not_there() -> None:
    fed = world()
    fed.put(pod("a", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]))
    assert fed.heard(PodArrived) == []
    view = fed.world.view("default/a")
    assert view is not None
    assert view.held == 'persistentvolumeclaim "data" not found'
    assert fed.world.take_troubles() == []


def test_bound_pods_of_one_template_share_their_standing_whatever_devices_they_got() -> None:
    fed = world()
    for name, device in (("a", "GPU-1"), ("b", "GPU-2")):
        note = f'{{"main":{{"nvidia.com/gpu":["{device}"]}}}}'
        fed.put(pod(name, on="n1", meta={"annotations": {"shoal.dev/devices": note, "x": "y"}}))
    first, second = (event.who for event in fed.heard(PodBound))
    assert first is second


def failed(name: str, reason: str, **more: Any) -> Obj:
    return pod(name, on="n1", status={"phase": "Failed", "reason": reason}, **more)


def refused(fed: FedWorld) -> list[tuple[str, str, str]]:
    """Node, what it lacks and whose pod it refused, of what there is to say now."""
    return [(event.name, event.resource, event.owner) for event in fed.heard(NodeRefused)]


def test_a_node_that_refuses_a_pod_of_ours_is_told_after_the_end_of_the_pod() -> None:
    fed = world()
    fed.put(pod("a", gpus=1), pod("b"))
    fed.drain()
    fed.put(running("a", gpus=1), running("b"))
    fed.drain()
    fed.put(failed("a", "UnexpectedAdmissionError", gpus=1))
    gone, node_refused = fed.drain()
    assert gone == PodGone("default/a")
    assert isinstance(node_refused, NodeRefused)
    assert node_refused.ask.devices is not None
    fed.put(failed("b", "OutOfcpu"))
    assert refused(fed) == [("n1", "cpu", "default/b")]
    assert fed.drain() == []


def test_pods_of_one_owner_share_the_blame() -> None:
    fed = world()
    owner = [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}]
    fed.put(pod("a", meta={"ownerReferences": owner}))
    fed.drain()
    fed.put(failed("a", "UnexpectedAdmissionError", meta={"ownerReferences": owner}))
    assert refused(fed) == [("n1", "", "default/Job/j")]


def test_a_pod_that_failed_by_itself_or_is_not_ours_says_nothing_of_its_node() -> None:
    fed = world()
    fed.put(pod("a"), pod("b", schedulerName="volcano"))
    fed.drain()
    fed.put(running("a"), running("b", schedulerName="volcano"))
    fed.drain()
    fed.put(failed("a", "Evicted"), failed("b", "OutOfcpu", schedulerName="volcano"))
    assert fed.heard(NodeRefused) == []


def test_a_pod_whose_creator_named_the_node_keeps_no_others_from_it() -> None:
    fed = world()
    fed.put(running("a"))
    fed.drain()
    fed.put(failed("a", "UnexpectedAdmissionError"))
    assert fed.heard(NodeRefused) == []


def test_a_node_that_refuses_is_told_before_the_pods_that_are_seen_there() -> None:
    fed = world()
    fed.put(pod("a"), pod("b"))
    fed.drain()
    fed.put(running("a"))
    fed.drain()
    fed.put(failed("a", "UnexpectedAdmissionError"), running("b"), running("c", schedulerName="volcano"))
    assert [type(event) for event in fed.drain()] == [PodGone, NodeRefused, PodBound, PodBound]


def test_a_pod_on_a_node_is_unheard_of_until_it_is_told() -> None:
    fed = world()
    fed.put(pod("a", gpus=1), pod("d", on="n2", cpu=1))
    fed.drain()
    fed.put(pod("a", on="n1", gpus=1), pod("b", on="n1", schedulerName="volcano"))
    fed.put(pod("c", schedulerName="volcano"), pod("e", on="n1", status={"phase": "Failed"}))
    assert [key for key, _ in fed.world.unheard("n1")] == ["default/a", "default/b"]
    assert fed.world.unheard("n2") == []
    fed.drop(pod("b"))
    assert [key for key, _ in fed.world.unheard("n1")] == ["default/a"]
    fed.drain()
    assert fed.world.unheard("n1") == []
    fed.put(pod("a", on="n1", gpus=1, labels={"a": "b"}))
    assert fed.world.unheard("n1") == [], "that it is there is known"


def test_other_schedulers_place_gpus_while_there_are_pods_of_theirs_that_ask_for_some() -> None:
    fed = world()
    fed.put(pod("ours", gpus=1), pod("web", on="n1", schedulerName="volcano", cpu=1))
    assert fed.heard(OthersSeen) == []
    fed.put(pod("a", gpus=1, schedulerName="volcano"))
    assert fed.heard(OthersSeen) == [OthersSeen(place_gpus=True)]
    fed.put(pod("b", gpus=1, on="n1", schedulerName="volcano"))
    assert fed.heard(OthersSeen) == []
    fed.put(pod("b", gpus=1, on="n1", schedulerName="volcano", status={"phase": "Succeeded"}))
    assert fed.heard(OthersSeen) == []
    fed.drop(pod("a"))
    assert fed.heard(OthersSeen) == [OthersSeen(place_gpus=False)]
