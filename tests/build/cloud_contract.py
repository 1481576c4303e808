"""What every cloud guarantees, as functions that a test of each implementation calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from shoal.autoscale.nodes.pools import NodePool
from shoal.autoscale.requirements import RequirementSet, only
from shoal.autoscale.requirements.labels import INSTANCE_TYPE_LABEL
from shoal.cloud.port import GROUP_TAG, Cloud, InstanceRequest, NoCapacityError


@dataclass(frozen=True)
class CloudUnderTest:
    cloud: Cloud
    pool: NodePool
    """A pool that the cloud can serve."""
    exhausted: InstanceRequest
    """A request for more instances than there are."""


async def offers_what_the_pool_may_use(given: CloudUnderTest) -> None:
    types = await given.cloud.instance_types(given.pool)
    assert types
    for one in types:
        assert one.capacity["cpu"] > 0
        assert one.offerings, one.name
        assert all(offering.zone and offering.capacity_type and offering.price >= 0 for offering in one.offerings)
        assert given.cloud.boot_s(one.name) > 0


async def one_token_is_one_request(given: CloudUnderTest) -> None:
    request = await _request(given, "once", 2)
    first = await given.cloud.create(request)
    again = await given.cloud.create(request)
    assert len(first) == 2
    assert {each.id for each in first} == {each.id for each in again}
    assert len(await given.cloud.instances()) == 2


async def other_tokens_are_other_requests(given: CloudUnderTest) -> None:
    first = await given.cloud.create(await _request(given, "one", 1))
    other = await given.cloud.create(await _request(given, "other", 1))
    assert {each.id for each in first}.isdisjoint(each.id for each in other)


async def an_instance_is_listed_with_its_tags(given: CloudUnderTest) -> None:
    request = await _request(given, "tagged", 1)
    (made,) = await given.cloud.create(request)
    (listed,) = await given.cloud.instances()
    assert listed.id == made.id
    assert listed.provider_id == made.provider_id
    assert listed.tags[GROUP_TAG] == "tagged"
    offering = listed.instance_type, listed.zone, listed.capacity_type
    assert offering == (request.instance_type, request.zone, request.capacity_type)


async def a_request_is_granted_as_a_whole_or_not_at_all(given: CloudUnderTest) -> None:
    with pytest.raises(NoCapacityError):
        await given.cloud.create(given.exhausted)
    assert await given.cloud.instances() == ()


async def a_deleted_instance_is_gone_and_may_be_deleted_again(given: CloudUnderTest) -> None:
    first, second = await given.cloud.create(await _request(given, "deleted", 2))
    await given.cloud.delete([first.id])
    assert [each.id for each in await given.cloud.instances()] == [second.id]
    await given.cloud.delete([first.id, second.id, "i-00000000000000000"])
    assert await given.cloud.instances() == ()


GUARANTEES: tuple[Callable[[CloudUnderTest], Awaitable[None]], ...] = (
    offers_what_the_pool_may_use,
    one_token_is_one_request,
    other_tokens_are_other_requests,
    an_instance_is_listed_with_its_tags,
    a_request_is_granted_as_a_whole_or_not_at_all,
    a_deleted_instance_is_gone_and_may_be_deleted_again,
)


def pool_of(instance_type: str, node_class: str = "EC2NodeClass") -> NodePool:
    wanted = RequirementSet({INSTANCE_TYPE_LABEL: only(instance_type)})
    return NodePool("gpu", wanted, node_class=node_class)


async def _request(given: CloudUnderTest, token: str, count: int) -> InstanceRequest:
    wanted = given.pool.requirements.get(INSTANCE_TYPE_LABEL)
    types = await given.cloud.instance_types(given.pool)
    one = next(each for each in types if wanted.has(each.name))
    offering = one.offerings[0]
    return InstanceRequest(
        token, one.name, offering.zone, offering.capacity_type, count, tags={GROUP_TAG: token, "team": "vision"}
    )
