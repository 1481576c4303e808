"""Finds the pod templates in an object of any kind.

Kinds of other projects have pod templates anywhere below their spec; three kinds have less than a template: a container
with fields of the pod beside it. All are returned alike, so that each rule about pods is written once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from shoal.api.taints import Taint, Toleration
from shoal.policy.advice import Obj
from shoal.policy.fields import dig, maps, string_keys, strings
from shoal.units.numbers import whole_of

GPU = "nvidia.com/gpu"
_MOST_LEVELS = 10


class PodTemplateView(msgspec.Struct, frozen=True, eq=False):
    path: str
    """Path of the pod's spec within the object."""
    spec: Obj
    labels: dict[str, str]
    annotations: Obj = {}

    def containers(self) -> Iterator[tuple[str, Obj]]:
        """The containers with their paths, init containers first."""
        for field in ("initContainers", "containers"):
            for at, container in enumerate(maps(self.spec.get(field))):
                yield container.get("__path__") or f"{self.path}.{field}[{at}]", container

    def gpus(self) -> int:
        """Number of whole GPUs of all containers that run at the same time."""
        return sum(gpus_of(container) for container in maps(self.spec.get("containers")))

    def asks_gpus(self) -> bool:
        return any(_names_gpus(container) for _, container in self.containers())

    def tolerates(self, taint: Taint) -> bool:
        return any(toleration.tolerates(taint) for toleration in _tolerations(self.spec))


def pod_templates(obj: Obj) -> list[PodTemplateView]:
    """The templates in the order of the object."""
    kind = obj.get("kind")
    if kind == "Pod":
        meta = string_keys(obj.get("metadata"))
        return [
            PodTemplateView(
                "spec",
                string_keys(obj.get("spec")),
                string_keys(meta.get("labels")),
                string_keys(meta.get("annotations")),
            )
        ]
    if kind == "Workflow":
        return list(_workflow_templates(obj))
    if kind == "InferenceService":
        return list(_service_templates(obj))
    return list(_nested_templates(obj.get("spec"), "spec", _MOST_LEVELS))


def command_words(container: Obj) -> list[str]:
    """Command and arguments, split at blanks."""
    return " ".join((*strings(container.get("command")), *strings(container.get("args")))).split()


def gpus_of(container: Obj) -> int:
    limits, requests = (string_keys(dig(container, "resources", field)) for field in ("limits", "requests"))
    return whole_of(str(limits.get(GPU, requests.get(GPU, 0)))) or 0


def _names_gpus(container: Obj) -> bool:
    return any(
        name.startswith("nvidia.com/")
        for field in ("limits", "requests")
        for name in string_keys(dig(container, "resources", field))
    )


def _tolerations(spec: Obj) -> Iterator[Toleration]:
    for written in maps(spec.get("tolerations")):
        try:
            yield msgspec.convert(written, Toleration)
        except msgspec.ValidationError:
            continue


def _nested_templates(raw: Any, path: str, depth: int) -> Iterator[PodTemplateView]:
    if not depth:
        return
    if isinstance(raw, list):
        for at, inner in enumerate(raw):
            yield from _nested_templates(inner, f"{path}[{at}]", depth - 1)
    if not isinstance(raw, dict):
        return
    spec = raw.get("spec")
    if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
        meta = string_keys(raw.get("metadata"))
        yield PodTemplateView(
            f"{path}.spec", spec, string_keys(meta.get("labels")), string_keys(meta.get("annotations"))
        )
        return
    for key, inner in raw.items():
        if key != "metadata":
            yield from _nested_templates(inner, f"{path}.{key}", depth - 1)


def _workflow_templates(obj: Obj) -> Iterator[PodTemplateView]:
    for at, template in enumerate(maps(dig(obj, "spec", "templates"))):
        container = template.get("container") or template.get("script")
        if isinstance(container, dict):
            here = f"spec.templates[{at}]"
            field = "container" if template.get("container") else "script"
            fields: Obj = {key: template[key] for key in ("tolerations", "nodeSelector", "affinity") if key in template}
            fields.setdefault("tolerations", dig(obj, "spec", "tolerations"))
            yield PodTemplateView(here, {**fields, "containers": [{**container, "__path__": f"{here}.{field}"}]}, {})


def _service_templates(obj: Obj) -> Iterator[PodTemplateView]:
    for role in ("predictor", "transformer", "explainer"):
        spec = dig(obj, "spec", role)
        if not isinstance(spec, dict):
            continue
        model = spec.get("model")
        inside = [{**model, "__path__": f"spec.{role}.model"}] if isinstance(model, dict) else []
        yield PodTemplateView(f"spec.{role}", {**spec, "containers": [*inside, *maps(spec.get("containers"))]}, {})
