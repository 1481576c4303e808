"""The plugins there are, and which others each of them needs.

Not there: hcclrank and ray. A job that names one of them runs without it and is told so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from shoal.controllers.volcano.job import VolcanoJob
from shoal.controllers.volcano.plugins import frameworks, network
from shoal.controllers.volcano.plugins.dressing import Place
from shoal.store.live.item import Obj
from shoal.store.live.kind import Kind

Given = Sequence[str]


class Plugin(msgspec.Struct, frozen=True):
    dress: Callable[[Place, Obj, Given], None]
    objects: Callable[[VolcanoJob, Given], list[tuple[Kind, Obj]]] | None = None
    needs: tuple[str, ...] = ()


PLUGINS = {
    "env": Plugin(network.dress_env),
    "svc": Plugin(network.dress_svc, network.objects_svc),
    "ssh": Plugin(network.dress_ssh, network.objects_ssh),
    "pytorch": Plugin(frameworks.dress_pytorch, needs=("svc",)),
    "tensorflow": Plugin(frameworks.dress_tensorflow, needs=("svc",)),
    "mpi": Plugin(frameworks.dress_mpi, needs=("svc", "ssh")),
}


def plugins_of(job: VolcanoJob) -> dict[str, Given]:
    """With their arguments, in the order of the table."""
    wanted: dict[str, Given] = dict(job.spec.plugins)
    for name in job.spec.plugins:
        for needed in PLUGINS[name].needs if name in PLUGINS else ():
            wanted.setdefault(needed, ())
    return {name: wanted[name] for name in PLUGINS if name in wanted}


def unknown_plugins(job: VolcanoJob) -> list[str]:
    return sorted(job.spec.plugins.keys() - PLUGINS.keys())


def dress(place: Place, pod: Obj) -> None:
    for name, given in plugins_of(place.job).items():
        PLUGINS[name].dress(place, pod, given)
