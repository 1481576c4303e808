"""Runs commands in containers of a simulated node: nvidia-smi shows the granted devices and the programs that use them.

Commands that need no devices are answered from the objects, as for pods without a simulated node.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec import structs

from shoal.embedded.apiserver.streams.terminal import CannedTerminal, CommandOutput, CommandPlace
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.gpus.node_gpus import ContainerDevices, NodeGpus
from shoal.embedded.gpus.smi import nvidia_smi
from shoal.embedded.gpus.smi_node import view_of_container
from shoal.embedded.kubelets.gpu_components.commands import component_command
from shoal.embedded.kubelets.gpu_components.component_pod import ComponentPod


def answer(
    place: CommandPlace,
    command: Sequence[str],
    gpus: NodeGpus,
    grants: Sequence[ContainerDevices],
    now_s: float,
    component: ComponentPod | None = None,
) -> CommandOutput:
    """`grants`: those of the whole pod."""
    container = place.container["name"]
    mine = [grant for grant in grants if grant.container == container]
    words = _words(command)
    at = datetime.fromtimestamp(now_s, UTC).strftime("%a %b %e %H:%M:%S %Y")
    if component is not None and isinstance(gpus, DeviceManager):
        found = component_command(component, gpus, words, now_s, at)
        if found is not None:
            return found
    if mine and isinstance(gpus, DeviceManager) and words and words[0].rpartition("/")[2] == "nvidia-smi":
        view = view_of_container(gpus, place.pod["metadata"]["uid"], container, now_s, at)
        said = nvidia_smi(view, words[1:])
        return CommandOutput(said.text, code=said.code)
    added: dict[str, str] = {}
    for grant in mine:
        added |= grant.environment
    return CannedTerminal().run(structs.replace(place, added=added), command)


def _words(command: Sequence[str]) -> list[str]:
    """The words of a command, also of one in a shell: `sh -c "nvidia-smi -L"`."""
    words = list(command)
    if len(words) == 3 and words[0].rpartition("/")[2] in ("sh", "bash") and words[1] in ("-c", "-lc"):
        try:
            return shlex.split(words[2])
        except ValueError:
            return words
    return words
