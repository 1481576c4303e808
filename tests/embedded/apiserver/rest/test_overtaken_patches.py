"""Patches that are worked out without the object's lock: who is overtaken meanwhile starts over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from build.in_process import APPLY, MERGE, InProcess, in_process
from shoal.embedded.apiserver.storage.faulty import FaultyStorage
from shoal.embedded.apiserver.storage.memory import MemoryStorage

MAPS = "/api/v1/namespaces/default/configmaps"
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
POLICY = {
    "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
    "matchConstraints": {
        "resourceRules": [
            {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["configmaps"]}
        ]
    },
    "validations": [{"expression": "true"}],
}


PARAMS = {"selector": {}, "parameterNotFoundAction": "Allow"}


@pytest.fixture
def storage() -> FaultyStorage:
    return FaultyStorage(MemoryStorage())


@pytest.fixture
async def door(tmp_path: Path, storage: FaultyStorage) -> AsyncIterator[InProcess]:
    """With a policy that is asked about every change of a config map, and one such map. Parameters may be converted by
    a webhook, so that the lock is not held."""
    async with in_process(tmp_path, storage) as opened:
        named = {"metadata": {"name": "asked"}}
        path = f"{REGISTRATION}/validatingadmissionpolicies"
        assert (await opened.ask("POST", path, {**named, "spec": POLICY})).code == 201
        bound = {**named, "spec": {"policyName": "asked", "validationActions": ["Deny"], "paramRef": PARAMS}}
        assert (await opened.ask("POST", f"{path.removesuffix('ies')}ybindings", bound)).code == 201
        assert (await opened.ask("POST", MAPS, {"metadata": {"name": "a"}})).code == 201
        yield opened


async def together(door: InProcess, storage: FaultyStorage, *asked: tuple[str, Any, str]) -> list[int]:
    """All are worked out on the same version before the first of them is kept."""
    storage.hold()
    asking = [asyncio.ensure_future(door.ask("PATCH", f"{MAPS}/a{query}", body, how)) for query, body, how in asked]
    await storage.held()
    for _ in range(50):
        await asyncio.sleep(0)
    storage.release()
    return [answer.code for answer in await asyncio.gather(*asking)]


async def test_of_patches_that_name_no_version_all_are_done(door: InProcess, storage: FaultyStorage) -> None:
    patches = [("", {"data": {key: "1"}}, MERGE) for key in "abc"]
    assert await together(door, storage, *patches) == [200, 200, 200]
    assert (await door.ask("GET", f"{MAPS}/a")).body["data"] == {"a": "1", "b": "1", "c": "1"}


async def test_of_applies_that_name_no_version_all_are_done(door: InProcess, storage: FaultyStorage) -> None:
    head = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    applies = [(f"?fieldManager={key}", {**head, "data": {key: "1"}}, APPLY) for key in "abc"]
    assert await together(door, storage, *applies) == [200, 200, 200]
    assert (await door.ask("GET", f"{MAPS}/a")).body["data"] == {"a": "1", "b": "1", "c": "1"}


async def test_of_patches_that_name_the_version_there_is_one_is_done(door: InProcess, storage: FaultyStorage) -> None:
    version = (await door.ask("GET", f"{MAPS}/a")).body["metadata"]["resourceVersion"]
    patches = [("", {"metadata": {"resourceVersion": version}, "data": {key: "1"}}, MERGE) for key in "ab"]
    assert sorted(await together(door, storage, *patches)) == [200, 409]
