"""Allocations as OpenCost's API has them: worked examples, and sums that are the invoice for every request."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import msgspec
import pytest

from build.scripted_months import STEP_MS, STEPS, scripted_month
from shoal.cost.allocation_record import AllocationSet
from shoal.cost.allocation_request import read_request
from shoal.cost.allocations import IDLE, OTHERS, UNALLOCATED, UNUSED, AllocationViewer, allocations
from shoal.cost.hourly_prices import held_gpus, hourly_prices
from shoal.cost.prices.price_file import MachinePrice, PriceFile, Reservation, SharedCost
from shoal.cost.records import PPM, DeviceShare, Holder, Holding, Machine, Records, Use
from shoal.cost.report import PriceBasis
from shoal.units.calendar_windows import HOUR_MS, rfc3339
from shoal.units.errors import UserError, Where

GPUS = tuple(f"g{at}" for at in range(8))
NODE = Machine("n1", 0, None, "box", region="here", model="H100-SXM5-80GB", devices=GPUS)
FILE = PriceFile(machines=(MachinePrice(per_hour=Decimal(80), instance_type="box"),))
TEN = "1970-01-01T00:00:00Z,1970-01-01T10:00:00Z"


def basis(file: PriceFile = FILE) -> PriceBasis:
    return PriceBasis(file, Where(), date(1970, 1, 1))


def held(pod: str, hours: tuple[int, int], devices: int, namespace: str = "lab", uses: tuple[Use, ...] = ()) -> Holding:
    start, end = (at * HOUR_MS for at in hours)
    holder = Holder(
        pod, namespace, job="train", queue="q", team="red", labels=(("app", pod),), owner_kind="StatefulSet"
    )
    shares = tuple(DeviceShare(one) for one in GPUS[:devices])
    return Holding(holder, "n1", start, start, end, shares, cpu_milli=4000, memory_mib=1024, uses=uses)


def answer(records: Records, file: PriceFile = FILE, **query: str) -> list[AllocationSet]:
    request = read_request({"window": TEN, **query}, 10 * HOUR_MS)
    return allocations(records, request, basis(file), "c").sets


def total(sets: list[AllocationSet]) -> float:
    return sum(one.total_cost for each in sets for one in each.values())


ONE = Records((NODE,), (held("a", (2, 7), 2, uses=(Use(2 * HOUR_MS, 7 * HOUR_MS, PPM, PPM // 4),)),))


def test_a_pod_has_what_it_held_and_idle_has_the_rest() -> None:
    (found,) = answer(ONE, includeIdle="true")
    pod = found[f"c/n1/lab/a/{UNALLOCATED}"]
    assert (pod.gpu_cost, pod.gpu_hours, pod.gpu_count, pod.minutes) == (100.0, 10.0, 2.0, 300.0)
    assert (pod.gpu_efficiency, pod.gpu_usage_average, pod.cpu_core_hours) == (0.25, 0.5, 20.0)
    assert (pod.start, pod.end) == ("1970-01-01T02:00:00Z", "1970-01-01T07:00:00Z")
    assert (pod.properties.controller_kind, pod.properties.controller) == ("statefulset", "train")
    assert found[IDLE].total_cost == 700.0
    assert len(found) == 2


def test_use_that_was_not_measured_is_absent_and_not_zero() -> None:
    (found,) = answer(Records((NODE,), (held("a", (2, 7), 2),)), aggregate="pod")
    written = msgspec.to_builtins(found["a"])
    assert written["gpuEfficiency"] is None
    assert written["cpuCoreUsageAverage"] is None
    assert written["gpuCost"] == 100.0


def test_idle_time_is_left_out_unless_it_is_asked_for() -> None:
    (found,) = answer(ONE, aggregate="namespace")
    assert list(found) == ["lab"]
    assert found["lab"].properties.pod == ""


def test_shared_idle_time_is_divided_by_cost_or_evenly() -> None:
    two = Records((NODE,), (held("a", (0, 10), 6, "lab"), held("b", (0, 5), 2, "ops")))
    (weighted,) = answer(two, aggregate="namespace", shareIdle="true")
    (even,) = answer(two, aggregate="namespace", shareIdle="even")
    # In the second half of the day b's two GPUs are free, and always two others: b holds the first two of a.
    assert sum(one.total_cost for one in weighted.values()) == pytest.approx(800)
    assert weighted["lab"].gpu_cost_idle > weighted["ops"].gpu_cost_idle
    assert even["lab"].gpu_cost_idle == pytest.approx(even["ops"].gpu_cost_idle)


def test_each_step_is_a_set_and_accumulating_makes_them_one() -> None:
    steps = answer(ONE, aggregate="pod", step="1h")
    assert len(steps) == 10
    assert [len(one) for one in steps] == [0, 0, 1, 1, 1, 1, 1, 0, 0, 0]
    assert steps[2]["a"].window.start == "1970-01-01T02:00:00Z"
    (whole,) = answer(ONE, aggregate="pod", step="1h", accumulate="true")
    assert (whole["a"].gpu_cost, whole["a"].minutes) == (100.0, 300.0)


def test_allocations_are_put_together_by_any_property() -> None:
    two = Records((NODE,), (held("a", (0, 5), 2), held("b", (5, 10), 2)))
    names = {by: list(answer(two, aggregate=by)[0]) for by in ("team", "queue", "model", "node", "label:app")}
    assert names == {
        "team": ["red"],
        "queue": ["q"],
        "model": ["H100-SXM5-80GB"],
        "node": ["n1"],
        "label:app": ["a", "b"],
    }
    assert list(answer(two, aggregate="namespace,controller")[0]) == ["lab/train"]
    assert list(answer(two, aggregate="statefulset")[0]) == ["train"]
    assert list(answer(two, aggregate="deployment")[0]) == [UNALLOCATED]


def test_idle_time_by_node_names_the_node() -> None:
    assert f"n1/{IDLE}" in answer(ONE, includeIdle="true", idleByNode="true")[0]


def test_a_reader_sees_only_the_sum_of_other_namespaces() -> None:
    two = Records((NODE,), (held("a", (0, 5), 2), held("secret", (5, 10), 2, "ops")))
    request = read_request({"window": TEN, "includeIdle": "true"}, 0)
    (found,) = allocations(two, request, basis(), "c", AllocationViewer(lambda namespace: namespace == "lab")).sets
    assert found[OTHERS].gpu_cost == 100.0
    assert b"secret" not in msgspec.json.encode(found)
    assert b"ops" not in msgspec.json.encode(found)
    assert total([found]) == pytest.approx(800)


def test_shared_costs_and_unused_commitments_belong_to_the_sum() -> None:
    file = msgspec.structs.replace(
        FILE,
        shared_costs=(SharedCost(name="support", per_month=Decimal(730)),),
        reservations=(Reservation(name="r", instance_type="box", count=2, per_hour=Decimal(50)),),
    )
    (found,) = answer(ONE, file, includeIdle="true", aggregate="namespace")
    assert found["lab"].shared_cost == pytest.approx(10, rel=0.01)
    assert found[UNUSED].external_cost == 500.0
    # Two reserved nodes for ten hours, and the shared cost.
    assert total([found]) == pytest.approx(1000 + found["lab"].shared_cost)


@pytest.mark.parametrize("seed", range(12))
def test_allocations_and_idle_time_are_the_invoice(seed: int) -> None:
    month = scripted_month(seed)
    file = PriceFile(
        machines=tuple(
            MachinePrice(node=name, per_hour=rate, from_ms=step * STEP_MS)
            for name, rates in month.rates.items()
            for step, rate in enumerate(rates)
            if step == 0 or rates[step - 1] != rate
        )
    )
    window = f"{rfc3339(0)},{rfc3339(STEPS * STEP_MS)}"
    queries: tuple[dict[str, str], ...] = (
        {},
        {"step": "week"},
        {"aggregate": "team", "step": "day"},
        {"aggregate": "team", "shareIdle": "true"},
    )
    requests = [read_request({"window": window, "includeIdle": "1", **query}, 0) for query in queries]
    sums = [total(allocations(month.records, one, basis(file), "c").sets) for one in requests]
    expected = sum(
        float(rate) * STEP_MS / HOUR_MS
        for machine in month.records.machines
        for step, rate in enumerate(month.rates[machine.name])
        if machine.start_ms <= step * STEP_MS and (machine.end_ms is None or step * STEP_MS < machine.end_ms)
    )
    assert sums == pytest.approx([expected] * len(queries), abs=0.01)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({}, "window: is missing"),
        ({"window": "soon"}, "not a window of time"),
        ({"window": TEN, "aggregate": "service"}, '"service" is no property of an allocation'),
        ({"window": TEN, "step": "fast"}, '"fast" is no step'),
        ({"window": "365d", "step": "1m"}, '"1m" is no step'),
        ({"window": TEN, "accumulate": "maybe"}, '"maybe" is neither true nor false'),
        ({"window": TEN, "shareIdle": "maybe"}, '"maybe" is none'),
    ],
)
def test_a_wrong_parameter_is_named(query: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_request(query, 10 * HOUR_MS)


def test_a_node_without_a_price_is_left_out_with_a_note_that_names_it_to_readers_who_list_nodes() -> None:
    odd = Machine("n2", 0, None, "odd", devices=("x0",))
    other = msgspec.structs.replace(held("b", (0, 10), 1), machine="n2")
    records = Records((NODE, odd), (*ONE.holdings, other))
    request = read_request({"window": TEN, "includeIdle": "true", "aggregate": "pod"}, 10 * HOUR_MS)
    found = allocations(records, request, basis(), "c")
    assert total(found.sets) == 800.0
    assert set(found.sets[0]) == {"a", IDLE}
    assert "price missing: node n2 (odd, has no price)" in found.notes[0]
    seen = allocations(records, request, basis(), "c", AllocationViewer(lambda _: True, lists_nodes=False))
    assert "price missing: 1 node (odd, has no price)" in seen.notes[0]


def test_prices_are_asked_for_where_no_node_has_one() -> None:
    with pytest.raises(UserError, match="no price is known of box"):
        answer(ONE, PriceFile())


def test_hourly_prices_divide_the_price_of_the_node_and_leave_out_unknown_nodes() -> None:
    node = msgspec.structs.replace(NODE, cpu_milli=192_000, memory_mib=2048 * 1024, capacity="on-demand")
    other = msgspec.structs.replace(NODE, name="n2", instance_type="strange")
    (found,) = hourly_prices([node, other], basis(), HOUR_MS + 5)
    assert (found.node, found.gpus, found.total) == ("n1", 8, Decimal(80))
    whole = found.per_gpu * 8 + found.per_core * 192 + found.per_gib * 2048
    assert whole == pytest.approx(Decimal(80))
    assert found.per_gpu == Decimal("9.5")


def test_held_gpus_count_shares_and_leave_out_what_has_ended() -> None:
    now = msgspec.structs.replace(held("a", (0, 1), 2), end_ms=None)
    found = held_gpus([now, held("b", (0, 1), 1)])
    assert [(one.pod, one.gpus, one.team) for one in found] == [("a", 2.0, "red")]
