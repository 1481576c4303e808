"""The triggers of brokers and databases: their settings, and the values in what servers answer."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from shoal.autoscale.scaled_objects.answers import AnswerError
from shoal.autoscale.scaled_objects.external_scaler import NamedTarget, external_triggers
from shoal.autoscale.scaled_objects.kafka_trigger import NO_OFFSET, PartitionOffsets, found_lag
from shoal.autoscale.scaled_objects.rabbitmq_trigger import queue_value
from shoal.autoscale.scaled_objects.spec import Trigger
from shoal.autoscale.scaled_objects.sqs_trigger import count_request, message_count, queue_url, signature, url_request
from shoal.autoscale.scaled_objects.trigger_addresses import AddressRefusedError, TriggerAddresses, read_network
from shoal.autoscale.scaled_objects.trigger_metadata import TriggerError
from shoal.autoscale.scaled_objects.trigger_sources import (
    AmqpQueue,
    AwsCredentials,
    HttpRequest,
    KafkaLag,
    KafkaServers,
    PostgresQuery,
    RabbitQueue,
    ReadTrigger,
    RedisServer,
    RedisStream,
    ServerTls,
    SqsQueue,
)
from shoal.autoscale.scaled_objects.triggers import read_trigger

SECRET = "S3CRET"  # noqa: S105 - of the test
STREAM = {"address": "redis:6379", "stream": "s"}
RABBIT = {"host": "amqp://u:S3CRET@mq/team", "queueName": "jobs", "mode": "QueueLength", "value": "5"}
KAFKA = {"bootstrapServers": "a:9092, b:9093", "consumerGroup": "g", "topic": "t"}
SQS = {"queueURL": "https://sqs.eu-west-1.amazonaws.com/1/jobs", "awsRegion": "eu-west-1"}
KEYS = {"awsAccessKeyID": "id", "awsSecretAccessKey": SECRET}
POSTGRES = {"host": "db", "userName": "u", "dbName": "d", "query": "SELECT 1", "targetQueryValue": "2.5"}
EXTERNAL = {"scalerAddress": "scaler:9000", "team": "a"}

Texts = dict[str, str]


def read(
    kind: str,
    metadata: Texts,
    parameters: Texts | None = None,
    environment: Texts | None = None,
) -> ReadTrigger:
    return read_trigger(Trigger(kind, metadata=metadata), 0, "ns", parameters or {}, environment or {})


def test_a_stream_is_measured_by_lag_by_pending_entries_or_by_its_length() -> None:
    redis = RedisServer("redis", 6379)
    found = read("redis-streams", {**STREAM, "streamLength": "7"})
    assert (found.name, found.target, found.source) == ("s0-redis-streams-s", 7.0, RedisStream(redis, "s"))
    found = read("redis-streams", {**STREAM, "consumerGroup": "g"})
    assert (found.target, found.source) == (5.0, RedisStream(redis, "s", "g"))
    found = read("redis-streams", {**STREAM, "consumerGroup": "g", "lagCount": "9", "activationLagCount": "3"})
    assert (found.target, found.activation, found.source) == (9.0, 3.0, RedisStream(redis, "s", "g", True))


def test_credentials_of_a_broker_come_from_the_authentication_before_its_address() -> None:
    found = read("rabbitmq", RABBIT)
    assert found.source == AmqpQueue("mq", 5672, "team", "jobs", "u", SECRET)
    assert found.name == "s0-rabbitmq-jobs"
    found = read("rabbitmq", {**RABBIT, "vhostName": "/"}, {"username": "v", "password": "p"})
    assert found.source == AmqpQueue("mq", 5672, "/", "jobs", "v", "p")
    found = read("rabbitmq", {**RABBIT, "host": ""}, {"host": "amqps://mq/", "ca": "PEM"})
    assert found.source == AmqpQueue("mq", 5671, "/", "jobs", "guest", "guest", ServerTls(ca="PEM"))
    written = {name: text for name, text in RABBIT.items() if name != "host"}
    found = read("rabbitmq", {**written, "hostFromEnv": "MQ"}, {}, {"MQ": "amqp://a:b@mq:1/"})
    assert found.source == AmqpQueue("mq", 1, "/", "jobs", "a", "b")


def test_the_management_api_is_asked_for_one_queue_or_for_those_of_a_pattern() -> None:
    found = read("rabbitmq", {**RABBIT, "host": "http://u:p@mq:15672/path/team", "queueName": "a b"})
    assert isinstance(found.source, RabbitQueue)
    assert found.source.request.url == "http://mq:15672/path/api/queues/team/a%20b"
    assert (found.source.request.username, found.source.request.password) == ("u", "p")
    found = read("rabbitmq", {**RABBIT, "host": "http://mq:15672/", "useRegex": "true", "operation": "max"})
    assert isinstance(found.source, RabbitQueue)
    assert found.source.request.url == "http://mq:15672/api/queues/%2F"
    assert found.source.request.query["name"] == "jobs"


RATES = {"publish_details": {"rate": 4.0}, "deliver_get_details": {"rate": 2.0}}


@pytest.mark.parametrize(
    ("mode", "value"),
    [
        ("QueueLength", 9.0),
        ("MessageRate", 4.0),
        ("DeliverGetRate", 2.0),
        ("PublishedToDeliveredRatio", 2.0),
        ("ExpectedQueueConsumptionTime", 6.5),
    ],
)
def test_each_mode_of_rabbitmq_has_its_figure(mode: str, value: float) -> None:
    body = json.dumps({"messages": 9, "messages_ready": 5, "message_stats": RATES}).encode()
    assert queue_value(body, RabbitQueue(HttpRequest(""), mode)) == value


def test_figures_of_several_queues_are_combined() -> None:
    body = json.dumps({"items": [{"messages": 9, "messages_ready": 5}, {"messages": 1, "messages_ready": 1}]}).encode()
    asked = RabbitQueue(HttpRequest(""), "QueueLength", True)
    assert queue_value(body, asked) == 10.0
    assert queue_value(body, replace(asked, operation="max")) == 9.0
    assert queue_value(body, replace(asked, operation="avg", excludes_unacknowledged=True)) == 3.0
    with pytest.raises(AnswerError, match="no queue of rabbitmq matches"):
        queue_value(b'{"items": []}', asked)
    with pytest.raises(AnswerError, match="reports no deliveries"):
        queue_value(b'{"messages": 3}', RabbitQueue(HttpRequest(""), "ExpectedQueueConsumptionTime"))
    with pytest.raises(AnswerError, match="cannot be read"):
        queue_value(b"<html>", RabbitQueue(HttpRequest(""), "QueueLength"))


def test_the_settings_of_kafka() -> None:
    found = read("kafka", {**KAFKA, "partitionLimitation": "0,3-5"})
    servers = KafkaServers((("a", 9092), ("b", 9093)))
    assert found.source == KafkaLag(servers, "g", "t", 10.0, ((0, 0), (3, 5)))
    assert found.name == "s0-kafka-t"
    assert read("kafka", {**KAFKA, "topic": ""}).name == "s0-kafka-g-topics"
    found = read("kafka", {**KAFKA, "sasl": "scram_sha512", "tls": "enable"}, {"username": "u", "password": "p"})
    assert isinstance(found.source, KafkaLag)
    assert found.source.servers == KafkaServers(servers.addresses, ServerTls(), "SCRAM-SHA-512", "u", "p")


LAG = KafkaLag(KafkaServers(()), "g", "t", 10.0)
OFFSETS = {
    ("t", 0): PartitionOffsets(5, 100),
    ("t", 1): PartitionOffsets(20, 20),
    ("t", 2): PartitionOffsets(NO_OFFSET, 30),
    ("t", 3): PartitionOffsets(7, 7),
}


@pytest.mark.parametrize(
    ("settings", "value", "above"),
    [
        (LAG, 40.0, 96.0),
        (replace(LAG, threshold=50.0), 96.0, 96.0),
        (replace(LAG, allows_idle=True), 96.0, 96.0),
        (replace(LAG, allows_idle=True, resets_to_earliest=True), 125.0, 125.0),
        (replace(LAG, allows_idle=True, is_zero_without_offset=True), 95.0, 95.0),
        (replace(LAG, is_limited_to_lagging=True), 20.0, 96.0),
        (replace(LAG, is_even=True, threshold=40.0), 160.0, 96.0),
        (replace(LAG, is_even=True, threshold=50.0), 100.0, 96.0),
        (replace(LAG, allows_idle=True, excludes_persistent=True), 1.0, 96.0),
    ],
)
def test_the_lag_asks_for_no_more_consumers_than_the_settings_allow(
    settings: KafkaLag, value: float, above: float
) -> None:
    found = found_lag(settings, OFFSETS, {("t", 0): 5, ("t", 1): 19})
    assert (found.value, found.is_above) == (value, above)


def test_requests_to_sqs_are_signed() -> None:
    # A second implementation, botocore 1.44, gave this signature.
    headers = {"content-type": "application/x-amz-json-1.0", "host": "sqs.eu-west-1.amazonaws.com"}
    headers |= {"x-amz-date": "20261127T120000Z", "x-amz-target": "AmazonSQS.GetQueueUrl"}
    credentials = AwsCredentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
    found = signature(credentials, ("eu-west-1", "sqs"), "/", headers, b'{"QueueName":"jobs"}')
    assert found.startswith(
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261127/eu-west-1/sqs/aws4_request, "
        "SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature="
    )
    assert found.endswith("285e609e36c2990c38ba78f45215b20cd32bdd07e4b348eed82d2a29158834ab")


def test_the_messages_of_sqs_are_counted_as_the_trigger_asks() -> None:
    now = datetime(2026, 11, 27, 12, tzinfo=UTC)
    found = read("aws-sqs-queue", {**SQS, "scaleOnDelayed": "true"}, {**KEYS, "awsSessionToken": "token"})
    assert isinstance(found.source, SqsQueue)
    assert (found.name, found.target) == ("s0-aws-sqs-jobs", 5.0)
    request = count_request(found.source, found.source.queue, now)
    assert request.url == "https://sqs.eu-west-1.amazonaws.com/"
    assert request.headers["x-amz-security-token"] == "token"
    names = (
        "ApproximateNumberOfMessages",
        "ApproximateNumberOfMessagesNotVisible",
        "ApproximateNumberOfMessagesDelayed",
    )
    assert json.loads(request.body or b"")["AttributeNames"] == list(names)
    body = json.dumps({"Attributes": {name: str(one) for one, name in enumerate(names, 1)}}).encode()
    assert message_count(body, found.source) == 6.0
    assert message_count(body, replace(found.source, counts_in_flight=False, counts_delayed=False)) == 1.0
    with pytest.raises(AnswerError, match="has no count of messages"):
        message_count(b'{"Attributes": {}}', found.source)
    named = read("aws-sqs-queue", {**SQS, "queueURL": "jobs", "awsEndpoint": "http://local:4566"}, KEYS).source
    assert isinstance(named, SqsQueue)
    assert url_request(named, now).url == "http://local:4566/"
    assert queue_url(b'{"QueueUrl": "http://local/1/jobs"}') == "http://local/1/jobs"


def test_postgresql_is_reached_by_fields_or_by_a_connection_string() -> None:
    found = read("postgresql", POSTGRES, {"password": "p"})
    assert found.source == PostgresQuery("SELECT 1", "", "db", "5432", "u", "p", "d", "")
    assert (found.name, found.target) == ("s0-postgresql", 2.5)
    asked = {"query": "SELECT 1", "targetQueryValue": "1", "connectionFromEnv": "DSN"}
    found = read("postgresql", asked, {}, {"DSN": "host=db"})
    assert found.source == PostgresQuery("SELECT 1", "host=db")


def test_an_external_scaler_names_its_metrics_itself() -> None:
    trigger = Trigger("external", metadata=EXTERNAL)
    placeholder = read_trigger(trigger, 2, "ns", {}, {})
    found = external_triggers(trigger, placeholder, "web", [NamedTarget("a/b", 5.0), NamedTarget("c", 0.5)])
    assert [(one.name, one.target, one.index) for one in found] == [("s2-a-b", 5.0, 2), ("s2-c", 0.5, 2)]
    with pytest.raises(TriggerError, match="names no metric"):
        external_triggers(trigger, placeholder, "web", [])
    with pytest.raises(TriggerError, match="with the target 0"):
        external_triggers(trigger, placeholder, "web", [NamedTarget("a", 0.0)])


FAULTS: list[tuple[str, dict[str, str], dict[str, str], str]] = [
    ("redis-streams", {"address": "r:1"}, {}, 'missing required parameter "stream"'),
    ("redis-streams", {**STREAM, "lagCount": "5"}, {}, 'needs the parameter "consumerGroup"'),
    ("redis-streams", {**STREAM, "lagCount": "5", "consumerGroup": "g"}, {}, '"activationLagCount"'),
    ("redis", {"address": "r:1", "listName": "l", "enableTLS": "true"}, {"cert": "c"}, "only one of cert or key"),
    ("rabbitmq", {**RABBIT, "host": "mq:S3CRET"}, {}, "write amqp://HOST:PORT/VHOST or http://HOST:PORT/VHOST"),
    ("rabbitmq", {**RABBIT, "host": "amqp://u:S3CRET@mq:99999/"}, {}, "write amqp://HOST:PORT/VHOST"),
    ("rabbitmq", {**RABBIT, "mode": "MessageRate"}, {}, "protocol amqp not supported for mode MessageRate"),
    ("rabbitmq", {**RABBIT, "mode": "Length"}, {}, 'trigger mode "Length" must be one of QueueLength'),
    ("rabbitmq", {**RABBIT, "protocol": "http"}, {}, 'protocol "http" does not fit the scheme of host "amqp"'),
    ("rabbitmq", {**RABBIT, "value": "0"}, {}, '"value" must be greater than 0 in mode QueueLength'),
    ("rabbitmq", {**RABBIT, "useRegex": "true"}, {}, 'configure "useRegex" only with protocol http'),
    ("rabbitmq", {**RABBIT, "queueLength": "3"}, {}, "queueLength is deprecated"),
    ("kafka", {**KAFKA, "bootstrapServers": "a"}, {}, '"a" is not an address: write HOST:PORT'),
    ("kafka", {**KAFKA, "sasl": "gssapi"}, {}, 'sasl "gssapi" is not supported; use plaintext'),
    ("kafka", {**KAFKA, "sasl": "plaintext"}, {}, 'missing required parameter "username" in [authParams]'),
    ("kafka", {**KAFKA, "partitionLimitation": "3-1"}, {}, '"3-1" is neither a number nor a range'),
    ("kafka", {**KAFKA, "topic": "", "partitionLimitation": "1"}, {}, "topic must be specified when using"),
    ("kafka", {**KAFKA, "allowIdleConsumers": "true", "limitToPartitionsWithLag": "true"}, {}, "set simultaneously"),
    ("kafka", {**KAFKA, "offsetResetPolicy": "none"}, {}, "write latest or earliest"),
    ("aws-sqs-queue", SQS, {}, 'missing required parameter "awsAccessKeyID" in [authParams]'),
    ("aws-sqs-queue", {**SQS, "awsRegion": "a/b"}, KEYS, 'value "a/b" is not a region'),
    ("aws-sqs-queue", SQS, {"awsRoleArn": "arn"}, '"awsRoleArn" is not supported: write awsAccessKeyID'),
    ("postgresql", {**POSTGRES, "targetQueryValue": ""}, {}, 'missing required parameter "targetQueryValue"'),
    ("postgresql", {**POSTGRES, "sslmode": "on"}, {}, 'parameter "sslmode" value "on" must be one of'),
    ("external", {}, {}, 'missing required parameter "scalerAddress"'),
    ("external-push", {"scalerAddress": "unix:///x"}, {}, "write HOST:PORT"),
    ("external", {**EXTERNAL, "tlsCertFile": "/etc/ca"}, {}, '"tlsCertFile" is a file of the server'),
]


@pytest.mark.parametrize(("kind", "metadata", "parameters", "words"), FAULTS)
def test_what_is_wrong_with_a_trigger_is_said_without_its_credentials(
    kind: str, metadata: dict[str, str], parameters: dict[str, str], words: str
) -> None:
    with pytest.raises(TriggerError) as refusal:
        read(kind, metadata, parameters)
    assert words in str(refusal.value)
    assert str(refusal.value).startswith(f"error parsing {kind} metadata: ")
    assert SECRET not in str(refusal.value)


REFUSED = {
    "127.0.0.1": "loopback",
    "127.9.9.9": "loopback",
    "0.0.0.0": "loopback",  # noqa: S104
    "0.1.2.3": "loopback",
    "::1": "loopback",
    "::": "loopback",
    "::ffff:127.0.0.1": "loopback",
    "64:ff9b::7f00:1": "loopback",
    "2002:7f00:1::": "loopback",
    "169.254.169.254": "link-local",
    "fe80::1%eth0": "link-local",
    "::ffff:169.254.169.254": "link-local",
    "fd00:ec2::254": "cloud metadata",
    "168.63.129.16": "cloud metadata",
    "224.0.0.1": "multicast",
    "255.255.255.255": "broadcast",
}


@pytest.mark.parametrize("host", REFUSED)
def test_addresses_of_the_host_and_of_its_link_are_refused(host: str) -> None:
    with pytest.raises(AddressRefusedError, match=REFUSED[host]):
        TriggerAddresses().check(host)


@pytest.mark.parametrize("host", ["10.0.0.1", "192.168.1.1", "fd00::1", "2001:db8::1", "redis.team.svc", "8.8.8.8"])
def test_other_addresses_and_names_pass(host: str) -> None:
    TriggerAddresses().check(host)


def test_a_network_that_the_server_allows_is_asked() -> None:
    allowed = TriggerAddresses((read_network("127.0.0.0/8"),))
    allowed.check("127.0.0.1")
    allowed.check("::ffff:127.0.0.1")
    for host in ("::1", "169.254.169.254"):
        with pytest.raises(AddressRefusedError, match="--trigger-network"):
            allowed.check(host)
