"""One currency for whole GPUs, fractions, memory and MIG instances."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.api.container import Container, Resources
from shoal.api.meta import ObjectMeta
from shoal.api.pod import PodSpec, PodTemplate
from shoal.data.mig import layouts
from shoal.engine.device_demand import MigTiles
from shoal.engine.from_api.queues import GPU_MILLI, CountingRules, Equivalents
from shoal.engine.from_api.queues.pod_sets import PodSetSize, QuotaScope, pod_set_of
from shoal.units.errors import UserError, Where
from shoal.units.quantity import Quantity

GPU = "nvidia.com/gpu"
SMALL = "nvidia.com/mig-1g.10gb"


def template(
    limits: dict[str, int] | None = None, annotations: dict[str, str] | None = None, model: str = ""
) -> PodTemplate:
    amounts = {name: Quantity.of(amount) for name, amount in (limits or {}).items()}
    selector = {"nvidia.com/gpu.product": model} if model else {}
    spec = PodSpec((Container("c", resources=Resources(limits=amounts)),), node_selector=selector)
    return PodTemplate(ObjectMeta(annotations=annotations or {}), spec)


def charged(written: PodTemplate, *covered: str, weights: dict[str, int] | None = None) -> dict[str, int]:
    counting = CountingRules(equivalents=Equivalents(weights or {}))
    return pod_set_of(written, PodSetSize(), QuotaScope("t", frozenset(covered)), counting, Where()).pod_set.requests


ASKS: dict[str, tuple[PodTemplate, int]] = {
    "whole GPUs": (template({GPU: 3}), 3000),
    "a fraction": (template(annotations={"gpu-fraction": "0.25"}), 250),
    "a fraction of each of several": (
        template(annotations={"gpu-fraction": "0.5", "gpu-fraction-num-devices": "3"}),
        1500,
    ),
    "memory, by a GPU of middling size": (template(annotations={"gpu-memory": "10240"}), 250),
    "cores and memory of virtual GPUs, by the larger": (
        template({GPU: 2, "nvidia.com/gpumem": 4096, "nvidia.com/gpucores": 50}),
        1000,
    ),
    "no GPU at all": (template({"cpu": 4}), 0),
}


@pytest.mark.parametrize(("written", "milli"), ASKS.values(), ids=ASKS)
def test_a_queue_that_covers_the_currency_counts(written: PodTemplate, milli: int) -> None:
    assert charged(written, GPU_MILLI).get(GPU_MILLI, 0) == milli


def test_a_queue_that_does_not_cover_it_counts_plain_names_only() -> None:
    assert charged(template({GPU: 2}), GPU) == {GPU: 2}
    assert charged(template(annotations={"gpu-fraction": "0.25"}), GPU) == {}


def test_plain_names_are_counted_beside_it_where_the_queue_covers_them() -> None:
    assert charged(template({GPU: 2, "cpu": 1}), GPU_MILLI, GPU) == {GPU: 2, "cpu": 1000, GPU_MILLI: 2000}
    assert charged(template({GPU: 2, "cpu": 1}), GPU_MILLI) == {"cpu": 1000, GPU_MILLI: 2000}


def test_other_resources_that_the_queue_does_not_cover_stay_its_concern() -> None:
    assert charged(template({GPU: 1, "rdma/hca": 1}), GPU_MILLI) == {"rdma/hca": 1, GPU_MILLI: 1000}


def test_an_instance_is_worth_its_part_of_the_gpu_on_which_it_is_largest() -> None:
    """A quarter of an A100 of 40 GB goes by the name that is an eighth of an A100 of 80 GB."""
    parts = [
        1000 * found.width / layout.memory_slices
        for layout in layouts()
        if (found := layout.profile("1g.10gb")) is not None
    ]
    assert charged(template({SMALL: 2}), GPU_MILLI) == {GPU_MILLI: 2 * max(parts)}


def test_an_instance_that_nobody_knows_is_a_whole_gpu() -> None:
    assert Equivalents().milli(MigTiles((("9g.1tb", 1),))) == 1000


def test_weights_set_what_an_instance_or_a_model_is_worth() -> None:
    assert charged(template({SMALL: 2}), GPU_MILLI, weights={SMALL: 143}) == {GPU_MILLI: 286}
    dear = {"H100": 2500}
    assert charged(template({GPU: 2}, model="H100"), GPU_MILLI, weights=dear) == {GPU_MILLI: 5000}
    assert charged(template({GPU: 2}), GPU_MILLI, weights=dear) == {GPU_MILLI: 2000}, "the model is left open"


def test_asking_in_two_ways_is_refused() -> None:
    with pytest.raises(UserError, match="contradicts"):
        charged(template({GPU: 1}, {"gpu-fraction": "0.5"}), GPU_MILLI)


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 3000))
def test_more_of_the_same_never_costs_less(some: int, more: int, weight: int) -> None:
    worth = Equivalents({SMALL: weight})
    one, both = (worth.milli(MigTiles((("1g.10gb", count),))) for count in (some, some + more))
    assert one < both == one + weight * more
