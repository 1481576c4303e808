"""Triggers ask servers by their own protocols: what is asked, what is refused, and what errors say."""

from __future__ import annotations

import asyncio
import base64
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from build.server_processes import LOCAL
from build.virtual_time import virtual
from shoal.autoscale.scaled_objects.external_scaler import NamedTarget
from shoal.autoscale.scaled_objects.trigger_addresses import TriggerAddresses
from shoal.autoscale.scaled_objects.trigger_sources import (
    AmqpQueue,
    AwsCredentials,
    ExternalScaler,
    ExternalScalerMetric,
    HttpRequest,
    KafkaLag,
    KafkaServers,
    NetworkSource,
    PrometheusQuery,
    RedisList,
    RedisServer,
    ServerTls,
    SqsQueue,
)
from shoal.client.certificates import new_authority, new_server
from shoal.client.clock import WallClock
from shoal.controllers.scaled_objects.sources.amqp import ready_messages
from shoal.controllers.scaled_objects.sources.connections import Connections
from shoal.controllers.scaled_objects.sources.external import external_targets, external_value
from shoal.controllers.scaled_objects.sources.http import HttpSource
from shoal.controllers.scaled_objects.sources.kafka import KafkaSource
from shoal.controllers.scaled_objects.sources.protos import externalscaler_pb2 as pb
from shoal.controllers.scaled_objects.sources.redis import redis_value
from shoal.controllers.scaled_objects.sources.scram import ScramClient, ScramError
from shoal.controllers.scaled_objects.sources.values import SourceValues
from shoal.units.errors import TemporaryError

SECRET = "S3CRET"  # noqa: S105 - of the test
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def served(serve: Serve) -> AsyncIterator[int]:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Returns what it got, and ends."""
    writer.write(await reader.read(4096))
    writer.close()


# -- addresses ------------------------------------------------------------------------------------------------------


def sources(host: str, port: int) -> list[NetworkSource]:
    servers = KafkaServers(((host, port),), None, "PLAIN", "u", SECRET)
    credentials = AwsCredentials("id", SECRET)
    return [
        RedisList(RedisServer(host, port, 0, "u", SECRET), "l"),
        AmqpQueue(host, port, "/", "q", "u", SECRET),
        KafkaLag(servers, "g", "t"),
        ExternalScalerMetric(ExternalScaler(host, port, {"password": SECRET}), "web", "ns", "m"),
        SqsQueue(f"http://{host}:{port}", "q", "eu-west-1", credentials),
        PrometheusQuery(HttpRequest(f"http://{host}:{port}/", username="u", password=SECRET)),
    ]


KINDS = [type(one).__name__ for one in sources("localhost", 1)]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("number", range(len(KINDS)), ids=KINDS)
async def test_no_source_asks_a_loopback_address_that_the_server_does_not_allow(number: int, host: str) -> None:
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.read(1))

    http = HttpSource(TriggerAddresses())
    async with served(serve) as port:
        try:
            source = sources(host, port)[number]
            with pytest.raises(TemporaryError, match="loopback addresses are not asked"):
                await SourceValues(http, WallClock()).value(source, "ns", WallClock().now())
        finally:
            await http.close()
    assert asked == []


@pytest.mark.parametrize("number", range(len(KINDS)), ids=KINDS)
async def test_the_error_of_a_server_that_repeats_what_it_got_contains_no_credentials(number: int) -> None:
    http = HttpSource(LOCAL.addresses)
    async with served(hang) as port:
        try:
            source = sources("127.0.0.1", port)[number]
            with pytest.raises(TemporaryError) as refusal:
                await SourceValues(http, WallClock()).value(source, "ns", WallClock().now())
        finally:
            await http.close()
    assert f"127.0.0.1:{port}" in str(refusal.value)
    for text in (SECRET, base64.b64encode(f"u:{SECRET}".encode()).decode()):
        assert text not in str(refusal.value)


async def test_the_servers_that_kafka_names_are_checked_as_well() -> None:
    """A broker in an allowed network leads to an address that is not allowed."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        request = await reader.readexactly(size)
        host = b"169.254.169.254"
        # The coordinator of the group: no error, broker 1, its host and port.
        body = request[4:8] + struct.pack(">hih", 0, 1, len(host)) + host + struct.pack(">i", 80)
        writer.write(struct.pack(">i", len(body)) + body)
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        request = await reader.readexactly(size)
        # Metadata: no delay, no brokers, no cluster, no controller, no topics.
        body = request[4:8] + struct.pack(">iihii", 0, 0, -1, -1, 0)
        writer.write(struct.pack(">i", len(body)) + body)

    async with served(serve) as port:
        asked = KafkaLag(KafkaServers((("127.0.0.1", port),)), "g")
        with pytest.raises(TemporaryError, match="link-local addresses are not asked"):
            await KafkaSource(LOCAL).lag("ns", asked, 0.0)


@pytest.mark.parametrize(
    ("password", "words"),
    [("right", "the coordinator of the group is not available"), ("wrong", "the credentials are refused")],
)
async def test_kafka_gets_the_credentials_before_anything_else(password: str, words: str) -> None:
    seen: list[tuple[int, bytes]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                request = await reader.readexactly(size)
            except asyncio.IncompleteReadError:
                break
            api, _, number, client = struct.unpack_from(">hhih", request)
            body = request[10 + client :]
            seen.append((api, body))
            if api == 17:  # the handshake: no error, one mechanism
                answer = struct.pack(">hih", 0, 1, 5) + b"PLAIN"
            elif api == 36:  # the credentials: a code, no message, no bytes
                answer = struct.pack(">hhi", 0 if body.endswith(b"\0u\0right") else 58, -1, 0)
            else:  # no coordinator
                answer = struct.pack(">hihi", 15, 0, 0, 0)
            writer.write(struct.pack(">ii", len(answer) + 4, number) + answer)
        writer.close()

    async with served(serve) as port:
        asked = KafkaLag(KafkaServers((("127.0.0.1", port),), None, "PLAIN", "u", password), "g")
        with pytest.raises(TemporaryError, match=words):
            await KafkaSource(LOCAL).lag("ns", asked, 0.0)
    assert seen[:2] == [(17, b"\0\5PLAIN"), (36, struct.pack(">i", 3 + len(password)) + f"\0u\0{password}".encode())]


@virtual
async def test_a_server_that_never_answers_is_given_up() -> None:
    never = asyncio.Event()

    class Silent(Connections):
        async def resolved(self, host: str, port: int) -> str:
            await never.wait()
            return ""

    silent = Silent(LOCAL.addresses)
    for ask in (
        redis_value(silent, RedisList(RedisServer("redis", 1), "l")),
        ready_messages(silent, AmqpQueue("mq", 1, "/", "q", "u", "p")),
        KafkaSource(silent).lag("ns", KafkaLag(KafkaServers((("a", 1),)), "g"), 0.0),
        external_targets(silent, ExternalScaler("scaler", 1, {}), "ns", "web"),
    ):
        with pytest.raises(TemporaryError, match="did not answer in 3 s"):
            await ask


@asynccontextmanager
async def redis_with_tls(folder: Path, *names: str) -> AsyncIterator[tuple[int, str]]:
    """A list of three, behind a certificate for these names. The port, and the authority."""
    now = datetime.now(UTC)  # noqa: TID251 - certificates need the real date
    authority = new_authority(now, "redis-ca")
    pair = new_server(authority, names, now)
    (folder / "server.pem").write_bytes(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in (b"+list\r\n", b":3\r\n"):
            await reader.read(4096)
            writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1], authority.certificate.decode()


async def test_the_certificate_of_a_server_is_checked_by_its_name_and_authority(tmp_path: Path) -> None:
    async with redis_with_tls(tmp_path, "localhost") as (port, ca):

        async def length(host: str, tls: ServerTls) -> int:
            return await redis_value(LOCAL, RedisList(RedisServer(host, port, tls=tls), "l"))

        assert await length("localhost", ServerTls(ca=ca)) == 3
        assert await length("127.0.0.1", ServerTls(is_unsafe=True)) == 3
        for host, tls in (("localhost", ServerTls()), ("127.0.0.1", ServerTls(ca=ca))):
            with pytest.raises(TemporaryError, match="its certificate is not accepted"):
                await length(host, tls)


async def test_a_certificate_that_cannot_be_read_is_an_error() -> None:
    async with served(hang) as port:
        redis = RedisServer("127.0.0.1", port, tls=ServerTls(ca="no certificate"))
        with pytest.raises(TemporaryError, match="a certificate or a key of the authentication cannot be read"):
            await redis_value(LOCAL, RedisList(redis, "l"))


# -- SCRAM ----------------------------------------------------------------------------------------------------------


def test_scram_follows_the_example_of_rfc_7677() -> None:
    client = ScramClient("SCRAM-SHA-256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    assert client.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    final = client.final(f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode())
    assert final == f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    client.check(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    with pytest.raises(ScramError, match="does not prove that it knows the password"):
        client.check(b"v=AAAA")


@pytest.mark.parametrize(
    "answer", ["r=other,s=AAAA,i=1", "r=n,s=AAAA,i=1", "r=n1,s=,i=1", "r=n1,s=AAAA,i=99999999", ""]
)
def test_a_server_that_does_not_follow_scram_gets_no_proof(answer: str) -> None:
    with pytest.raises(ScramError):
        ScramClient("SCRAM-SHA-512", "user", "pencil", "n").final(answer.encode())


# -- external scalers -----------------------------------------------------------------------------------------------


class Scaler:
    """An external scaler that answers what the test says."""

    def __init__(self) -> None:
        self.value = pb.MetricValue(metricName="waiting", metricValueFloat=2.5)
        self.refusal: grpc.StatusCode | None = None
        self.seen: list[pb.ScaledObjectRef] = []

    async def spec(self, request: pb.ScaledObjectRef, context: Any) -> pb.GetMetricSpecResponse:
        self.seen.append(request)
        if self.refusal is not None:
            await context.abort(self.refusal, f"refused {request.scalerMetadata}")
        specs = [pb.MetricSpec(metricName="waiting", targetSize=4), pb.MetricSpec(metricName="b", targetSizeFloat=0.5)]
        return pb.GetMetricSpecResponse(metricSpecs=specs)

    async def metrics(self, request: pb.GetMetricsRequest, _context: object) -> pb.GetMetricsResponse:
        return pb.GetMetricsResponse(metricValues=[self.value] if request.metricName == "waiting" else [])

    async def is_active(self, _request: pb.ScaledObjectRef, _context: object) -> pb.IsActiveResponse:
        return pb.IsActiveResponse(result=False)

    @asynccontextmanager
    async def served(self) -> AsyncIterator[ExternalScaler]:
        methods: dict[str, tuple[Any, Any]] = {
            "GetMetricSpec": (self.spec, pb.ScaledObjectRef),
            "GetMetrics": (self.metrics, pb.GetMetricsRequest),
            "IsActive": (self.is_active, pb.ScaledObjectRef),
        }
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(function, kind.FromString, lambda one: one.SerializeToString())
            for name, (function, kind) in methods.items()
        }
        server = grpc.aio.server()
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("externalscaler.ExternalScaler", handlers),)
        )
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            yield ExternalScaler("localhost", port, {"password": SECRET})
        finally:
            await server.stop(None)


async def test_an_external_scaler_is_asked_for_targets_values_and_activity() -> None:
    scaler = Scaler()
    async with scaler.served() as asked:
        targets = await external_targets(LOCAL, asked, "ns", "web")
        assert targets == [NamedTarget("waiting", 4.0), NamedTarget("b", 0.5)]
        assert (scaler.seen[0].name, scaler.seen[0].namespace) == ("web", "ns")
        assert dict(scaler.seen[0].scalerMetadata) == {"password": SECRET}
        found = await external_value(LOCAL, ExternalScalerMetric(asked, "web", "ns", "waiting"))
        assert (found.value, found.is_active) == (2.5, False)
        with pytest.raises(TemporaryError, match="it has no value"):
            await external_value(LOCAL, ExternalScalerMetric(asked, "web", "ns", "b"))
        scaler.value = pb.MetricValue(metricName="waiting", metricValueFloat=float("nan"))
        with pytest.raises(TemporaryError, match="not a finite number"):
            await external_value(LOCAL, ExternalScalerMetric(asked, "web", "ns", "waiting"))
        scaler.refusal = grpc.StatusCode.NOT_FOUND
        with pytest.raises(TemporaryError, match="GetMetricSpec was answered with NOT_FOUND") as refusal:
            await external_targets(LOCAL, asked, "ns", "web")
        assert SECRET not in str(refusal.value)
