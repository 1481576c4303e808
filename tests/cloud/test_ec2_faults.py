"""The adapter of EC2 under faults: each request passes a proxy that loses, refuses and holds answers, and keeps EC2's
client tokens, in front of moto's server."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from build.ec2_proxy import Ec2Proxy, Fault, ec2_proxy
from shoal.client.clock import WallClock
from shoal.cloud.ec2 import Ec2Cloud
from shoal.cloud.ec2_settings import Ec2Settings, ec2_client
from shoal.cloud.port import CloudInstance, InstanceRequest, NoCapacityError, ThrottledError
from shoal.units.errors import TemporaryError, UserError

pytestmark = pytest.mark.external

_REGION, _CLUSTER = "us-east-1", "train"
_KEYS = {"AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none"}
_ONE = InstanceRequest("gang-1", "g5.xlarge", "us-east-1a", "on-demand", 2, {"shoal.dev/launch-group": "gang-1"})


class _Server(NamedTuple):
    proxy: Ec2Proxy
    address: str
    client: Any
    """Of the SDK."""
    network: str


@pytest.fixture(scope="module")
def running() -> Iterator[_Server]:
    pytest.importorskip("boto3")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in _KEYS.items():
            patch.setenv(name, value)
        proxy, address = stack.enter_context(ec2_proxy(f"http://{host}:{port}"))
        client = ec2_client(Ec2Settings(_CLUSTER, _REGION, address))
        network = client.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        _subnet(client, network, "10.0.0.0/24")
        yield _Server(proxy, address, client, network)
    server.stop()


def _subnet(client: Any, network: str, block: str) -> None:
    tags = [{"ResourceType": "subnet", "Tags": [{"Key": "karpenter.sh/discovery", "Value": _CLUSTER}]}]
    client.create_subnet(VpcId=network, CidrBlock=block, AvailabilityZone="us-east-1a", TagSpecifications=tags)


@pytest.fixture
def proxy(running: _Server) -> Iterator[Ec2Proxy]:
    yield running.proxy
    running.proxy.clear()
    there = [each for one in running.client.describe_instances()["Reservations"] for each in one["Instances"]]
    if there:
        running.client.terminate_instances(InstanceIds=[each["InstanceId"] for each in there])
    running.proxy.clear()


@pytest.fixture
def cloud(running: _Server, proxy: Ec2Proxy) -> Ec2Cloud:
    """A new process has nothing in memory: each test begins with one."""
    return _process(running)


def _process(running: _Server) -> Ec2Cloud:
    return Ec2Cloud(running.client, WallClock(), Ec2Settings(_CLUSTER, _REGION, running.address))


def _ids(instances: tuple[CloudInstance, ...]) -> set[str]:
    return {each.id for each in instances}


async def test_instances_of_a_lost_answer_are_found_by_the_token(cloud: Ec2Cloud, proxy: Ec2Proxy) -> None:
    proxy.faults = [Fault("RunInstances", "answer lost")]
    with pytest.raises(TemporaryError):
        await cloud.create(_ONE)
    made = await cloud.instances()
    assert len(made) == 2
    assert _ids(await cloud.create(_ONE)) == _ids(made) == _ids(await cloud.instances())
    assert proxy.requests("RunInstances") == 2


async def test_a_lost_request_is_repeated(cloud: Ec2Cloud, proxy: Ec2Proxy) -> None:
    proxy.faults = [Fault("RunInstances", "request lost")]
    with pytest.raises(TemporaryError):
        await cloud.create(_ONE)
    assert await cloud.instances() == ()
    assert len(await cloud.create(_ONE)) == 2


async def test_the_token_finds_the_instances_also_where_another_subnet_would_be_chosen_now(
    cloud: Ec2Cloud, proxy: Ec2Proxy, running: _Server
) -> None:
    proxy.faults = [Fault("RunInstances", "answer lost")]
    with pytest.raises(TemporaryError):
        await cloud.create(_ONE)
    # It has more free addresses.
    _subnet(running.client, running.network, "10.0.16.0/20")
    successor = _process(running)
    assert _ids(await successor.create(_ONE)) == _ids(await successor.instances())
    assert len(await successor.instances()) == 2


async def test_the_successor_of_a_process_that_was_killed_before_it_had_an_answer_gets_the_same_instances(
    cloud: Ec2Cloud, proxy: Ec2Proxy, running: _Server
) -> None:
    held = Fault("RunInstances", "answer held")
    proxy.faults = [held]
    environment = {**os.environ, **_KEYS}
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", _CHILD, running.address, env=environment)
    assert await asyncio.to_thread(held.carried_out.wait, 60)
    child.send_signal(signal.SIGKILL)
    assert await child.wait() == -signal.SIGKILL
    held.released.set()
    assert len(await cloud.create(_ONE)) == 2
    assert len(await cloud.instances()) == 2


_CHILD = f"""
import asyncio, sys
from shoal.client.clock import WallClock
from shoal.cloud.ec2 import Ec2Cloud
from shoal.cloud.ec2_settings import Ec2Settings, ec2_client
from shoal.cloud.port import InstanceRequest
settings = Ec2Settings({_CLUSTER!r}, {_REGION!r}, sys.argv[1])
tags = {dict(_ONE.tags)!r}
request = InstanceRequest({_ONE.token!r}, {_ONE.instance_type!r}, {_ONE.zone!r}, "on-demand", 2, tags)
asyncio.run(Ec2Cloud(ec2_client(settings), WallClock(), settings).create(request))
"""


@pytest.mark.parametrize(
    "code",
    ["InsufficientInstanceCapacity", "VcpuLimitExceeded", "InsufficientFreeAddressesInSubnet"],
)
async def test_capacity_errors_let_the_caller_choose_another_offering(
    cloud: Ec2Cloud, proxy: Ec2Proxy, code: str
) -> None:
    proxy.faults = [Fault("RunInstances", "refused", code, 500)]
    with pytest.raises(NoCapacityError, match=code):
        await cloud.create(_ONE)
    assert await cloud.instances() == ()


@pytest.mark.parametrize("code", ["RequestLimitExceeded", "Throttling", "SlowDown"])
async def test_a_throttled_request_is_sent_once_and_says_when_to_repeat_it(
    cloud: Ec2Cloud, proxy: Ec2Proxy, code: str
) -> None:
    proxy.faults = [Fault("RunInstances", "refused", code, 503)]
    with pytest.raises(ThrottledError) as refused:
        await cloud.create(_ONE)
    assert refused.value.delay_s > 0
    assert proxy.requests("RunInstances") == 1


async def test_a_wrong_launch_template_is_an_error_of_the_user(cloud: Ec2Cloud, proxy: Ec2Proxy) -> None:
    proxy.faults = [Fault("RunInstances", "refused", "InvalidLaunchTemplateName.NotFoundException")]
    with pytest.raises(UserError, match="InvalidLaunchTemplateName"):
        await cloud.create(_ONE)


async def test_a_lost_answer_to_a_deletion_is_repeated(cloud: Ec2Cloud, proxy: Ec2Proxy) -> None:
    made = sorted(_ids(await cloud.create(_ONE)))
    proxy.faults = [Fault("TerminateInstances", "answer lost")]
    with pytest.raises(TemporaryError):
        await cloud.delete(made)
    await cloud.delete(made)
    assert await cloud.instances() == ()


async def test_an_instance_that_is_gone_between_list_and_deletion_does_not_keep_the_others(
    cloud: Ec2Cloud, proxy: Ec2Proxy
) -> None:
    made = sorted(_ids(await cloud.create(_ONE)))
    proxy.faults = [Fault("TerminateInstances", "refused", "InvalidInstanceID.NotFound")]
    await cloud.delete(made)
    assert await cloud.instances() == ()


async def test_without_a_list_nothing_is_known(cloud: Ec2Cloud, proxy: Ec2Proxy) -> None:
    proxy.faults = [Fault("DescribeInstances", "answer lost")]
    with pytest.raises(TemporaryError):
        await cloud.instances()
