"""Services: the addresses and ports they are given and keep."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from build.cluster_api import Api, Obj
from build.live_waits import until


def service(name: str, **spec: object) -> Obj:
    whole = {"selector": {"app": "web"}, "ports": [{"port": 80}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": whole}


async def make(api: Api, name: str, **spec: object) -> Obj:
    return (await api.post(api.core("services"), service(name, **spec))).ok(201)


async def test_a_service_is_given_an_address_and_its_defaults(api: Api) -> None:
    spec = (await make(api, "s"))["spec"]
    address = spec.pop("clusterIP")
    assert str(ip_address(address)) == address
    assert spec.pop("clusterIPs") == [address]
    assert spec.pop("ipFamilies") in (["IPv4"], ["IPv6"])
    assert spec == {
        "ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}],
        "selector": {"app": "web"},
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
    }


async def test_a_service_has_an_empty_balancer_from_the_start(api: Api) -> None:
    assert (await make(api, "s"))["status"] == {"loadBalancer": {}}


async def test_two_services_have_two_addresses(api: Api) -> None:
    first, second = await make(api, "a"), await make(api, "b")
    assert first["spec"]["clusterIP"] != second["spec"]["clusterIP"]


async def test_a_service_without_an_address_stays_without(api: Api) -> None:
    spec = (await make(api, "s", clusterIP="None"))["spec"]
    assert spec["clusterIP"] == "None"
    assert spec["clusterIPs"] == ["None"]


async def test_an_address_that_is_taken_is_refused(api: Api) -> None:
    taken = (await make(api, "a"))["spec"]["clusterIP"]
    answer = await api.post(api.core("services"), service("b", clusterIP=taken))
    message = answer.refused(422, "Invalid")
    assert message.startswith('Service "b" is invalid: spec.clusterIPs: Invalid value: ')
    assert message.endswith(f": failed to allocate IP {taken}: provided IP is already allocated")


async def test_an_address_is_free_again_when_its_service_is_gone(api: Api) -> None:
    taken = (await make(api, "a"))["spec"]["clusterIP"]
    (await api.delete(api.core("services", "a"))).ok()
    assert (await make(api, "b", clusterIP=taken))["spec"]["clusterIP"] == taken


async def test_an_address_is_kept_for_life(api: Api) -> None:
    made = await make(api, "s")
    kept = (await api.put(api.core("services", "s"), service("s", ports=[{"port": 81}]))).ok()
    assert kept["spec"]["clusterIP"] == made["spec"]["clusterIP"]
    answer = await api.patch(api.core("services", "s"), {"spec": {"clusterIP": "None", "clusterIPs": ["None"]}})
    message = answer.refused(422, "Invalid")
    assert "spec.clusterIPs[0]: Invalid value: " in message
    assert "may not change once set" in message


async def test_a_service_on_nodes_is_given_ports(api: Api) -> None:
    (port,) = (await make(api, "s", type="NodePort"))["spec"]["ports"]
    assert 1 <= port["nodePort"] <= 65535
    assert port["targetPort"] == 80
    spec = (await api.get(api.core("services", "s"))).ok()["spec"]
    assert spec["externalTrafficPolicy"] == "Cluster"
    taken = {"port": 80, "nodePort": port["nodePort"]}
    answer = await api.post(api.core("services"), service("t", type="NodePort", ports=[taken]))
    assert answer.refused(422, "Invalid") == (
        f'Service "t" is invalid: spec.ports[0].nodePort: Invalid value: {port["nodePort"]}: '
        "provided port is already allocated"
    )


async def test_ports_are_needed_and_named_when_they_are_many(api: Api) -> None:
    answer = await api.post(api.core("services"), service("s", ports=[]))
    assert answer.refused(422, "Invalid") == 'Service "s" is invalid: spec.ports: Required value'
    answer = await api.post(api.core("services"), service("s", ports=[{"port": 80}, {"port": 81}]))
    assert "spec.ports[0].name: Required value" in answer.refused(422, "Invalid")
    answer = await api.post(api.core("services"), service("s", ports=[{"port": 70000}]))
    words = "spec.ports[0].port: Invalid value: 70000: must be between 1 and 65535, inclusive"
    assert words in answer.refused(422, "Invalid")


async def test_a_service_of_a_name_elsewhere_has_no_address(api: Api) -> None:
    body = {"type": "ExternalName", "externalName": "example.com", "sessionAffinity": "None"}
    made = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": body}
    assert (await api.post(api.core("services"), made)).ok(201)["spec"] == body


async def test_the_name_of_a_service_is_a_label(api: Api) -> None:
    answer = await api.post(api.core("services"), service("a.b"))
    assert answer.refused(422, "Invalid").startswith(
        'Service "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots'
    )


async def test_the_server_itself_has_a_service(api: Api) -> None:
    spec = (await api.get("/api/v1/namespaces/default/services/kubernetes")).ok()["spec"]
    assert spec["ports"][0]["port"] == 443
    assert spec["ports"][0]["name"] == "https"


@pytest.mark.needs("controllers")
async def test_the_proxy_of_a_service_without_endpoints_is_unavailable(api: Api) -> None:
    await make(api, "s")
    await until(api, api.core("endpoints", "s"), bool)
    for name in ("s", "s:80", "http:s:80"):
        for path in ("proxy", "proxy/", "proxy/some/path"):
            answer = await api.get(api.core("services", name, path))
            assert answer.refused(503, "ServiceUnavailable") == 'no endpoints available for service "s"'


async def test_the_proxy_of_a_service_that_is_not_there_or_misnamed_is_refused(api: Api) -> None:
    missing = await api.get(api.core("services", "none", "proxy"))
    assert missing.refused(404, "NotFound") == 'services "none" not found'
    odd = await api.get(api.core("services", "ftp:s:80", "proxy"))
    assert odd.refused(400, "BadRequest") == 'invalid service request "ftp:s:80"'
