"""Claims and ingresses that name no class get the cluster's default one, where there is one."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.embedded.apiserver.admission.kept import Kept
from shoal.embedded.apiserver.admission.plugin import AdmissionPlugin
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.reading import Obj, Reader
from shoal.embedded.apiserver.resource import Resource

STORAGE_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_STORAGE_MARKS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_INGRESS_MARKS = ("ingressclass.kubernetes.io/is-default-class",)
_INGRESS_ANNOTATION = "kubernetes.io/ingress.class"


class DefaultClass(AdmissionPlugin):
    """One field of one kind, filled from the newest class that is marked as default."""

    def __init__(
        self, reader: Reader, kind: tuple[str, str], classes: tuple[str, str], field: str, marks: tuple[str, ...]
    ) -> None:
        self._kind = kind
        self._field = field
        self._annotation = STORAGE_CLASS_ANNOTATION if field == "storageClassName" else _INGRESS_ANNOTATION
        self._default: Kept[tuple[str]] = Kept(reader, *classes, lambda found: (_newest(found, marks),))

    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:
        return operation == "CREATE" and resource.home == self._kind and not subresource

    def mutate(self, admission: AdmissionAttributes) -> None:
        obj = admission.obj
        if obj is None:
            return
        spec = obj.setdefault("spec", {})
        if spec.get(self._field) is not None or self._annotation in (obj["metadata"].get("annotations") or ()):
            return
        (name,) = self._default.get()
        if name:
            spec[self._field] = name


def default_storage_class(reader: Reader) -> DefaultClass:
    return DefaultClass(
        reader,
        ("", "persistentvolumeclaims"),
        ("storage.k8s.io", "storageclasses"),
        "storageClassName",
        _STORAGE_MARKS,
    )


def default_ingress_class(reader: Reader) -> DefaultClass:
    group = "networking.k8s.io"
    return DefaultClass(reader, (group, "ingresses"), (group, "ingressclasses"), "ingressClassName", _INGRESS_MARKS)


def _newest(classes: Iterable[Obj], marks: tuple[str, ...]) -> str:
    """Of several defaults the one made last, so that a migration needs no moment without one."""
    found = [one["metadata"] for one in classes if _is_marked(one["metadata"].get("annotations") or {}, marks)]
    found.sort(key=lambda metadata: str(metadata["name"]))
    found.sort(key=lambda metadata: str(metadata.get("creationTimestamp", "")), reverse=True)
    return str(found[0]["name"]) if found else ""


def _is_marked(annotations: Obj, marks: tuple[str, ...]) -> bool:
    return any(annotations.get(mark) == "true" for mark in marks)
