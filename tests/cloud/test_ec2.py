"""The adapter of EC2 keeps the guarantees of the port, against moto's server; its errors are those that callers expect.

moto has no client tokens, which EC2 documents: a client between the two adds them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from build.cloud_contract import GUARANTEES, CloudUnderTest, pool_of
from shoal.client.clock import WallClock
from shoal.cloud.ec2 import Ec2Cloud, translated
from shoal.cloud.ec2_policy import READS, WRITES
from shoal.cloud.ec2_settings import Ec2Settings
from shoal.cloud.port import InstanceRequest, NoCapacityError, ThrottledError
from shoal.units.errors import ShoalError, TemporaryError, UserError

REGION, CLUSTER, MOST = "us-east-1", "train", 3


class _RefusedByEc2Error(Exception):
    def __init__(self, code: str, status: int = 400) -> None:
        super().__init__(code)
        self.response = {"Error": {"Code": code, "Message": "words"}, "ResponseMetadata": {"HTTPStatusCode": status}}


class _TokenClient:
    """Adds client tokens, and a bound of the capacity of us-east-1b."""

    def __init__(self, inner: Any, exhausted_subnets: set[str]) -> None:
        self._inner = inner
        self._exhausted = exhausted_subnets
        self._known: dict[str, Any] = {}
        self.used: set[str] = set()

    def run_instances(self, **asked: Any) -> Any:
        self.used |= {"RunInstances", "CreateTags"}
        token = asked.pop("ClientToken")
        assert len(token) <= 64
        assert asked["MinCount"] == asked["MaxCount"]
        if asked["SubnetId"] in self._exhausted and asked["MinCount"] > MOST:
            raise _RefusedByEc2Error("InsufficientInstanceCapacity", 500)
        if token not in self._known:
            self._known[token] = self._inner.run_instances(**asked)
        return self._known[token]

    def terminate_instances(self, **asked: Any) -> Any:
        self.used.add("TerminateInstances")
        return self._inner.terminate_instances(**asked)

    def get_paginator(self, operation: str) -> Any:
        self.used.add("".join(part.capitalize() for part in operation.split("_")))
        return self._inner.get_paginator(operation)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    pytest.importorskip("boto3")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def client(endpoint: str) -> _TokenClient:
    import http.client

    import boto3

    server = http.client.HTTPConnection(endpoint.removeprefix("http://"))
    server.request("POST", "/moto-api/reset")
    assert server.getresponse().status == 200
    server.close()
    keys = dict.fromkeys(("aws_access_key_id", "aws_secret_access_key"), "none")
    ec2 = boto3.client("ec2", region_name=REGION, endpoint_url=endpoint, **keys)
    network = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    tags = [{"ResourceType": "subnet", "Tags": [{"Key": "karpenter.sh/discovery", "Value": CLUSTER}]}]
    subnets: dict[str, str] = {}
    for number, zone in enumerate(("us-east-1a", "us-east-1b")):
        made = ec2.create_subnet(
            VpcId=network, CidrBlock=f"10.0.{number}.0/24", AvailabilityZone=zone, TagSpecifications=tags
        )
        subnets[zone] = made["Subnet"]["SubnetId"]
    return _TokenClient(ec2, {subnets["us-east-1b"]})


@pytest.mark.external
@pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda each: each.__name__)
async def test_the_port_is_kept(client: _TokenClient, guarantee: Callable[[CloudUnderTest], Awaitable[None]]) -> None:
    cloud = Ec2Cloud(client, WallClock(), Ec2Settings(CLUSTER, REGION))
    exhausted = InstanceRequest("many", "g5.xlarge", "us-east-1b", "on-demand", MOST + 1)
    await guarantee(CloudUnderTest(cloud, pool_of("g5.xlarge"), exhausted))
    assert client.used <= {*READS, *WRITES}


@pytest.mark.external
async def test_instances_of_another_cluster_are_not_seen_and_not_ended(client: _TokenClient) -> None:
    own, other = (Ec2Cloud(client, WallClock(), Ec2Settings(name, REGION)) for name in (CLUSTER, "other"))
    (made,) = await own.create(InstanceRequest("one", "g5.xlarge", "us-east-1a", "on-demand"))
    assert await other.instances() == ()
    await other.delete([made.id])
    assert [each.id for each in await own.instances()] == [made.id]


ERRORS: dict[str, tuple[Exception, type[ShoalError]]] = {
    "no capacity": (_RefusedByEc2Error("InsufficientInstanceCapacity", 500), NoCapacityError),
    "a limit of the account": (_RefusedByEc2Error("VcpuLimitExceeded"), NoCapacityError),
    "too many requests": (_RefusedByEc2Error("RequestLimitExceeded", 503), ThrottledError),
    "no right": (_RefusedByEc2Error("UnauthorizedOperation", 403), UserError),
    "a wrong value": (_RefusedByEc2Error("InvalidParameterValue"), UserError),
    "a fault of EC2": (_RefusedByEc2Error("InternalError", 500), TemporaryError),
    "no answer": (TimeoutError("read timed out"), TemporaryError),
}


@pytest.mark.parametrize("case", ERRORS.values(), ids=ERRORS.keys())
def test_an_error_says_who_must_act(case: tuple[Exception, type[ShoalError]]) -> None:
    error, wanted = case
    assert type(translated(error)) is wanted
