from __future__ import annotations

import copy
from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.kind_objects import complaints, created, texts
from shoal.embedded.apiserver.kinds.core.cluster_addresses import RANGE, Taken, allocate, taken
from shoal.embedded.apiserver.kinds.table import STRATEGIES
from shoal.embedded.apiserver.status import ApiError

Obj = dict[str, Any]
SERVICES = STRATEGIES["", "services"]
NOTHING = Taken(frozenset(), frozenset())


def service(name: str = "web", **spec: Any) -> Obj:
    whole = {"ports": [{"port": 80}], "selector": {"app": "web"}, **spec}
    return {"apiVersion": "v1", "metadata": {"name": name, "namespace": "default"}, "spec": whole}


def allocated(name: str = "web", others: Taken = NOTHING, **spec: Any) -> Obj:
    made = created("", "services", service(name, **spec))
    assert SERVICES.validate(made) == []
    allocate(made, others)
    return made


def test_a_service_says_all_that_a_real_one_says() -> None:
    spec = created("", "services", service())["spec"]
    assert spec == {
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "selector": {"app": "web"},
        "sessionAffinity": "None",
        "type": "ClusterIP",
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
    }


def test_a_headless_service_without_a_selector_may_be_of_both_families() -> None:
    made = created("", "services", service(clusterIP="None", selector=None))
    assert made["spec"]["clusterIPs"] == ["None"]
    assert made["spec"]["ipFamilies"] == ["IPv4", "IPv6"]
    assert made["spec"]["ipFamilyPolicy"] == "RequireDualStack"
    assert SERVICES.validate(made) == []
    allocate(made, NOTHING)
    assert made["spec"]["clusterIP"] == "None"


def test_an_external_name_is_all_that_such_a_service_has() -> None:
    made = allocated(type="ExternalName", externalName="db.example.com.", ports=None)
    assert "clusterIP" not in made["spec"]
    assert "ipFamilies" not in made["spec"]
    assert complaints("", "services", service(type="ExternalName")) == ["spec.externalName: Required value"]


def test_node_ports_are_given_and_shared_by_two_protocols_of_one_port() -> None:
    ports = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53}]
    made = allocated(type="NodePort", ports=ports)
    first, second = (port["nodePort"] for port in made["spec"]["ports"])
    assert first == second
    assert 30000 <= first <= 32767
    assert made["spec"]["externalTrafficPolicy"] == "Cluster"


def test_what_is_taken_is_refused() -> None:
    held = taken([allocated(clusterIP="10.96.0.10", type="NodePort", ports=[{"port": 80, "nodePort": 30080}])])
    with pytest.raises(ApiError) as refused:
        allocated("other", held, clusterIP="10.96.0.10")
    assert refused.value.message == (
        'Service "other" is invalid: spec.clusterIPs: Invalid value: ["10.96.0.10"]: failed to allocate IP 10.96.0.10: '
        "provided IP is already allocated"
    )
    with pytest.raises(ApiError) as refused:
        allocated("other", held, type="NodePort", ports=[{"port": 80, "nodePort": 30080}])
    assert refused.value.message.endswith(
        "spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated"
    )


def test_of_ports_that_no_service_can_have_the_first_is_told_alone() -> None:
    made = service(type="NodePort", ports=[{"port": 0, "nodePort": 5}, {"port": 80, "nodePort": 70000}])
    assert complaints("", "services", made) == [
        (
            "spec.ports[0].nodePort: Invalid value: 5: provided port is not in the valid range. The range of valid "
            "ports is 30000-32767"
        )
    ]


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.text("abc", min_size=1, max_size=4), unique=True, max_size=30))
def test_no_two_services_get_the_same_and_the_same_services_get_the_same_again(names: list[str]) -> None:
    def all_of_them() -> list[Obj]:
        made: list[Obj] = []
        for name in names:
            made.append(allocated(name, taken(made), type="NodePort"))
        return made

    made = all_of_them()
    addresses = [one["spec"]["clusterIP"] for one in made]
    assert len({*addresses}) == len(addresses)
    assert all(ip_address(one) in RANGE for one in addresses)
    assert len({one["spec"]["ports"][0]["nodePort"] for one in made}) == len(made)
    assert [one["spec"] for one in all_of_them()] == [one["spec"] for one in made]


def test_a_writer_who_knows_nothing_of_addresses_keeps_them() -> None:
    old = allocated(type="NodePort")
    new = service(type="NodePort", ports=[{"port": 80}, {"port": 81, "name": "b"}])
    new["spec"]["ports"][0]["name"] = "a"
    SERVICES.default(new)
    SERVICES.prepare_update(new, old)
    assert new["spec"]["clusterIP"] == old["spec"]["clusterIP"]
    assert new["spec"]["ports"][0]["nodePort"] == old["spec"]["ports"][0]["nodePort"]
    assert SERVICES.validate_update(new, old) == []
    allocate(new, NOTHING, old)
    assert new["spec"]["ports"][1]["nodePort"]


def test_an_address_is_kept_for_life() -> None:
    old = allocated()
    new = copy.deepcopy(old)
    new["spec"]["clusterIP"] = "10.96.9.9"
    SERVICES.prepare_update(new, old)
    assert texts(SERVICES.validate_update(new, old)) == [
        'spec.clusterIPs[0]: Invalid value: ["10.96.9.9"]: may not change once set'
    ]


def test_what_belonged_to_the_former_type_goes_with_it() -> None:
    old = allocated(type="NodePort")
    new = copy.deepcopy(old)
    new["spec"]["type"] = "ClusterIP"
    SERVICES.default(new)
    SERVICES.prepare_update(new, old)
    assert "nodePort" not in new["spec"]["ports"][0]
    assert "externalTrafficPolicy" not in new["spec"]
    assert SERVICES.validate_update(new, old) == []


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"ports": []}, "spec.ports: Required value"),
        ({"ports": [{"port": 0}]}, "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"),
        ({"type": "Other"}, ('spec.type: Unsupported value: "Other": supported values: "ClusterIP", "ExternalName", '
         '"LoadBalancer", "NodePort"')),
        ({"ports": [{"port": 80, "nodePort": 30000}]},
         "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"),
        ({"ports": [{"port": 80}, {"port": 81, "name": "b"}]}, "spec.ports[0].name: Required value"),
        ({"clusterIP": "None", "type": "NodePort"},
         "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services"),
        ({"ipFamilyPolicy": "RequireDualStack"},
         ('spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack '
         "services")),
        ({"loadBalancerClass": "a.com/b"},
         "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'"),
    ],
)  # fmt: skip
def test_services_are_refused_in_the_words_clients_know(spec: Obj, said: str) -> None:
    assert said in complaints("", "services", service(**spec))


def test_a_balancer_needs_a_port_to_be_asked_for_its_health() -> None:
    made = allocated(type="LoadBalancer", externalTrafficPolicy="Local")
    assert made["spec"]["healthCheckNodePort"] not in (0, made["spec"]["ports"][0]["nodePort"])
    assert made["spec"]["allocateLoadBalancerNodePorts"] is True
