"""What a pod is charged: what it asks for, what its namespace adds, and what the configuration counts instead."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.api.container import Container, Resources
from shoal.api.kueue.configuration import Transformation
from shoal.api.limit_ranges import LimitRange, LimitRangeItem, LimitRangeSpec
from shoal.api.meta import ObjectMeta
from shoal.api.pod import PodSpec, PodTemplate
from shoal.api.wire import Quantities
from shoal.engine.from_api.queues import CountingRules, NamespaceRules, ResourceMapping
from shoal.engine.from_api.queues.pod_sets import CountedPodSet, PodSetSize, QuotaScope, pod_set_of
from shoal.policy.admission.limit_ranges import complete
from shoal.units.errors import Where
from shoal.units.quantity import Quantity

GI = 2**30
PLAIN = ResourceMapping()
CONTAINER = "podSets[main].template.spec.containers[0]: Invalid value: "
ABOVE_LIMIT = f'resource validation failed: {CONTAINER}["cpu"]: requests must not exceed its limits'
ABOVE_MAX = "must not be above the limitRange max"
UNSATISFIED = "resources didn't satisfy LimitRange constraints: "


def q(**given_amounts: str) -> Quantities:
    return {name.replace("_", "/"): Quantity.parse(text) for name, text in given_amounts.items()}


def container(requests: Quantities | None = None, limits: Quantities | None = None) -> Container:
    return Container("c", resources=Resources(requests or {}, limits or {}))


def ranges(kind: str = "Container", name: str = "r", **bounds: Quantities) -> LimitRange:
    return LimitRange(ObjectMeta(name, "t"), LimitRangeSpec((LimitRangeItem(kind, **bounds),)))


def counted(
    spec: PodSpec, *limits: LimitRange, currency: ResourceMapping = PLAIN, **overheads: Quantities
) -> CountedPodSet:
    counting = CountingRules(currency, rules={"t": NamespaceRules.of(limits, overheads)})
    return pod_set_of(PodTemplate(spec=spec), PodSetSize(), QuotaScope("t"), counting, Where())


def charged(spec: PodSpec, *limits: LimitRange, **more: Any) -> dict[str, int]:
    return counted(spec, *limits, **more).pod_set.requests


# -- what the namespace adds ---------------------------------------------------------------------------------


def test_a_limit_is_a_request_where_none_is_written() -> None:
    assert charged(PodSpec((container(limits=q(cpu="2", memory="1Gi")),))) == {"cpu": 2000, "memory": GI}


def test_containers_without_requests_get_the_namespaces_default() -> None:
    found = charged(PodSpec((container(), container(q(cpu="1")))), ranges(default_request=q(cpu="300m")))
    assert found == {"cpu": 1300}


def test_a_default_request_goes_before_the_limit_that_is_written() -> None:
    spec = PodSpec((container(limits=q(cpu="4")),))
    assert charged(spec, ranges(default_request=q(cpu="1"))) == {"cpu": 1000}


def test_a_default_limit_is_a_request_too() -> None:
    assert charged(PodSpec((container(),)), ranges(default=q(cpu="2"))) == {"cpu": 2000}


COMPLETED: dict[str, tuple[Container, dict[str, Any], int]] = {
    "the default limit is the default request": (container(limits=q(cpu="4")), {"default": q(cpu="2")}, 2000),
    "the maximum is the default limit": (container(), {"max": q(cpu="3")}, 3000),
    "the maximum is the default request of a container with a limit": (
        container(limits=q(cpu="1")),
        {"max": q(cpu="3"), "default_request": q(cpu="500m")},
        500,
    ),
    "the minimum is the default request": (container(), {"min": q(cpu="100m")}, 100),
    "the default limit goes before the minimum": (container(), {"min": q(cpu="1"), "default": q(cpu="2")}, 2000),
    "a default limit goes before the maximum": (container(), {"max": q(cpu="8"), "default": q(cpu="2")}, 2000),
    "a default request goes before all": (
        container(),
        {"min": q(cpu="1"), "max": q(cpu="8"), "default": q(cpu="4"), "default_request": q(cpu="2")},
        2000,
    ),
}


@pytest.mark.parametrize(("one", "bounds", "cpu_milli"), COMPLETED.values(), ids=COMPLETED)
def test_a_limit_range_is_completed_as_the_api_server_does(
    one: Container, bounds: dict[str, Any], cpu_milli: int
) -> None:
    assert charged(PodSpec((one,)), ranges(**bounds)) == {"cpu": cpu_milli}


@pytest.mark.parametrize(("one", "bounds", "cpu_milli"), COMPLETED.values(), ids=COMPLETED)
def test_facts_and_manifest_admission_complete_a_limit_range_alike(
    one: Container, bounds: dict[str, Any], cpu_milli: int
) -> None:
    item = LimitRangeItem("Container", **bounds)
    plain = msgspec.to_builtins(LimitRange(ObjectMeta("r", "t"), LimitRangeSpec((item,))), enc_hook=str)
    complete(plain)
    (written,) = plain["spec"]["limits"]
    found = msgspec.to_builtins(item.completed(), enc_hook=str)
    assert {side: found.get(side, {}) for side in ("default", "defaultRequest")} == {
        side: written.get(side, {}) for side in ("default", "defaultRequest")
    }


def test_the_bounds_of_pods_are_no_defaults() -> None:
    assert charged(PodSpec((container(),)), ranges("Pod", max=q(cpu="3"))) == {}


def test_a_namespace_without_a_limit_range_adds_nothing() -> None:
    counting = CountingRules(rules={"other": NamespaceRules.of([ranges(default=q(cpu="2"))], {})})
    found = pod_set_of(PodTemplate(spec=PodSpec((container(),))), PodSetSize(), QuotaScope("t"), counting, Where())
    assert found.pod_set.requests == {}


def test_the_runtimes_overhead_is_charged_unless_the_pod_brings_its_own() -> None:
    spec = PodSpec((container(q(cpu="1")),), runtime_class_name="kata")
    assert charged(spec, kata=q(cpu="250m")) == {"cpu": 1250}
    own = PodSpec((container(q(cpu="1")),), runtime_class_name="kata", overhead=q(cpu="10m"))
    assert charged(own, kata=q(cpu="250m")) == {"cpu": 1010}


# -- what can never run --------------------------------------------------------------------------------------

FAULTS = {
    "a request above its limit": (
        PodSpec((container(q(cpu="2"), q(cpu="1")),)),
        (),
        ABOVE_LIMIT,
    ),
    "a request above the default limit": (
        PodSpec((container(q(cpu="2")),)),
        (ranges(default=q(cpu="1")),),
        ABOVE_LIMIT,
    ),
    "more than a container may have": (
        PodSpec((container(), container(q(cpu="2"), q(cpu="2"))), (container(limits=q(cpu="3")),)),
        (ranges(max=q(cpu="1")),),
        (
            f"{UNSATISFIED}["
            f'podSets[main].template.spec.initContainers[0]: Invalid value: ["cpu"]: {ABOVE_MAX}, '
            f'podSets[main].template.spec.containers[1]: Invalid value: ["cpu"]: {ABOVE_MAX}]'
        ),
    ),
    "less than a container must have": (
        PodSpec((container(q(memory="1Mi")),)),
        (ranges(min=q(memory="1Gi")),),
        f'{UNSATISFIED}{CONTAINER}["memory"]: must not be below the limitRange min',
    ),
    "more than a pod may have": (
        PodSpec((container(q(cpu="2")), container(q(cpu="2")))),
        (ranges("Pod", max=q(cpu="3")),),
        f'{UNSATISFIED}podSets[main].template.spec: Invalid value: ["cpu"]: must not be above the limitRange max',
    ),
}


@pytest.mark.parametrize(("spec", "limits", "words"), FAULTS.values(), ids=FAULTS)
def test_kueues_words_for(spec: PodSpec, limits: tuple[LimitRange, ...], words: str) -> None:
    assert counted(spec, *limits).fault == words


def test_the_tightest_of_several_limit_ranges_holds() -> None:
    spec = PodSpec((container(q(cpu="2")),))
    wide, tight = ranges(name="a", max=q(cpu="4")), ranges(name="b", max=q(cpu="1"))
    for given_ranges in ([wide, tight], [tight, wide]):
        assert "above" in counted(spec, *given_ranges).fault
    assert not counted(spec, wide).fault


def test_a_resource_without_bounds_is_free() -> None:
    assert not counted(PodSpec((container(q(memory="1Gi")),)), ranges(max=q(cpu="1"), min=q(cpu="1"))).fault


# -- what quota counts instead -------------------------------------------------------------------------------


def exchange(name: str, strategy: str = "Retain", times: str = "", **outputs: str) -> Transformation:
    return Transformation(name, strategy, times, q(**outputs))  # type: ignore[arg-type]


def test_excluded_resources_are_not_charged_and_still_take_room_on_nodes() -> None:
    pod_set = counted(PodSpec((container(q(cpu="1", x_y="3")),)), currency=ResourceMapping.of(["x/"], [])).pod_set
    assert pod_set.requests == {"cpu": 1000}
    assert pod_set.on_node == {"cpu": 1000, "x/y": 3}


def test_nothing_is_written_twice_where_quota_counts_what_nodes_count() -> None:
    assert counted(PodSpec((container(q(cpu="1")),))).pod_set.node_requests is None


def test_a_resource_is_kept_beside_what_it_stands_for_or_replaced_by_it() -> None:
    asked = {"x/mig": 2, "cpu": 1000}
    kept = ResourceMapping.of([], [exchange("x/mig", memory="5Gi", x_credits="10")])
    assert kept.charge(asked) == {"x/mig": 2, "cpu": 1000, "memory": 10 * GI, "x/credits": 20}
    replaced = ResourceMapping.of([], [exchange("x/mig", "Replace", memory="5Gi")])
    assert replaced.charge(asked) == {"cpu": 1000, "memory": 10 * GI}


def test_replacing_by_nothing_is_leaving_out() -> None:
    assert ResourceMapping.of([], [exchange("x/mig", "Replace")]).charge({"x/mig": 2, "cpu": 1}) == {"cpu": 1}


def test_outputs_of_several_inputs_and_the_pods_own_request_add_up() -> None:
    currency = ResourceMapping.of(
        [], [exchange("x/small", "Replace", x_unit="1"), exchange("x/big", "Replace", x_unit="4")]
    )
    assert currency.charge({"x/small": 3, "x/big": 2, "x/unit": 1}) == {"x/unit": 12}


def test_parts_are_added_up_before_they_are_rounded() -> None:
    currency = ResourceMapping.of(
        [], [exchange("x/a", "Replace", x_unit="500m"), exchange("x/b", "Replace", x_unit="500m")]
    )
    assert currency.charge({"x/a": 1, "x/b": 1}) == {"x/unit": 1}
    assert currency.charge({"x/a": 1}) == {"x/unit": 1}


def test_an_input_may_be_per_unit_of_another_resource() -> None:
    currency = ResourceMapping.of([], [exchange("x/mem", "Replace", times="x/gpu", x_total="1")])
    assert currency.charge({"x/mem": 1024, "x/gpu": 2}) == {"x/gpu": 2, "x/total": 2048}
    assert currency.charge({"x/mem": 1024}) == {"x/total": 1024}


def test_a_part_of_a_core_stands_for_a_whole_one() -> None:
    assert ResourceMapping.of([], [exchange("cpu", x_credits="2")]).charge({"cpu": 1500}) == {
        "cpu": 1500,
        "x/credits": 4,
    }


def test_cores_that_come_out_are_in_thousandths() -> None:
    assert ResourceMapping.of([], [exchange("x/gpu", cpu="1500m")]).charge({"x/gpu": 2}) == {"x/gpu": 2, "cpu": 3000}


def test_what_is_excluded_is_not_exchanged() -> None:
    assert ResourceMapping.of(["x/"], [exchange("x/gpu", credits="5")]).charge({"x/gpu": 2, "cpu": 1}) == {"cpu": 1}


def test_what_comes_of_an_exchange_is_not_exchanged_again() -> None:
    currency = ResourceMapping.of([], [exchange("x/a", "Replace", x_b="1"), exchange("x/b", "Replace", x_a="1")])
    assert currency.charge({"x/a": 3, "x/b": 5}) == {"x/b": 3, "x/a": 5}


@settings(max_examples=examples(30), deadline=None)
@given(
    st.dictionaries(st.sampled_from(["cpu", "memory", "x/a", "x/b"]), st.integers(0, 5000), max_size=4),
    st.dictionaries(st.sampled_from(["cpu", "memory", "x/c"]), st.integers(0, 3000), max_size=3),
    st.booleans(),
)
def test_charges_equal_the_sum_done_by_hand(asked: dict[str, int], outputs: dict[str, int], keep: bool) -> None:
    """The oracle works in exact quantities and rounds at the end."""
    factors = {name: Quantity.of_milli(milli) for name, milli in outputs.items()}
    currency = ResourceMapping.of([], [Transformation("x/a", "Retain" if keep else "Replace", "", factors)])
    expected = dict(asked)
    units = expected.get("x/a")
    if units is not None:
        for name, milli in outputs.items():
            total = Quantity.of_milli(milli * units)
            expected[name] = expected.get(name, 0) + (total.milli_value() if name == "cpu" else total.value())
        if not keep:
            del expected["x/a"]
    assert currency.charge(asked) == expected
