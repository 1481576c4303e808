"""The deprecated ComponentStatus: whether the components of a control plane are healthy.

A kube-apiserver asks the scheduler, the controller manager and etcd on their own ports. Here all of them are parts of
the process that answers, and it stores what an etcd would, so each is healthy as long as anything is answered.
"""

from __future__ import annotations

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.resource import Obj, Resource
from shoal.embedded.apiserver.server.accept import Form
from shoal.embedded.apiserver.tables.table import partial, partial_list, table

_NAMES = {"controller-manager": "ok", "scheduler": "ok", "etcd-0": "ok"}
"""Each with what it says of its health."""
HOME = ("", "componentstatuses")


def shown(resource: Resource, name: str, form: Form) -> Obj:
    """One of them, or all where no name is given."""
    if name and name not in _NAMES:
        raise status.not_found("componentstatus", "", name)
    found = [_component_status(one) for one in ([name] if name else _NAMES)]
    if form.shape == "table":
        return table(resource, found, now_s=0, version=form.version)
    if form.shape == "partial":
        return partial(found[0], form.version) if name else partial_list(found, {}, form.version)
    if name:
        return found[0]
    items = [{key: one[key] for key in ("metadata", "conditions")} for one in found]
    return {"kind": "ComponentStatusList", "apiVersion": "v1", "metadata": {}, "items": items}


def _component_status(name: str) -> Obj:
    healthy = {"type": "Healthy", "status": "True", "message": _NAMES[name]}
    return {"kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name}, "conditions": [healthy]}
