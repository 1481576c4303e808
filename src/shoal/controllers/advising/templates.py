"""The pods that an object would have, wherever in it they are described.

Kinds of other projects keep pod templates anywhere below their spec; three keep less than a template: a container with
the pod's fields beside it. All are read alike here, so that a rule about pods is written once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from shoal.api.taints import Taint, Toleration
from shoal.controllers.advising.around import dig, maps, named, texts
from shoal.engine.spelling.names import GPU
from shoal.store.live.item import Obj
from shoal.units.numbers import whole_of

_DEEPEST = 10


class PodShape(msgspec.Struct, frozen=True, eq=False):
    path: str
    """Of the pod's spec within the object."""
    spec: Obj
    labels: dict[str, str]
    annotations: Obj = {}

    def containers(self) -> Iterator[tuple[str, Obj]]:
        """With their paths; those that run first come first."""
        for field in ("initContainers", "containers"):
            for at, container in enumerate(maps(self.spec.get(field))):
                yield container.get("__path__") or f"{self.path}.{field}[{at}]", container

    def gpus(self) -> int:
        """Whole GPUs of all containers that run side by side."""
        return sum(gpus_of(container) for container in maps(self.spec.get("containers")))

    def asks_gpus(self) -> bool:
        return any(_names_gpus(container) for _, container in self.containers())

    def tolerates(self, taint: Taint) -> bool:
        return any(toleration.tolerates(taint) for toleration in _tolerations(self.spec))


def shapes(obj: Obj) -> list[PodShape]:
    """In the order in which they are written."""
    kind = obj.get("kind")
    if kind == "Pod":
        meta = named(obj.get("metadata"))
        return [PodShape("spec", named(obj.get("spec")), named(meta.get("labels")), named(meta.get("annotations")))]
    if kind == "Workflow":
        return list(_of_workflow(obj))
    if kind == "InferenceService":
        return list(_of_service(obj))
    return list(_below(obj.get("spec"), "spec", _DEEPEST))


def words_of(container: Obj) -> list[str]:
    """Command and arguments, scripts taken apart at blanks."""
    return " ".join((*texts(container.get("command")), *texts(container.get("args")))).split()


def gpus_of(container: Obj) -> int:
    limits, requests = (named(dig(container, "resources", field)) for field in ("limits", "requests"))
    return whole_of(str(limits.get(GPU, requests.get(GPU, 0)))) or 0


def _names_gpus(container: Obj) -> bool:
    return any(
        name.startswith("nvidia.com/")
        for field in ("limits", "requests")
        for name in named(dig(container, "resources", field))
    )


def _tolerations(spec: Obj) -> Iterator[Toleration]:
    for written in maps(spec.get("tolerations")):
        try:
            yield msgspec.convert(written, Toleration)
        except msgspec.ValidationError:
            continue


def _below(raw: Any, path: str, depth: int) -> Iterator[PodShape]:
    if not depth:
        return
    if isinstance(raw, list):
        for at, inner in enumerate(raw):
            yield from _below(inner, f"{path}[{at}]", depth - 1)
    if not isinstance(raw, dict):
        return
    spec = raw.get("spec")
    if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
        meta = named(raw.get("metadata"))
        yield PodShape(f"{path}.spec", spec, named(meta.get("labels")), named(meta.get("annotations")))
        return
    for key, inner in raw.items():
        if key != "metadata":
            yield from _below(inner, f"{path}.{key}", depth - 1)


def _of_workflow(obj: Obj) -> Iterator[PodShape]:
    for at, template in enumerate(maps(dig(obj, "spec", "templates"))):
        container = template.get("container") or template.get("script")
        if isinstance(container, dict):
            here = f"spec.templates[{at}]"
            field = "container" if template.get("container") else "script"
            fields: Obj = {key: template[key] for key in ("tolerations", "nodeSelector", "affinity") if key in template}
            fields.setdefault("tolerations", dig(obj, "spec", "tolerations"))
            yield PodShape(here, {**fields, "containers": [{**container, "__path__": f"{here}.{field}"}]}, {})


def _of_service(obj: Obj) -> Iterator[PodShape]:
    for role in ("predictor", "transformer", "explainer"):
        spec = dig(obj, "spec", role)
        if not isinstance(spec, dict):
            continue
        model = spec.get("model")
        inside = [{**model, "__path__": f"spec.{role}.model"}] if isinstance(model, dict) else []
        yield PodShape(f"spec.{role}", {**spec, "containers": [*inside, *maps(spec.get("containers"))]}, {})
