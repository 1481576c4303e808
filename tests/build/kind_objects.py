"""Builders of small API objects as a client would send them, for the tests of what each kind fills in and refuses."""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.field_errors import FieldError
from shoal.embedded.apiserver.kinds.table import STRATEGIES

Obj = dict[str, Any]


def container(name: str = "main", image: str = "registry/train:1.2", **fields: Any) -> Obj:
    return {"name": name, "image": image, **fields}


def pod(*containers: Obj, name: str = "train", **spec: Any) -> Obj:
    held = list(containers) or [container()]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": _metadata(name), "spec": {"containers": held, **spec}}


def template(labels: dict[str, str] | None = None, **spec: Any) -> Obj:
    labelled = {"app": "web"} if labels is None else labels
    return {"metadata": {"labels": labelled}, "spec": {"containers": [container()], **spec}}


def workload(kind: str, *, name: str = "web", group: str = "apps/v1", **spec: Any) -> Obj:
    whole = {"selector": {"matchLabels": {"app": "web"}}, "template": template(), **spec}
    given = {key: value for key, value in whole.items() if value is not None}
    return {"apiVersion": group, "kind": kind, "metadata": _metadata(name), "spec": given}


def job(*, name: str = "train", labels: dict[str, str] | None = None, **spec: Any) -> Obj:
    made = workload("Job", name=name, group="batch/v1", selector=None, template=template(labels, restartPolicy="Never"))
    made["spec"] |= spec
    return made


def created(group: str, plural: str, obj: Obj) -> Obj:
    """The object as it stands after a creation, apart from admission."""
    strategy = STRATEGIES[group, plural]
    strategy.default(obj)
    obj["metadata"] |= {"uid": "7c9e", "generation": 1, "resourceVersion": "5"}
    strategy.prepare_create(obj)
    return obj


def complaints(group: str, plural: str, obj: Obj) -> list[str]:
    """What a creation is refused for, as sentences."""
    return texts(STRATEGIES[group, plural].validate(created(group, plural, obj)))


def texts(errors: list[FieldError]) -> list[str]:
    return [error.text() for error in errors]


def _metadata(name: str) -> Obj:
    return {"name": name, "namespace": "default"}
