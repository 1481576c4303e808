"""Asks Kafka brokers how far a consumer group is behind: committed offsets, and the ends of the partitions.

The leaders that the brokers name are asked as well, at checked addresses. Rejected: a client library. Five requests
need none, and the libraries resolve and connect to what brokers name by themselves.
"""

from __future__ import annotations

import asyncio
import secrets
import struct
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from msgspec import Struct

from shoal.autoscale.scaled_objects.kafka_trigger import (
    NO_OFFSET,
    FoundLag,
    Partition,
    PartitionOffsets,
    counts,
    found_lag,
)
from shoal.autoscale.scaled_objects.trigger_metadata import USUAL_TIMEOUT_S
from shoal.autoscale.scaled_objects.trigger_sources import KafkaLag, KafkaServers
from shoal.controllers.scaled_objects.sources import kafka_wire as wire
from shoal.controllers.scaled_objects.sources.connections import Connections, asking, failed
from shoal.controllers.scaled_objects.sources.scram import ScramClient
from shoal.units.errors import TemporaryError

_LONGEST = 8 << 20
"""Bytes of an answer."""
_LATEST = -1
_PERSISTENT_S = 10.0
"""Polls within so short a time are one poll: offsets that have not moved since say nothing."""
_MOST_GROUPS = 10_000
_CODES = {
    3: "the topic or partition does not exist",
    15: "the coordinator of the group is not available",
    29: "reading the topic is not allowed",
    30: "reading the group is not allowed",
    33: "the mechanism of SASL is not supported",
    58: "the credentials are refused",
}
Address = tuple[str, int]


class _Cluster(Struct, frozen=True):
    brokers: Mapping[int, Address]
    leaders: Mapping[Partition, int]


class KafkaSource:
    """Remembers committed offsets, by which lag that nothing consumes is seen."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._before: dict[tuple[str, KafkaLag], tuple[float, Mapping[Partition, int]]] = {}

    async def lag(self, namespace: str, asked: KafkaLag, now_s: float, timeout_s: float = USUAL_TIMEOUT_S) -> FoundLag:
        """Raises TemporaryError, which names a server, never the credentials."""
        server = "kafka at " + ",".join(f"{host}:{port}" for host, port in asked.servers.addresses)
        async with asking(server, timeout_s):
            offsets = await self._offsets(server, asked)
        key = namespace, asked
        at_s, before = self._before.get(key, (float("-inf"), {}))
        found = found_lag(asked, offsets, before)
        if asked.excludes_persistent and now_s - at_s >= _PERSISTENT_S:
            if len(self._before) >= _MOST_GROUPS:
                self._before.clear()
            self._before[key] = now_s, {partition: one.committed for partition, one in offsets.items()}
        return found

    async def _offsets(self, server: str, asked: KafkaLag) -> dict[Partition, PartitionOffsets]:
        async with self._first(server, asked.servers) as first:
            coordinator = await _coordinator(first, asked.group)
            cluster = await _metadata(first, [asked.topic] if asked.topic else [])
            wanted = [one for one in cluster.leaders if counts(asked, one[1])] if asked.topic else None
            async with self._broker(asked.servers, coordinator, first) as broker:
                committed = await _committed(broker, asked.group, wanted)
            if wanted is None:
                topics = sorted({topic for topic, _ in committed})
                cluster = await _metadata(first, topics) if topics else cluster
                wanted = [one for one in committed if one in cluster.leaders]
            ends = dict[Partition, int]()
            for leader, partitions in _by_leader(cluster, wanted).items():
                if leader not in cluster.brokers:
                    raise failed(server, f"partition {partitions[0][1]} of topic {partitions[0][0]} has no leader")
                async with self._broker(asked.servers, cluster.brokers[leader], first) as broker:
                    ends.update(await _ends(broker, partitions))
        return {one: PartitionOffsets(committed.get(one, NO_OFFSET), ends[one]) for one in wanted}

    @asynccontextmanager
    async def _first(self, server: str, servers: KafkaServers) -> AsyncIterator[_Broker]:
        """A connection to the first of the servers that answers."""
        refusal: TemporaryError | OSError | None = None
        for address in servers.addresses:
            try:
                async with self._broker(servers, address, None) as broker:
                    refusal = None
                    yield broker
                    return
            except OSError as error:
                refusal = error
        raise refusal or failed(server, "no server is named")

    @asynccontextmanager
    async def _broker(self, servers: KafkaServers, address: Address, present: _Broker | None) -> AsyncIterator[_Broker]:
        """The present connection if it is one to this address."""
        if present is not None and present.address == address:
            yield present
            return
        async with self._connections.opened(*address, servers.tls) as (reader, writer):
            broker = _Broker(address, reader, writer)
            if servers.mechanism:
                await _authenticated(broker, servers)
            yield broker


class _Broker:
    def __init__(self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.address = address
        self.server = f"kafka at {address[0]}:{address[1]}"
        self._reader, self._writer = reader, writer
        self._count = 0

    async def ask(self, api: int, version: int, body: bytes) -> wire.WireReader:
        self._count += 1
        request = struct.pack(">hhi", api, version, self._count) + wire.text("shoal") + body
        self._writer.write(wire.bytes_field(request))
        await self._writer.drain()
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        if not 4 <= size <= _LONGEST:
            raise failed(self.server, "it does not speak Kafka's protocol")
        found = wire.WireReader(await self._reader.readexactly(size))
        if found.number("i") != self._count:
            raise failed(self.server, "it does not speak Kafka's protocol")
        return found

    def check(self, code: int) -> None:
        if code:
            raise failed(self.server, _CODES.get(code, f"it answered with the error code {code}"))


async def _authenticated(broker: _Broker, servers: KafkaServers) -> None:
    answer = await broker.ask(wire.SASL_HANDSHAKE, wire.SASL_HANDSHAKE_VERSION, wire.text(servers.mechanism))
    broker.check(answer.number("h"))
    if servers.mechanism == "PLAIN":
        await _exchanged(broker, f"\0{servers.username}\0{servers.password}".encode())
        return
    client = ScramClient(servers.mechanism, servers.username, servers.password, secrets.token_urlsafe(18))
    client.check(await _exchanged(broker, client.final(await _exchanged(broker, client.first()))))


async def _exchanged(broker: _Broker, message: bytes) -> bytes:
    answer = await broker.ask(wire.SASL_AUTHENTICATE, wire.SASL_AUTHENTICATE_VERSION, wire.bytes_field(message))
    code, _ = answer.number("h"), answer.text()
    broker.check(code)
    return answer.bytes_field()


async def _metadata(broker: _Broker, topics: Sequence[str]) -> _Cluster:
    """A topic that does not exist is not created."""
    body = wire.array(wire.text(one) for one in topics) + b"\0"
    answer = await broker.ask(wire.METADATA, wire.METADATA_VERSION, body)
    answer.number("i")  # how long the broker delayed the answer
    brokers, leaders = dict[int, Address](), dict[Partition, int]()
    for _ in answer.count():
        number, host, port = answer.number("i"), answer.text(), answer.number("i")
        answer.text()  # the rack
        brokers[number] = host, port
    answer.text(), answer.number("i")  # the cluster and its controller
    for _ in answer.count():
        code, topic, _ = answer.number("h"), answer.text(), answer.number("b")
        broker.check(code)
        for _ in answer.count():
            answer.number("h")  # without a leader, no broker has its number
            index, leader = answer.number("i"), answer.number("i")
            for _ in answer.count():
                answer.number("i")
            for _ in answer.count():
                answer.number("i")
            leaders[topic, index] = leader
    return _Cluster(brokers, leaders)


async def _coordinator(broker: _Broker, group: str) -> Address:
    answer = await broker.ask(wire.FIND_COORDINATOR, wire.FIND_COORDINATOR_VERSION, wire.text(group))
    broker.check(answer.number("h"))
    answer.number("i")
    return answer.text(), answer.number("i")


async def _committed(broker: _Broker, group: str, wanted: Sequence[Partition] | None) -> dict[Partition, int]:
    """`None`: of all partitions for which the group has committed offsets."""
    partitions = struct.pack(">i", -1) if wanted is None else _grouped(wanted, lambda number: struct.pack(">i", number))
    answer = await broker.ask(wire.OFFSET_FETCH, wire.OFFSET_FETCH_VERSION, wire.text(group) + partitions)
    found = dict[Partition, int]()
    for _ in answer.count():
        topic = answer.text()
        for _ in answer.count():
            number, offset = answer.number("i"), answer.number("q")
            answer.text()
            broker.check(answer.number("h"))
            found[topic, number] = offset if offset >= 0 else NO_OFFSET
    broker.check(answer.number("h"))
    return found


async def _ends(broker: _Broker, partitions: Sequence[Partition]) -> dict[Partition, int]:
    body = struct.pack(">i", -1) + _grouped(partitions, lambda number: struct.pack(">iq", number, _LATEST))
    answer = await broker.ask(wire.LIST_OFFSETS, wire.LIST_OFFSETS_VERSION, body)
    found = dict[Partition, int]()
    for _ in answer.count():
        topic = answer.text()
        for _ in answer.count():
            number = answer.number("i")
            broker.check(answer.number("h"))
            answer.number("q")
            found[topic, number] = answer.number("q")
    return found


def _grouped(partitions: Sequence[Partition], item: Callable[[int], bytes]) -> bytes:
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, number in partitions:
        topics[topic].append(number)
    return wire.array(wire.text(topic) + wire.array(map(item, numbers)) for topic, numbers in topics.items())


def _by_leader(cluster: _Cluster, partitions: Sequence[Partition]) -> dict[int, list[Partition]]:
    found: dict[int, list[Partition]] = defaultdict(list)
    for one in partitions:
        found[cluster.leaders[one]].append(one)
    return found
