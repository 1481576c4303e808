"""Objects of built-in kinds read as Go reads them: what goes, what stays, what is refused and in which words."""

from __future__ import annotations

import copy
import time
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.embedded.apiserver.schema.decode import conform, strict_error
from shoal.embedded.apiserver.schema.kubernetes import GoSchema, Shapes
from shoal.embedded.apiserver.status import ApiError

Obj = dict[str, Any]


@cache
def shapes() -> Shapes:
    return Shapes("1.36")


def schema(kind: str, api_version: str = "v1") -> GoSchema:
    group, _, version = api_version.rpartition("/")
    return shapes().of(group, version, kind)


def read(obj: Obj, kind: str = "Pod", api_version: str = "v1") -> list[str]:
    return conform(obj, schema(kind, api_version), kind=kind, api_version=api_version)


def refusal(obj: Obj, kind: str = "Pod", api_version: str = "v1") -> str:
    with pytest.raises(ApiError) as refused:
        read(obj, kind, api_version)
    assert (refused.value.code, refused.value.reason) == (400, "BadRequest")
    version = api_version.rpartition("/")[2]
    before = f'{kind} in version "{version}" cannot be handled as a {kind}: '
    assert refused.value.message.startswith(before)
    return refused.value.message.removeprefix(before)


def container(**fields: Any) -> Obj:
    return {"spec": {"containers": [{"name": "main", **fields}]}}


def first_container(obj: Obj) -> Obj:
    found: Obj = obj["spec"]["containers"][0]
    return found


def test_unknown_fields_go_and_are_named_with_their_path() -> None:
    obj = {"spec": {"replicaz": 3, "template": {"spec": {"containers": [{"name": "a"}, {"name": "b", "imagee": "x"}]}}}}
    problems = read(obj, "Deployment", "apps/v1")
    assert problems == [
        'unknown field "spec.replicaz"',
        'unknown field "spec.template.spec.containers[1].imagee"',
    ]
    assert obj == {"spec": {"template": {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}}}


def test_a_field_spelt_in_another_case_is_unknown() -> None:
    assert read({"Spec": {}}) == ['unknown field "Spec"']


def test_no_more_than_a_hundred_problems_are_named() -> None:
    assert len(read({f"x{index}": 1 for index in range(500)})) == 100


def test_strict_readers_are_told_all_problems_at_once() -> None:
    refused = strict_error(['unknown field "spec.a"', 'duplicate field "b"'], kind="Pod", api_version="v1")
    words = 'Pod in version "v1" cannot be handled as a Pod: '
    assert refused.message == words + 'strict decoding error: unknown field "spec.a", duplicate field "b"'


WRONG_TYPES: dict[str, tuple[Obj, str]] = {
    "text for a number": (
        {"spec": {"replicas": "3"}},
        "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
    ),
    "a fraction for a whole number": (
        {"spec": {"replicas": 1.5}},
        "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
    ),
    "a number that does not fit": (
        {"spec": {"replicas": 2**31}},
        "json: cannot unmarshal number 2147483648 into Go struct field DeploymentSpec.spec.replicas of type int32",
    ),
    "a number for a label": (
        {"metadata": {"labels": {"a": 1}}},
        "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
    ),
    "a number for the value of a variable": (
        {"spec": {"template": {"spec": {"containers": [{"env": [{"name": "a", "value": 1}]}]}}}},
        (
            "json: cannot unmarshal number into Go struct field "
            "EnvVar.spec.template.spec.containers.env.value of type string"
        ),
    ),
    "an object for a list": (
        {"spec": {"template": {"spec": {"containers": {}}}}},
        (
            "json: cannot unmarshal object into Go struct field "
            "PodSpec.spec.template.spec.containers of type []v1.Container"
        ),
    ),
    "text for an item of a list": (
        {"spec": {"template": {"spec": {"containers": ["x"]}}}},
        "json: cannot unmarshal string into Go struct field PodSpec.spec.template.spec.containers of type v1.Container",
    ),
    "text for an object": (
        {"spec": "x"},
        "json: cannot unmarshal string into Go struct field Deployment.spec of type v1.DeploymentSpec",
    ),
    "a list for a map": (
        {"metadata": {"labels": []}},
        "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
    ),
    "a switch for an enumerated text": (
        {"spec": {"template": {"spec": {"restartPolicy": True}}}},
        (
            "json: cannot unmarshal bool into Go struct field "
            "PodSpec.spec.template.spec.restartPolicy of type v1.RestartPolicy"
        ),
    ),
    "a switch for a number or text": (
        {"spec": {"strategy": {"rollingUpdate": {"maxSurge": True}}}},
        "json: cannot unmarshal bool into Go value of type int32",
    ),
    "no quantity": (
        {"spec": {"template": {"spec": {"containers": [{"resources": {"limits": {"cpu": "1 core"}}}]}}}},
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ),
    "no time": (
        {"metadata": {"creationTimestamp": "yesterday"}},
        'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
    ),
}


@pytest.mark.parametrize("case", WRONG_TYPES, ids=str)
def test_a_value_of_the_wrong_type_is_refused_in_the_words_of_go(case: str) -> None:
    obj, words = WRONG_TYPES[case]
    assert refusal(copy.deepcopy(obj), "Deployment", "apps/v1") == words


def test_bytes_have_to_be_base64() -> None:
    assert refusal({"data": {"a": "x y"}}, "Secret") == "illegal base64 data at input byte 1"
    assert read({"data": {"a": "eA==", "b": ""}}, "Secret") == []


def test_quantities_are_spelt_as_kubernetes_spells_them_and_numbers_become_text() -> None:
    obj = container(resources={"limits": {"cpu": 1.5, "memory": "1024Mi", "nvidia.com/gpu": 8, "x": "0.10"}})
    read(obj)
    limits = first_container(obj)["resources"]["limits"]
    assert limits == {"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": "8", "x": "100m"}


def test_times_are_told_in_utc_and_whole_seconds() -> None:
    obj = {"metadata": {"creationTimestamp": "2026-01-01T00:30:00.7+02:00"}}
    read(obj)
    assert obj["metadata"]["creationTimestamp"] == "2025-12-31T22:30:00Z"


@pytest.mark.parametrize("written", ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00.5Z"])
def test_years_have_four_digits(written: str) -> None:
    obj = {"metadata": {"creationTimestamp": written}}
    read(obj)
    assert obj["metadata"]["creationTimestamp"] == "0001-01-01T00:00:00Z"


@pytest.mark.parametrize("written", ["2026-02-30T00:00:00Z", "2026-02-30T00:00:00.000001+00:00"])
def test_a_day_that_no_month_has_is_refused_however_it_is_written(written: str) -> None:
    words = refusal({"metadata": {"creationTimestamp": written}})
    assert words == f'parsing time "{written}": day out of range'


def test_a_lease_keeps_microseconds_and_wants_all_six_digits() -> None:
    lease = {"spec": {"renewTime": "2026-01-01T00:00:00.000001Z"}}
    assert read(lease, "Lease", "coordination.k8s.io/v1") == []
    assert lease["spec"]["renewTime"] == "2026-01-01T00:00:00.000001Z"
    words = refusal({"spec": {"renewTime": "2026-01-01T00:00:00Z"}}, "Lease", "coordination.k8s.io/v1")
    layout = "2006-01-02T15:04:05.000000Z07:00"
    assert words == f'parsing time "2026-01-01T00:00:00Z" as "{layout}": cannot parse "Z" as ".000000"'


def test_nulls_go_but_a_null_in_a_list_or_map_is_an_empty_value() -> None:
    obj = {**container(image=None, env=[None], args=[None]), "metadata": {"labels": {"a": None}}}
    read(obj)
    assert first_container(obj) == {"name": "main", "env": [{}], "args": [""]}
    assert obj["metadata"] == {"labels": {"a": ""}}


def test_empty_values_that_go_leaves_out_go_and_those_behind_a_pointer_stay() -> None:
    obj = container(env=[{"name": "a", "value": ""}], args=[], securityContext={}, stdin=False)
    obj["spec"] |= {"hostNetwork": False, "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0}
    obj["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]
    read(obj)
    assert obj["spec"] == {
        "containers": [{"name": "main", "env": [{"name": "a"}], "securityContext": {}}],
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "volumes": [{"name": "v", "emptyDir": {}}],
    }


def test_free_form_values_are_left_as_they_are() -> None:
    raw = {"parameters": {"anything": [None, {"x": 0}]}}
    claim = {"spec": {"devices": {"config": [{"opaque": {"driver": "gpu.nvidia.com", **raw}}]}}}
    assert read(claim, "ResourceClaim", "resource.k8s.io/v1") == []
    assert claim["spec"]["devices"]["config"][0]["opaque"]["parameters"] == raw["parameters"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "1Gi", "Always"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "spec", "env", "x", "limits", "labels", "containers"]), inner, max_size=3
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["metadata", "spec", "status", "x"]), json_values, max_size=4))
@settings(max_examples=examples(60), deadline=None)
def test_whatever_is_sent_is_refused_or_comes_out_so_that_nothing_is_left_to_mend(obj: Obj) -> None:
    try:
        read(obj)
    except ApiError:
        return
    mended = copy.deepcopy(obj)
    assert read(obj) == []
    assert obj == mended


def test_a_pod_is_read_in_no_more_time_than_the_server_has_for_it() -> None:
    body = msgspec.json.encode(
        {
            "metadata": {"name": "train-0", "labels": {"app": "train", "queue": "a"}},
            **container(
                image="pytorch",
                command=["python", "train.py"],
                env=[{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "a"}}}],
                resources={"limits": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": 8}},
                volumeMounts=[{"name": "v", "mountPath": "/v"}],
            ),
        }
    )
    read(msgspec.json.decode(body))
    best = float("inf")
    for _ in range(5):
        pods = [msgspec.json.decode(body) for _ in range(200)]
        start = time.process_time()
        for pod in pods:
            read(pod)
        best = min(best, (time.process_time() - start) / 200)
    # Ten times what it takes on a quiet machine: this is to find a lost compilation, not a slow day.
    assert best < 300e-6
