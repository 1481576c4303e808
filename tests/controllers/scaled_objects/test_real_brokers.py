"""Triggers ask real servers: RabbitMQ, Kafka's protocol, PostgreSQL, and Amazon SQS as moto serves it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from build.server_processes import LOCAL, LOOPBACK, free_port, running, said
from shoal.autoscale.scaled_objects.rabbitmq_trigger import queue_value
from shoal.autoscale.scaled_objects.trigger_metadata import TriggerError
from shoal.autoscale.scaled_objects.trigger_sources import (
    AmqpQueue,
    AwsCredentials,
    HttpRequest,
    KafkaLag,
    KafkaServers,
    PostgresQuery,
    RabbitQueue,
    SqsQueue,
)
from shoal.controllers.scaled_objects.sources.amqp import ready_messages
from shoal.controllers.scaled_objects.sources.http import HttpSource
from shoal.controllers.scaled_objects.sources.kafka import KafkaSource
from shoal.controllers.scaled_objects.sources.postgresql import check_connection, query_value
from shoal.controllers.scaled_objects.sources.sqs import message_total
from shoal.units.errors import TemporaryError

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)


async def output(*command: str, user: str | None = None) -> str:
    async with running(*command, user=user) as process:
        found, _ = await process.communicate()
        assert process.returncode == 0, found.decode()
        return found.decode()


# -- RabbitMQ -------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def rabbitmq(folder: Path) -> AsyncIterator[tuple[int, int]]:
    """The ports of AMQP and of the management API."""
    amqp, http, distribution = free_port(), free_port(), free_port()
    config = folder / "rabbitmq.conf"
    listeners = f"listeners.tcp.1 = 127.0.0.1:{amqp}\nmanagement.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {http}\n"
    config.write_text(listeners + "collect_statistics_interval = 1000\n")
    (folder / "plugins").write_text("[rabbitmq_management].\n")
    environment = {
        **os.environ,
        "HOME": str(folder),
        "RABBITMQ_CONFIG_FILE": str(config),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_NODENAME": f"shoal{amqp}@localhost",
        "RABBITMQ_DIST_PORT": str(distribution),
    }
    async with running("rabbitmq-server", env=environment) as server:
        await said(server, b"Server startup complete")
        yield amqp, http


@pytest.mark.external("rabbitmq-server", "rabbitmqadmin")
async def test_the_messages_of_a_queue_of_rabbitmq(tmp_path: Path) -> None:
    async with rabbitmq(tmp_path) as (amqp, http):
        admin = ("rabbitmqadmin", "--host", "127.0.0.1", "--port", str(http))
        await output(*admin, "declare", "queue", "name=jobs", "durable=true")
        await output(*admin, "declare", "queue", "name=jobs-more", "durable=true")
        for name, count in (("jobs", 3), ("jobs-more", 1)):
            for _ in range(count):
                await output(*admin, "publish", f"routing_key={name}", "payload=x")
        asked = AmqpQueue("127.0.0.1", amqp, "/", "jobs", "guest", "guest")
        assert await ready_messages(LOCAL, asked) == 3
        with pytest.raises(TemporaryError, match="the queue does not exist"):
            await ready_messages(LOCAL, AmqpQueue("127.0.0.1", amqp, "/", "none", "guest", "guest"))
        with pytest.raises(TemporaryError, match="the credentials or the access are refused") as refusal:
            await ready_messages(LOCAL, AmqpQueue("127.0.0.1", amqp, "/", "jobs", "guest", "guessed"))
        assert "guessed" not in str(refusal.value)
        with pytest.raises(TemporaryError, match="the virtual host is not accessible"):
            await ready_messages(LOCAL, AmqpQueue("127.0.0.1", amqp, "/none", "jobs", "guest", "guest"))
        source = HttpSource(LOOPBACK)
        queues = f"http://127.0.0.1:{http}/api/queues/%2F"
        pages = {"page": "1", "page_size": "100", "pagination": "false", "use_regex": "true", "name": "^jobs"}
        one = RabbitQueue(HttpRequest(f"{queues}/jobs", {}, {}, "guest", "guest"), "QueueLength")
        both = RabbitQueue(HttpRequest(queues, pages, {}, "guest", "guest"), "QueueLength", True)
        try:
            async with asyncio.timeout(30):
                # RabbitMQ reports the messages once it has measured them.
                while queue_value(await source.get(both.request), both) != 4.0:
                    pass
            assert queue_value(await source.get(one.request), one) == 3.0
            most = RabbitQueue(both.request, "QueueLength", True, "max")
            assert queue_value(await source.get(both.request), most) == 3.0
            rate = RabbitQueue(one.request, "MessageRate")
            assert queue_value(await source.get(one.request), rate) >= 0.0
        finally:
            await source.close()


# -- Kafka ----------------------------------------------------------------------------------------------------------

HOSTED = """
import json, sys
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
cluster = {"test.mock.num.brokers": 3, "bootstrap.servers": "none"}
producer = Producer(cluster)
brokers = [f"{one.host}:{one.port}" for one in producer.list_topics(timeout=20).brokers.values()]
for number in range(30):
    producer.produce("jobs", str(number), partition=number % 3)
producer.flush(20)
consumer = Consumer({"bootstrap.servers": ",".join(brokers), "group.id": "workers"})
consumer.commit(offsets=[TopicPartition("jobs", 0, 4), TopicPartition("jobs", 1, 10)], asynchronous=False)
print(json.dumps(brokers), flush=True)
sys.stdin.read()
"""


@pytest.mark.external
async def test_the_lag_of_a_group_in_the_mock_cluster_of_librdkafka() -> None:
    pytest.importorskip("confluent_kafka")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        HOSTED,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            brokers = [one.rsplit(":", 1) for one in json.loads(await process.stdout.readline())]
        servers = KafkaServers(tuple((host, int(port)) for host, port in brokers))
        source = KafkaSource(LOCAL)

        # Six messages in partition 0, none in 1; ten in 2 and none in 3, which have no offset and want one consumer.
        asked = KafkaLag(servers, "workers", "jobs")
        for settings, lag in (
            (asked, 8.0),
            (replace(asked, resets_to_earliest=True), 16.0),
            (replace(asked, is_zero_without_offset=True), 6.0),
            (replace(asked, partitions=((0, 1),)), 6.0),
        ):
            assert (await source.lag("ns", settings, 0.0)).is_above == lag
        assert (await source.lag("ns", replace(asked, threshold=1.0), 0.0)).value == 4.0
        with pytest.raises(TemporaryError, match=r"kafka at 127\.0\.0\.1:1 cannot be asked: connection refused"):
            await source.lag("ns", KafkaLag(KafkaServers((("127.0.0.1", 1),)), "workers", "jobs"), 0.0)
    finally:
        process.stdin.close()
        process.terminate()
        await process.wait()


# -- PostgreSQL -----------------------------------------------------------------------------------------------------


@pytest.mark.external("postgres", "initdb")
async def test_the_number_of_a_query_to_postgresql(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    port, data = free_port(), tmp_path / "data"
    (tmp_path / "password").write_text("secret\n")
    # PostgreSQL does not run as root.
    user = "nobody" if os.geteuid() == 0 else None
    if user:
        shutil.chown(tmp_path, user)
        for folder in tmp_path.parents:
            if folder.stat().st_uid == 0 and folder.is_relative_to(tempfile.gettempdir()):
                folder.chmod(folder.stat().st_mode | 0o011)
    account = ("--username=worker", f"--pwfile={tmp_path / 'password'}", "--auth=scram-sha-256")
    await output("initdb", f"--pgdata={data}", *account, "--no-sync", user=user)
    options = ("-h", "127.0.0.1", "-p", str(port), "-k", str(tmp_path), "-c", "fsync=off")
    async with running("postgres", "-D", str(data), *options, user=user) as server:
        await said(server, b"ready to accept connections")
        text = f"host=127.0.0.1 port={port} user=worker password=secret dbname=postgres"
        query = "SELECT count(*) FROM generate_series(1, 7)"
        assert await query_value(LOCAL, PostgresQuery(query, text)) == 7.0
        url = f"postgresql://worker:secret@127.0.0.1:{port}/postgres?sslmode=disable"
        assert await query_value(LOCAL, PostgresQuery("SELECT 1.5", url)) == 1.5
        fields = ("", "127.0.0.1", str(port), "worker", "secret", "postgres")
        assert await query_value(LOCAL, PostgresQuery(query, *fields)) == 7.0
        with pytest.raises(TemporaryError, match="OperationalError") as refusal:
            await query_value(LOCAL, PostgresQuery(query, text.replace("secret", "guessed")))
        assert "guessed" not in str(refusal.value)
        with pytest.raises(TemporaryError, match="UndefinedTable, SQLSTATE 42P01"):
            await query_value(LOCAL, PostgresQuery("SELECT count(*) FROM secrets", text))
        with pytest.raises(TemporaryError, match="the query returns no row"):
            await query_value(LOCAL, PostgresQuery("SELECT 1 WHERE false", text))
        with pytest.raises(TemporaryError, match="does not return a number"):
            await query_value(LOCAL, PostgresQuery("SELECT 'NaN'::float", text))
        with pytest.raises(TemporaryError, match=r"did not answer in 0.5 s|QueryCanceled"):
            await query_value(LOCAL, PostgresQuery("SELECT pg_sleep(60)", text), 0.5)
        for more in ("passfile=/etc/passwd", "service=a", "sslkey=/etc/key"):
            with pytest.raises(TriggerError, match=f"must not have {more.partition('=')[0]}"):
                check_connection(PostgresQuery(query, f"{text} {more}"))
        with pytest.raises(TriggerError, match="one host and one port"):
            check_connection(PostgresQuery(query, f"host={tmp_path} user=worker"))


# -- Amazon SQS -----------------------------------------------------------------------------------------------------


@pytest.mark.external("moto_server")
async def test_the_messages_of_a_queue_of_sqs() -> None:
    boto3 = pytest.importorskip("boto3")
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    # The rules of access are checked from the third request on, and with them the signature.
    environment = {**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": "5"}
    source = HttpSource(LOOPBACK)
    async with running("moto_server", "-H", "127.0.0.1", "-p", str(port), env=environment) as server:
        await said(server, b"Running on")
        keys = {"aws_access_key_id": "root", "aws_secret_access_key": "root", "region_name": "eu-west-1"}

        def prepared() -> tuple[str, str, str]:
            iam = boto3.client("iam", endpoint_url=endpoint, **keys)
            iam.create_user(UserName="trigger")
            policy = {
                "Version": "2012-10-17",
                "Statement": [{"Effect": "Allow", "Action": "sqs:*", "Resource": "*"}],
            }
            iam.put_user_policy(UserName="trigger", PolicyName="p", PolicyDocument=json.dumps(policy))
            made = iam.create_access_key(UserName="trigger")["AccessKey"]
            sqs = boto3.client("sqs", endpoint_url=endpoint, **keys)
            url = sqs.create_queue(QueueName="jobs")["QueueUrl"]
            sqs.send_message_batch(QueueUrl=url, Entries=[{"Id": str(one), "MessageBody": "x"} for one in range(4)])
            return url, made["AccessKeyId"], made["SecretAccessKey"]

        try:
            url, key_id, secret = await asyncio.to_thread(prepared)
            credentials = AwsCredentials(key_id, secret)
            asked = SqsQueue(endpoint, "jobs", "eu-west-1", credentials)
            assert await message_total(source, asked, NOW) == 4.0
            by_url = SqsQueue(endpoint, url, "eu-west-1", credentials)
            assert await message_total(source, by_url, NOW) == 4.0
            guessed = SqsQueue(endpoint, url, "eu-west-1", AwsCredentials(key_id, "guessed"))
            with pytest.raises(TemporaryError, match="status code 403") as refusal:
                await message_total(source, guessed, NOW)
            assert "guessed" not in str(refusal.value)
        finally:
            await source.close()
