"""The simulated cloud keeps the guarantees of the port, and behaves as its file says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from build.cloud_contract import GUARANTEES, CloudUnderTest, pool_of
from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.autoscale.nodes.instance_types import SPOT
from shoal.cloud.port import InstanceRequest, ThrottledError
from shoal.embedded.cloud.chance import Chance
from shoal.embedded.cloud.settings import CapacityRule, CloudFailures, CloudSettings, SpotMarket, cloud_settings
from shoal.embedded.cloud.simulated_cloud import SimulatedCloud
from shoal.units.errors import UserError, Where


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda each: each.__name__)
def test_the_port_is_kept(tmp_path: Path, guarantee: Callable[[CloudUnderTest], Awaitable[None]]) -> None:
    @virtual
    async def story() -> None:
        async with small_cluster(tmp_path) as cluster:
            settings = CloudSettings(capacity=(CapacityRule(3, zone="us-east-1b"),), requests_per_second=1000.0)
            cloud = SimulatedCloud(cluster.api, cluster.clock, settings)
            exhausted = InstanceRequest("many", "p5.48xlarge", "us-east-1b", "on-demand", 4)
            await guarantee(CloudUnderTest(cloud, pool_of("p5.48xlarge"), exhausted))
            await cluster.pass_time(settings.at_s("running"))
            assert {each.state for each in await cloud.instances()} <= {"running"}

    story()


@virtual
async def test_requests_are_limited_per_second(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        cloud = SimulatedCloud(cluster.api, cluster.clock, CloudSettings(requests_per_second=2.0))
        await cloud.instances()
        await cloud.instances()
        with pytest.raises(ThrottledError) as refused:
            await cloud.instances()
        await cluster.pass_time(refused.value.delay_s)
        await cloud.instances()


@virtual
async def test_a_spot_instance_has_a_notice_before_it_is_taken_back(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        settings = CloudSettings(spot=SpotMarket(mean_lifetime_s=3600.0, notice_s=120.0))
        cloud = SimulatedCloud(cluster.api, cluster.clock, settings)
        (made,) = await cloud.create(InstanceRequest("spot", "p5.48xlarge", "us-east-1a", SPOT))
        lifetime_s = Chance(settings).lifetime_s(made.id.removeprefix("i-"))
        assert lifetime_s is not None
        await cluster.pass_time(lifetime_s - 130)
        assert (await cloud.instances())[0].interrupted_s is None
        await cluster.pass_time(20)
        assert (await cloud.instances())[0].interrupted_s == pytest.approx(made.created_s + lifetime_s)
        await cluster.pass_time(120)
        assert await cloud.instances() == ()


def test_equal_seeds_see_equal_outages_and_others_do_not() -> None:
    def outages(seed: int) -> list[bool]:
        chance = Chance(CloudSettings(seed=seed, failures=CloudFailures(outage=0.5)))
        return [chance.has_outage("p5.48xlarge/us-east-1a/spot", quarter * 900.0) for quarter in range(40)]

    assert outages(1) == outages(1)
    assert outages(1) != outages(2)
    assert 5 < sum(outages(1)) < 35


WRONG = {
    "an unknown field": ({"bot": []}, "did you mean boot"),
    "too few boot times": ({"boot": ["1m"]}, "write 6"),
    "boot times that decrease": ({"boot": ["0s", "2m", "1m", "5m", "8m", "10m"]}, "must not decrease"),
    "a probability above 1": ({"failures": {"outage": 2}}, "from 0 to 1"),
    "a number of zones": ({"zones": 0}, "from 1 to 6"),
    "no map": ([], "must be a map"),
    "a rule without a number": ({"capacity": [{"zone": "a"}]}, "instances"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_file_is_refused_with_the_field(case: tuple[object, str]) -> None:
    raw, words = case
    with pytest.raises(UserError) as refused:
        cloud_settings(raw, Where(file="cloud.yaml"))
    assert words in str(refused.value)
    assert "cloud.yaml" in str(refused.value)


def test_the_example_of_the_page_is_read() -> None:
    raw = {
        "seed": 7,
        "boot": ["0s", "1m", "2m", "5m", "8m", "10m"],
        "zones": 3,
        "capacity": [{"instanceType": "p5.48xlarge", "zone": "a", "capacityType": "on-demand", "instances": 4}],
        "spot": {"meanLifetime": "6h", "notice": "2m", "priceSpread": 0.2},
        "failures": {"outage": 0.05, "neverRegisters": 0.01, "lostResponses": 0.02},
        "requestsPerSecond": 20,
    }
    found = cloud_settings(raw, Where())
    assert found.at_s("devices") == 480.0
    assert found.spot.mean_lifetime_s == 6 * 3600.0
    assert found.failures.lost_responses == 0.02
