"""Triggers ask real servers: Redis, and Prometheus."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from aiohttp import web

from build.server_processes import LOCAL, LOOPBACK, free_port, running, said
from shoal.autoscale.scaled_objects.answers import AnswerError, prometheus_value
from shoal.autoscale.scaled_objects.trigger_sources import HttpRequest, RedisList, RedisServer, RedisStream
from shoal.controllers.scaled_objects.sources.http import HttpSource
from shoal.controllers.scaled_objects.sources.redis import redis_value
from shoal.units.errors import TemporaryError


@pytest.mark.external("redis-server")
async def test_the_length_of_what_is_in_redis(tmp_path: Path) -> None:
    port = free_port()
    command = ("redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path))
    async with running(*command, "--requirepass", "secret", "--daemonize", "no") as server:
        await said(server, b"Ready to accept connections")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        commands = ["AUTH secret", "SELECT 3", "RPUSH jobs a b c", "SADD kinds a b", "HSET map k v", "SET text v"]
        for one in (*commands, "ZADD ranks 1 a 2 b", "XADD stream * k v"):
            writer.write(f"{one}\r\n".encode())
            assert not (await reader.readline()).startswith(b"-")
        writer.close()
        asked = RedisList(RedisServer("127.0.0.1", port, 3, "", "secret"), "jobs")
        assert [
            await redis_value(LOCAL, RedisList(RedisServer("127.0.0.1", port, 3, "default", "secret"), name))
            for name in ("jobs", "kinds", "map", "ranks", "none")
        ] == [3, 2, 1, 2, 0]
        assert await redis_value(LOCAL, RedisList(RedisServer("127.0.0.1", port, 0, "", "secret"), "jobs")) == 0
        with pytest.raises(TemporaryError, match="text is a string, which has no length"):
            await redis_value(LOCAL, RedisList(RedisServer("127.0.0.1", port, 3, "", "secret"), "text"))
        with pytest.raises(TemporaryError, match="AUTH was answered with WRONGPASS") as refusal:
            await redis_value(LOCAL, RedisList(RedisServer("127.0.0.1", port, 3, "", "guessed"), "jobs"))
        assert "guessed" not in str(refusal.value)
        with pytest.raises(TemporaryError, match="NOAUTH"):
            await redis_value(LOCAL, RedisList(RedisServer("127.0.0.1", port, 3), "jobs"))
    with pytest.raises(TemporaryError, match=f"redis at 127.0.0.1:{port} cannot be asked"):
        await redis_value(LOCAL, asked)


async def test_a_server_that_is_no_redis_is_an_error() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.1 400 Bad Request\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(TemporaryError, match="an unknown answer"):
            await redis_value(LOCAL, RedisList(RedisServer("127.0.0.1", port), "jobs"))


@pytest.mark.external("redis-server", "redis-cli")
async def test_the_entries_of_a_redis_stream(tmp_path: Path) -> None:
    port = free_port()
    command = ("redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path))
    async with running(*command, "--daemonize", "no") as server:
        await said(server, b"Ready to accept connections")
        for one in (
            "XADD s 1-1 k v",
            "XADD s 2-1 k v",
            "XADD s 3-1 k v",
            "XGROUP CREATE s g 0",
            "XREADGROUP GROUP g c COUNT 2 STREAMS s >",
            "XACK s g 1-1",
            "SET text v",
        ):
            async with running("redis-cli", "-p", str(port), *one.split()) as client:
                assert await client.wait() == 0
        redis = RedisServer("127.0.0.1", port)
        assert await redis_value(LOCAL, RedisStream(redis, "s")) == 3
        assert await redis_value(LOCAL, RedisStream(redis, "s", "g")) == 1
        assert await redis_value(LOCAL, RedisStream(redis, "s", "g", reads_lag=True)) == 1
        assert await redis_value(LOCAL, RedisStream(redis, "none", "g")) == 0
        with pytest.raises(TemporaryError, match="stream s has no consumer group h"):
            await redis_value(LOCAL, RedisStream(redis, "s", "h"))
        with pytest.raises(TemporaryError, match="text is a string, not a stream"):
            await redis_value(LOCAL, RedisStream(redis, "text"))


@pytest.mark.external("prometheus")
async def test_the_value_of_a_query_to_prometheus(tmp_path: Path) -> None:
    async def metrics(_: web.Request) -> web.StreamResponse:
        return web.Response(text='waiting{queue="a"} 7\nwaiting{queue="b"} 5\n')

    application = web.Application()
    application.router.add_get("/metrics", metrics)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    target = f"127.0.0.1:{runner.addresses[0][1]}"
    job = {"job_name": "queue", "scrape_interval": "1s", "static_configs": [{"targets": [target]}]}
    config = tmp_path / "prometheus.yml"
    config.write_text(json.dumps({"scrape_configs": [job]}))
    port = free_port()
    files = ("--config.file", str(config), "--storage.tsdb.path", str(tmp_path / "data"))
    source = HttpSource(LOOPBACK)
    url = f"http://127.0.0.1:{port}/api/v1/query"
    try:
        async with running("prometheus", *files, "--web.listen-address", f"127.0.0.1:{port}") as server:
            await said(server, b"Server is ready to receive web requests")
            async with asyncio.timeout(30):
                while True:
                    body = await source.get(HttpRequest(url, {"query": "sum(waiting)"}))
                    if prometheus_value(body, ignores_null=True):
                        break
            assert prometheus_value(body, ignores_null=True) == 12.0
            body = await source.get(HttpRequest(url, {"query": "scalar(sum(waiting))"}))
            assert prometheus_value(body, ignores_null=True) == 12.0
            with pytest.raises(AnswerError, match="multiple elements"):
                prometheus_value(await source.get(HttpRequest(url, {"query": "waiting"})), ignores_null=True)
            with pytest.raises(AnswerError, match="the result is empty"):
                prometheus_value(await source.get(HttpRequest(url, {"query": "none"})), ignores_null=False)
            with pytest.raises(AnswerError, match="must point to a numeric value"):
                prometheus_value(await source.get(HttpRequest(url, {"query": "sum(waiting) * NaN"})), ignores_null=True)
            with pytest.raises(TemporaryError, match="status code 400"):
                await source.get(HttpRequest(url, {"query": "sum("}))
    finally:
        await source.close()
        await runner.cleanup()
