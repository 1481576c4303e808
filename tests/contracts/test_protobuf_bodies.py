"""Bodies in protobuf, as typed clients send them."""

from __future__ import annotations

import pytest

from build import protobuf_bytes as protobuf
from build.api_objects import make_configmap, ready_for_pods
from build.cluster_api import Api
from build.protobuf_bytes import MEDIA, field, whole_number


async def test_an_object_in_protobuf_is_the_same_object(api: Api) -> None:
    body = protobuf.configmap("a", {"k": "v", "é": "世界"} | {"empty": ""})
    answer = await api.post(api.core("configmaps"), body.replace("é".encode(), b"ee"), media=MEDIA)
    made = answer.ok(201)
    assert made["data"] == {"k": "v", "ee": "世界", "empty": ""}
    assert made["metadata"]["name"] == "a"
    assert made["kind"] == "ConfigMap"


async def test_amounts_and_ports_come_through(api: Api) -> None:
    await ready_for_pods(api)
    amount = field(1, field(1, "cpu") + field(2, field(1, "500m")))
    port = field(6, whole_number(3, 80) + field(4, "TCP"))
    container = field(1, "main") + field(2, "img:1") + port + field(8, amount)
    spec = field(2, container) + field(19, "nobody-schedules-this")
    body = protobuf.envelope("v1", "Pod", field(1, field(1, "p")) + field(2, spec))
    made = (await api.post(api.core("pods"), body, media=MEDIA)).ok(201)
    (found,) = made["spec"]["containers"]
    assert found["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert found["resources"] == {"limits": {"cpu": "500m"}, "requests": {"cpu": "500m"}}


async def test_bytes_come_through(api: Api) -> None:
    raw = field(1, field(1, "s")) + field(2, field(1, "k") + field(2, b"\x00\xff")) + field(3, "Opaque")
    made = (await api.post(api.core("secrets"), protobuf.envelope("v1", "Secret", raw), media=MEDIA)).ok(201)
    assert made["data"] == {"k": "AP8="}


async def test_an_object_is_replaced_in_protobuf(api: Api) -> None:
    await make_configmap(api, "a", {"k": "1"})
    answer = await api.put(api.core("configmaps", "a"), protobuf.configmap("a", {"k": "2"}), media=MEDIA)
    assert answer.ok(200)["data"] == {"k": "2"}


async def test_options_of_a_deletion_come_in_protobuf(api: Api) -> None:
    await make_configmap(api, "a")
    other = field(2, field(1, "11111111-2222-3333-4444-555555555555"))
    options = protobuf.envelope("v1", "DeleteOptions", other)
    answer = await api.delete(api.core("configmaps", "a"), options, media=MEDIA)
    assert "the UID in the precondition" in answer.refused(409, "Conflict")
    orphan = protobuf.envelope("v1", "DeleteOptions", field(4, "Background"))
    assert (await api.delete(api.core("configmaps", "a"), orphan, media=MEDIA)).code == 200


@pytest.mark.parametrize(
    "body",
    [
        b"k8s\x00\xff\xff\xff",
        b"not protobuf",
        protobuf.envelope("v1", "ConfigMap", b"\x0a\x7f"),
        protobuf.configmap("a", {})[:-1],
        b"k8s\x00",
    ],
)
async def test_bytes_that_are_no_object_are_refused(api: Api, body: bytes) -> None:
    answer = await api.post(api.core("configmaps"), body, media=MEDIA)
    assert answer.code == 400
    assert answer.body["kind"] == "Status"
    assert answer.body["reason"] == "BadRequest"


async def test_an_object_of_another_kind_is_refused_in_protobuf(api: Api) -> None:
    body = protobuf.envelope("v1", "Secret", field(1, field(1, "a")))
    answer = await api.post(api.core("configmaps"), body, media=MEDIA)
    assert answer.refused(400, "BadRequest").startswith('Secret in version "v1" cannot be handled as a ConfigMap')


async def test_who_prefers_protobuf_and_takes_json_is_answered(api: Api) -> None:
    await make_configmap(api, "a", {"k": "v"})
    answer = await api.get(api.core("configmaps", "a"), headers={"Accept": f"{MEDIA},application/json"})
    assert answer.code == 200
    assert answer.headers["Content-Type"] in (MEDIA, "application/json")
