"""Where the MIG layout may change for claims, a claim gets its instance, and nothing in use is changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.gpu_pods import gpu_pod, granted
from build.prepared_claims import Obj, PreparingNode, allocated

ONE, TWO, WHOLE = "gpu-0-mig-1g10gb-19-2", "gpu-0-mig-2g20gb-14-2", "gpu-0"


def node_with(folder: Path, *claims: Obj, machine: str = "dgx-h100") -> PreparingNode:
    return PreparingNode(folder, *claims, machine=machine, is_divided_on_demand=True)


def layout(node: PreparingNode, gpu: int = 0) -> list[tuple[str, int]] | None:
    found = node.manager.gpus[gpu]
    return [(one.profile.name, one.start) for one in found.cuts] if found.is_mig else None


def test_an_instance_that_does_not_exist_is_created_for_its_claim(tmp_path: Path) -> None:
    node = node_with(tmp_path, allocated("a", ONE))
    assert node.prepare("a") == {"a": [f"k8s.gpu.nvidia.com/claim=uid-a-{ONE}"]}
    assert layout(node) == [("1g.10gb", 2)]
    assert layout(node, 1) is None
    (spec,) = node.specs().values()
    assert len(spec["devices"][0]["containerEdits"]["deviceNodes"]) == 3


def test_where_the_layout_is_fixed_the_claim_is_refused(tmp_path: Path) -> None:
    node = PreparingNode(tmp_path, allocated("a", ONE))
    with pytest.raises(ValueError, match=f"this node has no device {ONE}"):
        node.prepare("a")
    assert layout(node) is None


def test_published_are_all_instances_that_the_gpus_can_have_and_the_gpus(tmp_path: Path) -> None:
    names = {one.name for one in node_with(tmp_path).devices.published().devices}
    assert {ONE, TWO, WHOLE, "gpu-7-mig-7g80gb-0-0"} <= names


def test_an_idle_instance_gives_way_and_one_of_another_claim_does_not(tmp_path: Path) -> None:
    node = node_with(tmp_path, allocated("a", ONE), allocated("b", TWO))
    node.prepare("a")
    with pytest.raises(ValueError, match=r"ResourceClaim team/b: 0:2g.20gb@2: 1g.10gb at slice 2 is in use"):
        node.prepare("b")
    assert layout(node) == [("1g.10gb", 2)]
    node.unprepare("a")
    node.prepare("b")
    assert layout(node) == [("2g.20gb", 2)]


def test_claims_of_one_gpu_get_instances_side_by_side(tmp_path: Path) -> None:
    other = "gpu-0-mig-3g40gb-9-4"
    node = node_with(tmp_path, allocated("a", ONE, other), allocated("b", "gpu-0-mig-1g10gb-19-0"))
    node.prepare("a", "b")
    assert layout(node) == [("1g.10gb", 0), ("1g.10gb", 2), ("3g.40gb", 4)]


def test_a_whole_gpu_is_undivided_when_its_instances_are_idle(tmp_path: Path) -> None:
    node = node_with(tmp_path, allocated("a", ONE), allocated("b", WHOLE))
    node.prepare("a")
    with pytest.raises(ValueError, match=r"GPU 0 is divided, and 1g.10gb at slice 2 is in use"):
        node.prepare("b")
    node.unprepare("a")
    node.prepare("b")
    assert layout(node) is None


def test_a_gpu_that_a_claim_has_as_a_whole_is_not_divided(tmp_path: Path) -> None:
    node = node_with(tmp_path, allocated("a", WHOLE), allocated("b", ONE))
    node.prepare("a")
    with pytest.raises(ValueError, match="GPU 0 is in use without MIG"):
        node.prepare("b")
    assert layout(node) is None


def test_an_instance_that_a_program_uses_is_not_destroyed(tmp_path: Path) -> None:
    node = node_with(tmp_path, allocated("b", TWO), machine="dgx-h100[mig=all-1g.10gb,strategy=mixed]")
    # Seven pods hold all instances of the first GPU at least.
    granted(node.manager.admit(gpu_pod("p", 56, "nvidia.com/mig-1g.10gb")))
    before = layout(node)
    with pytest.raises(ValueError, match="in use"):
        node.prepare("b")
    assert layout(node) == before


@pytest.mark.parametrize("config", [{"apiVersion": "resource.nvidia.com/v1beta1", "kind": "Nonsense"}])
def test_a_claim_that_is_refused_changes_no_gpu(tmp_path: Path, config: Obj) -> None:
    node = node_with(tmp_path, allocated("a", ONE, config=config))
    with pytest.raises(ValueError, match="Nonsense"):
        node.prepare("a")
    assert layout(node) is None


def test_after_a_restart_of_the_machine_the_instance_is_created_again(tmp_path: Path) -> None:
    claim = allocated("a", ONE)
    first = node_with(tmp_path, claim).prepare("a")
    node = node_with(tmp_path, claim)
    node.preparation.restore()
    assert layout(node) is None
    assert node.prepare("a") == first
    assert layout(node) == [("1g.10gb", 2)]


def test_a_gpu_whose_mode_changes_with_a_reset_only_offers_what_it_has_now(tmp_path: Path) -> None:
    whole = {one.name for one in node_with(tmp_path, machine="dgx-a100-80").devices.published().devices}
    assert whole == {f"gpu-{number}" for number in range(8)}
    cut = node_with(tmp_path / "b", machine="dgx-a100-80[mig=all-enabled]").devices.published().devices
    assert {one.attributes["type"].value() for one in cut} == {"mig"}
