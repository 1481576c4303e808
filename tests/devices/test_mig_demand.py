"""Which instances a node creates because pods need them, and what it never destroys for that."""

from __future__ import annotations

from collections import Counter
from typing import Any

from shoal.data.mig import layout
from shoal.devices.mig_demand import (
    WantedPlace,
    demand_plan,
    pool_of,
    settings_of,
    wanted_annotation,
    wanted_places,
    written_places,
)
from shoal.devices.mig_gpus import MigGpu
from shoal.devices.mig_plan import PresentGpu
from shoal.devices.mig_port import GpuInstance

FACTS = layout("H100-80GB")
DYNAMIC = {"shoal.dev/mig-layout": "dynamic"}


def instance(number: int, profile: str, start: int) -> GpuInstance:
    found = FACTS.profile(profile) if FACTS is not None else None
    assert found is not None
    return GpuInstance(number, profile, start, found.width, (found.compute,))


def gpu(index: int, *instances: GpuInstance, used: tuple[int, ...] = (), **fields: Any) -> PresentGpu:
    counts = tuple(sorted(Counter(one.profile for one in instances).items()))
    described = MigGpu(**{"index": index, "pci": (), "facts": FACTS, "is_mig": True, "counts": counts, **fields})
    return PresentGpu(described, f"GPU-{index}", instances, frozenset(used), bool(used))


def wanted(*places: WantedPlace, **settings: str) -> dict[str, str]:
    return {**DYNAMIC, **settings, wanted_annotation("a"): written_places(places)}


def steps(settings: dict[str, str], *gpus: PresentGpu) -> list[str]:
    return [str(step) for step in demand_plan(settings, gpus).steps]


def test_a_node_without_the_label_creates_nothing() -> None:
    settings = {wanted_annotation("a"): "0:1g.10gb@0"}
    assert steps(settings, gpu(0, is_mig=False)) == []
    assert demand_plan(settings, [gpu(0)]).refusals == ("0:1g.10gb@0: GPU 0 is not divided on demand",)


def test_idle_gpus_of_the_pool_get_mig_mode_and_others_do_not() -> None:
    idle, used = gpu(0, is_mig=False), PresentGpu(gpu(1, is_mig=False).gpu, "GPU-1", is_used=True)
    plain = gpu(2, is_mig=False, is_capable=False)
    assert steps(DYNAMIC, idle, used, plain) == ["GPU 0: enable MIG mode"]
    assert steps({**DYNAMIC, "shoal.dev/mig-devices": "1-2"}, idle, used, plain) == []
    assert pool_of({**DYNAMIC, "shoal.dev/mig-devices": "x"}, [idle]) == frozenset()


def test_an_instance_that_exists_is_not_created_again() -> None:
    settings = wanted(WantedPlace(0, "1g.10gb", 2), WantedPlace(0, "1g.10gb.me", 3))
    assert steps(settings, gpu(0, instance(1, "1g.10gb", 2))) == ["GPU 0: create 1g.10gb+me at slice 3"]


def test_idle_instances_make_room_and_those_in_use_do_not() -> None:
    settings = wanted(WantedPlace(0, "3g.40gb", 0))
    small = (instance(1, "1g.10gb", 0), instance(2, "1g.10gb", 1), instance(3, "1g.10gb", 4))
    assert steps(settings, gpu(0, *small)) == [
        "GPU 0: destroy 1g.10gb at slice 0",
        "GPU 0: destroy 1g.10gb at slice 1",
        "GPU 0: create 3g.40gb at slice 0",
    ]
    plan = demand_plan(settings, [gpu(0, *small, used=(2,))])
    assert plan.steps == ()
    assert plan.refusals == ("0:3g.40gb@0: 1g.10gb at slice 1 is in use",)


def test_an_idle_instance_with_the_media_engines_makes_room_for_another() -> None:
    settings = wanted(WantedPlace(0, "1g.10gb+me", 5))
    assert steps(settings, gpu(0, instance(1, "1g.10gb+me", 0))) == [
        "GPU 0: destroy 1g.10gb+me at slice 0",
        "GPU 0: create 1g.10gb+me at slice 5",
    ]


def test_instances_that_other_pods_want_stay() -> None:
    settings = wanted(WantedPlace(0, "7g.80gb", 0)) | {wanted_annotation("b"): "0:1g.10gb@6"}
    plan = demand_plan(settings, [gpu(0, instance(1, "1g.10gb", 6))])
    assert plan.steps == ()
    assert plan.refusals == ("0:7g.80gb@0: 1g.10gb at slice 6 is in use",)


def test_a_place_that_does_not_exist_is_refused() -> None:
    settings = wanted(WantedPlace(0, "3g.40gb", 1), WantedPlace(0, "1g.5gb", 0))
    assert len(demand_plan(settings, [gpu(0)]).refusals) == 2


def test_requests_are_read_from_annotations_and_what_cannot_be_read_asks_for_nothing() -> None:
    annotations = {
        wanted_annotation("a"): "0:1g.10gb@0,1:2g.20gb@4",
        wanted_annotation("b"): "nonsense,2:",
        "other": "0:x@1",
    }
    assert wanted_places(annotations) == (WantedPlace(0, "1g.10gb", 0), WantedPlace(1, "2g.20gb", 4))
    assert settings_of({**annotations, "shoal.dev/mig-devices": "1"}).keys() == {
        wanted_annotation("a"),
        wanted_annotation("b"),
        "shoal.dev/mig-devices",
    }
