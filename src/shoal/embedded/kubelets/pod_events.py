"""Records Events about pods with the kubelet as reporter. Large fleets may omit the normal ones; warnings are always
recorded.
"""

from __future__ import annotations

from typing import NamedTuple

from shoal.client.kubelet.pod_run import PodRun
from shoal.embedded.kubelets.context import FleetContext


class PodEvent(NamedTuple):
    reason: str
    message: str
    type_: str
    container: str = ""


def record_event(context: FleetContext, node: str, run: PodRun, said: PodEvent) -> None:
    warns = said.type_ == "Warning"
    if not warns and not context.settings.has_events:
        return
    one = run.container(said.container) if said.container else None
    field = ""
    if one is not None:
        field = f"spec.{'containers' if one.role == 'main' else 'initContainers'}{{{one.name}}}"
    meta = {"name": run.name, "namespace": run.namespace, "uid": run.uid}
    about = {"kind": "Pod", "apiVersion": "v1", "metadata": meta}
    context.events.record(
        about, said.reason, said.message, type_="Warning" if warns else "Normal", host=node, field=field
    )
