"""Notices of EC2 that instances are taken back are read from a queue, and stay there until the instances are gone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from build.jumping_clock import JumpingClock
from shoal.client.clock import WallClock
from shoal.cloud.ec2 import Ec2Cloud
from shoal.cloud.ec2_notices import Notice, notice_of
from shoal.cloud.ec2_policy import QUEUE, PolicyScope, iam_policy
from shoal.cloud.ec2_settings import Ec2Settings, sqs_client
from shoal.cloud.port import InstanceRequest

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC).timestamp()
SPOT = "EC2 Spot Instance Interruption Warning"
STATE = "EC2 Instance State-change Notification"
HEALTH = "AWS Health Event"


def _event(kind: str, time: str = "2026-11-27T12:00:00Z", **detail: Any) -> str:
    named = {key.replace("instance_id", "instance-id"): value for key, value in detail.items()}
    return json.dumps({"version": "0", "source": "aws", "detail-type": kind, "time": time, "detail": named})


def _change(start: str, **changed: Any) -> str:
    usual = {
        "service": "EC2",
        "eventTypeCategory": "scheduledChange",
        "startTime": start,
        "affectedEntities": [{"entityValue": "i-1"}, {"entityValue": "i-2"}],
    }
    return _event(HEALTH, **{**usual, **changed})


BOTH = ("i-1", "i-2")
NOTICES: dict[str, tuple[str, Notice | None]] = {
    "a spot interruption in two minutes": (_event(SPOT, instance_id="i-1"), Notice(("i-1",), NOON, NOON + 120)),
    "an instance that is being stopped": (
        _event(STATE, instance_id="i-1", state="stopping"),
        Notice(("i-1",), NOON, NOON),
    ),
    "a scheduled change": (_change("Sat, 28 Nov 2026 12:00:00 GMT"), Notice(BOTH, NOON, NOON + 86400)),
    "a scheduled change without a time": (_change("soon"), Notice(BOTH, NOON, NOON + 120)),
    "a scheduled change of long ago": (_change("Sat, 28 Nov 1900 12:00:00 GMT"), Notice(BOTH, NOON, NOON + 120)),
    "a recommendation only": (
        _event("EC2 Instance Rebalance Recommendation", instance_id="i-1"),
        Notice(("i-1",), NOON),
    ),
    "an instance that runs": (_event(STATE, instance_id="i-1", state="running"), None),
    "an issue of another service": (_change("", service="RDS"), None),
    "an issue that is no change": (_change("", eventTypeCategory="issue"), None),
    "a change of nothing": (_change("", affectedEntities=[]), None),
    "another event": (_event("Other", instance_id="i-1"), None),
    "no instance": (_event(SPOT), None),
    "a time without zone": (_event(SPOT, "2026-11-27T12:00:00", instance_id="i-1"), None),
    "other types": (_event(SPOT, instance_id=["i-1"]), None),
    "no JSON": ("{", None),
}


@pytest.mark.parametrize("case", NOTICES.values(), ids=NOTICES.keys())
def test_a_message_is(case: tuple[str, Notice | None]) -> None:
    body, wanted = case
    assert notice_of(body) == wanted


class _Queue:
    """Implements what is used of boto3's client of SQS; messages that are not deleted are received again."""

    def __init__(self) -> None:
        self.messages: dict[str, str] = {}
        self.hidden: set[str] = set()
        self.fails = False
        self.received = 0
        self.asked = 0
        self.receipts: dict[str, str] = {}
        self.deletions: list[int] = []

    def get_queue_url(self, **asked: Any) -> Mapping[str, Any]:
        assert asked == {"QueueName": "notices"}
        self.asked += 1
        if self.fails:
            raise TimeoutError("connect timed out")
        return {"QueueUrl": "https://queue"}

    def receive_message(self, **asked: Any) -> Mapping[str, Any]:
        assert asked == {"QueueUrl": "https://queue", "MaxNumberOfMessages": 10}
        self.received += 1
        shown = [each for each in self.messages if each not in self.hidden][:10]
        self.hidden.update(shown)
        found = []
        for each in shown:
            # Only the newest receipt is sure to delete a message.
            self.receipts[each] = f"{each}/{self.received}"
            found.append({"MessageId": each, "Body": self.messages[each], "ReceiptHandle": self.receipts[each]})
        return {"Messages": found} if found else {}

    def delete_message_batch(self, **asked: Any) -> Mapping[str, Any]:
        entries = asked["Entries"]
        assert asked["QueueUrl"] == "https://queue"
        assert len({each["Id"] for each in entries}) == len(entries) <= 10
        self.deletions.append(len(entries))
        for each in entries:
            name = each["ReceiptHandle"].partition("/")[0]
            assert self.receipts[name] == each["ReceiptHandle"]
            del self.messages[name]
        return {}


class _RefusedError(Exception):
    """What the SDK raises if a token was used with other parameters."""

    response: Mapping[str, Any] = {
        "Error": {"Code": "IdempotentParameterMismatch", "Message": "other parameters"},
        "ResponseMetadata": {"HTTPStatusCode": 400},
    }


class _Instances:
    """Implements what is used of boto3's client of EC2 to list instances."""

    def __init__(self, *ids: str) -> None:
        self.ids = list(ids)
        self.launched: list[str] = []
        """Those of an earlier request with the same token and other parameters."""
        self._operation = ""

    def get_paginator(self, operation: str) -> _Instances:
        self._operation = operation
        return self

    def run_instances(self, **_: Any) -> None:
        raise _RefusedError

    def paginate(self, **asked: Any) -> list[Any]:
        if self._operation == "describe_subnets":
            return [{"Subnets": [{"AvailabilityZone": "a", "SubnetId": "subnet-1"}]}]
        assert self._operation == "describe_instances"
        ids = self.ids if len(asked["Filters"]) == 1 else self.launched
        launched = datetime.fromtimestamp(NOON, UTC)
        usual = {"InstanceType": "p5.48xlarge", "State": {"Name": "running"}, "LaunchTime": launched}
        return [{"Reservations": [{"Instances": [{"InstanceId": each, **usual} for each in ids]}]}]


def _cloud(instances: _Instances, queue: _Queue, age_s: float = 1000.0) -> tuple[Ec2Cloud, JumpingClock]:
    """`age_s`: how long ago noon is."""
    clock = JumpingClock(WallClock())
    clock.ahead_s = NOON + age_s - clock.seconds()
    return Ec2Cloud(instances, clock, Ec2Settings("train", interruption_queue="notices"), queue), clock


async def _ends(cloud: Ec2Cloud) -> dict[str, float | None]:
    return {each.id: each.interrupted_s for each in await cloud.instances()}


async def test_a_notice_is_kept_in_the_queue_until_its_instance_is_gone() -> None:
    instances, queue = _Instances("i-1", "i-2"), _Queue()
    cloud, _ = _cloud(instances, queue)
    queue.messages = {"one": _event(SPOT, instance_id="i-1"), "foreign": _event(SPOT, instance_id="i-9"), "bad": "{"}
    assert await _ends(cloud) == {"i-1": NOON + 120, "i-2": None}
    assert set(queue.messages) == {"one"}
    queue.hidden.clear()
    after, _ = _cloud(instances, queue)
    assert (await _ends(after))["i-1"] == NOON + 120
    instances.ids.remove("i-1")
    assert await _ends(after) == {"i-2": None}
    assert queue.messages == {}


async def test_a_notice_about_an_instance_that_is_not_listed_yet_is_kept_for_some_minutes() -> None:
    instances, queue = _Instances(), _Queue()
    cloud, clock = _cloud(instances, queue, age_s=5.0)
    queue.messages = {"one": _event(SPOT, instance_id="i-1"), "foreign": _event(SPOT, instance_id="i-9")}
    assert await _ends(cloud) == {}
    assert set(queue.messages) == {"one", "foreign"}
    instances.ids.append("i-1")
    queue.hidden.clear()
    clock.ahead_s += 30
    assert await _ends(cloud) == {"i-1": NOON + 120}
    queue.hidden.clear()
    clock.ahead_s += 600
    await cloud.instances()
    assert set(queue.messages) == {"one"}


async def test_a_launch_that_is_repeated_with_another_subnet_keeps_the_notices_of_other_instances() -> None:
    instances, queue = _Instances("i-1", "i-2"), _Queue()
    cloud, clock = _cloud(instances, queue)
    queue.messages = {"one": _event(SPOT, instance_id="i-1")}
    assert (await _ends(cloud))["i-1"] == NOON + 120
    instances.launched = ["i-2"]
    request = InstanceRequest("token", "p5.48xlarge", "a", "spot")
    assert [each.id for each in await cloud.create(request)] == ["i-2"]
    clock.ahead_s += 6
    assert (await _ends(cloud))["i-1"] == NOON + 120
    assert set(queue.messages) == {"one"}


async def test_a_notice_about_several_instances_stays_until_all_are_gone() -> None:
    instances, queue = _Instances("i-1", "i-2"), _Queue()
    cloud, _ = _cloud(instances, queue)
    queue.messages = {"one": _change("")}
    assert await _ends(cloud) == dict.fromkeys(BOTH, NOON + 120)
    instances.ids.remove("i-1")
    await cloud.instances()
    assert set(queue.messages) == {"one"}
    instances.ids.remove("i-2")
    await cloud.instances()
    assert queue.messages == {}


async def test_a_notice_that_is_received_again_and_again_is_removed_once() -> None:
    instances, queue = _Instances("i-1"), _Queue()
    cloud, clock = _cloud(instances, queue)
    queue.messages = {"one": _change("")}
    for _ in range(20):
        clock.ahead_s += 30
        queue.hidden.clear()
        await cloud.instances()
    instances.ids.clear()
    await cloud.instances()
    assert queue.messages == {}
    assert queue.deletions == [1]


async def test_messages_are_removed_together() -> None:
    instances, queue = _Instances(*(f"i-{number}" for number in range(25))), _Queue()
    cloud, _ = _cloud(instances, queue)
    queue.messages = {str(number): _event(SPOT, instance_id=f"i-{number}") for number in range(25)}
    await cloud.instances()
    instances.ids.clear()
    await cloud.instances()
    assert queue.deletions == [10, 10, 5]
    assert queue.messages == {}


async def test_all_messages_are_read_and_the_queue_is_not_asked_all_the_time() -> None:
    instances, queue = _Instances("i-1"), _Queue()
    cloud, clock = _cloud(instances, queue)
    queue.messages = {str(number): _event(SPOT, instance_id=f"i-{number}") for number in range(30, 0, -1)}
    assert (await _ends(cloud))["i-1"] == NOON + 120
    asked = queue.received
    await cloud.instances()
    assert queue.received == asked
    clock.ahead_s += 6
    await cloud.instances()
    assert queue.received == asked + 1


async def test_a_recommendation_is_logged_and_no_node_is_removed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    instances, queue = _Instances("i-1"), _Queue()
    cloud, _ = _cloud(instances, queue)
    queue.messages = {"one": _event("EC2 Instance Rebalance Recommendation", instance_id="i-1")}
    assert await _ends(cloud) == {"i-1": None}
    assert queue.messages == {}
    assert "EC2 recommends to replace i-1" in caplog.text


async def test_a_queue_that_does_not_answer_keeps_nothing_else_from_working(caplog: pytest.LogCaptureFixture) -> None:
    instances, queue = _Instances("i-1"), _Queue()
    cloud, clock = _cloud(instances, queue)
    queue.fails = True
    for _ in range(3):
        clock.ahead_s += 6
        assert await _ends(cloud) == {"i-1": None}
    assert caplog.text.count("queue notices: notices of interruptions are not read") == 1


async def test_a_queue_that_does_not_answer_is_asked_ever_later() -> None:
    instances, queue = _Instances("i-1"), _Queue()
    cloud, clock = _cloud(instances, queue)
    queue.fails = True
    for _ in range(60):
        clock.ahead_s += 5
        await cloud.instances()
    # After 10, 20, 40 seconds, and then each minute.
    assert 6 <= queue.asked <= 9
    queue.fails = False
    queue.messages = {"one": _event(SPOT, instance_id="i-1")}
    clock.ahead_s += 61
    assert await _ends(cloud) == {"i-1": NOON + 120}
    received = queue.received
    clock.ahead_s += 6
    await cloud.instances()
    assert queue.received == received + 1


def test_the_client_of_the_queue_does_not_wait_long() -> None:
    pytest.importorskip("boto3")
    settings = Ec2Settings("train", "us-east-1", interruption_queue="notices")
    found = sqs_client(settings).meta.config
    assert found.connect_timeout + found.read_timeout <= 10


def test_the_policy_has_the_rights_on_the_queue_only_if_it_is_named() -> None:
    def rights(scope: PolicyScope) -> list[Any]:
        return [each for each in iam_policy(scope)["Statement"] if "sqs" in json.dumps(each)]

    assert rights(PolicyScope("train")) == []
    (one,) = rights(PolicyScope("train", "us-east-1", "123456789012", interruption_queue="notices"))
    assert one["Action"] == [f"sqs:{name}" for name in QUEUE]
    assert one["Resource"] == "arn:aws:sqs:us-east-1:123456789012:notices"


@pytest.mark.external
async def test_the_notices_in_a_queue_of_sqs_are_read() -> None:
    boto3 = pytest.importorskip("boto3")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        keys = dict.fromkeys(("aws_access_key_id", "aws_secret_access_key"), "none")
        sqs = boto3.client("sqs", region_name="us-east-1", endpoint_url=f"http://{host}:{port}", **keys)
        url = sqs.create_queue(QueueName="notices", Attributes={"VisibilityTimeout": "0"})["QueueUrl"]
        sqs.send_message(QueueUrl=url, MessageBody=_event("Other"))
        sqs.send_message(QueueUrl=url, MessageBody=_event(SPOT, instance_id="i-1"))
        instances, clock = _Instances("i-1"), JumpingClock(WallClock())
        clock.ahead_s = NOON + 1000.0 - clock.seconds()
        cloud = Ec2Cloud(instances, clock, Ec2Settings("train", interruption_queue="notices"), sqs)
        assert await _ends(cloud) == {"i-1": NOON + 120}
        instances.ids.clear()
        clock.ahead_s += 6
        await cloud.instances()
        left = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])
        assert left["Attributes"]["ApproximateNumberOfMessages"] == "0"
    finally:
        server.stop()
