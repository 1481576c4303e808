"""Two who scale the same: a patch of a scale tests and sets in one step."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from build.api_objects import deployment
from build.in_process import JSON_PATCH, MERGE, InProcess, in_process

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def from_one_to(count: int) -> list[dict[str, Any]]:
    return [
        {"op": "test", "path": "/spec/replicas", "value": 1},
        {"op": "replace", "path": "/spec/replicas", "value": count},
    ]


async def replicas(door: InProcess) -> int:
    return int((await door.ask("GET", f"{DEPLOYMENTS}/web")).body["spec"]["replicas"])


async def test_of_two_who_test_for_one_replica_one_scales(tmp_path: Path) -> None:
    async with in_process(tmp_path) as door:
        assert (await door.ask("POST", DEPLOYMENTS, deployment("web", replicas=1))).code == 201
        answers = await asyncio.gather(
            *(door.ask("PATCH", f"{DEPLOYMENTS}/web/scale", from_one_to(count), JSON_PATCH) for count in (2, 3))
        )
        assert sorted(answer.code for answer in answers) == [200, 422]
        (done,) = (answer for answer in answers if answer.code == 200)
        assert await replicas(door) == done.body["spec"]["replicas"]


@pytest.mark.parametrize("media", [MERGE, JSON_PATCH])
async def test_a_patch_of_a_scale_that_names_an_old_version_is_refused(tmp_path: Path, media: str) -> None:
    async with in_process(tmp_path) as door:
        made = (await door.ask("POST", DEPLOYMENTS, deployment("web", replicas=1))).body
        old = made["metadata"]["resourceVersion"]
        assert (await door.ask("PATCH", f"{DEPLOYMENTS}/web", {"metadata": {"labels": {"l": "1"}}}, MERGE)).code == 200
        path = "/metadata/resourceVersion"
        said: Any = {"metadata": {"resourceVersion": old}, "spec": {"replicas": 4}}
        if media == JSON_PATCH:
            said = [
                {"op": "replace", "path": path, "value": old},
                {"op": "replace", "path": "/spec/replicas", "value": 4},
            ]
        answer = await door.ask("PATCH", f"{DEPLOYMENTS}/web/scale", said, media)
        assert (answer.code, answer.body["reason"]) == (409, "Conflict")
        assert await replicas(door) == 1
