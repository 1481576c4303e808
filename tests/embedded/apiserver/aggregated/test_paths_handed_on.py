"""Paths that another server could take for others than the one that was authorized are not handed on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from build.in_process import InProcess, in_process

GROUP = "meters.example.com"
READINGS = f"/apis/{GROUP}/v1/namespaces/default/readings"


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[InProcess]:
    spec = {
        "group": GROUP,
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "service": {"namespace": "default", "name": "meters"},
        "insecureSkipTLSVerify": True,
    }
    async with in_process(tmp_path) as found:
        made = await found.ask(
            "POST",
            "/apis/apiregistration.k8s.io/v1/apiservices",
            {"metadata": {"name": f"v1.{GROUP}"}, "spec": spec},
        )
        assert made.code == 201
        yield found


@pytest.mark.parametrize(
    "path",
    [
        f"{READINGS}/..",
        f"{READINGS}/../../kube-system/readings",
        f"{READINGS}/%2e%2E/x",
        f"{READINGS}/a%2F..%2Fb",
        f"{READINGS}/./a",
        f"{READINGS}/%2e?x=1",
    ],
)
async def test_a_way_up_is_refused(door: InProcess, path: str) -> None:
    refused = await door.ask("GET", path)
    assert (refused.code, refused.body["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize("path", [f"{READINGS}/...", f"{READINGS}/a..b", f"{READINGS}/a?path=../b", f"{READINGS}/.a"])
async def test_dots_in_names_are_none(door: InProcess, path: str) -> None:
    # Nobody is there to answer; it would have been asked.
    assert (await door.ask("GET", path)).raw == b"service unavailable\n"


@pytest.mark.parametrize(
    "rest", ["fieldSelector=metadata.name=only,x=;", "fieldSelector=metadata.name=only,x=%zz", "a;b"]
)
async def test_a_query_that_another_server_reads_otherwise_is_refused(door: InProcess, rest: str) -> None:
    refused = await door.ask("GET", f"{READINGS}?{rest}")
    assert (refused.code, refused.body["reason"]) == (400, "BadRequest")


async def test_escapes_in_a_query_are_handed_on(door: InProcess) -> None:
    assert (await door.ask("GET", f"{READINGS}?labelSelector=a%3Bb%25")).raw == b"service unavailable\n"


@pytest.mark.parametrize("path", [f"/{READINGS}", READINGS.replace("/v1", "//v1"), f"//apis//{GROUP}//v1"])
async def test_a_path_with_empty_segments_before_the_resource_is_nobodys(door: InProcess, path: str) -> None:
    assert (await door.ask("GET", path)).code == 404
