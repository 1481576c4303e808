"""Definitions for tests: one version with the schema of `spec` that a test is about."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from shoal.embedded.apiserver.crds.definition_strategy import DEFINITIONS
from shoal.embedded.apiserver.crds.establish import establish
from shoal.embedded.apiserver.crds.serving import served
from shoal.embedded.apiserver.resource import Resource

Obj = dict[str, Any]
NOW = "2026-11-21T10:00:00Z"


def version(name: str = "v1", spec: Obj | None = None, **more: Any) -> Obj:
    """A served version; the first is also stored."""
    properties = {"spec": {"type": "object", **(spec or {})}, "status": {"type": "object"}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    return {"name": name, "served": True, "storage": name == "v1", "schema": schema, **more}


def definition(*versions: Obj, plural: str = "crontabs", kind: str = "CronTab", **names: Any) -> Obj:
    """A definition as a client sends it."""
    group = "stable.example.com"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, **names},
            "versions": list(versions or [version()]),
        },
    }


def created(crd: Obj) -> Obj:
    """As it is kept once it is there: defaulted, with a status."""
    made = deepcopy(crd)
    DEFINITIONS.default(made)
    DEFINITIONS.prepare_create(made)
    return made


def resource(spec: Obj | None = None, **more: Any) -> Resource:
    """The one resource of a definition whose version has this schema of `spec`."""
    (found,) = served(establish(created(definition(version(spec=spec, **more))), [], NOW))
    return found


def crontab(spec: Obj, **more: Any) -> Obj:
    return {
        "apiVersion": "stable.example.com/v1",
        "kind": "CronTab",
        "metadata": {"name": "x"},
        "spec": spec,
        **more,
    }


def faults(crd: Obj) -> list[str]:
    """What is said of a definition that is being created."""
    return [error.text() for error in DEFINITIONS.validate(created(crd))]
