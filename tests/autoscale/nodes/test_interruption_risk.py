"""Spot is compared with on-demand by its price and by the work that its interruptions lose."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from build.pool_worlds import machine, planned, pod, pool, world
from shoal.api.pod import Pod
from shoal.autoscale.nodes.instance_reading import instance_type_of
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.interruption_risk import NO_LOSS, PodLoss, losses_of, lost_hours, with_rates
from shoal.autoscale.nodes.plan import NodePlan, PlanningSettings
from shoal.autoscale.nodes.planner import plan_nodes
from shoal.autoscale.nodes.pool_reading import pool_of
from shoal.units.errors import UserError, Where
from shoal.views.scale_plan import passed_over_text

CHEAPEST = PlanningSettings(packing="LeastCost")
RESTART_H = 300 / 3600


def _kind(interruptions: float = 0.1) -> InstanceType:
    return machine("h100-8", 96, price=40, spot=16, gpus=8, interruptions=interruptions)


def _training(name: str = "train", **annotations: str) -> Pod:
    named = {f"shoal.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return pod(name, "4", gpus=8, owner="Job", annotations=named)


def _launched(*pods: Pod, interruptions: float = 0.1, **other: Any) -> list[str]:
    plan = planned((_kind(interruptions),), pods, settings=CHEAPEST, **other)
    return [node.offering.capacity_type for node in plan.new_nodes]


LOSSES = {
    "half of the interval between checkpoints": (_training(checkpoint_every="1h"), 0.5),
    "half of a run that is shorter than the interval": (_training(checkpoint_every="10h", expected_duration="1h"), 0.5),
    "half of the expected run without checkpoints": (_training(expected_duration="10h"), 5),
    "half of the run until its deadline": (pod("p", gpus=1, owner="Job", activeDeadlineSeconds=7200), 1),
    "half a day where nothing is said": (_training(), 12),
    "nothing but the start of a server": (pod("p", gpus=1, owner="ReplicaSet"), 0),
    "as without an annotation that cannot be read": (_training(checkpoint_every="often"), 12),
}


@pytest.mark.parametrize("case", LOSSES.values(), ids=LOSSES.keys())
def test_an_interruption_loses(case: tuple[Pod, float]) -> None:
    one, hours = case
    assert losses_of([one], {})[0].hours == pytest.approx(hours + RESTART_H)


def test_a_pod_without_devices_loses_nothing() -> None:
    assert losses_of([pod("p", owner="Job")], {}) == [NO_LOSS]


def test_a_node_with_a_part_of_a_gang_loses_the_hours_of_all_its_nodes() -> None:
    assert lost_hours([PodLoss(2, "train", 8), PodLoss(2, "train", 8), PodLoss(3)]) == 8
    assert lost_hours([]) == 0


def test_members_of_a_gang_without_devices_lose_nothing_and_do_not_multiply_what_others_lose() -> None:
    pods = [_training("train-0"), pod("driver", "4", owner="Job"), _training("train-1")]
    hours = 12 + RESTART_H
    found = losses_of(pods, {each.metadata.key: "train" for each in pods})
    assert found == [PodLoss(hours, "train", 2), NO_LOSS, PodLoss(hours, "train", 2)]
    assert lost_hours(found[:2]) == 2 * hours


def test_work_without_checkpoints_that_runs_long_goes_to_on_demand() -> None:
    # Spot costs 16, and loses 12 hours every 10 hours: 16 + 16 x 0.1 x 12.08 = 35.3, less than 40; at 0.2 it is 54.7.
    assert _launched(_training()) == ["spot"]
    assert _launched(_training(), interruptions=0.2) == ["on-demand"]
    assert _launched(_training(checkpoint_every="10m"), interruptions=0.2) == ["spot"]
    assert _launched(pod("server", "4", gpus=8), interruptions=0.2) == ["spot"]


def test_the_size_of_a_gang_counts() -> None:
    pods = [_training(f"train-{number}", checkpoint_every="2h") for number in range(16)]
    gangs = {each.metadata.key: "train" for each in pods}
    assert set(_launched(*pods)) == {"spot"}
    # 16 nodes that lose 1.08 hours each: 16 + 16 x 0.1 x 17.3 = 43.7.
    assert set(_launched(*pods, gangs=gangs)) == {"on-demand"}


def test_members_without_devices_do_not_make_spot_dearer() -> None:
    pods = [_training("train", checkpoint_every="2h"), *(pod(f"loader-{at}", "4", owner="Job") for at in range(40))]
    gangs = {each.metadata.key: "train" for each in pods}
    plan = planned((_kind(), machine("cpu", 96, price=4)), pods, settings=CHEAPEST, gangs=gangs)
    offerings = {node.launch.name: (node.offering.capacity_type, node.lost_hours) for node in plan.new_nodes}
    assert offerings["h100-8"] == ("spot", 1 + RESTART_H)
    assert offerings["cpu"] == ("on-demand", 0.0)


def test_a_plan_says_what_it_did_not_choose_and_why() -> None:
    (node,) = planned((_kind(0.2),), [_training()], settings=CHEAPEST).new_nodes
    assert passed_over_text(node) == (
        "h100-8 (spot) costs $16.00 per hour, and its interruptions would lose work worth $38.67 per hour"
    )
    (node,) = planned((_kind(),), [_training(checkpoint_every="1h")], settings=CHEAPEST).new_nodes
    assert passed_over_text(node) == ""
    assert node.risk_price == pytest.approx(16 * 0.1 * (0.5 + RESTART_H))


def test_the_limit_of_spending_counts_what_is_launched() -> None:
    pools = [pool(limits={"shoal.dev/spend-per-hour": "50"})]
    plan = planned((_kind(0.2),), [_training("a"), _training("b")], settings=CHEAPEST, pools=pools)
    assert plan.price <= 50
    assert [node.offering.capacity_type for node in plan.new_nodes] == ["on-demand"]


def _of_pool(**annotations: str) -> NodePlan:
    raw = {"metadata": {"name": "default", "annotations": annotations}, "spec": {}}
    chosen = pool_of(raw, has_defaults=False)
    given = world((), [_training()], pools=[chosen], settings=CHEAPEST)
    return plan_nodes(replace(given, types={"default": with_rates(chosen, (_kind(0.0),))}))


def test_a_pool_can_name_the_rate_of_interruptions_of_its_spot_nodes() -> None:
    assert _of_pool().new_nodes[0].offering.capacity_type == "spot"
    named = _of_pool(**{"shoal.dev/spot-interruptions-per-hour": "0.2"})
    assert named.new_nodes[0].offering.capacity_type == "on-demand"


@pytest.mark.parametrize("text", ["often", "-1", "nan", "inf"])
def test_a_rate_of_a_pool_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="is no rate per hour"):
        _of_pool(**{"shoal.dev/spot-interruptions-per-hour": text})


@pytest.mark.parametrize("rate", [3601, 1e300, float("nan"), float("inf"), -1, True, "often"])
def test_a_rate_of_an_offering_that_is_none_is_refused(rate: Any) -> None:
    offering = {"zone": "a", "capacityType": "spot", "price": 1, "interruptionsPerHour": rate}
    with pytest.raises(UserError, match="is no rate per hour"):
        instance_type_of({"name": "t", "offerings": [offering]}, Where())


def test_a_rate_of_an_offering_is_read() -> None:
    offering = {"zone": "a", "capacityType": "spot", "price": 1, "interruptionsPerHour": 3600}
    (found,) = instance_type_of({"name": "t", "offerings": [offering]}, Where()).offerings
    assert found.interruptions_per_hour == 3600.0
