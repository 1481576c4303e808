"""A simulated node creates the instances that the scheduler asks for, and has them again after a restart."""

from __future__ import annotations

from build.gpu_pods import device_manager, gpu_pod, granted, status_of
from shoal.embedded.gpus.node_gpus import Complaint

DYNAMIC = {"shoal.dev/mig-layout": "dynamic"}
TWO = "nvidia.com/mig-2g.20gb"
ASKED = {**DYNAMIC, "mig.shoal.dev/a": "0:2g.20gb@4"}


def test_a_requested_instance_is_created_and_advertised() -> None:
    node = device_manager("dgx-h100")
    node.configure(DYNAMIC, {})
    assert {name: one.capacity for name, one in node.resources().items()} == {"nvidia.com/gpu": 0}
    (said,) = node.configure(ASKED, {})
    assert said == "MIG on demand: GPU 0: create 2g.20gb at slice 4"
    assert node.resources()[TWO].allocatable == 1
    assert node.configure(DYNAMIC, {}) == []
    assert node.resources()[TWO].allocatable == 1


def test_a_request_that_cannot_be_met_is_reported_once() -> None:
    node = device_manager("dgx-h100")
    asked = {**DYNAMIC, "mig.shoal.dev/a": "0:2g.20gb@3"}
    node.configure(DYNAMIC, {})
    (said,) = node.configure(asked, {})
    assert isinstance(said, Complaint)
    assert node.configure(asked, {}) == []


def test_a_gpu_that_a_pod_holds_whole_stays_whole() -> None:
    node = device_manager("dgx-h100")
    granted(node.admit(gpu_pod("train", 8)))
    node.configure(ASKED, {})
    assert not any(gpu.is_mig for gpu in node.gpus)


def test_the_machine_of_shoal_up_is_labelled() -> None:
    labels = device_manager("dgx-h100[mig=dynamic]").machine.labels
    assert labels["shoal.dev/mig-layout"] == "dynamic"
    assert "nvidia.com/mig.config" not in labels


def test_after_a_restart_pods_hold_the_same_instances() -> None:
    before = device_manager("dgx-h100")
    before.configure(ASKED, {})
    annotations = {name: text for name, text in before.annotations().items() if text is not None}
    found = granted(before.admit(gpu_pod("a", 1, TWO)))
    pod = {**gpu_pod("a", 1, TWO), "status": status_of(found)}
    after = device_manager("dgx-h100")
    after.recall(annotations)
    assert after.restore(pod) == found
    after.configure({**DYNAMIC, "mig.shoal.dev/b": "0:7g.80gb@0"}, {})
    assert after.gpus[0] == before.gpus[0]


def test_an_annotation_that_cannot_be_read_recalls_nothing() -> None:
    node = device_manager("dgx-h100")
    node.recall({"shoal.dev/topology": "{"})
    assert not any(gpu.is_mig for gpu in node.gpus)
