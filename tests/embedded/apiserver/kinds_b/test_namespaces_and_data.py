from __future__ import annotations

import base64
import copy
from typing import Any

from build.kind_objects import complaints, created, texts
from shoal.embedded.apiserver.kinds.table import STRATEGIES

Obj = dict[str, Any]


def named(name: str = "one", **fields: Any) -> Obj:
    return {"apiVersion": "v1", "metadata": {"name": name, "namespace": "default"}, **fields}


def test_a_namespace_keeps_itself_until_it_is_empty_and_is_found_by_its_name() -> None:
    made = created("", "namespaces", {"metadata": {"name": "team"}, "status": {"phase": "Terminating"}})
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    assert made["status"] == {"phase": "Active"}
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}
    assert not STRATEGIES["", "namespaces"].counts_generation
    assert STRATEGIES["", "namespaces"].name_fault("a.b", False) == "must not contain dots"
    assert "label must consist" in STRATEGIES["", "namespaces"].name_fault("a_b", False)


def test_the_finalizers_of_a_namespace_change_by_their_own_door_only() -> None:
    old = created("", "namespaces", {"metadata": {"name": "team"}})
    new = copy.deepcopy(old)
    new["spec"] = {"finalizers": []}
    STRATEGIES["", "namespaces"].prepare_update(new, old)
    assert new["spec"] == {"finalizers": ["kubernetes"]}


def test_the_phase_of_a_namespace_follows_its_deletion() -> None:
    old = created("", "namespaces", {"metadata": {"name": "team"}})
    new = old | {"status": {"phase": "Terminating"}}
    assert texts(STRATEGIES["", "namespaces"].validate_status(new, old)) == [
        "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"
    ]


def test_a_config_map_has_keys_that_can_be_files() -> None:
    (text,) = complaints("", "configmaps", named(data={"a/b": "x"}))
    assert text.startswith('data[a/b]: Invalid value: "a/b": a valid config key must consist of')
    both = named(data={"a": "x"}, binaryData={"a": "eA=="})
    assert complaints("", "configmaps", both) == ['data[a]: Invalid value: "a": duplicate of key present in binaryData']


def test_what_is_stored_has_a_size() -> None:
    (text,) = complaints("", "configmaps", named(data={"a": "x" * (1024 * 1024 + 1)}))
    assert text.endswith("Too long: may not be more than 1048576 bytes")
    assert complaints("", "configmaps", named(data={"a": "x" * 1024 * 1024})) == []


def test_an_immutable_config_map_stays_so() -> None:
    old = created("", "configmaps", named(data={"a": "x"}, immutable=True))
    new = copy.deepcopy(old)
    new["data"] = {"a": "y"}
    del new["immutable"]
    fixed = "field is immutable when `immutable` is set"
    assert texts(STRATEGIES["", "configmaps"].validate_update(new, old)) == [
        f"immutable: Forbidden: {fixed}",
        f"data: Forbidden: {fixed}",
    ]


def test_plain_text_of_a_secret_is_merged_over_its_data() -> None:
    made = created("", "secrets", named(data={"a": "b2xk", "b": "a2VwdA=="}, stringData={"a": "new"}))
    assert made["data"] == {"a": base64.b64encode(b"new").decode(), "b": "a2VwdA=="}
    assert "stringData" not in made
    assert made["type"] == "Opaque"
    assert STRATEGIES["", "secrets"].fields(made) == {"type": "Opaque"}


def test_typed_secrets_have_what_their_type_says() -> None:
    def of(kind: str, **data: str) -> list[str]:
        return complaints("", "secrets", named(type=kind, data=data))

    assert of("kubernetes.io/tls", **{"tls.crt": ""}) == ["data[tls.key]: Required value"]
    assert of("kubernetes.io/basic-auth") == ["data[username]: Required value", "data[password]: Required value"]
    assert of("kubernetes.io/ssh-auth") == ["data[ssh-privatekey]: Required value"]
    assert of("kubernetes.io/dockerconfigjson") == ["data[.dockerconfigjson]: Required value"]
    broken = base64.b64encode(b"{").decode()
    assert of("kubernetes.io/dockerconfigjson", **{".dockerconfigjson": broken}) == [
        'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": unexpected end of JSON input'
    ]
    assert of("kubernetes.io/service-account-token") == [
        "metadata.annotations[kubernetes.io/service-account.name]: Required value"
    ]


def test_the_type_of_a_secret_is_said_once() -> None:
    old = created("", "secrets", named())
    new = old | {"type": "example.com/other"}
    assert texts(STRATEGIES["", "secrets"].validate_update(new, old)) == [
        'type: Invalid value: "example.com/other": field is immutable'
    ]


def test_endpoints_are_addresses_that_can_be_reached() -> None:
    def of(ip: str) -> list[str]:
        return complaints("", "endpoints", named(subsets=[{"addresses": [{"ip": ip}], "ports": [{"port": 80}]}]))

    assert of("10.1.2.3") == []
    assert of("127.0.0.1") == [
        (
            'subsets[0].addresses[0].ip: Invalid value: "127.0.0.1": may not be in the loopback range '
            "(127.0.0.0/8, ::1/128)"
        )
    ]
    assert "must be a valid IP address" in of("x")[0]
