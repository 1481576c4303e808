"""The port behind `exec`, and the prepared output of simulated pods.

Pods of this control plane run no process. A few commands that users run to see what a pod was granted are answered from
the objects. Every other command prints one line that says so, with a shell's exit code for a command not found.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from shoal.client.kubelet.environment import Surroundings, environment_of
from shoal.client.kubelet.pod_fields import Addresses
from shoal.embedded.apiserver.bootstrap.own_service import CLUSTER_ADDRESS
from shoal.embedded.gpus.smi import nvidia_smi
from shoal.embedded.gpus.smi_view import GpuView

Obj = dict[str, Any]
NOT_FOUND = 127
_FROM_OBJECTS = ("configMapKeyRef", "secretKeyRef")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_OF_THE_CLUSTER = {
    "KUBERNETES_SERVICE_HOST": CLUSTER_ADDRESS,
    "KUBERNETES_SERVICE_PORT": "443",
    "KUBERNETES_SERVICE_PORT_HTTPS": "443",
    "KUBERNETES_PORT": f"tcp://{CLUSTER_ADDRESS}:443",
}
"""Kubernetes names its own service in any case; links are those of other services."""
_SHELLS = frozenset({"sh", "bash", "/bin/sh", "/bin/bash"})


class CommandPlace(msgspec.Struct, frozen=True):
    """Where a command is run."""

    pod: Obj
    container: Obj
    node: Obj | None = None
    added: Mapping[str, str] = {}
    """Variables that came with the devices that were granted."""


class CommandOutput(msgspec.Struct, frozen=True):
    """Everything a command had to say, and how it ended."""

    stdout: str = ""
    stderr: str = ""
    code: int = 0


class Terminal(Protocol):
    def run(self, place: CommandPlace, command: Sequence[str]) -> CommandOutput: ...


class CannedTerminal:
    """Answers from what the pod's objects say."""

    def run(self, place: CommandPlace, command: Sequence[str]) -> CommandOutput:
        words = _unwrapped(command)
        name = words[0].rpartition("/")[2] if words else ""
        if name == "printenv" or (name == "env" and len(words) == 1):
            return _variables(place, words[1:])
        if name == "nvidia-smi":
            return _nvidia_smi(place, words[1:])
        if name == "tar":
            return _absent("tar", "files cannot be copied")
        return _absent(" ".join(words), "only `nvidia-smi` and `env` are answered")


def _variables(place: CommandPlace, names: Sequence[str]) -> CommandOutput:
    """All with their names; or the values of those that are named, as printenv has it."""
    given = _environment(place)
    found = {key: value for key, value in given.items() if key not in place.added} | dict(place.added)
    if not names:
        return CommandOutput("".join(f"{key}={value}\n" for key, value in found.items()))
    said = "".join(f"{found[name]}\n" for name in names if name in found)
    return CommandOutput(said, code=0 if all(name in found for name in names) else 1)


def _environment(place: CommandPlace) -> dict[str, str]:
    """As the kubelet makes it. Values from ConfigMaps and Secrets are left out: a terminal sees the pod, not what it
    refers to.
    """
    pod, spec, status = place.pod, place.pod.get("spec") or {}, place.pod.get("status") or {}
    env = [
        one
        for one in place.container.get("env") or ()
        if not any(of in (one.get("valueFrom") or {}) for of in _FROM_OBJECTS)
    ]
    devices = GpuView.of(place.container, None, pod).device_ids()
    around = Surroundings(
        Addresses(status.get("podIP") or "", status.get("hostIP") or ""),
        ((place.node or {}).get("status") or {}).get("allocatable") or {},
        {},
        _OF_THE_CLUSTER,
        {"NVIDIA_VISIBLE_DEVICES": ",".join(devices)} if devices else {},
    )
    found = environment_of(pod, {**place.container, "env": env, "envFrom": ()}, around)
    return {"HOME": "/root", "PATH": _PATH, "HOSTNAME": spec.get("hostname") or pod["metadata"]["name"], **found}


def _nvidia_smi(place: CommandPlace, options: Sequence[str]) -> CommandOutput:
    sight = GpuView.of(place.container, place.node, place.pod)
    if not sight.gpus:
        return CommandOutput(stderr="nvidia-smi: not found: this container asks for no GPU\n", code=NOT_FOUND)
    said = nvidia_smi(sight, options)
    return CommandOutput(said.text, code=said.code)


def _unwrapped(command: Sequence[str]) -> list[str]:
    """`sh -c "nvidia-smi -L"` is `nvidia-smi -L`."""
    words = list(command)
    if len(words) == 3 and words[0] in _SHELLS and words[1] in ("-c", "-lc"):
        try:
            return shlex.split(words[2])
        except ValueError:
            return words
    return words


def _absent(command: str, why: str) -> CommandOutput:
    return CommandOutput(stderr=f"{command}: this pod is simulated and runs no process: {why}\n", code=NOT_FOUND)
