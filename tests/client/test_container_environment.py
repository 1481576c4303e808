"""The environment and command of a container follow the kubelet's rules."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.client.kubelet.environment import Surroundings, environment_of, words_of
from shoal.client.kubelet.pod_fields import Addresses
from shoal.client.kubelet.references import MissingSourceError, Reference, references_of, values_in

Obj = dict[str, Any]
GIVEN = {"PATH": "/bin", "HOME": "/pods/1/work"}


def pod_with(container: Obj, **spec: Any) -> Obj:
    container = {"name": "main", **container}
    metadata = {"name": "train", "namespace": "team-a", "uid": "u1", "labels": {"app": "x"}}
    return {"metadata": metadata, "spec": {"nodeName": "here", "containers": [container], **spec}}


def environment(container: Obj, sources: dict[Reference, dict[str, bytes] | None] | None = None) -> dict[str, str]:
    pod = pod_with(container)
    around = Surroundings(Addresses("10.0.0.7", "10.0.0.7"), {"cpu": "4", "memory": "8Gi"}, sources or {}, GIVEN)
    return environment_of(pod, pod["spec"]["containers"][0], around)


def test_a_variable_refers_to_earlier_ones_and_to_the_given_ones() -> None:
    found = environment({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)-$(HOME)-$(C)-$$(A)"}]})

    assert found["B"] == "1-/pods/1/work-$(C)-$(A)"


def test_the_spec_replaces_a_given_variable() -> None:
    assert environment({"env": [{"name": "PATH", "value": "/opt"}]})["PATH"] == "/opt"


def test_the_spec_does_not_replace_the_variables_of_allocated_devices() -> None:
    env = [
        {"name": "CUDA_VISIBLE_DEVICES", "value": "0,1"},
        {"name": "SEEN", "value": "$(CUDA_VISIBLE_DEVICES)"},
        {"name": "OTHER", "value": "x"},
    ]
    names: Obj = {"env": env, "envFrom": [{"configMapRef": {"name": "gpus"}}]}
    pod = pod_with(names)
    sources = {Reference("configmap", "gpus"): {"NVIDIA_VISIBLE_DEVICES": b"all", "MODE": b"fast"}}
    fixed = {"CUDA_VISIBLE_DEVICES": "GPU-a", "NVIDIA_VISIBLE_DEVICES": "GPU-a"}
    around = Surroundings(Addresses("10.0.0.7", "10.0.0.7"), {}, sources, GIVEN, fixed)

    found = environment_of(pod, pod["spec"]["containers"][0], around)

    own = {"SEEN": "GPU-a", "OTHER": "x", "MODE": "fast"}
    assert found == {**GIVEN, **fixed, **own}


def test_fields_of_the_pod_are_values() -> None:
    paths = {
        "metadata.name": "train",
        "metadata.labels['app']": "x",
        "spec.nodeName": "here",
        "status.podIP": "10.0.0.7",
    }
    env = [{"name": f"V{i}", "valueFrom": {"fieldRef": {"fieldPath": path}}} for i, path in enumerate(paths)]

    found = environment({"env": env})

    assert [found[f"V{i}"] for i in range(len(paths))] == list(paths.values())


@pytest.mark.parametrize(
    ("limits", "reference", "value"),
    [
        ({"cpu": "1500m"}, {"resource": "limits.cpu"}, "2"),
        ({"cpu": "1500m"}, {"resource": "limits.cpu", "divisor": "1m"}, "1500"),
        ({}, {"resource": "limits.cpu"}, "4"),
        ({}, {"resource": "requests.cpu"}, "0"),
        ({"memory": "1Gi"}, {"resource": "limits.memory", "divisor": "1Mi"}, "1024"),
    ],
)
def test_resources_are_whole_divisors_rounded_up(limits: Obj, reference: Obj, value: str) -> None:
    env = [{"name": "V", "valueFrom": {"resourceFieldRef": reference}}]

    assert environment({"resources": {"limits": limits}, "env": env})["V"] == value


def test_env_from_adds_all_keys_with_the_prefix_and_env_comes_after() -> None:
    sources: dict[Reference, dict[str, bytes] | None] = {Reference("configmap", "c"): {"A": b"1", "B": b"2"}}
    env_from = [{"prefix": "P_", "configMapRef": {"name": "c"}}]

    found = environment({"envFrom": env_from, "env": [{"name": "P_B", "value": "own $(P_A)"}]}, sources)

    assert (found["P_A"], found["P_B"]) == ("1", "own 1")


def test_a_required_object_that_does_not_exist_is_named() -> None:
    env = [{"name": "V", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]

    with pytest.raises(MissingSourceError, match='secret "s" not found'):
        environment({"env": env}, {Reference("secret", "s"): None})


def test_a_key_that_does_not_exist_is_named() -> None:
    env = [{"name": "V", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}]

    with pytest.raises(MissingSourceError, match="couldn't find key k in ConfigMap team-a/c"):
        environment({"env": env}, {Reference("configmap", "c"): {}})


def test_an_optional_key_that_does_not_exist_sets_nothing() -> None:
    env = [{"name": "V", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k", "optional": True}}}]

    assert "V" not in environment({"env": env}, {Reference("configmap", "c"): None})


def test_commands_and_arguments_are_expanded() -> None:
    container = {"command": ["echo", "$(A)"], "args": ["$(B)", "$$(A)"]}

    assert words_of(container, "command", {"A": "1"}) == ("echo", "1")
    assert words_of(container, "args", {"A": "1"}) == ("$(B)", "$(A)")


def test_secrets_are_decoded_and_config_maps_are_not() -> None:
    assert values_in({"kind": "Secret", "data": {"k": "dmFsdWU="}}) == {"k": b"value"}
    assert values_in({"kind": "ConfigMap", "data": {"k": "dmFsdWU="}}) == {"k": b"dmFsdWU="}


def test_all_references_of_a_pod_are_found() -> None:
    env = [{"name": "V", "valueFrom": {"configMapKeyRef": {"name": "b", "key": "k"}}}]
    pod = pod_with(
        {"envFrom": [{"secretRef": {"name": "a"}}], "env": env},
        volumes=[
            {"name": "v", "secret": {"secretName": "c"}},
            {"name": "w", "projected": {"sources": [{"configMap": {"name": "d"}}]}},
        ],
    )

    assert [one.name for one in references_of(pod)] == ["a", "b", "c", "d"]
