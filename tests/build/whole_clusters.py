"""Everything in a cluster, object by object, to compare it before and after: without versions, uids and times."""

from __future__ import annotations

from typing import Any

from shoal.client.kind import Kind
from shoal.client.port import Api

Obj = dict[str, Any]
_PASSING = ("resourceVersion", "uid", "creationTimestamp", "managedFields", "generation")
_UNSTABLE = frozenset({"events", "leases", "componentstatuses"})
_DRAWN = frozenset({"kube-root-ca.crt", "extension-apiserver-authentication"})
"""ConfigMaps with certificates that each server makes for itself."""
_ADDRESSES = ("clusterIP", "clusterIPs")


async def whole_cluster(api: Api) -> dict[str, Obj]:
    found: dict[str, Obj] = {}
    for one in await api.served():
        kind: Kind = one.kind
        if "list" not in one.verbs or kind.plural in _UNSTABLE or "/" in kind.plural:
            continue
        for item in (await api.list(kind)).items:
            obj = item.obj()
            if item.name in _DRAWN:
                obj.pop("data", None)
            for name in _ADDRESSES:
                (obj.get("spec") or {}).pop(name, None)
            meta = {name: value for name, value in obj["metadata"].items() if name not in _PASSING}
            found[f"{kind.group}/{kind.plural} {item.namespace}/{item.name}"] = {
                **{name: value for name, value in obj.items() if name not in ("metadata", "status")},
                "metadata": {name: value for name, value in meta.items() if value},
            }
    return found
