"""What a command in a simulated pod prints: what the pod was given, or one clear line."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.embedded.apiserver.streams.terminal import CannedTerminal, CommandOutput, CommandPlace

Obj = dict[str, Any]
NODE = {
    "metadata": {
        "name": "n1",
        "labels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559"},
    }
}


def place(limits: dict[str, str] | None = None, env: list[Obj] | None = None) -> CommandPlace:
    container: Obj = {"name": "main", "resources": {"limits": limits or {}}, "env": env or []}
    pod: Obj = {
        "metadata": {"name": "train-0", "namespace": "team", "uid": "u1", "labels": {"app": "train"}},
        "spec": {"nodeName": "n1", "containers": [container]},
        "status": {"podIP": "10.0.0.9"},
    }
    return CommandPlace(pod, container, NODE)


def test_nvidia_smi_lists_a_gpu_for_each_that_was_asked_for() -> None:
    answer = CannedTerminal().run(place({"nvidia.com/gpu": "2"}), ["nvidia-smi", "-L"])
    lines = answer.stdout.splitlines()
    assert answer.code == 0
    assert [line.split(" (UUID: GPU-")[0] for line in lines] == [
        "GPU 0: NVIDIA H100 80GB HBM3",
        "GPU 1: NVIDIA H100 80GB HBM3",
    ]
    assert len(set(lines)) == 2
    assert CannedTerminal().run(place({"nvidia.com/gpu": "2"}), ["nvidia-smi", "-L"]) == answer


def test_a_mig_device_is_listed_below_its_gpu() -> None:
    lines = CannedTerminal().run(place({"nvidia.com/mig-1g.10gb": "1"}), ["nvidia-smi", "-L"]).stdout.splitlines()
    assert lines[1].startswith("  MIG 1g.10gb")
    assert "UUID: MIG-" in lines[1]


def test_the_table_of_nvidia_smi_is_a_table() -> None:
    lines = CannedTerminal().run(place({"nvidia.com/gpu": "8"}), ["nvidia-smi"]).stdout.splitlines()
    assert {len(line) for line in lines if line} == {91}
    assert sum("81559MiB" in line for line in lines) == 8


def test_without_a_gpu_there_is_no_nvidia_smi() -> None:
    answer = CannedTerminal().run(place(), ["nvidia-smi"])
    assert (answer.code, answer.stdout) == (127, "")
    assert answer.stderr.count("\n") == 1


def test_env_is_what_the_spec_says_and_what_kubernetes_adds() -> None:
    env: list[Obj] = [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)-$(MISSING)-$$(A)"},
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    ]
    printed = CannedTerminal().run(place({"nvidia.com/gpu": "1"}, env), ["env"]).stdout
    found = dict(line.split("=", 1) for line in printed.splitlines())
    expected = {"A": "1", "B": "1-$(MISSING)-$(A)", "POD": "train-0", "APP": "train", "IP": "10.0.0.9"}
    assert {key: found[key] for key in expected} == expected
    assert "SECRET" not in found
    assert found["HOSTNAME"] == "train-0"
    assert found["KUBERNETES_SERVICE_HOST"] == "10.96.0.1"
    listed = CannedTerminal().run(place({"nvidia.com/gpu": "1"}), ["nvidia-smi", "-L"]).stdout
    assert found["NVIDIA_VISIBLE_DEVICES"] in listed


def test_printenv_says_what_is_asked_for_and_fails_where_it_is_not_set() -> None:
    here = place(env=[{"name": "RANK", "value": "3"}, {"name": "WORLD_SIZE", "value": "4"}])
    assert CannedTerminal().run(here, ["printenv", "WORLD_SIZE", "RANK"]) == CommandOutput("4\n3\n")
    assert CannedTerminal().run(here, ["printenv", "RANK", "NOBODY"]) == CommandOutput("3\n", code=1)


def test_a_variable_of_an_annotation_that_is_not_there_is_empty() -> None:
    env = [{"name": "RANK", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['shoal.dev/rank']"}}}]
    assert CannedTerminal().run(place(env=env), ["printenv", "RANK"]) == CommandOutput("\n")


def test_a_container_goes_before_what_kubernetes_says_of_its_own_service() -> None:
    env = [
        {"name": "WHERE", "value": "$(KUBERNETES_SERVICE_HOST)"},
        {"name": "KUBERNETES_SERVICE_HOST", "value": "api.example.com"},
    ]
    said = CannedTerminal().run(place(env=env), ["printenv", "WHERE", "KUBERNETES_SERVICE_HOST", "KUBERNETES_PORT"])
    assert said.stdout.splitlines() == ["10.96.0.1", "api.example.com", "tcp://10.96.0.1:443"]


@pytest.mark.parametrize(
    ("reference", "wanted"),
    [
        ({"resource": "limits.cpu"}, "3"),
        ({"resource": "limits.cpu", "divisor": "1m"}, "2500"),
        ({"resource": "limits.memory", "divisor": "1Mi"}, "1024"),
        ({"resource": "requests.memory"}, "0"),
        ({"resource": "limits.ephemeral-storage", "divisor": "0"}, "7"),
        ({"resource": "limits.cpu", "containerName": "other"}, "96"),
    ],
)
def test_amounts_are_told_in_whole_divisors(reference: Obj, wanted: str) -> None:
    env: list[Obj] = [{"name": "AMOUNT", "valueFrom": {"resourceFieldRef": reference}}]
    here = place({"cpu": "2500m", "memory": "1Gi"}, env)
    here.pod["spec"]["containers"].append({"name": "other"})
    node = {**NODE, "status": {"allocatable": {"cpu": "96", "ephemeral-storage": "7"}}}
    assert (
        CannedTerminal().run(CommandPlace(here.pod, here.container, node), ["printenv", "AMOUNT"]).stdout
        == f"{wanted}\n"
    )


@pytest.mark.parametrize("command", [["sh", "-c", "nvidia-smi -L"], ["/bin/bash", "-lc", "/usr/bin/nvidia-smi -L"]])
def test_a_shell_around_a_known_command_changes_nothing(command: list[str]) -> None:
    here = place({"nvidia.com/gpu": "1"})
    assert CannedTerminal().run(here, command) == CannedTerminal().run(here, ["nvidia-smi", "-L"])


@pytest.mark.parametrize("command", [["python", "train.py"], ["sh"], ["sh", "-c", "'"], ["tar", "cf", "-", "/x"], []])
def test_every_other_command_is_told_that_nothing_runs(command: list[str]) -> None:
    answer = CannedTerminal().run(place(), command)
    assert answer.code == 127
    assert "this pod is simulated" in answer.stderr
    assert answer.stderr.count("\n") == 1
