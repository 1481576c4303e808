"""Lists the plugins of Volcano jobs, and the plugins that each of them needs.

The plugins hcclrank and ray are not supported. A job that names one of them runs without it and gets an Event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from shoal.client.item import Obj
from shoal.client.kind import Kind
from shoal.controllers.volcano.job import VolcanoJob
from shoal.controllers.volcano.plugins import frameworks, network
from shoal.controllers.volcano.plugins.pod_edits import PluginTarget

PluginArguments = Sequence[str]


class VolcanoPlugin(msgspec.Struct, frozen=True):
    configure: Callable[[PluginTarget, Obj, PluginArguments], None]
    objects: Callable[[VolcanoJob, PluginArguments], list[tuple[Kind, Obj]]] | None = None
    needs: tuple[str, ...] = ()


PLUGINS = {
    "env": VolcanoPlugin(network.configure_env),
    "svc": VolcanoPlugin(network.configure_svc, network.objects_svc),
    "ssh": VolcanoPlugin(network.configure_ssh, network.objects_ssh),
    "pytorch": VolcanoPlugin(frameworks.configure_pytorch, needs=("svc",)),
    "tensorflow": VolcanoPlugin(frameworks.configure_tensorflow, needs=("svc",)),
    "mpi": VolcanoPlugin(frameworks.configure_mpi, needs=("svc", "ssh")),
}


def plugins_of(job: VolcanoJob) -> dict[str, PluginArguments]:
    """The plugins of the job with their arguments, in the order of the table."""
    wanted: dict[str, PluginArguments] = dict(job.spec.plugins)
    for name in job.spec.plugins:
        for needed in PLUGINS[name].needs if name in PLUGINS else ():
            wanted.setdefault(needed, ())
    return {name: wanted[name] for name in PLUGINS if name in wanted}


def unknown_plugins(job: VolcanoJob) -> list[str]:
    return sorted(job.spec.plugins.keys() - PLUGINS.keys())


def apply_plugins(target: PluginTarget, pod: Obj) -> None:
    for name, arguments in plugins_of(target.job).items():
        PLUGINS[name].configure(target, pod, arguments)
