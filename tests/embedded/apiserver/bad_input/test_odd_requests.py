"""Requests that are odd in one place: each was once answered with an internal error, or not at all."""

from __future__ import annotations

from pathlib import Path
from time import process_time
from typing import Any

import pytest

from build import kind_objects as kinds
from build.in_process import APPLY, MERGE, InProcess, in_process
from shoal.embedded.apiserver.large_work import LargeWork

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
NOT_UTF8 = b"\xff\xfe".decode(errors="surrogateescape")


def config_map(name: str = "a") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("limit=1_0", 'parsing "1_0": invalid syntax'),
        ("limit=%D9%A3", "invalid syntax"),
        (f"limit={'9' * 5000}", "value out of range"),
        ("resourceVersion=%D9%A3", "invalid syntax"),
        (f"resourceVersion={'9' * 5000}", "value out of range"),
        (f"watch=1&resourceVersion={'9' * 5000}", "value out of range"),
        ("continue=Wy0xLCIiLCIiXQx", "continue key is not valid"),
    ],
)
async def test_a_number_that_go_would_not_read_is_refused(query: str, words: str, tmp_path: Path) -> None:
    async with in_process(tmp_path) as api:
        reply = await api.ask("GET", f"{MAPS}?{query}")
        assert reply.code == 400
        assert words in reply.body["message"]


async def test_a_limit_below_nothing_is_no_limit(tmp_path: Path) -> None:
    async with in_process(tmp_path) as api:
        everything = (await api.ask("GET", MAPS)).body["items"]
        assert everything
        assert (await api.ask("GET", f"{MAPS}?limit=-1")).body["items"] == everything


async def test_a_token_that_is_no_text_recognises_nobody(tmp_path: Path) -> None:
    async with in_process(tmp_path) as api:
        reply = await api.ask("GET", MAPS, headers={"Authorization": f"Bearer {NOT_UTF8}"})
        assert reply.code == 401
        assert not api.told.lines


@pytest.mark.parametrize(
    ("agent", "manager"),
    [
        ("kubectl/v1.36", "kubectl"),
        (NOT_UTF8, "??"),
        ("a\u200bb/1", "ab"),
        ("é" * 100, "é" * 64),
        ("/1", "unknown"),
    ],
)
async def test_a_manager_is_named_by_what_can_be_read_of_the_user_agent(
    agent: str, manager: str, tmp_path: Path
) -> None:
    async with in_process(tmp_path) as api:
        made = await api.ask("POST", MAPS, config_map() | {"data": {"a": "b"}}, headers={"User-Agent": agent})
        assert made.code == 201
        assert made.body["metadata"]["managedFields"][0]["manager"] == manager


async def test_an_impersonated_user_whose_name_is_no_text_can_be_told_of(tmp_path: Path) -> None:
    async with in_process(tmp_path) as api:
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        reply = await api.ask("POST", path, {}, headers={"Impersonate-User": NOT_UTF8})
        assert reply.code == 201
        assert reply.body["status"]["userInfo"]["username"] == "??"


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        (f"{PODS}/p/binding", {"target": "n1"}, "Binding.target of type v1.ObjectReference"),
        ("/api/v1/namespaces/default/bindings", {"target": ["n1"]}, "Binding.target of type v1.ObjectReference"),
        (f"{PODS}/p/eviction", {"deleteOptions": 5}, "deleteOptions"),
        ("/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": {"audiences": 5}}, "audiences"),
        (REVIEWS, {"spec": "all"}, "spec"),
        (REVIEWS, {"spec": {"resourceAttributes": "pods"}}, "resourceAttributes"),
        ("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "a", "audiences": 1e300}}, "audiences"),
    ],
)
async def test_what_is_said_at_a_door_is_read_by_its_kind(path: str, body: Any, words: str, tmp_path: Path) -> None:
    async with in_process(tmp_path) as api:
        await api.ask("POST", PODS, kinds.pod(name="p"))
        reply = await api.ask("POST", path, body)
        assert reply.code == 400
        assert "cannot be handled as a" in reply.body["message"]
        assert words in reply.body["message"]


async def test_an_unknown_field_at_a_door_is_warned_of_and_refused_when_asked(tmp_path: Path) -> None:
    async with in_process(tmp_path) as api:
        reply = await api.ask("POST", f"{REVIEWS}?fieldValidation=Strict", {"spec": {"nobody": 1}})
        assert reply.code == 400
        assert 'strict decoding error: unknown field "spec.nobody"' in reply.body["message"]


@pytest.mark.parametrize("spec", ["many", {"replicas": "2"}, {"replicas": 2**40}, [1]])
async def test_a_scale_is_read_as_one_however_it_is_written(spec: Any, tmp_path: Path) -> None:
    async with in_process(tmp_path) as api:
        base = "/apis/apps/v1/namespaces/default/deployments"
        assert (await api.ask("POST", base, kinds.workload("Deployment"))).code == 201
        assert (await api.ask("PUT", f"{base}/web/scale", {"metadata": {"name": "web"}, "spec": spec})).code == 400
        assert (await api.ask("PATCH", f"{base}/web/scale", {"spec": spec}, MERGE)).code == 422
        assert (
            await api.ask("PATCH", f"{base}/web/scale", {"metadata": 5, "spec": {"replicas": 3}}, MERGE)
        ).code == 422
        assert (await api.ask("GET", f"{base}/web/scale")).body["spec"] == {"replicas": 1}


@pytest.mark.parametrize("metadata", ["a", [None], 5, True])
async def test_metadata_that_are_none_are_refused_in_every_patch(metadata: Any, tmp_path: Path) -> None:
    async with in_process(tmp_path) as api:
        assert (await api.ask("POST", MAPS, config_map())).code == 201
        merged = await api.ask("PATCH", f"{MAPS}/a", {"metadata": metadata}, MERGE)
        assert merged.code in (400, 422)
        applied = await api.ask("PATCH", f"{MAPS}/a?fieldManager=m", config_map() | {"metadata": metadata}, APPLY)
        assert applied.code == 500
        assert ".metadata: expected map, got " in applied.body["message"]
        assert not api.told.lines


@pytest.mark.parametrize(("seconds", "code"), [(10**18, 200), (2**62, 200), (10**30, 400)])
async def test_a_pod_may_be_given_all_the_time_there_is(seconds: int, code: int, tmp_path: Path) -> None:
    async with in_process(tmp_path) as api:
        assert (await api.ask("POST", PODS, kinds.pod(name="p", nodeName="n1"))).code == 201
        reply = await api.ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": seconds})
        assert reply.code == code
        if code == 200:
            assert reply.body["metadata"]["deletionTimestamp"] == "9999-12-31T23:59:59Z"


@pytest.mark.parametrize("place", ["top", "list", "map"])
async def test_a_body_full_of_unknown_fields_costs_what_its_size_does(place: str, tmp_path: Path) -> None:
    unknown = {f"x{index}": 1 for index in range(60_000)}
    bodies: dict[str, Any] = {
        "top": config_map() | unknown,
        "list": config_map() | {"metadata": {"name": "a", "ownerReferences": [{"x": 1}] * 60_000}},
        "map": kinds.pod(name="p", securityContext=unknown),
    }
    async with in_process(tmp_path) as api:
        started = process_time()
        reply = await api.ask("POST", f"{PODS if place == 'map' else MAPS}?fieldValidation=Strict", bodies[place])
        assert reply.code == 400
        assert process_time() - started < 20


@pytest.mark.parametrize(("characters", "code"), [(60_000, 201), (70_000, 413)])
async def test_a_review_above_64_kib_is_refused_before_it_is_read(characters: int, code: int, tmp_path: Path) -> None:
    async with in_process(tmp_path) as api:
        attributes = {"verb": "get", "resource": "pods", "name": "x" * characters}
        reply = await api.ask("POST", REVIEWS, {"spec": {"resourceAttributes": attributes}})
        assert reply.code == code


@pytest.mark.parametrize(("verb", "is_measured"), [("copy", True), ("test", False)])
async def test_a_patch_that_copies_is_worked_out_as_large_ones_are(
    verb: str, is_measured: bool, tmp_path: Path
) -> None:
    readings: list[float] = []

    def clock() -> float:
        readings.append(0.0)
        return 0.0

    async with in_process(tmp_path) as api:
        assert (await api.ask("POST", MAPS, {**config_map(), "data": {"k": "v"}})).code == 201
        api.plane.context.large = LargeWork(clock)
        operation = {"op": verb, "from": "/data/k", "value": "v", "path": "/data/k2" if verb == "copy" else "/data/k"}
        name = config_map()["metadata"]["name"]
        reply = await api.ask("PATCH", f"{MAPS}/{name}", [operation], "application/json-patch+json")
        assert reply.code == 200
        assert bool(readings) == is_measured


async def test_made_up_names_do_not_make_the_counters_grow(tmp_path: Path) -> None:
    async with in_process(tmp_path) as api:
        await _ask_for_nonsense(api, 1)
        before = len((await api.ask("GET", "/metrics")).raw.splitlines())
        await _ask_for_nonsense(api, 30)
        assert len((await api.ask("GET", "/metrics")).raw.splitlines()) < before + 30


async def _ask_for_nonsense(api: InProcess, times: int) -> None:
    for index in range(times):
        await api.ask("GET", f"/apis/group{index}/v1/things")
        await api.ask("GET", f"{PODS}/p/door{index}")
        await api.ask(f"VERB{index}", PODS)
