"""Writes that create what is not there: whoever may only change what is there may not do that."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from build.in_process import APPLY, InProcess, in_process
from build.rbac import cluster_binding, cluster_role

RIGHTS = "/apis/rbac.authorization.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
BOB = {"Impersonate-User": "bob"}


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[InProcess]:
    async with in_process(tmp_path, authorization="rbac") as opened:
        yield opened


async def bob_may(door: InProcess, verbs: list[str]) -> None:
    rule = {"apiGroups": ["", "coordination.k8s.io"], "resources": ["configmaps", "leases"], "verbs": verbs}
    assert (await door.ask("POST", f"{RIGHTS}/clusterroles", {**cluster_role("bobs"), "rules": [rule]})).code == 201
    assert (await door.ask("POST", f"{RIGHTS}/clusterrolebindings", cluster_binding("bobs", "User bob"))).code == 201


def config_map() -> dict[str, Any]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"key": "value"}}


def lease() -> dict[str, Any]:
    spec = {"holderIdentity": "bob", "leaseDurationSeconds": 5}
    return {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": "l"}, "spec": spec}


async def test_an_apply_creates_only_for_those_who_may_create(door: InProcess) -> None:
    await bob_may(door, ["get", "patch"])
    answer = await door.ask("PATCH", f"{MAPS}/a?fieldManager=x", config_map(), APPLY, BOB)
    assert (answer.code, answer.body["reason"]) == (403, "Forbidden")
    assert answer.body["message"].startswith('configmaps "a" is forbidden: ')
    assert (await door.ask("GET", f"{MAPS}/a")).code == 404
    assert (await door.ask("POST", MAPS, config_map())).code == 201
    assert (await door.ask("PATCH", f"{MAPS}/a?fieldManager=x", config_map(), APPLY, BOB)).code == 200


async def test_an_update_creates_only_for_those_who_may_create(door: InProcess) -> None:
    await bob_may(door, ["update"])
    answer = await door.ask("PUT", f"{LEASES}/l", lease(), headers=BOB)
    assert (answer.code, answer.body["reason"]) == (403, "Forbidden")
    assert answer.body["message"].startswith('leases.coordination.k8s.io "l" is forbidden: ')
    assert (await door.ask("GET", f"{LEASES}/l")).code == 404
    made = await door.ask("POST", LEASES, lease())
    assert made.code == 201
    assert (await door.ask("PUT", f"{LEASES}/l", made.body, headers=BOB)).code == 200


async def test_whoever_may_create_too_creates_by_applying_and_updating(door: InProcess) -> None:
    await bob_may(door, ["create", "patch", "update"])
    assert (await door.ask("PATCH", f"{MAPS}/a?fieldManager=x", config_map(), APPLY, BOB)).code == 201
    assert (await door.ask("PUT", f"{LEASES}/l", lease(), headers=BOB)).code == 201


async def test_an_update_of_what_is_not_there_and_is_not_created_by_it_is_not_found(door: InProcess) -> None:
    await bob_may(door, ["update"])
    answer = await door.ask("PUT", f"{MAPS}/a", config_map(), headers=BOB)
    assert (answer.code, answer.body["reason"]) == (404, "NotFound")
