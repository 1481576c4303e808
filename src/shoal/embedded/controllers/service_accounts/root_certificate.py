"""Publishes the server's root certificate as a ConfigMap in every namespace, for pods."""

from __future__ import annotations

from shoal.client.context import Context, Controller
from shoal.client.item import Key, Obj
from shoal.client.kind import CONFIG_MAPS, NAMESPACES
from shoal.client.loop import Loop
from shoal.client.refusals import AlreadyExistsError

_NAME = "kube-root-ca.crt"
_NOTE = "kubernetes.io/description"
_WORDS = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


def root_certificate_publisher(context: Context, certificate: str) -> Controller:
    """`certificate`: PEM."""
    namespaces, maps = context.informers.of(NAMESPACES), context.informers.of(CONFIG_MAPS)
    wanted = {"ca.crt": certificate}

    async def reconcile(key: Key) -> None:
        namespace = namespaces.get(*key)
        if namespace is None or namespace.obj()["metadata"].get("deletionTimestamp"):
            return
        item = maps.get(namespace.name, _NAME)
        if item is None:
            meta: Obj = {"name": _NAME, "namespace": namespace.name, "annotations": {_NOTE: _WORDS}}
            try:
                await context.api.create(CONFIG_MAPS, {"metadata": meta, "data": dict(wanted)})
            except AlreadyExistsError:
                return
            return
        obj = item.obj()
        notes = obj["metadata"].setdefault("annotations", {})
        if obj.get("data") != wanted or not notes.get(_NOTE):
            obj["data"] = dict(wanted)
            notes[_NOTE] = _WORDS
            await context.api.update(CONFIG_MAPS, obj)

    loop = Loop(context, reconcile)
    loop.follow(NAMESPACES)
    loop.follow(CONFIG_MAPS, lambda item: [("", item.namespace)] if item.name == _NAME else [])
    return loop
