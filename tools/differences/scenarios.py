"""Named sequences of requests, read from `scenarios/*.yaml`.

A file holds a list of scenarios:

    - name: a ConfigMap with a wrong name is refused
      setup:                               # optional: sent to both servers, compared as well
      - {do: POST {core}/configmaps, body: {metadata: {name: a}}}
      requests:
      - {do: GET {core}/configmaps/a, headers: {Accept: text/plain}}
      cleanup:                             # what lies outside of the namespace
      - {do: DELETE /api/v1/nodes/{ns}}

`{ns}` is the scenario's own namespace, which is made before it and deleted after it; `{core}` and `{apps}`, `{batch}`
and so on are the paths of a group in that namespace. `as` names a user to impersonate, `media` is a key of
`sending.MEDIA` or a media type, `kind` fills in apiVersion and kind of the body, `object` takes a valid object of that
kind from `objects.yaml` and merges the body into it.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
import yaml

from shoal.embedded.apiserver.patches.merge_patch import merge_patch
from tools.differences.fuzzing import Base, filled
from tools.differences.sending import Request

Obj = dict[str, Any]
FOLDER = Path(__file__).parent / "scenarios"
_GROUPS = {
    "apps": "apps/v1",
    "autoscaling": "autoscaling/v2",
    "batch": "batch/v1",
    "coordination": "coordination.k8s.io/v1",
    "discovery": "discovery.k8s.io/v1",
    "networking": "networking.k8s.io/v1",
    "policy": "policy/v1",
    "rbac": "rbac.authorization.k8s.io/v1",
    "resource": "resource.k8s.io/v1",
    "storage": "storage.k8s.io/v1",
}


class Step(msgspec.Struct, frozen=True, rename={"user": "as"}, forbid_unknown_fields=True):
    do: str
    body: Any = None
    media: str = ""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    user: str = ""
    object: str = ""
    """The kind of a valid object that `body` is merged into."""


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    requests: tuple[Step, ...]
    setup: tuple[Step, ...] = ()
    cleanup: tuple[Step, ...] = ()


def read(folder: Path = FOLDER) -> list[Scenario]:
    found: list[Scenario] = []
    for file in sorted(folder.glob("*.yaml")):
        found += msgspec.convert(yaml.safe_load(file.read_text()), list[Scenario])
    return found


def requests(scenario: Scenario, namespace: str, objects: list[Base]) -> Iterator[Request]:
    """The requests of a scenario in their order, its setup first."""
    for step in (*scenario.setup, *scenario.requests):
        yield request(step, namespace, objects)


def request(step: Step, namespace: str, objects: list[Base]) -> Request:
    method, _, path = _placed(step.do, namespace).partition(" ")
    body = _placed(step.body, namespace)
    if step.object:
        base = next(one.object for one in objects if one.object["kind"] == step.object)
        body = merge_patch(deepcopy(base), body or {})
    impersonation = {"Impersonate-User": step.user} if step.user else {}
    return Request(method, path, body, step.media, {**step.headers, **impersonation})


def _placed(value: Any, namespace: str) -> Any:
    words = {"{ns}": namespace, "{core}": f"/api/v1/namespaces/{namespace}"}
    words |= {f"{{{name}}}": f"/apis/{group}/namespaces/{namespace}" for name, group in _GROUPS.items()}
    return filled(value, words)
