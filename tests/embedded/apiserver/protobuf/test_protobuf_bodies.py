"""Protobuf bodies: what kubectl sends is read as the object it meant, and nothing else is believed."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.embedded.apiserver.protobuf.decode import decode
from shoal.embedded.apiserver.protobuf.messages import messages
from shoal.embedded.apiserver.status import ApiError

# As kubectl 1.36 posts them.
DEPLOYMENT = bytes.fromhex(
    "6b3873000a150a07617070732f7631120a4465706c6f796d656e7412b0010a1b0a016412001a0022002a003200380042005a080a03617070"
    "1201641282010803120a0a080a036170701201641a6a0a1a0a0012001a0022002a003200380042005a080a03617070120164124c122e0a05"
    "6e67696e7812056e67696e782a00320a0a001000185022002a0042006a007200800100880100900100a201001a00320042004a0052005800"
    "600068008201008a01009a0100c2010022020a00280038001a0c0800100018002000280038001a002200"
)
BUDGET = bytes.fromhex(
    "6b3873000a200a09706f6c6963792f76311213506f6444697372757074696f6e42756467657412360a110a017012001a0022002a00320038"
    "00420012150a09080110001a0335302512080a060a01611201621a0a080018002000280030001a002200"
)

NO_MESSAGE = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
UNKNOWN_FORMAT = (
    "the body of the request was in an unknown format - accepted media types include: application/json, "
    "application/yaml"
)


def number(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def member(key: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return number(key << 3) + number(value)
    inside = value.encode() if isinstance(value, str) else value
    return number(key << 3 | 2) + number(len(inside)) + inside


def body(api_version: str, kind: str, message: bytes) -> bytes:
    return b"k8s\0" + member(1, member(1, api_version) + member(2, kind)) + member(2, message) + member(3, b"")


def write(message: str, obj: dict[str, Any]) -> bytes:
    """An independent writer of the fields that the properties below use."""
    found = b""
    for field in messages().fields(message):
        if not field.name:
            found += member(field.number, write(field.message, obj)) if field.type == "message" else b""
            continue
        if field.name not in obj:
            continue
        value = obj[field.name]
        for one in sorted(value.items()) if field.is_map else value if field.is_list else [value]:
            if field.is_map:
                found += member(field.number, member(1, one[0]) + member(2, _scalar(field, one[1])))
            else:
                found += member(field.number, _scalar(field, one))
    return found


def _scalar(field: Any, value: Any) -> bytes | str | int:
    if field.type == "message":
        return write(field.message, value)
    if field.type == "bytes":
        return b64decode(value)
    if field.type == "Quantity":
        return member(1, value)
    if field.type == "IntOrString":
        return member(1, 1) + member(3, value) if isinstance(value, str) else member(1, 0) + member(2, value)
    assert isinstance(value, str | int)
    return int(value) if isinstance(value, bool) else value


def outcome(sent: bytes) -> int:
    try:
        decode(sent)
    except ApiError as refusal:
        return refusal.code
    return 200


def test_a_deployment_that_kubectl_creates_is_read_as_it_would_be_in_json() -> None:
    container = {"name": "nginx", "image": "nginx", "ports": [{"containerPort": 80}], "resources": {}}
    assert decode(DEPLOYMENT) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "labels": {"app": "d"}},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "d"}},
            "template": {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [container]}},
            "strategy": {},
        },
        "status": {},
    }


def test_a_share_is_text_and_a_count_that_json_always_has_stays_zero() -> None:
    found = decode(BUDGET)
    assert found["spec"] == {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}}
    assert found["status"]["desiredHealthy"] == 0


def test_a_zero_that_was_set_is_kept_and_one_that_was_not_is_dropped() -> None:
    spec = member(1, 0) + member(5, 0)
    found = decode(body("apps/v1", "Deployment", member(2, spec)))
    assert found["spec"] == {"replicas": 0}


@pytest.mark.parametrize(
    ("kind", "message", "field", "expected"),
    [
        ("Secret", member(2, member(1, "a") + member(2, b"\xff\x00")), "data", {"a": "/wA="}),
        ("Secret", member(2, member(1, "a")), "data", {"a": ""}),
        ("Pod", member(1, member(8, member(1, 1795000000))), "metadata", {"creationTimestamp": "2026-11-18T11:06:40Z"}),
        ("Pod", member(1, member(8, b"")), "metadata", {}),
        ("Event", member(10, member(1, 1) + member(2, 1500)), "eventTime", "1970-01-01T00:00:01.000001Z"),
        ("PodTemplate", member(99, "unknown"), "template", None),
    ],
    ids=["bytes", "a missing value", "a time", "no time", "a time of microseconds", "an unknown field"],
)
def test_a_field_becomes_its_json_form(kind: str, message: bytes, field: str, expected: Any) -> None:
    found = decode(body("v1", kind, message))
    assert found.get(field) == expected


def test_members_of_an_embedded_message_stand_in_the_outer_object() -> None:
    config_map = member(19, member(1, member(1, "settings")))
    volume = member(1, "v") + member(2, config_map)
    found = decode(body("v1", "Pod", member(2, member(1, volume))))
    assert found["spec"]["volumes"] == [{"name": "v", "configMap": {"name": "settings"}}]


def test_options_are_read_in_any_group() -> None:
    found = decode(body("apps/v1", "DeleteOptions", member(1, 0) + member(4, "Foreground")))
    assert found == {
        "apiVersion": "apps/v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Foreground",
    }


def test_raw_json_within_protobuf_is_read_as_json() -> None:
    found = decode(body("apps/v1", "ControllerRevision", member(2, member(1, b'{"spec":{"a":1}}')) + member(3, 7)))
    assert (found["data"], found["revision"]) == ({"spec": {"a": 1}}, 7)


def test_lists_that_are_wrapped_in_a_message_are_unwrapped() -> None:
    extra = member(1, "scopes") + member(2, member(1, "a") + member(1, "b"))
    found = decode(body("authorization.k8s.io/v1", "SubjectAccessReview", member(2, member(5, extra))))
    assert found["spec"]["extra"] == {"scopes": ["a", "b"]}


def test_negative_numbers_survive() -> None:
    found = decode(body("scheduling.k8s.io/v1", "PriorityClass", member(2, -5)))
    assert found["value"] == -5


@pytest.mark.parametrize(
    ("sent", "code", "words"),
    [
        (b"", 400, "the object provided is unrecognized (must be of type Pod): empty data (<empty>)"),
        (
            b"{}",
            400,
            f"the object provided is unrecognized (must be of type Pod): {NO_MESSAGE} ({{}})",
        ),
        (
            body("v1", "Pod", b"\x0a\x7f"),
            400,
            'Pod in version "v1" cannot be handled as a Pod: unexpected EOF',
        ),
        (
            body("v1", "Pod", b"\x0f"),
            400,
            'Pod in version "v1" cannot be handled as a Pod: proto: illegal wireType 7',
        ),
        (
            body("v1", "Pod", member(1, 5)),
            400,
            'Pod in version "v1" cannot be handled as a Pod: proto: wrong wireType = 0 for field Metadata',
        ),
        (
            body("example.com/v1", "Ape", b""),
            415,
            UNKNOWN_FORMAT,
        ),
    ],
)
def test_what_cannot_be_read_is_refused_in_the_words_clients_know(sent: bytes, code: int, words: str) -> None:
    with pytest.raises(ApiError) as refused:
        decode(sent, "Pod")
    assert (refused.value.code, refused.value.message) == (code, words)


def test_nesting_has_an_end() -> None:
    deep = b""
    for _ in range(3000):
        deep = member(1, member(1, deep))
    with pytest.raises(ApiError):
        decode(body("apps/v1", "ControllerRevision", member(2, member(1, b"[" * 100_000))))
    assert decode(body("v1", "Pod", member(99, deep)))["kind"] == "Pod"


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_WORD = st.text(st.sampled_from("abcxyz-"), min_size=1, max_size=8)
_CONTAINER = st.fixed_dictionaries(
    {"name": _WORD, "resources": st.fixed_dictionaries({"limits": st.dictionaries(_WORD, _WORD, min_size=1)})},
    optional={"image": _WORD, "command": st.lists(_TEXT, min_size=1), "stdin": st.just(True)},
)
_POD_SPEC = st.fixed_dictionaries(
    {"containers": st.lists(_CONTAINER, min_size=1, max_size=3)},
    optional={
        "nodeSelector": st.dictionaries(_WORD, _TEXT, min_size=1),
        "priority": st.integers(-(2**31), 2**31 - 1),
        "terminationGracePeriodSeconds": st.integers(0, 2**62),
        "enableServiceLinks": st.booleans(),
    },
)


@given(_POD_SPEC)
@settings(max_examples=examples(30), deadline=None)
def test_any_pod_that_is_written_is_read_back(spec: dict[str, Any]) -> None:
    obj = {"metadata": {"name": "p"}, "spec": spec}
    sent = body("v1", "Pod", write("api/core/v1.Pod", obj))
    assert decode(sent) == {"apiVersion": "v1", "kind": "Pod", **obj}


@given(st.binary(max_size=60), st.integers(0, len(DEPLOYMENT)))
@settings(max_examples=examples(120), deadline=None)
def test_no_bytes_raise_anything_but_a_refusal(noise: bytes, at: int) -> None:
    for sent in (noise, b"k8s\0" + noise, DEPLOYMENT[:at] + noise + DEPLOYMENT[at + len(noise) :], DEPLOYMENT[:at]):
        assert outcome(sent) in (200, 400, 415)
